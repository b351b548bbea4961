"""The four kinds of expression that a schedule may have, and which one a text is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from timeball.core.cron.cycle import CALENDAR, Cycle, parse_cycle
from timeball.core.cron.every import EVERY, Every, parse_every
from timeball.core.cron.fields import Cron, DayRule
from timeball.core.cron.parse import parse, plain_text
from timeball.core.cron.recurrence import RRULE, Recurrence, parse_recurrence

Expression = Cron | Every | Cycle | Recurrence
_READERS: Final[dict[str, Callable[[str], Every | Cycle | Recurrence]]] = {
    EVERY: parse_every,
    CALENDAR: parse_cycle,
    RRULE: parse_recurrence,
}


class Walls(Protocol):
    """Wall times in order, in seconds since 1970-01-01 00:00 on that wall."""

    def first(self, wall: int, /) -> int | None:
        """Return the first one not before `wall`, or None."""

    def last(self, wall: int, /) -> int | None:
        """Return the last one not after `wall`, or None."""


def read(
    text: str, *, name: str | None = None, day_rule: DayRule | str = DayRule.CRON
) -> Expression:
    """Return what an expression means: cron text, `@every`, `@calendar` or `@rrule`.

    Args:
        text: The expression.
        name: The schedule's name, from which `H` picks its values.
        day_rule: For cron text; see `DayRule`.

    Raises:
        InvalidSchedule: The text is no expression, or one that never comes due.
    """
    word = plain_text(text).split(maxsplit=1)[:1]
    reader = _READERS.get(word[0].lower()) if word else None
    return reader(text) if reader else parse(text, name=name, day_rule=day_rule)
