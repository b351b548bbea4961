"""What the files given to `up` declare: their schedules, and everything that is wrong in them."""

from __future__ import annotations

import json
import os
import pwd
import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from timeball.action.registry import DEFAULT, Kind
from timeball.cli.crontab_kinds import LOADER, handed_over, own_name
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.cron import Agenda
from timeball.core.records import ScheduleSpec
from timeball.errors import InvalidSchedule, UsageError
from timeball.importers.crontab import CrontabEntry, UserInfo, read_crontab
from timeball.worker.child import Load

Form = Literal["auto", "user", "system"]


_CRONTAB_MAX: Final = 4 << 20
_WHAT_TO_NAME: Final = "name a crontab, a Python file or a Python module"


class Fault(NamedTuple):
    """Something in a file that cannot be used."""

    file: str
    line: int | None
    text: str
    reason: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.text} — {self.reason}" if self.text else f"{place}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """One schedule of a file."""

    spec: ScheduleSpec
    table: Agenda
    place: str
    does: str
    """What it runs, for people."""

    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class Reading:
    """All that was found in all files."""

    schedules: list[Declared] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    loads: list[Load] = field(default_factory=list)
    """How the workers get the kinds."""

    sources: list[str] = field(default_factory=list)
    """What each file is called in the store; a schedule that it no longer has is withdrawn."""

    queues: set[str] = field(default_factory=lambda: {"default"})
    """Where the jobs of these kinds line up, and those of crontabs."""

    def add(self, found: Iterable[Declared]) -> None:
        """Add schedules; one whose name is taken is a fault."""
        places = {each.spec.name: each.place for each in self.schedules}
        for each in found:
            name = each.spec.name
            if name in places:
                file, _, line = each.place.rpartition(":")
                reason = f"{places[name]} declares the same schedule: rename one of the two files"
                self.faults.append(Fault(file or line, _number(line), name, reason))
                continue
            places[name] = each.place
            self.schedules.append(each)


def read(files: Iterable[str], *, form: Form, tz: str) -> Reading:
    """Return what files declare; nothing in them raises.

    Args:
        files: Crontabs, Python files, names of Python modules.
        form: Whether the crontabs have a user column.
        tz: The zone of the lines of crontabs that name none.
    """
    reading = Reading()
    for file in dict.fromkeys(files):
        path = Path(file)
        if path.suffix == ".py" or (not path.exists() and _is_module_name(file)):
            _read_python(reading, file)
        else:
            _read_crontab(reading, path, form=form, tz=tz)
    return reading


def _is_module_name(text: str) -> bool:
    return all(part.isidentifier() for part in text.split("."))


# Crontabs -----------------------------------------------------------------------------------


def _read_crontab(reading: Reading, path: Path, *, form: Form, tz: str) -> None:
    try:
        with path.open("rb") as file:  # which may be a pipe, or have no end
            content = file.read(_CRONTAB_MAX + 1)
        reason = f"larger than {_CRONTAB_MAX:,} bytes" if len(content) > _CRONTAB_MAX else ""
    except OSError as error:
        reason = str(error.strerror)
    if reason:
        reading.faults.append(Fault(str(path), None, "", f"{reason}: {_WHAT_TO_NAME}"))
        return
    source, text = str(path.resolve()), content.decode(errors="surrogateescape")
    found = read_crontab(
        text, source=source, form=form, default_tz=tz, known_user=_known_user, owner=_owner()
    )
    reading.faults += [
        Fault(str(path), each.line, each.text, each.reason) for each in found.problems
    ]
    reading.sources.append(f"file:{source}")
    reading.add(_line(entry, path, f"file:{source}") for entry in found.entries)
    reading.loads.append(Load(target=source, loader=LOADER, options=handed_over(found.entries)))


def _line(entry: CrontabEntry, path: Path, source: str) -> Declared:
    spec = schedule_spec(
        entry.name,
        entry.name,
        cron=entry.expression,
        tz=entry.tz,
        source=source,
        max_retries=0,  # cron never tries a command again
    )
    as_user = f" (as {entry.user})" if entry.user else ""
    return Declared(
        spec=spec,
        table=agenda_of(spec),
        place=f"{path}:{entry.line}",
        does=entry.command + as_user,
        notes=entry.notes,
    )


def _known_user(name: str) -> UserInfo | None:
    try:
        found = pwd.getpwnam(name)
    except KeyError:
        return None
    if os.geteuid() != 0 and name != own_name():
        raise InvalidSchedule(
            f"only root can run commands as {name}: start timeball as root, or move the line to "
            f"a crontab of {name}'s own"
        )
    return UserInfo(name=name, home=found.pw_dir)


def _owner() -> UserInfo:
    try:
        home = pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:
        home = os.environ.get("HOME", "/")
    return UserInfo(name=own_name(), home=home)


# Python -------------------------------------------------------------------------------------


def _read_python(reading: Reading, target: str) -> None:
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
        return f"there is neither a file nor a module of that name: {_WHAT_TO_NAME}"
    return str(error)


def _line_of(error: UsageError, target: str) -> int | None:
    """Return the line of the file in which loading it went wrong."""
    path, cause = Path(target).resolve(), error.__cause__
    if isinstance(cause, SyntaxError) and cause.filename and Path(cause.filename) == path:
        return cause.lineno
    frames = traceback.extract_tb(cause.__traceback__) if cause else []
    lines = [frame.lineno for frame in frames if Path(frame.filename) == path]
    return lines[-1] if lines else None


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
