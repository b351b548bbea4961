"""What a file declares to `up`: schedules, how workers get their kinds, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from timeball.core.cron import Agenda
from timeball.core.records import ScheduleSpec
from timeball.importers.found import Origin
from timeball.worker.child import Load

Form = Literal["auto", "user", "system"]
"""Whether a crontab has a user column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """How files are to be read."""

    form: Form = "auto"
    tz: str
    """The zone of what names none."""

    tz_given: bool = False
    """Whether somebody has said so, and it is not just this machine's."""

    origin: Origin | Literal["python"] | None = None
    """The format of all files; None: by name and content."""

    dry_run: bool = False


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
    paused: bool = False


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


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
