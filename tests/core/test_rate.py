"""What a rate means, how it is written, and the bounds that go with it."""

from __future__ import annotations

import copy
import math
import pickle
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.core.rate import (
    NS_PER_S,
    EarlyStart,
    Rate,
    bucket_bound_closed,
    bucket_bound_half_open,
    most_in_window,
    satisfies_strict_cap,
    violations,
)
from timeball.errors import UsageError

MS = NS_PER_S // 1000
COUNTS = st.integers(1, 1_000_000)
WINDOWS_NS = st.integers(1_000_000, 366 * 86_400 * NS_PER_S)  # at 1,000,000 starts: 1 ns each
STAMPS = st.lists(st.integers(0, 40), max_size=12).map(sorted)


@st.composite
def rates(draw: st.DrawFn) -> Rate:
    shape = draw(st.sampled_from(["window", "burst", "spread"]))
    return Rate(
        draw(COUNTS),
        Fraction(draw(WINDOWS_NS), NS_PER_S),
        burst=draw(st.integers(1, 2_000)) if shape == "burst" else None,
        spread=shape == "spread",
    )


@st.composite
def small_rates(draw: st.DrawFn) -> Rate:
    """Windows of few nanoseconds, where every boundary is hit again and again."""
    window_ns = draw(st.integers(1, 20))
    shape = draw(st.sampled_from(["window", "burst", "spread"]))
    return Rate(
        draw(st.integers(1, min(5, window_ns))),
        Fraction(window_ns, NS_PER_S),
        burst=draw(st.integers(1, 5)) if shape == "burst" else None,
        spread=shape == "spread",
    )


def breaks_the_law(stamps: list[int], rate: Rate) -> bool:
    """The laws of the module's first lines, word for word."""
    if rate.is_window:
        spans = zip(stamps, stamps[rate.count :], strict=False)
        return any(last - first < rate.window_ns for first, last in spans)
    refill, per_ns = rate.refill_per_ns.as_integer_ratio()
    return any(
        upto - at + 1 > rate.capacity + refill * (stamps[upto] - stamps[at]) // per_ns
        for upto in range(len(stamps))
        for at in range(upto + 1)
    )


@pytest.mark.parametrize(
    ("rate", "same"),
    [
        (Rate(0.5), Rate(1, per_s=2)),
        (Rate(0.1, per_s=1), Rate(1, per_s=10)),
        (Rate(2.5), Rate(5, per_s=2)),
        (Rate(0.3, per_s=0.5), Rate(3, per_s=5)),
        (Rate(Fraction(1, 3), burst=2), Rate(1, per_s=3, burst=2)),
        (Rate(50), Rate(50, per_s=1.0)),
    ],
)
def test_a_fraction_is_exactly_the_same_rate_over_a_longer_window(rate: Rate, same: Rate) -> None:
    assert rate == same
    assert hash(rate) == hash(same)


def test_the_window_is_part_of_a_rate() -> None:
    assert Rate(50) != Rate(100, per_s=2)
    assert Rate(50).window_ns == NS_PER_S
    assert Rate(1, per_s=1e-9).window_ns == 1


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("8/s", Rate(8)),
        ("100/m", Rate(100, per_s=60)),
        ("50 per 1s", Rate(50)),
        ("0.5/s", Rate(1, per_s=2)),
        ("5 / 100ms", Rate(5, per_s=0.1)),
        ("10/h", Rate(10, per_s=3600)),
        ("3 PER Day", Rate(3, per_s=86_400)),
        (" 2 per 1.5 seconds ", Rate(2, per_s=1.5)),
        ("10/s burst 20", Rate(10, burst=20)),
        ("1000/s spread", Rate(1000, spread=True)),
    ],
)
def test_a_rate_can_be_written_as_text(text: str, rate: Rate) -> None:
    assert Rate.parse(text) == rate


