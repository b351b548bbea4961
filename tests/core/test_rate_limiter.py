"""The limiters grant exactly what the law allows: no start too many, none a nanosecond late."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import count, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.test_rate import breaks_the_law, small_rates

from timeball.core.limiter import Limiter, limiter_of
from timeball.core.rate import (
    NS_PER_S,
    Rate,
    bucket_bound_half_open,
    most_in_window,
    violations,
)

MS = NS_PER_S // 1000


def greedy(limiter: Limiter, arrivals_ns: Iterable[int], weight: int = 1) -> list[int]:
    """Start each job when it has arrived and as soon as the limiter lets it, in order."""
    now_ns, stamps = 0, []
    for arrival_ns in arrivals_ns:
        now_ns = max(now_ns, arrival_ns)
        wait_ns = limiter.admit(now_ns, weight)
        if wait_ns:
            now_ns += wait_ns
            assert limiter.admit(now_ns, weight) == 0, "one wake-up suffices"
        stamps.append(now_ns)
    return stamps


def batch(rate: Rate, starts: int) -> list[int]:
    return greedy(limiter_of(rate), [0] * starts)


def seconds(*values: float) -> list[int]:
    return [round(value * NS_PER_S) for value in values]


def test_a_window_of_three_lets_seven_go_three_at_a_time() -> None:
    assert batch(Rate(3), 7) == seconds(0, 0, 0, 1, 1, 1, 2)


def test_a_window_slides_with_each_of_its_starts() -> None:
    assert greedy(limiter_of(Rate(3)), seconds(0, 0.4, 0.9, 0.9, 0.9)) == seconds(
        0, 0.4, 0.9, 1.0, 1.4
    )


def test_one_in_two_seconds_is_one_every_two_seconds() -> None:
    assert batch(Rate(0.5), 3) == seconds(0, 2, 4)


def test_two_in_ten_seconds_let_five_go_in_pairs() -> None:
    assert batch(Rate(2, per_s=10), 5) == seconds(0, 0, 10, 10, 20)


def test_a_bucket_waits_are_rounded_up_and_nothing_is_lost_by_it() -> None:
    assert batch(Rate(3, burst=2), 5) == [0, 0, 333_333_334, 666_666_667, NS_PER_S]


def test_a_spread_rate_starts_one_at_a_time() -> None:
    assert batch(Rate(10, spread=True), 4) == seconds(0, 0.1, 0.2, 0.3)


def test_a_window_lets_a_start_go_exactly_one_window_later() -> None:
    limiter = limiter_of(Rate(1, per_s=1e-6))
    assert limiter.admit(5) == 0
    assert [limiter.admit(now_ns) for now_ns in (5, 6, 1004)] == [1000, 999, 1]
    assert limiter.wait_ns(1005) == 0
    assert limiter.admit(1005) == 0


def test_a_free_permit_costs_no_wait() -> None:
    for rate in (Rate(1), Rate(1, burst=1), Rate(1, spread=True)):
        limiter = limiter_of(rate)
        assert limiter.wait_ns(-5) == 0 == limiter.admit(-5)


def test_being_refused_or_asking_costs_nothing() -> None:
    for rate in (Rate(2), Rate(2, burst=2), Rate(300, spread=True)):
        limiter = limiter_of(rate)
        assert [limiter.admit(0), limiter.admit(0)] == [0, 0]
        wait_ns = limiter.wait_ns(1)
        assert {limiter.admit(1) for _ in range(9)} == {wait_ns}
        assert limiter.admit(wait_ns) == 1
        assert limiter.admit(wait_ns + 1) == 0


def test_eleven_a_second_under_32_impatient_askers_is_never_twelve() -> None:
    limiter = limiter_of(Rate(11))
    asked = (now_ns for now_ns in range(0, 3 * NS_PER_S, 7_654_321) for _ in range(32))
    stamps = [now_ns for now_ns in asked if limiter.admit(now_ns) == 0]
    assert len(stamps) == 33
    assert most_in_window(stamps, NS_PER_S)[0] == 11


def test_a_rest_fills_the_bucket_no_further_than_its_capacity() -> None:
    limiter = limiter_of(Rate(10, burst=3))
    assert greedy(limiter, [0] * 5) == seconds(0, 0, 0, 0.1, 0.2)
    hour = 3600 * NS_PER_S
    assert greedy(limiter, [hour] * 5) == [hour + late for late in seconds(0, 0, 0, 0.1, 0.2)]


def test_a_bucket_bursts_to_its_bounds_and_no_further() -> None:
    bucket = Rate(10, burst=10)
    limiter = limiter_of(bucket)
    stamps = greedy(limiter, [0] * 60)
    assert most_in_window(stamps, NS_PER_S + 1)[0] == 20
    assert most_in_window(stamps, NS_PER_S)[0] == 19


def test_a_weight_is_that_many_starts_at_one_instant() -> None:
    assert greedy(limiter_of(Rate(3)), [0] * 3, weight=2) == seconds(0, 1, 2)
    assert greedy(limiter_of(Rate(10, burst=4)), [0] * 3, weight=3) == seconds(0, 0.2, 0.5)


@pytest.mark.parametrize("rate", [Rate(3), Rate(9, burst=3)])
@pytest.mark.parametrize("weight", [0, 4])
def test_a_weight_that_was_not_checked_is_a_bug(rate: Rate, weight: int) -> None:
    with pytest.raises(AssertionError):
        limiter_of(rate).admit(0, weight)


def test_a_clock_that_was_set_back_must_catch_up() -> None:
    for rate in (Rate(9), Rate(9, burst=9), Rate(900, spread=True)):
        limiter = limiter_of(rate)
        assert limiter.admit(1000) == 0
        assert [limiter.admit(400), limiter.wait_ns(999, 2), limiter.admit(1000)] == [600, 1, 0]


def test_a_start_that_may_not_move_yet_stays_where_it_was() -> None:
    window = limiter_of(Rate(2, per_s=1e-6))
    assert [window.admit(0), window.admit(300), window.restamp(0, 100)] == [0, 0, 200]
    assert window.wait_ns(300) == 700
    bucket = limiter_of(Rate(1, per_s=1e-6, burst=1))
    assert [bucket.admit(0), bucket.admit(1000), bucket.restamp(0, 1200)] == [0, 0, 800]
    assert bucket.wait_ns(1200) == 800


def test_a_million_refills_of_a_bucket_lose_nothing() -> None:
    # 50 a start make it 20,000 starts; one in 333,333,333.33 ns is the hard case.
    limiter = limiter_of(Rate(3, burst=100))
    stamps = greedy(limiter, [0] * 20_002, weight=50)
    wrong = [n for n, at in enumerate(stamps) if at != -(-max(0, n - 1) * 50 * NS_PER_S // 3)]
    assert wrong[:3] == []  # of more than that nobody wants to see the difference
    assert stamps[-1] == 10**6 * NS_PER_S // 3 + 1


@pytest.mark.parametrize("per_s", [50, 1000, 5000])
def test_a_spread_rate_never_has_more_in_a_window_and_reaches_996_thousandths(per_s: int) -> None:
    windows = 3
    stamps = batch(Rate(per_s, spread=True), windows * per_s)
    assert most_in_window(stamps, NS_PER_S)[0] <= per_s
    assert stamps[-1] <= windows * NS_PER_S / 0.996
    assert max(b - a for a, b in pairwise(stamps)) <= 1.004 * NS_PER_S / per_s + 1


def test_a_spread_rate_makes_up_for_starts_that_come_late() -> None:
    limiter, now_ns, stamps = limiter_of(Rate(5000, spread=True)), 0, []
    for late_ns in [0, MS // 5, MS // 2, 2 * MS] * 1000:  # a timer fires when it likes
        now_ns += limiter.wait_ns(now_ns) and limiter.wait_ns(now_ns) + late_ns
        assert limiter.admit(now_ns) == 0
        stamps.append(now_ns)
    assert len(stamps) / 5000 >= 0.99 * stamps[-1] / NS_PER_S
    assert most_in_window(stamps, NS_PER_S)[0] <= 5000


@settings(max_examples=50, deadline=None)
@given(small_rates(), st.integers(0, 99))
def test_a_busy_limiter_starts_at_exactly_the_earliest_offsets(rate: Rate, first_ns: int) -> None:
    stamps = greedy(limiter_of(rate), [first_ns] * 24)
    assert [s - first_ns for s in stamps] == [rate.earliest_offset_ns(k) for k in range(1, 25)]


@settings(max_examples=50, deadline=None)
@given(small_rates(), st.lists(st.integers(0, 30), max_size=20))
def test_after_a_rest_of_one_gap_a_limiter_is_as_new(rate: Rate, arrivals: list[int]) -> None:
    limiter = limiter_of(rate)
    rested_ns = max(greedy(limiter, arrivals), default=0) + rate.gap_ns
    fresh = greedy(limiter_of(rate), [rested_ns] * 12)
    assert greedy(limiter, [rested_ns] * 12) == fresh


@settings(max_examples=40, deadline=None)
@given(small_rates(), st.lists(st.tuples(st.integers(0, 12), st.integers(1, 5)), max_size=20))
def test_greedy_starts_keep_the_law_and_none_could_have_been_earlier(
    rate: Rate, jobs: list[tuple[int, int]]
) -> None:
    limiter, now_ns, stamps = limiter_of(rate), 0, list[int]()
    for gap_ns, size in jobs:
        weight = min(size, rate.capacity)
        arrival_ns = now_ns + gap_ns
        [now_ns] = greedy(limiter, [arrival_ns], weight)
        assert now_ns == arrival_ns or breaks_the_law(stamps + [now_ns - 1] * weight, rate)
        stamps += [now_ns] * weight
    assert not breaks_the_law(stamps, rate)
    assert violations(stamps, rate) == []


@settings(max_examples=50, deadline=None)
@given(small_rates(), st.lists(st.integers(0, 25), min_size=1, max_size=25))
def test_no_half_open_interval_holds_more_than_its_bound(rate: Rate, arrivals: list[int]) -> None:
    stamps = greedy(limiter_of(rate), arrivals)
    for span_ns in range(1, 30):
        most, _ = most_in_window(stamps, span_ns)
        if not rate.is_window:
            assert most <= bucket_bound_half_open(rate, span_ns)
        if span_ns <= rate.window_ns and rate.burst is None:
            assert most <= rate.count


def earliest_ns(stamps: list[int], now_ns: int, weight: int, rate: Rate) -> int:
    """The first instant from `now_ns` on at which the law allows a start, by trial."""
    return next(t for t in count(now_ns) if not breaks_the_law(stamps + [t] * weight, rate))


def without(stamps: list[int], stamp_ns: int, weight: int) -> list[int]:
    left = stamps.copy()
    for _ in range(weight):
        left.remove(stamp_ns)
    return left


@settings(max_examples=30, deadline=None)
@given(small_rates(), st.data())
def test_starts_moved_and_given_back_keep_the_law_and_every_wait_is_exact(
    rate: Rate, data: st.DataObject
) -> None:
    limiter, now_ns, jobs = limiter_of(rate), 0, list[tuple[int, int]]()
    for _ in range(data.draw(st.integers(1, 16))):
        now_ns += data.draw(st.integers(0, 6))
        stamps = sorted(stamp for stamp, weight in jobs for _ in range(weight))
        match data.draw(st.sampled_from(["admit", "admit", "restamp", "give_back"])):
            case "restamp" if jobs:
                old_ns, weight = jobs.pop(data.draw(st.integers(0, len(jobs) - 1)))
                ask = partial(limiter.restamp, old_ns, weight=weight)
                stamps = without(stamps, old_ns, weight)
            case "give_back" if jobs:
                stamp, weight = jobs.pop(data.draw(st.integers(0, len(jobs) - 1)))
                limiter.give_back(stamp, weight)
                continue
            case _:
                weight = data.draw(st.integers(1, rate.capacity))
                ask = partial(limiter.admit, weight=weight)
        legal_ns = earliest_ns(stamps, now_ns, weight, rate)
        assert ask(now_ns) == legal_ns - now_ns
        if legal_ns > now_ns:
            assert ask(legal_ns) == 0
        now_ns = legal_ns
        jobs.append((now_ns, weight))


def test_a_start_moved_to_its_call_opens_the_window_from_there() -> None:
    limiter = limiter_of(Rate(2))
    assert [limiter.admit(0), limiter.admit(0)] == [0, 0]
    assert limiter.restamp(0, 300 * MS) == 0
    assert greedy(limiter, [300 * MS] * 2) == seconds(1.0, 1.3)


def test_a_start_called_a_whole_window_late_needs_a_new_permit() -> None:
    limiter = limiter_of(Rate(1))
    assert [limiter.admit(0), limiter.admit(NS_PER_S)] == [0, 0]
    assert limiter.restamp(0, NS_PER_S + 5) == NS_PER_S - 5
    assert limiter.restamp(0, 2 * NS_PER_S) == 0


def test_a_permit_not_used_is_free_again() -> None:
    for rate in (Rate(3), Rate(3, burst=3)):
        limiter = limiter_of(rate)
        assert [limiter.admit(now_ns) for now_ns in (0, 10, 20)] == [0, 0, 0]
        limiter.give_back(10)
        limiter.give_back(11)  # no such start
        limiter.give_back(20)
        assert [limiter.admit(30), limiter.admit(30)] == [0, 0]
        assert limiter.admit(30) > 0


def test_of_two_starts_at_one_instant_the_right_one_is_given_back() -> None:
    for rate in (Rate(3), Rate(3, burst=3)):
        limiter = limiter_of(rate)
        assert [limiter.admit(0, 2), limiter.admit(0, 1)] == [0, 0]
        limiter.give_back(0, 2)
        assert limiter.wait_ns(0, 3) > 0 == limiter.wait_ns(0, 2)


def test_a_start_too_old_to_take_back_stays_counted() -> None:
    limiter = limiter_of(Rate(10, per_s=1e-6, burst=3))
    now_ns = greedy(limiter, [0] * 2000)[-1]
    wait_ns = limiter.wait_ns(now_ns)
    limiter.give_back(0)
    assert limiter.wait_ns(now_ns) == wait_ns > 0
    assert limiter.restamp(0, now_ns) == wait_ns


@pytest.mark.parametrize("rate", [Rate(50), Rate(1000), Rate(1000, spread=True)])
def test_a_guard_keeps_late_clock_readings_within_the_window_too(rate: Rate) -> None:
    guard_ns = MS // 2
    stamps = greedy(limiter_of(rate, guard_ns=guard_ns), [0] * (3 * rate.count))
    observed = [stamp + guard_ns * (n * 7 % 11) // 10 for n, stamp in enumerate(stamps)]
    late = [stamp + guard_ns * (n < rate.count // 2) for n, stamp in enumerate(stamps)]
    assert max(most_in_window(seen, NS_PER_S)[0] for seen in (stamps, observed, late)) <= rate.count


def test_a_million_stamps_take_eight_megabytes() -> None:
    stamps = limiter_of(Rate(1_000_000))._stamps
    assert len(stamps) * stamps.itemsize == 8_000_000
