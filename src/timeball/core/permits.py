"""Permits to start, handed out to many workers by one clock; and whether the starts kept to it.

A worker asks before it starts, and gets grants: so many permits each, to be used from an instant
on, at most `AHEAD_S` after the question, and within `TTL_S` of that. The worker counts both from
the moments in which it sent the question and had the answer, by its own monotonic clock. So each
start lies between the instant of its grant and the `until` of it, by the clock of whoever grants:
that clock and the worker's need not agree, only run alike. Once a worker has told when it used the
last permit of a grant, and how many it did not use, the grant counts as just that.

The law: a grant of an instant is given only if all permits that may still be used then, or were
used less than a window before at the latest, come to no more than R with it. Of the starts in any
window take the one whose grant was given last: all others' grants counted when it was given. (A
bucket's law likewise, each start taken as late as it may have been; it grants for now only.)

Here and in `store/postgres/functions/permit_*.sql` the same: whole microseconds, whole numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple, Self

from timeball.core.audit import Violation
from timeball.core.rate import (
    EarlyStart,
    Rate,
    bucket_bound_half_open,
    most_in_window,
    violations,
)
from timeball.errors import UsageError

TTL_S: Final = 1.0
"""How long a permit may be used, from the question on."""

AHEAD_S: Final = 0.2
"""How long before its instant a permit may be given: so long may a worker, and whoever else has to
do something first, take without a start being late."""

SETTLING_S: Final = TTL_S + AHEAD_S
"""From when a rate is set until it holds: permits of before must have run out."""

_TTL_US: Final = 1_000_000
_AHEAD_US: Final = 200_000
_SOON_US: Final = 100_000  # before it opens; then a question gets all that opens in as long again
_TOGETHER_US: Final = 10_000  # what opens within it is one grant
_GUARD_US: Final = 1_000  # for clocks that run 0.1 % apart, and for what records round
_HANDING_MAX_US: Final = 20_000  # from the use of a permit to the first line of the job
_IDLE_US: Final = 86_400_000_000  # somebody may still tell what became of the last permits
_SLACK_US: Final = 50_000  # of an even spacing, what may come together
_GRAINS: Final = 512  # in a window; grants that are over are kept by these, rounded up


class Law(NamedTuple):
    """A rate in whole microseconds."""

    starts: int
    window_us: int
    burst: int | None
    spread: bool

    @classmethod
    def of(cls, rate: Rate) -> Self:
        """Return the law of a rate.

        Raises:
            UsageError: Its window is no whole number of microseconds.
        """
        if rate.window_ns % 1_000:
            raise UsageError(
                f"{rate} has a window of a fraction of a microsecond: write whole microseconds, "
                "for a limit over all workers counts in them"
            )
        return cls(rate.count, rate.window_ns // 1_000, rate.burst, rate.spread)

    @property
    def rate(self) -> Rate:
        """The rate whose law this is."""
        per_s = Fraction(self.window_us, 1_000_000)
        return Rate(self.starts, per_s, burst=self.burst, spread=self.spread)

    @property
    def at_once(self) -> int:
        """The most permits that one instant gives."""
        if self.burst is not None:
            return self.burst
        if not self.spread:
            return self.starts
        return max(1, -(-self.starts * _SLACK_US // max(self.window_us, 1_000_000)))

    @property
    def guard_us(self) -> int:
        """How much later than it may be told a start is taken to be; of a window 2 % at most."""
        if self.burst is not None:
            return _GUARD_US
        return _GUARD_US + min(_HANDING_MAX_US, self.window_us // 50)

    @property
    def at_most(self) -> int:
        """The most permits that those get who ask at one instant, in all."""
        if not self.spread:
            return self.at_once
        return min(self.starts, self.at_once + _AHEAD_US * self.starts // self.window_us)


class Grant(NamedTuple):
    """Permits given at one instant; its number is 0 once it is known how they were used."""

    number: int
    until_us: int
    """No start by it is later."""

    permits: int


@dataclass(slots=True)
class Permits:
    """What was granted under one limit, as far as it still matters.

    Instants are microseconds on the store's clock. If that is set back, nothing is granted until
    it has caught up.
    """

    grants: list[Grant] = field(default_factory=list)
    last: int = 0
    """Number of the latest grant."""
    newest_us: int = 0
    """When it was given; it may be of a later instant."""
    full: int = 0
    """When the bucket of a burst, or of an even spacing, is full again: microseconds times R.
    Of a burst without the grants above."""

    def room(self, law: Law, now_us: int) -> int:
        """Return how many permits may be granted now."""
        if now_us < self.newest_us:
            return 0
        full = self._full(law)
        left = law.at_once * law.window_us - max(0, full - now_us * law.starts)
        room = left // law.window_us if law.burst is not None or law.spread else law.starts
        if law.burst is None:
            room = min(room, self._within(law, now_us))
        return max(0, room)

    def offer(self, law: Law, now_us: int, want: int) -> tuple[int, int]:
        """Return from which instant on, and how many permits may be granted; 0: none soon."""
        room = min(want, self.room(law, now_us))
        latest_us = now_us + _AHEAD_US
        if room or law.burst is not None or now_us < self.newest_us:
            return now_us, room
        first_us = self.opens_us(law, now_us)
        if first_us > latest_us:
            return now_us, 0
        room = min(want, self.room(law, min(first_us + _TOGETHER_US, latest_us)))
        return self.opens_us(law, now_us, room), room

    def take(self, law: Law, now_us: int, permits: int, at_us: int | None = None) -> int:
        """Grant permits from an instant on, and return the number of the grant.

        There must be room for them at that instant, which is now or later.
        """
        at_us = now_us if at_us is None else at_us
        assert 0 < permits <= self.room(law, at_us)
        if law.spread:
            self.full = max(self._full(law), at_us * law.starts) + permits * law.window_us
        self._forget(law, now_us)
        self.last = max(self.last + 1, now_us)  # never again, though all this be forgotten
        self.newest_us = now_us
        self.grants.append(Grant(self.last, at_us + _TTL_US + law.guard_us, permits))
        return self.last

    def spend(self, law: Law, number: int, used: int, late_us: int) -> None:
        """Note how the permits of a grant were used; nothing happens if it is known already.

        Args:
            law: The present one.
            number: Of the grant.
            used: How many were.
            late_us: The last of them so long after the question, less what the instant of the
                grant was after it; rounded up.
        """
        for at, grant in enumerate(self.grants):
            if grant.number == number:
                until_us = grant.until_us - _TTL_US + min(late_us, _TTL_US)
                if law.burst is None:
                    grain = law.window_us // _GRAINS + 1
                    until_us = -(-until_us // grain) * grain
                self.grants[at : at + 1] = [Grant(0, until_us, used)] if used else []
                if law.spread:
                    self.full -= (grant.permits - used) * law.window_us
                return

    def is_idle(self, law: Law | None, now_us: int) -> bool:
        """Return whether nothing changes if all this is forgotten; after a day at the earliest."""
        quiet_us = now_us - self.newest_us - _IDLE_US
        if law is None:
            return quiet_us >= 0
        return quiet_us >= law.window_us and self._full(law) <= now_us * law.starts

    def soon_us(self, law: Law, now_us: int, more: int = 0) -> int | None:
        """Return when to ask for one that comes after `more` others; None: they are too many."""
        if more >= law.at_most:
            return None
        soon_us = 0 if law.burst is not None else _SOON_US
        return max(now_us, self.newest_us, self.opens_us(law, now_us, more + 1) - soon_us)

    def soon(self, law: Law, now_us: int) -> int:
        """Return how many could be had by those who ask now, in all."""
        if law.burst is not None or now_us < self.newest_us:
            return self.room(law, now_us)
        room = self._within(law, now_us + _AHEAD_US)
        if law.spread:  # one after the other, more than what comes together
            owed = max(0, self._full(law) - now_us * law.starts) - _AHEAD_US * law.starts
            room = min(room, law.at_once - -(-owed // law.window_us))
        return max(0, room)

    def opens_us(self, law: Law, now_us: int, permits: int = 1) -> int:
        """Return from when on there can be room for so many, by what is known now.

        Of an even spacing these may be more than come together: then for the last one.
        """
        if self.room(law, now_us) >= permits:
            return now_us
        opens_us = max(now_us, self.newest_us)
        if law.burst is not None or law.spread:
            full = self._full(law)
            if law.spread:
                full = max(full, now_us * law.starts)
            full -= (law.at_once - permits) * law.window_us
            opens_us = max(opens_us, -(-full // law.starts))
        if law.burst is None:
            excess = sum(grant.permits for grant in self.grants) - law.starts + permits
            for grant in sorted(self.grants, key=attrgetter("until_us")):
                if excess <= 0:
                    break
                excess -= grant.permits
                opens_us = max(opens_us, grant.until_us + law.window_us)
        return opens_us

    def _within(self, law: Law, at_us: int) -> int:
        """Return what a window leaves at an instant."""
        alive = (grant for grant in self.grants if grant.until_us + law.window_us > at_us)
        return law.starts - sum(grant.permits for grant in alive)

    def _full(self, law: Law, grants: Sequence[Grant] | None = None) -> int:
        # No law lets a bucket owe more; what is on record may be in units of the law before.
        latest_us = self.newest_us + _AHEAD_US + _TTL_US + _GUARD_US + _HANDING_MAX_US
        full = min(self.full, latest_us * law.starts + law.at_once * law.window_us)
        if law.burst is None:
            return full
        for _, until_us, permits in sorted(
            self.grants if grants is None else grants, key=attrgetter("until_us")
        ):
            full = max(full, until_us * law.starts) + permits * law.window_us
        return full

    def _forget(self, law: Law, now_us: int) -> None:
        if law.burst is not None:
            over = [each for each in self.grants if each.number == 0 or each.until_us <= now_us]
            self.full = self._full(law, over)
            self.grants = [each for each in self.grants if each not in over]
            return
        counts: Counter[tuple[int, int]] = Counter()
        for number, until_us, permits in self.grants:
            if until_us + law.window_us > now_us:
                counts[number, until_us] += permits
        self.grants = [Grant(*key, permits) for key, permits in counts.items()]


class Start(NamedTuple):
    """One start on record, of a turn that was granted when the limit's present rate held."""

    name: str
    """Of the limit, such as ``queue:mail``; of a pattern, that of the key."""

    rate: Rate
    at_us: int


