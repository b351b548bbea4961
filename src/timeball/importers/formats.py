"""Which format a file is of, and the one way to read any of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import PurePath
from types import MappingProxyType
from typing import Final, Literal

from timeball.errors import UsageError
from timeball.importers.crontab_found import crontab_findings
from timeball.importers.found import Findings, Origin

BYTES_MAX: Final = 4 << 20
"""Of a file that is looked at; most formats allow less."""

_READERS: Final[Mapping[Origin, str]] = MappingProxyType(
    {
        Origin.CELERY: "celery:celery_findings",
        Origin.APSCHEDULER: "apscheduler:apscheduler_findings",
        Origin.KUBERNETES: "kubernetes:kubernetes_findings",
        Origin.TOML: "toml_file:toml_findings",
    }
)
_BY_SUFFIX: Final[Mapping[str, Origin]] = MappingProxyType(
    {".toml": Origin.TOML, ".yaml": Origin.KUBERNETES, ".yml": Origin.KUBERNETES}
)
_MANIFEST: Final = re.compile(r"^(?:apiVersion|kind)[ \t]*:", re.MULTILINE)
_TOML_TABLE: Final = re.compile(r"^\[schedules\.", re.MULTILINE)
_IMPORTED: Final = r"^[ \t]*(?:from|import)[ \t]+{}\b"
_TIMEBALL: Final = re.compile(_IMPORTED.format("timeball"), re.MULTILINE)
_APSCHEDULER: Final = re.compile(_IMPORTED.format("apscheduler"), re.MULTILINE)
_CELERY: Final = re.compile(
    _IMPORTED.format("celery") + r"|\bCELERY_?BEAT_SCHEDULE\b|\bbeat_schedule\b", re.MULTILINE
)


def origin_of(name: str, text: str) -> Origin | None:
    """Return the format of a file by its name and content; None is Python of Timeball's own.

    Raises:
        UsageError: It could be several; the text says how to choose.
    """
    suffix = PurePath(name).suffix
    if suffix == ".py":
        return _python_origin(text)
    if suffix in _BY_SUFFIX:
        return _BY_SUFFIX[suffix]
    if _MANIFEST.search(text):
        return Origin.KUBERNETES
    return Origin.TOML if _TOML_TABLE.search(text) else Origin.CRONTAB


def read_findings(
    text: str,
    *,
    source: str,
    origin: Origin,
    form: Literal["auto", "user", "system"] = "auto",
) -> Findings:
    """Return what a file of a format holds.

    Args:
        text: The file; undecodable bytes of a crontab as surrogates.
        source: Its path.
        origin: The format.
        form: Whether a crontab has a user column.

    Raises:
        UsageError: It cannot be read at all; what is wrong with single lines is in the findings.
    """
    if origin is Origin.CRONTAB:
        return crontab_findings(text, source=source, form=form)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError("it is not UTF-8: save the file as UTF-8 text") from None
    module, _, name = _READERS[origin].partition(":")
    reader: Callable[..., Findings] = getattr(import_module(f"timeball.importers.{module}"), name)
    return reader(text.removeprefix("\ufeff"), source=source)


def _python_origin(text: str) -> Origin | None:
    if _TIMEBALL.search(text):
        return None
    found = [
        origin
        for origin, pattern in ((Origin.CELERY, _CELERY), (Origin.APSCHEDULER, _APSCHEDULER))
        if pattern.search(text)
    ]
    if len(found) > 1:
        raise UsageError(f"it may be of {' or '.join(found)}: choose with --format")
    return found[0] if found else None
