"""What a schedule does where a clock jumps, and how one that does not say gets its answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from timeball.core.cron.cycle import Cycle
from timeball.core.cron.every import Every
from timeball.core.cron.expression import Expression
from timeball.core.cron.fields import HOUR, Cron
from timeball.core.cron.parse import one_of
from timeball.core.cron.recurrence import Recurrence


class Gap(StrEnum):
    """What becomes of a wall time that does not exist because the clock jumps over it."""

    NEXT_VALID = "next_valid"
    """The first instant after the gap; several coalesce."""
    SHIFT = "shift"
    """As if the clock had not jumped yet: 02:30 runs when it shows 03:30 (RFC 5545)."""
    SKIP = "skip"
    PREV_VALID = "prev_valid"
    """The last minute before the gap (the last second where seconds are written)."""


class Overlap(StrEnum):
    """Which pass counts for a wall time that comes twice."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"


class Dst(StrEnum):
    """How a schedule that names no policy gets one."""

    AUTO = "auto"
    CRON = "cron"


@dataclass(frozen=True, slots=True)
class Policy:
    """What happens where a clock jumps."""

    gap: Gap
    overlap: Overlap


def resolve(
    expressions: Expression | Iterable[Expression],
    dst: Dst | str = Dst.AUTO,
    *,
    gap: Gap | str | None = None,
    overlap: Overlap | str | None = None,
) -> Policy:
    """Return the policy of a schedule; `gap` and `overlap` overrule what `dst` finds.

    An interval-like schedule skips and runs in both passes, so that its cadence in real time
    is unbroken; any other runs once a day for each time it names, whatever the clock does.
    `auto` calls an expression interval-like when it comes due in all 24 hours; `cron` when its
    minute or hour begins with `*`, as Debian's cron does. Of several, all must be so.
    """
    every = expressions if isinstance(expressions, Iterable) else (expressions,)
    rule = one_of(Dst, dst)
    interval = all(_interval(each, rule) for each in every)
    return Policy(
        one_of(Gap, gap or (Gap.SKIP if interval else Gap.NEXT_VALID)),
        one_of(Overlap, overlap or (Overlap.BOTH if interval else Overlap.FIRST)),
    )


def keeps_to_the_wall(expressions: Sequence[Expression], policy: Policy) -> bool:
    """Return whether a schedule means times of the wall clock, and no rhythm in real time."""
    if all(isinstance(each, Every) for each in expressions):
        return False
    rhythm = all(_interval(each, Dst.AUTO) for each in expressions)
    return not rhythm or policy.overlap is not Overlap.BOTH


def _interval(expression: Expression, dst: Dst) -> bool:
    match expression:
        case Cron() if dst is Dst.CRON:
            return expression.minute.star or expression.hour.star
        case Cron():
            return len(expression.hour.values) == HOUR.size
        case Every():
            return True  # it knows no wall clock
        case Cycle() | Recurrence():
            return False
        case _:
            assert_never(expression)