@settings(deadline=None)
@given(rates())
def test_what_a_rate_prints_is_that_rate(rate: Rate) -> None:
    assert Rate.parse(str(rate)) == rate
    assert pickle.loads(pickle.dumps(rate)) == copy.deepcopy(rate) == rate


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (Rate(8), "8/s"),
        (Rate(100, per_s=60), "100/m"),
        (Rate(1, per_s=0.25), "1 per 0.25s"),
        (Rate(1, per_s=90, burst=4), "1 per 90s burst 4"),
        (Rate(9, spread=True), "9/s spread"),
    ],
)
def test_a_rate_prints_as_people_write_it(rate: Rate, text: str) -> None:
    assert str(rate) == text
    assert repr(rate) == f"Rate.parse('{text}')"


@pytest.mark.parametrize(
    "text", ["", "8", "s", "8/", "8/parsec", "-1/s", "1e3/s", "nan/s", "8//s", "8/s burst", "٨/s"]
)
def test_text_that_is_no_rate_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError, match="write starts and a time"):
        Rate.parse(text)


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ({"count": 0}, "count is 0: write a number above 0"),
        ({"count": -1}, "write a number above 0"),
        ({"count": math.nan}, "write a number above 0"),
        ({"count": math.inf}, "no rate for no limit"),
        ({"count": True}, "write a number"),
        ({"count": "50/s"}, "Rate.parse"),
        ({"count": None}, "write a number"),
        ({"count": 10**5000}, "up to 1,000,000"),
        ({"count": 1 / 3}, "no simple fraction"),
        ({"count": 1_000_001}, "up to 1,000,000"),
        ({"count": 2, "per_s": 0}, "per_s is 0: write a number above 0"),
        ({"count": 2, "per_s": -0.5}, "write a number above 0"),
        ({"count": 2, "per_s": math.nan}, "write a number above 0"),
        ({"count": 2, "per_s": math.inf}, "write a number above 0"),
        ({"count": 2, "per_s": False}, "write a number"),
        ({"count": 2, "per_s": 1e300}, "up to 366 days"),
        ({"count": 2, "per_s": 1.5e-9}, "write whole nanoseconds"),
        ({"count": 1, "per_s": Fraction(1, 3)}, r"Rate\(3, per_s=1\)"),
        ({"count": 2, "per_s": 1e-9}, "leave the rate out"),
        ({"count": 2, "burst": 0}, "write 1 or more, or leave it out"),
        ({"count": 2, "burst": -3}, "write 1 or more"),
        ({"count": 2, "burst": True}, "write a whole number"),
        ({"count": 2, "burst": 2.0}, "write a whole number"),
        ({"count": 2, "burst": 2, "spread": True}, "write one of them"),
    ],
)
def test_what_can_never_work_is_refused_with_advice(wrong, advice: str) -> None:
    with pytest.raises(UsageError, match=advice):
        Rate(**wrong)


def test_zero_is_refused_in_text_too() -> None:
    with pytest.raises(UsageError, match="write a number above 0"):
        Rate.parse("0/s")


@pytest.mark.parametrize(
    ("rate", "largest"),
    [
        (Rate(3), 3),
        (Rate(3, burst=7), 7),
        (Rate(10, spread=True), 1),
        (Rate(5000, spread=True), 20),
    ],
)
def test_a_job_heavier_than_the_capacity_is_refused_at_once(rate: Rate, largest: int) -> None:
    rate.check_weight(largest)
    with pytest.raises(UsageError, match=f"more than {largest} start at once: write a smaller"):
        rate.check_weight(largest + 1)


@pytest.mark.parametrize("weight", [0, -1, True, 1.0])
def test_a_weight_that_is_no_positive_whole_number_is_refused(weight) -> None:
    with pytest.raises(UsageError, match="write a whole number, 1 or more"):
        Rate(5).check_weight(weight)