class Proof(NamedTuple):
    """How the starts of one limit stand against its rate."""

    name: str
    rate: Rate
    starts: int
    most: int
    """The most starts in any window."""

    early: tuple[EarlyStart, ...]
    """Those that the law did not allow."""

    @property
    def allowed(self) -> int:
        """The most starts that a window may have."""
        if self.rate.burst is None:
            return self.rate.count
        return bucket_bound_half_open(self.rate, self.rate.window_ns)


def proofs(starts: Iterable[Start]) -> Iterator[Proof]:
    """Yield one proof per limit; `starts` by name."""
    for (name, rate), rows in groupby(starts, lambda start: (start.name, start.rate)):
        stamps = [row.at_us * 1_000 for row in rows]
        # An even spacing promises the window's law to a fleet: each worker starts a little late.
        law = Rate(rate.count, rate.per_s) if rate.spread else rate
        most, _ = most_in_window(stamps, rate.window_ns)
        yield Proof(name, rate, len(stamps), most, tuple(violations(stamps, law)))


def rate_violations(starts: Iterable[Start]) -> Iterator[Violation]:
    """Yield every start that the rate of its limit did not allow yet: I8; `starts` by name."""
    for proof in proofs(starts):
        for early in proof.early:
            ahead_s = (early.allowed_ns - early.stamp_ns) / 1e9
            text = f"start {early.index + 1} of {proof.starts} came {ahead_s:.6f} s early"
            yield Violation("I8", proof.name.replace(":", " ", 1), f"{text} for {proof.rate}")
