"""The classic defects of limiters, put back in: a named test fails on each of them, every time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from tests.core import test_rate_limiter as laws

from timeball.core import limiter
from timeball.core.limiter import BucketLimiter, WindowLimiter
from timeball.core.rate import NS_PER_S, Rate


class LaterThanAWindow(WindowLimiter):
    """`<` for `<=`: a start exactly one window later must wait."""

    def __init__(self, rate: Rate, guard_ns: int) -> None:
        super().__init__(rate, guard_ns + 1)


class EarlierThanAWindow(WindowLimiter):
    """`<=` for `<`: one a nanosecond too early may go."""

    def __init__(self, rate: Rate, guard_ns: int) -> None:
        super().__init__(rate, guard_ns - 1)


class OneStampMore(WindowLimiter):
    """A deque of R + 1."""

    def __init__(self, rate: Rate, guard_ns: int) -> None:
        super().__init__(Rate(rate.count + 1, rate.per_s), guard_ns)


class FixedWindows(WindowLimiter):
    """Counts by the second on the clock: twice R pass around each boundary."""

    def admit(self, now_ns: int, weight: int = 1) -> int:
        begun_ns = now_ns // self._window_ns * self._window_ns
        if sum(stamp >= begun_ns for stamp in self._stamps) + weight > self._size:
            return begun_ns + self._window_ns - now_ns
        self._free_ns = now_ns
        self._stamps = type(self._stamps)("q", [*self._stamps[weight:], *[now_ns] * weight])
        return 0


class PollingWindow(WindowLimiter):
    """Waits only half of it, then asks again, and again."""

    def admit(self, now_ns: int, weight: int = 1) -> int:
        return (super().admit(now_ns, weight) + 1) // 2


class HoardingRefusals(WindowLimiter):
    """Decides after it has counted: whoever is refused takes a permit too."""

    def admit(self, now_ns: int, weight: int = 1) -> int:
        wait_ns = super().admit(now_ns, weight)
        if wait_ns:
            self._free_ns += self._window_ns
        return wait_ns


class StampThatStays(WindowLimiter):
    """The stamp is made at the claim and stays there, however late the call."""

    def restamp(self, old_ns: int, new_ns: int, weight: int = 1) -> int:
        return 0


class BottomlessBucket(BucketLimiter):
    """Permits pile up above C while it rests."""

    def admit(self, now_ns: int, weight: int = 1) -> int:
        self._full_at = max(self._full_at, 0)
        if self._full_at + weight * self._step - now_ns * self._units_per_ns > self._room:
            return self._wait_ns(self._full_at, now_ns, weight)
        self._full_at += weight * self._step
        return 0


class OnePermitMore(BucketLimiter):
    """A bucket of C + 1."""

    def __init__(self, rate: Rate, guard_ns: int) -> None:
        super().__init__(rate, guard_ns)
        self._room += self._step


class FloatBucket(BucketLimiter):
    """Keeps seconds in a float."""

    def __init__(self, rate: Rate, guard_ns: int) -> None:
        super().__init__(rate, guard_ns)
        self._permit_s = 1 / float(rate.refill_per_ns * NS_PER_S)
        self._room_s = rate.capacity * self._permit_s
        self._full_s = -math.inf

    def admit(self, now_ns: int, weight: int = 1) -> int:
        now_s = now_ns / NS_PER_S
        full_s = max(self._full_s, now_s) + weight * self._permit_s
        wait_ns = math.ceil((full_s - self._room_s - now_s) * NS_PER_S - 0.001)  # for short runs
        if wait_ns <= 0:
            self._full_s = full_s
        return max(0, wait_ns)


class WaitRoundedDown(BucketLimiter):
    """Wakes a fraction of a nanosecond too early, and spins until it is there."""

    def admit(self, now_ns: int, weight: int = 1) -> int:
        return max(0, super().admit(now_ns, weight) - 1)


class RoundedPermit(BucketLimiter):
    """One permit in 333,333,333 ns, not in a third of a second."""

    def __init__(self, rate: Rate, guard_ns: int) -> None:
        super().__init__(rate, guard_ns)
        self._step, self._units_per_ns = self._step // self._units_per_ns, 1
        self._room = rate.capacity * self._step


KILLERS: list[tuple[type[Any], Callable[[], None]]] = [
    (LaterThanAWindow, laws.test_a_window_lets_a_start_go_exactly_one_window_later),
    (EarlierThanAWindow, laws.test_a_window_lets_a_start_go_exactly_one_window_later),
    (OneStampMore, laws.test_a_window_of_three_lets_seven_go_three_at_a_time),
    (OneStampMore, laws.test_eleven_a_second_under_32_impatient_askers_is_never_twelve),
    (FixedWindows, laws.test_a_window_slides_with_each_of_its_starts),
    (PollingWindow, laws.test_a_window_of_three_lets_seven_go_three_at_a_time),
    (HoardingRefusals, laws.test_being_refused_or_asking_costs_nothing),
    (StampThatStays, laws.test_a_start_moved_to_its_call_opens_the_window_from_there),
    (BottomlessBucket, laws.test_a_rest_fills_the_bucket_no_further_than_its_capacity),
    (OnePermitMore, laws.test_a_bucket_bursts_to_its_bounds_and_no_further),
    (FloatBucket, laws.test_a_million_refills_of_a_bucket_lose_nothing),
    (WaitRoundedDown, laws.test_a_bucket_waits_are_rounded_up_and_nothing_is_lost_by_it),
    (RoundedPermit, laws.test_a_million_refills_of_a_bucket_lose_nothing),
]


@pytest.mark.parametrize(
    ("mutant", "killer"), KILLERS, ids=[f"{mutant.__name__}-{k.__name__}" for mutant, k in KILLERS]
)
def test_each_defect_fails_its_named_test(
    mutant: type[Any], killer: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limiter, mutant.__bases__[0].__name__, mutant)
    with pytest.raises(AssertionError):
        killer()
