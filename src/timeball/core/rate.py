"""Rates of starts: what each of them allows, its bounds, and whether some starts kept to it.

Instants are integer nanoseconds of one monotonic clock: a wall clock steps, and would open or
freeze a window. All arithmetic is exact, because floats lose a start within 10^6 refills.

Three laws, for start stamps in ascending order:

- window, ``Rate(R, P)``: ``s[k+R] - s[k] >= P`` for every k, so that no half-open interval of
  length P, wherever it begins, holds more than R starts;
- bucket, ``Rate(R, P, burst=C)``: at most ``C + floor(r * T)`` starts in a closed interval of
  length T, with ``r = R / P``;
- spread, ``Rate(R, P, spread=True)``: a bucket with a C so small and an r so little below
  ``R / P`` that the window's law holds too.

`limiter.py` grants starts by these laws.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final, Self

from timeball.errors import UsageError

NS_PER_S: Final = 1_000_000_000
COUNT_MAX: Final = 1_000_000  # a window remembers that many stamps, 8 bytes each
PER_S_MAX: Final = 366 * 86_400
SPREAD_SLACK: Final = Fraction(4, 1000)  # seconds that a late start may make up for
NEVER_NS: Final = -(1 << 62)

_SECONDS: Final = {
    "ms": Fraction(1, 1000),
    **dict.fromkeys(("s", "sec", "second", "seconds"), Fraction(1)),
    **dict.fromkeys(("m", "min", "minute", "minutes"), Fraction(60)),
    **dict.fromkeys(("h", "hour", "hours"), Fraction(3600)),
    **dict.fromkeys(("d", "day", "days"), Fraction(86_400)),
}
_NUMBER: Final = r"\d{1,12}(?:\.\d{1,12})?"
_TEXT: Final = re.compile(
    rf"(?P<count>{_NUMBER})\s*(?:/|\bper\b)\s*(?P<per>{_NUMBER})?\s*(?P<unit>[a-z]+)"
    r"(?:\s+burst\s+(?P<burst>\d{1,12})|\s+(?P<spread>spread))?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Rate:
    """How many starts are allowed in how many seconds; a strict window unless told otherwise.

    A count that is no whole number stands for the same rate over a longer window: 0.5 a second
    is 1 in 2 seconds, 2.5 a second is 5 in 2 seconds. Floats count as they are written: 0.1 is
    one tenth.

    Args:
        count: R, starts in one window; above 0, at most 1,000,000.
        per_s: P, length of the window in seconds: whole nanoseconds, at most 366 days, and at
            least one nanosecond per start.
        burst: C, starts that may come at once after a rest; makes it a token bucket.
        spread: Space the starts evenly instead of letting R come at once. R of 250 a second or
            fewer are spaced exactly; above, up to 4 ms of lateness are made up for, which costs
            less than 0.4 % of the rate.

    Raises:
        UsageError: No limiter could keep to these numbers; the text says what to write.
    """

    count: int
    per_s: Fraction
    burst: int | None
    spread: bool
    # What follows from those is worked out once: makespans ask for it start by start.
    window_ns: int = field(compare=False)
    """P, the length of the window."""
    capacity: int = field(compare=False)
    """C, the most that may start at one instant, and so the largest weight of a job."""
    refill_per_ns: Fraction = field(compare=False)
    """The rate in the long run: ``R / P``, of a spread one ``(R - C + 1) / P``."""

    def __init__(
        self,
        count: float | Fraction,
        per_s: float | Fraction = 1,
        *,
        burst: int | None = None,
        spread: bool = False,
    ) -> None:
        starts, window_s = _exact("count", count), _exact("per_s", per_s)
        window_s *= starts.denominator
        if starts.numerator > COUNT_MAX:
            raise UsageError(
                "count is no simple fraction or too large: write whole starts up to 1,000,000 and "
                "the seconds they may take, such as Rate(1, per_s=3) for a third a second"
            )
        if window_s > PER_S_MAX or (window_s * NS_PER_S).denominator != 1:
            raise UsageError(
                f"per_s is {per_s!r}: write whole nanoseconds, up to 366 days a window, such as "
                "Rate(3, per_s=1) for one in a third of a second"
            )
        if starts.numerator > window_s * NS_PER_S:
            raise UsageError("that is above 1,000,000,000 a second: leave the rate out instead")
        if burst is not None and (isinstance(burst, bool) or not isinstance(burst, int)):
            raise UsageError(f"burst is {burst!r}: write a whole number, 1 or more")
        if burst is not None and burst < 1:
            raise UsageError(f"burst is {burst}: write 1 or more, or leave it out")
        if burst is not None and spread:
            raise UsageError("burst and spread exclude each other: write one of them")
        object.__setattr__(self, "count", starts.numerator)
        object.__setattr__(self, "per_s", window_s)
        object.__setattr__(self, "burst", burst)
        object.__setattr__(self, "spread", spread)
        object.__setattr__(self, "window_ns", int(window_s * NS_PER_S))
        capacity, refill = burst or self.count, self.count
        if spread:
            capacity = math.ceil(self.count * SPREAD_SLACK / max(Fraction(1), window_s))
            refill = self.count - capacity + 1
        object.__setattr__(self, "capacity", capacity)
        object.__setattr__(self, "refill_per_ns", Fraction(refill, self.window_ns))

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the rate that `text` spells: `8/s`, `100/m`, `50 per 1s`, `9/s burst 3`."""
        match = _TEXT.fullmatch(text.strip())
        unit_s = _SECONDS.get(match["unit"].lower()) if match else None
        if match is None or unit_s is None:
            raise UsageError(
                f"the rate {text!r} is not understood: write starts and a time in ms, s, m, h or "
                "d, such as '8/s', '100/m' or '50 per 10s', then perhaps 'burst 5' or 'spread'"
            )
        return cls(
            Fraction(match["count"]),
            Fraction(match["per"] or 1) * unit_s,
            burst=int(match["burst"]) if match["burst"] else None,
            spread=match["spread"] is not None,
        )

    def __str__(self) -> str:
        units = {1: "/s", 60: "/m", 3600: "/h", 86_400: "/d"}
        whole, rest = divmod(self.window_ns, NS_PER_S)
        decimals = f".{rest:09d}".rstrip("0") if rest else ""
        per = units.get(self.per_s.numerator) if not rest else None
        shape = " spread" if self.spread else f" burst {self.burst}" if self.burst else ""
        return f"{self.count}{per or f' per {whole}{decimals}s'}{shape}"

    def __repr__(self) -> str:
        return f"Rate.parse({str(self)!r})"

    @property
    def is_window(self) -> bool:
        """Whether the window's law is all there is, with neither burst nor spread."""
        return self.burst is None and not self.spread

    @property
    def gap_ns(self) -> int:
        """H, the rest after which no earlier start counts any more: P, of a bucket C / r."""
        return self.window_ns if self.is_window else math.ceil(self.capacity / self.refill_per_ns)

    def earliest_offset_ns(self, k: int) -> int:
        """Return how long after the first start the k-th can come: the law allows no less.

        A limiter that is never kept waiting for jobs starts them at exactly these offsets.

        Args:
            k: 1 for the first start, whose offset is 0.
        """
        assert k >= 1
        if self.is_window:
            return (k - 1) // self.count * self.window_ns
        starts, ns = self.refill_per_ns.numerator, self.refill_per_ns.denominator
        if self.capacity == 1:  # each gap is rounded up by itself: nothing can be made up for
            return (k - 1) * -(-ns // starts)
        return max(0, -(-(k - self.capacity) * ns // starts))

    def check_weight(self, weight: int) -> None:
        """Raise UsageError where a job of this weight could never start."""
        if isinstance(weight, bool) or not isinstance(weight, int) or weight < 1:
            raise UsageError(f"weight is {weight!r}: write a whole number, 1 or more")
        if weight > self.capacity:
            raise UsageError(
                f"weight is {weight}, but {self} never lets more than {self.capacity} start at "
                "once: write a smaller weight, or a rate with a larger count or burst"
            )


def _exact(name: str, value: float | Fraction) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction):
        raise UsageError(f"{name} is {value!r}: write a number, or Rate.parse('50/s')")
    if not 0 < value < math.inf:  # nor is NaN
        raise UsageError(f"{name} is {value!r}: write a number above 0, or no rate for no limit")
    return Fraction(str(value)) if isinstance(value, float) else Fraction(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyStart:
    """A start that the law did not allow yet, for those before it."""

    index: int  # among the stamps in ascending order
    stamp_ns: int
    allowed_ns: int


def violations(stamps_ns: Iterable[int], rate: Rate) -> list[EarlyStart]:
    """Return every start that came earlier than the law of `rate` allows; none if it was kept."""
    stamps = sorted(stamps_ns)
    if rate.is_window:
        allowed = [NEVER_NS] * rate.count + [stamp + rate.window_ns for stamp in stamps]
    else:
        allowed = _allowed_by_bucket(stamps, rate)
    return [
        EarlyStart(index=index, stamp_ns=stamp, allowed_ns=allowed_ns)
        for index, (stamp, allowed_ns) in enumerate(zip(stamps, allowed, strict=False))
        if stamp < allowed_ns
    ]


def _allowed_by_bucket(stamps: list[int], rate: Rate) -> list[int]:
    units_per_ns, step = rate.refill_per_ns.as_integer_ratio()
    full_at = NEVER_NS * units_per_ns
    allowed = []
    for stamp in stamps:
        allowed.append(-(((rate.capacity - 1) * step - full_at) // units_per_ns))
        full_at = max(full_at, stamp * units_per_ns) + step
    return allowed


def most_in_window(stamps_ns: Iterable[int], window_ns: int) -> tuple[int, int]:
    """Return the most starts in any half-open interval of that length, and the first one's index.

    The index counts in ascending order; the answer for no starts at all is (0, 0).
    """
    stamps = sorted(stamps_ns)
    counts = [bisect_left(stamps, stamp + window_ns) - at for at, stamp in enumerate(stamps)]
    most = max(counts, default=0)
    return most, counts.index(most) if counts else 0


def bucket_bound_closed(rate: Rate, span_ns: int | Fraction) -> int:
    """Return the most starts of a bucket in a closed interval: ``C + floor(r * T)``."""
    assert not rate.is_window
    assert span_ns >= 0
    return rate.capacity + math.floor(rate.refill_per_ns * span_ns)


def bucket_bound_half_open(rate: Rate, span_ns: int | Fraction) -> int:
    """Return the most starts of a bucket in a half-open interval: ``C + ceil(r * T) - 1``."""
    assert not rate.is_window
    assert span_ns > 0
    return rate.capacity + math.ceil(rate.refill_per_ns * span_ns) - 1


def satisfies_strict_cap(bucket: Rate, count: int, window_ns: int) -> bool:
    """Return whether a bucket never has more than `count` starts in a window of that length.

    That is so if and only if ``r <= (R - C + 1) / P``: the half-open bound, solved for r.
    """
    assert not bucket.is_window
    return bucket.refill_per_ns <= Fraction(count - bucket.capacity + 1, window_ns)
