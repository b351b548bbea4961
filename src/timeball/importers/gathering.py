"""What an importer collects while it reads: things found, and what was lost and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from timeball.core.cron import load_zone
from timeball.core.cron.expression import read
from timeball.core.redaction import redacted
from timeball.errors import UsageError
from timeball.importers.found import Findings, Found, Needs, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """When something runs, as its own file says it, in Timeball's words."""

    expression: str
    tz: str | None = None
    day_rule: str | None = None
    interval_s: float | None = None
    jitter_s: int | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    defaulted: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


class Gathering:
    """The findings of one file, while they grow."""

    def __init__(self, origin: Origin, source: str) -> None:
        self._origin = origin
        self._source = source
        self._found: list[Found] = []
        self._needs: list[Needs] = []
        self._notes: list[str] = []
        self._uses = Counter[str]()

    def add(self, found: Found) -> None:
        """Add a thing that runs; what can never run is lost instead, with the reason."""
        self._uses[found.name] += 1
        if self._uses[found.name] > 1:
            found = replace(found, name=f"{found.name}-{self._uses[found.name]}")
        with self.losing(found.line, found.name):
            read(found.expression, name=found.name, day_rule=found.options.day_rule or "cron")
            if found.tz is not None:
                load_zone(found.tz)
            _check_storable(found)
            self._found.append(found)

    @contextmanager
    def losing(self, line: int, name: str) -> Iterator[None]:
        """Have what is wrong in the block said as a need of line and name."""
        try:
            yield
        except UsageError as error:
            self.lose(line, name, str(error))

    def lose(self, line: int, name: str, text: str) -> None:
        """Note something that became nothing, or that is about the file."""
        self._needs.append(Needs(line=line, name=name, text=redacted(text)))

    def note(self, text: str) -> None:
        """Note something about the file that is good to know."""
        if text not in self._notes:
            self._notes.append(text)

    def findings(self, *, default_tz: str | None = None) -> Findings:
        """Return all of it."""
        return Findings(
            origin=self._origin,
            source=self._source,
            found=tuple(self._found),
            needs=tuple(self._needs),
            default_tz=default_tz,
            notes=tuple(self._notes),
        )


def needs(line: int, name: str, texts: Iterable[str]) -> tuple[Needs, ...]:
    """Return remarks about one thing."""
    return tuple(Needs(line=line, name=name, text=redacted(text)) for text in texts)


def seconds(name: str, value: Any) -> float:
    """Return an option's value, a number or a timedelta, in seconds.

    Raises:
        UsageError: It is neither, or not above 0.
    """
    number = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or number <= 0:
        raise UsageError(f"{name} {value!r} is no number of seconds above 0: write one")
    return float(number)


def unnamed(args: str) -> str:
    """Return the need of arguments that are given by place.

    Args:
        args: What their author wrote.
    """
    return (
        f"args {args} have no names, and the arguments of a job have: import the file, write each "
        "as NAME = value in the args of the schedule, and take the # away before it"
    )


def _check_storable(found: Found) -> None:
    """Refuse what no file of schedules can hold.

    Raises:
        UsageError: Its name, or an argument.
    """
    if not found.name or not found.name.isprintable():
        raise UsageError(f"its name {found.name!r} cannot be shown: write printable text")
    try:
        json.dumps(asdict(found.runs), ensure_ascii=False, allow_nan=False).encode()
        json.dumps(found.options.given(), ensure_ascii=False, default=str).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"what it runs is no JSON ({error}): write plain values") from None