@pytest.mark.parametrize(
    ("rate", "starts", "offset_ns"),
    [
        (Rate(10), 100, 9 * NS_PER_S),
        (Rate(10), 10, 0),
        (Rate(10), 11, NS_PER_S),
        (Rate(10), 25, 2 * NS_PER_S),
        (Rate(10, spread=True), 100, 9_900 * MS),
        (Rate(10, burst=10), 100, 9 * NS_PER_S),
        (Rate(1, per_s=2), 5, 8 * NS_PER_S),
        (Rate(0.5, spread=True), 4, 6 * NS_PER_S),
        (Rate(3, burst=2), 3, 333_333_334),
        (Rate(3, burst=2), 5, NS_PER_S),
        (Rate(3, burst=1), 4, 1_000_000_002),  # nothing can be made up for: 3 whole gaps
    ],
)
def test_the_kth_start_has_an_earliest_offset(rate: Rate, starts: int, offset_ns: int) -> None:
    assert rate.earliest_offset_ns(1) == 0
    assert rate.earliest_offset_ns(starts) == offset_ns


def test_after_the_gap_nothing_before_counts() -> None:
    assert Rate(7, per_s=3).gap_ns == 3 * NS_PER_S
    assert Rate(3, burst=2).gap_ns == 666_666_667
    assert Rate(4, spread=True).gap_ns == 250 * MS


def test_a_bucket_of_ten_at_ten_a_second_allows_twenty_closed_and_nineteen_half_open() -> None:
    bucket = Rate(10, burst=10)
    assert bucket_bound_closed(bucket, NS_PER_S) == 20
    assert bucket_bound_half_open(bucket, NS_PER_S) == 19
    assert bucket_bound_closed(bucket, 0) == 10


@settings(deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 12), st.integers(1, 40))
def test_a_bucket_keeps_a_strict_cap_iff_its_half_open_bound_does(
    refill: int, capacity: int, count: int, window_ns: int
) -> None:
    bucket = Rate(refill, Fraction(10, NS_PER_S), burst=capacity)
    kept = bucket_bound_half_open(bucket, window_ns) <= count
    assert satisfies_strict_cap(bucket, count, window_ns) is kept


@settings(deadline=None)
@given(COUNTS, WINDOWS_NS)
def test_spread_keeps_the_strict_cap_and_above_996_thousandths_of_the_rate(
    count: int, window_ns: int
) -> None:
    rate = Rate(count, Fraction(window_ns, NS_PER_S), spread=True)
    assert satisfies_strict_cap(rate, rate.count, rate.window_ns)
    assert rate.refill_per_ns > Fraction(996, 1000) * Fraction(count, window_ns)
    assert (rate.capacity - 1) / rate.refill_per_ns <= Fraction(41, 10) * MS  # the slack


@settings(max_examples=50, deadline=None)
@given(STAMPS, st.integers(1, 20))
def test_the_most_in_a_window_is_the_most_over_all_intervals(
    stamps: list[int], window_ns: int
) -> None:
    most, at = most_in_window(reversed(stamps), window_ns)
    counts = [sum(t <= stamp < t + window_ns for stamp in stamps) for t in range(41)]
    assert most == max(counts)
    assert most == 0 or stamps[at + most - 1] - stamps[at] < window_ns


def test_of_two_fullest_windows_the_first_is_named() -> None:
    assert most_in_window([], 10) == (0, 0)
    assert most_in_window([0, 10, 20, 21, 30, 31], 10) == (2, 2)


@settings(max_examples=60, deadline=None)
@given(STAMPS, small_rates())
def test_there_are_violations_iff_the_law_is_broken(stamps: list[int], rate: Rate) -> None:
    assert bool(violations(stamps, rate)) is breaks_the_law(stamps, rate)


def test_a_violation_says_which_start_came_how_early() -> None:
    assert violations([0, 0, 1000, 999], Rate(2, per_s=1e-6)) == [
        EarlyStart(index=2, stamp_ns=999, allowed_ns=1000)
    ]
    assert violations([0, 0, 333_333_333, NS_PER_S], Rate(3, burst=2)) == [
        EarlyStart(index=2, stamp_ns=333_333_333, allowed_ns=333_333_334)
    ]
    assert violations([0, 0, 1000, 1000], Rate(2, per_s=1e-6)) == []
