"""What a lint says about a schedule, and what its rules are given to look at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from timeball.core.cron import Agenda, Timetable
from timeball.importers.found import Found, Origin


class Severity(StrEnum):
    """How sure it is that the file does not do what its author means."""

    ERROR = "error"  # it does something that nobody means
    WARNING = "warning"  # it surprises on some days, or most readers
    HINT = "hint"  # worth a thought


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One remark about a file."""

    line: int  # 1-based
    rule: str
    severity: Severity
    name: str
    """Of the schedule; empty where it is about the file."""

    says: str
    """What happens, with numbers; redacted."""

    instead: str
    """What to write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One scheduled thing, with all that rules need to know about it."""

    found: Found
    origin: Origin
    tz: str
    """The zone that holds for it."""

    agenda: Agenda
    table: Timetable | None
    """What its cron expression says; None for an interval and other rules."""

    after: datetime
    """Where "next" begins."""

    def finding(self, rule: str, severity: Severity, says: str, instead: str) -> Finding:
        """Return a remark about this one."""
        return Finding(
            line=self.found.line,
            rule=rule,
            severity=severity,
            name=self.found.name,
            says=says,
            instead=instead,
        )
