"""python-dateutil's recurrence rules with an end to their search; imported only where one is read.

Left alone, a rule that fits no day (30 February) is followed through eight thousand years, its
UNTIL notwithstanding. dateutil asks for `_byeaster` whenever it turns to another month or year,
so that is where the looking is counted. That is its own affair and may change: a version that
does not ask has its rules refused, for then nothing would end the search.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import cache
from typing import Any, Final

from dateutil.rrule import rrule, rrulestr  # type: ignore[import-untyped]  # it has no types

# Months of a daily, weekly or monthly rule, periods of a yearly one: a hundred years at least
_LOOKED_AT_MAX: Final = 1_210


class _Enough(Exception):
    """The search has gone far enough."""


class _Bounded(rrule):  # type: ignore[misc]  # it has no types
    """A rule that ends where the search does."""

    looked = 0

    @property
    def _byeaster(self) -> Any:
        self.looked += 1
        if self.looked > _LOOKED_AT_MAX:
            raise _Enough
        return self.__dict__["_byeaster"]

    def _iter(self) -> Iterator[datetime]:
        try:
            yield from super()._iter()
        except _Enough:
            return


def bounded(rule: str, begin: datetime) -> Iterator[datetime]:
    """Yield the wall times of a rule from its beginning, for a hundred years or more.

    Raises:
        ValueError: dateutil does not understand the rule, or its version cannot be bounded.
    """
    if not counted():
        raise ValueError("this version of python-dateutil cannot be used; install 2.9")
    return iter(_made(rule, begin))


@cache
def counted() -> bool:
    """Return whether this version of dateutil asks for what is counted as days go by."""
    made = _made("FREQ=DAILY;COUNT=90", datetime(2026, 1, 1))  # noqa: DTZ001 - what a wall shows
    days = iter(made)
    next(days)
    at_first = made.looked
    return len(list(days)) > 0 and made.looked > at_first


def _made(rule: str, begin: datetime) -> _Bounded:
    made = rrulestr(rule, dtstart=begin)
    made.__class__ = _Bounded  # it makes no rules of another class
    assert isinstance(made, _Bounded)
    return made
