"""What the files given to `up` declare: their schedules, and everything that is wrong in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final, Literal

from timeball.cli.declaration import Asked, Declared, Fault, Form, Reading
from timeball.cli.declared_crontab import declare_crontab
from timeball.cli.declared_found import declare_findings
from timeball.cli.declared_python import declare_python
from timeball.cli.schedule_file import text_of
from timeball.core.redaction import redacted
from timeball.errors import UsageError
from timeball.importers.formats import origin_of, read_findings
from timeball.importers.found import Origin

__all__ = ["Asked", "Declared", "Fault", "Form", "Reading", "read"]

_PYTHON: Final = "python"
_Way = Origin | Literal["python"]


def read(files: Iterable[str], asked: Asked) -> Reading:
    """Return what files declare; nothing in them raises.

    Only Python files of Timeball's own are imported, and they come first, because the other
    files may name their kinds.

    Args:
        files: Crontabs, schedules.toml, files of other schedulers, Python files, names of Python
            modules.
        asked: How to read them.
    """
    reading, others = Reading(), []
    for file in dict.fromkeys(files):
        path = Path(file)
        if asked.origin == _PYTHON or (not path.exists() and _is_python_name(path, file)):
            declare_python(reading, file)
            continue
        text = _text(reading, path)
        if text is None:
            continue
        way = _way(reading, path, text, asked)
        if way == _PYTHON:
            declare_python(reading, file)
        elif way is not None:
            others.append((path, text, Origin(way)))
    for path, text, origin in others:
        _declare(reading, path, text, origin, asked)
    return reading


def _is_python_name(path: Path, text: str) -> bool:
    return path.suffix == ".py" or all(part.isidentifier() for part in text.split("."))


def _text(reading: Reading, path: Path) -> str | None:
    try:
        return text_of(str(path.absolute()))  # a file called - is no stdin
    except UsageError as error:
        reading.faults.append(Fault(str(path), None, "", str(error)))
        return None


def _way(reading: Reading, path: Path, text: str, asked: Asked) -> _Way | None:
    """Return the format of a file; None where that is not clear, which is a fault."""
    try:
        return asked.origin or origin_of(str(path), text) or _PYTHON
    except UsageError as error:
        reading.faults.append(Fault(str(path), None, "", str(error)))
        return None


def _declare(reading: Reading, path: Path, text: str, origin: Origin, asked: Asked) -> None:
    if origin is Origin.CRONTAB:
        declare_crontab(reading, path, text, asked)
        return
    try:
        findings = read_findings(text, source=str(path), origin=origin)
    except UsageError as error:
        reading.faults.append(Fault(str(path), None, "", redacted(str(error))))
        return
    if not findings.found and not findings.needs:
        reason = f"it holds no schedule, read as {origin}: choose another with --format"
        reading.faults.append(Fault(str(path), None, "", reason))
        return
    declare_findings(reading, path, findings, asked)
