"""Limiters: they grant starts by the law of one rate, each as early as that law allows.

Nothing here reads a clock, sleeps or locks. One caller at a time, in the critical section that
also claims the job: the clock reading made in there is handed in, and is the recorded start.
A clock that was set back is granted nothing until it has caught up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections import deque
from fractions import Fraction
from typing import Final

from timeball.core.rate import NEVER_NS, Rate

RECENT_MAX: Final = 1024  # starts that a bucket can take back; far more than wait to be called


def limiter_of(rate: Rate, *, guard_ns: int = 0) -> Limiter:
    """Return a limiter that has granted nothing yet.

    Args:
        rate: The law to grant by.
        guard_ns: Added to the window, so that its law also holds for clock readings made up to
            `guard_ns` after the stamps. A bucket with a burst promises nothing about a window:
            there it has no effect.
    """
    assert guard_ns >= 0
    return WindowLimiter(rate, guard_ns) if rate.is_window else BucketLimiter(rate, guard_ns)


class Limiter(ABC):
    """Grants starts by the law of one rate.

    Weights count as that many starts at one instant, and are at most the rate's capacity
    (`Rate.check_weight`).
    """

    __slots__ = ()

    @abstractmethod
    def wait_ns(self, now_ns: int, weight: int = 1) -> int:
        """Return how long to wait; 0 says that a start at `now_ns` is legal.

        Rounded up: unless another start comes between, asking again after that wait succeeds.
        """

    @abstractmethod
    def admit(self, now_ns: int, weight: int = 1) -> int:
        """Record a start at `now_ns` and return 0; else change nothing and return the wait."""

    @abstractmethod
    def restamp(self, old_ns: int, new_ns: int, weight: int = 1) -> int:
        """Move the start recorded at `old_ns` to `new_ns` and return 0; else return the wait.

        While there is a wait nothing changes: the start still counts as of `old_ns`. The cost
        grows with the number of starts since.
        """

    @abstractmethod
    def give_back(self, stamp_ns: int, weight: int = 1) -> None:
        """Forget the start recorded at `stamp_ns`: the job was not called after all.

        One too old to be remembered stays counted where it still counts, which errs on the
        side of the law.
        """


class WindowLimiter(Limiter):
    """The window's law: of a ring of the last R stamps the oldest says when.

    A start costs the same whatever R is; the memory is 8 bytes for each of R stamps.
    """

    __slots__ = ("_free_ns", "_newest_ns", "_oldest", "_size", "_stamps", "_window_ns")

    def __init__(self, rate: Rate, guard_ns: int) -> None:
        self._size = rate.count
        self._stamps = array("q", [NEVER_NS]) * self._size  # ascending from _oldest, and round
        self._oldest = 0
        self._newest_ns = NEVER_NS
        self._free_ns = NEVER_NS  # the earliest legal start
        self._window_ns = rate.window_ns + guard_ns

    def wait_ns(self, now_ns: int, weight: int = 1) -> int:
        """Return the time until the `weight`-th oldest stamp is a whole window old."""
        assert 0 < weight <= self._size
        free_ns = self._free_ns
        if weight > 1:
            last = self._stamps[(self._oldest + weight - 1) % self._size]
            free_ns = max(free_ns, last + self._window_ns)
        return free_ns - now_ns if free_ns > now_ns else 0

    def admit(self, now_ns: int, weight: int = 1) -> int:
        """Let the stamp take the place of the oldest, or return the wait."""
        if now_ns < self._free_ns or (weight != 1 and self.wait_ns(now_ns, weight)):
            return self.wait_ns(now_ns, weight)
        stamps, at = self._stamps, self._oldest
        while weight:
            stamps[at] = now_ns
            at += 1
            if at == self._size:
                at = 0
            weight -= 1
        self._oldest = at
        self._newest_ns = now_ns
        free_ns = stamps[at] + self._window_ns
        self._free_ns = free_ns if free_ns > now_ns else now_ns  # noqa: FURB136 - a call costs as much as all this
        return 0

    def restamp(self, old_ns: int, new_ns: int, weight: int = 1) -> int:
        """Move a stamp to the new end, which is legal at once while the ring still has it."""
        assert old_ns <= new_ns
        if new_ns < self._newest_ns:
            return self._newest_ns - new_ns
        # What fell out of the ring has served its window: only a new permit can replace it.
        self.give_back(old_ns, weight)
        return self.admit(new_ns, weight)

    def give_back(self, stamp_ns: int, weight: int = 1) -> None:
        """Take a stamp out of the ring, if it is still there."""
        for _ in range(weight):
            if self._stamps[self._oldest] <= stamp_ns:
                self._forget(stamp_ns)

    def _forget(self, stamp_ns: int) -> None:
        stamps, size = self._stamps, self._size
        place = newest = (self._oldest - 1) % size
        while stamps[place] > stamp_ns:  # ends, since the oldest is no later
            place = (place - 1) % size
        if stamps[place] != stamp_ns:
            return
        while place != newest:
            following = (place + 1) % size
            stamps[place] = stamps[following]
            place = following
        # The place that became free is now the oldest. "Never" is exact there: any stamp that
        # the ring has dropped is at least a window older than the start that dropped it.
        stamps[newest] = NEVER_NS
        self._oldest = newest
        self._free_ns = self._newest_ns


class BucketLimiter(Limiter):
    """The bucket's law: the instant at which the bucket will be full again says when.

    That instant (the "theoretical arrival time" of the generic cell rate algorithm, ITU-T
    Recommendation I.371) is kept in units in which both a nanosecond and the time that one
    permit takes to come back are whole numbers. Time and memory do not depend on R or C.
    """

    __slots__ = ("_full_at", "_newest_ns", "_recent", "_room", "_step", "_units_per_ns")

    def __init__(self, rate: Rate, guard_ns: int) -> None:
        refill = rate.refill_per_ns
        if rate.spread:
            refill *= Fraction(rate.window_ns, rate.window_ns + guard_ns)
        self._units_per_ns, self._step = refill.as_integer_ratio()
        self._room = rate.capacity * self._step
        self._full_at = NEVER_NS * self._units_per_ns
        self._newest_ns = NEVER_NS
        # (stamp, weight, when the bucket would have been full without it), ascending
        self._recent: deque[tuple[int, int, int]] = deque(maxlen=RECENT_MAX)

    def wait_ns(self, now_ns: int, weight: int = 1) -> int:
        """Return the time until the bucket holds `weight` permits."""
        return self._wait_ns(self._full_at, now_ns, weight)

    def _wait_ns(self, full_at: int, now_ns: int, weight: int) -> int:
        needed = weight * self._step
        assert 0 < needed <= self._room
        early = full_at + needed - self._room - now_ns * self._units_per_ns
        return max(0, -(-early // self._units_per_ns), self._newest_ns - now_ns)

    def admit(self, now_ns: int, weight: int = 1) -> int:
        """Take `weight` permits out of the bucket, or return the wait."""
        assert weight > 0
        now, full_at = now_ns * self._units_per_ns, self._full_at
        full_after = max(now, full_at) + weight * self._step
        if full_after - now > self._room or now_ns < self._newest_ns:
            return self._wait_ns(full_at, now_ns, weight)
        self._recent.append((now_ns, weight, full_at))
        self._full_at = full_after
        self._newest_ns = now_ns
        return 0

    def restamp(self, old_ns: int, new_ns: int, weight: int = 1) -> int:
        """Move a start, where the starts since leave a permit; else return the wait."""
        assert old_ns <= new_ns
        place = self._place(old_ns, weight)
        if place is None:
            return self.admit(new_ns, weight)
        full_at = self._recent[place][2]
        for at in range(place + 1, len(self._recent)):
            stamp_ns, size, _ = self._recent[at]
            full_at = max(full_at, stamp_ns * self._units_per_ns) + size * self._step
        wait_ns = self._wait_ns(full_at, new_ns, weight)
        if wait_ns == 0:
            self._forget(place)
            self.admit(new_ns, weight)
        return wait_ns

    def give_back(self, stamp_ns: int, weight: int = 1) -> None:
        """Put `weight` permits back, as if they had never been taken."""
        place = self._place(stamp_ns, weight)
        if place is not None:
            self._forget(place)

    def _place(self, stamp_ns: int, weight: int) -> int | None:
        for place in range(len(self._recent) - 1, -1, -1):
            stamp, size, _ = self._recent[place]
            if stamp < stamp_ns:
                return None
            if (stamp, size) == (stamp_ns, weight):
                return place
        return None

    def _forget(self, place: int) -> None:
        since = [self._recent.pop() for _ in range(len(self._recent) - place)]
        self._full_at = since.pop()[2]
        for stamp_ns, weight, _ in reversed(since):
            self._newest_ns = stamp_ns
            self.admit(stamp_ns, weight)
