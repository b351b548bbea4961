"""The jobs and schedules of Python files and modules, as `up` takes them."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from timeball.action.registry import DEFAULT, Kind
from timeball.cli.declaration import Declared, Fault, Reading
from timeball.client.specs import agenda_of, schedule_spec
from timeball.errors import UsageError
from timeball.worker.child import Load

WHAT_TO_NAME: Final = "name a crontab, a schedules.toml, a Python file or a Python module"


def declare_python(reading: Reading, target: str) -> None:
    """Add the schedules of a Python file or module, which is imported."""
    is_file = target.endswith(".py")
    source = f"file:{Path(target).resolve()}" if is_file else f"module:{target}"
    try:
        kinds = DEFAULT.load(target)
        found = [each for kind in kinds for each in _schedules_of(kind, source)]
    except UsageError as error:
        line = _line_of(error, target) if is_file else None
        reading.faults.append(Fault(target, line, "", _why(error, target)))
        return
    if not kinds:
        reason = "it defines no job: decorate a function with @tb.job or @tb.cron"
        reading.faults.append(Fault(target, None, "", reason))
        return
    reading.sources.append(source)
    reading.queues |= {kind.queue for kind in kinds}
    reading.add(found)
    reading.loads.append(Load(target=str(Path(target).resolve()) if is_file else target))


def _schedules_of(kind: Kind, source: str) -> Iterable[Declared]:
    for each in kind.schedules:
        args: dict[str, Any] = json.loads(each.args)
        spec = schedule_spec(
            each.name,
            kind.call,
            cron=each.expression,
            tz=each.tz,
            gap=each.gap,
            overlap=each.overlap,
            catchup=each.catchup,
            args=args,
            source=source,
        )
        given = ", ".join(f"{name}={value!r}" for name, value in args.items())
        yield Declared(
            spec=spec,
            table=agenda_of(spec),
            place=kind.place,
            does=f"{kind.name}({given})",
        )


def _why(error: UsageError, target: str) -> str:
    """Return what is wrong; a target that is missing may have been meant as a file."""
    cause = error.__cause__
    if isinstance(cause, ModuleNotFoundError) and f"{target}.".startswith(f"{cause.name}."):
        return f"there is neither a file nor a module of that name: {WHAT_TO_NAME}"
    return str(error)


def _line_of(error: UsageError, target: str) -> int | None:
    """Return the line of the file in which loading it went wrong."""
    path, cause = Path(target).resolve(), error.__cause__
    if isinstance(cause, SyntaxError) and cause.filename and Path(cause.filename) == path:
        return cause.lineno
    frames = traceback.extract_tb(cause.__traceback__) if cause else []
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path]
    return lines[-1] if lines else None
