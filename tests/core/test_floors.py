"""The floors: exact vectors, the table's formulas word by word, and what they cost."""

from __future__ import annotations

import math
import time
import timeit
from collections.abc import Collection, Mapping
from fractions import Fraction
from operator import add
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.core.floors import REACH_BUDGET, Bound, Chain, Floor, StartLimit, bound
from timeball.core.rate import Rate
from timeball.errors import UsageError

S = 10**9


def window(count: int, per_s: int = 1) -> Rate:
    return Rate(count, per_s)


def bucket(burst: int, rate: Fraction) -> Rate:
    return Rate(rate, burst=burst)


def spaced(rate: float) -> Rate:
    return Rate(rate, spread=True)


def ns(seconds: str | float) -> int:
    exact = Fraction(str(seconds)) * S
    assert exact.denominator == 1
    return int(exact)


def plain(seconds: list[float], workers: int, limit: StartLimit | None = None) -> Bound:
    jobs = {i: Chain([ns(d)]) for i, d in enumerate(seconds)}
    return bound(jobs, workers=workers, limit=limit)


PLAIN = {
    "d=1 x 4, W=2": ([1] * 4, 2, None, 2, Floor.WORK),
    "5,1,1,1, W=4": ([5, 1, 1, 1], 4, None, 5, Floor.LONGEST),
    "0 x 100, W=8, strict 10/1s": ([0] * 100, 8, window(10), 9, Floor.START),
    "0 x 10, strict 10/1s": ([0] * 10, 8, window(10), 0, Floor.LONGEST),
    "0 x 11, strict 10/1s": ([0] * 11, 8, window(10), 1, Floor.START),
    "0.5 x 25, W=8, strict 10/1s": ([0.5] * 25, 8, window(10), 2.5, Floor.START),
    "0 x 100, spaced 10/s": ([0] * 100, 8, spaced(10), 9.9, Floor.START),
    "0 x 100, bucket C=10 10/s": ([0] * 100, 8, bucket(10, Fraction(10)), 9, Floor.START),
    "3,1,1, W=3, spaced 1/s": ([3, 1, 1], 3, spaced(1), 3, Floor.LONGEST),
    "3,3,3, W=3, spaced 1/s": ([3, 3, 3], 3, spaced(1), 5, Floor.START),
    "2 x 5, W=2": ([2] * 5, 2, None, 6, Floor.PIGEONHOLE),
    "3,.3,.3,.1,.3, W=1, strict 1/1s": (
        [3, 0.3, 0.3, 0.1, 0.3],
        1,
        window(1),
        6.1,
        Floor.SERIAL_START,
    ),
    "4 x 4, W=4, spaced 1/s": ([4] * 4, 4, spaced(1), 7, Floor.START),
    "1.5 x 6, W=2, strict 2/1s": ([1.5] * 6, 2, window(2), 4.5, Floor.WORK),
    "10,1 x 5, W=2, strict 3/1s": ([10, 1, 1, 1, 1, 1], 2, window(3), 10, Floor.LONGEST),
    "1 x 5, W=5, strict 1/2s": ([1] * 5, 5, window(1, 2), 9, Floor.START),
    ".1,.1,.1,5, W=2, spaced .5/s": ([0.1, 0.1, 0.1, 5], 2, spaced(0.5), 6.1, Floor.START),
}


@pytest.mark.parametrize("case", PLAIN.values(), ids=PLAIN)
def test_a_plain_batch_has_this_bound_and_this_floor_binds(case) -> None:
    seconds, workers, limit, expected, binding = case
    found = plain(seconds, workers, limit)
    assert (found.ns, found.binding) == (ns(expected), binding)
    assert found.seconds == expected


DIAMOND = {"left": ["top"], "right": ["top"], "end": ["left", "right"]}
DIAMOND_S = {"top": 1, "left": 4, "right": 2, "end": 1}
GRAPHS = {
    "chain 1-2-3, W=4": ({"a": 1, "b": 2, "c": 3}, {"b": "a", "c": "b"}, 4, None, 6, "longest"),
    "diamond 1,(4,2),1, W=2": (DIAMOND_S, DIAMOND, 2, None, 6, "longest"),
    "1 -> (1,1,1), W=4, spaced 1/s": (
        dict.fromkeys("abcd", 1),
        dict.fromkeys("bcd", "a"),
        4,
        spaced(1),
        4,
        "start",
    ),
    "diamond, W=1": (DIAMOND_S, DIAMOND, 1, None, 8, "work"),
    "2,2,2,2 -> 1, W=2": (
        {"a": 2, "b": 2, "c": 2, "d": 2, "e": 1},
        {"e": "abcd"},
        2,
        None,
        5,
        "pigeonhole",
    ),
}


@pytest.mark.parametrize("case", GRAPHS.values(), ids=GRAPHS)
def test_a_graph_has_this_bound_and_this_floor_binds(case) -> None:
    seconds, parents, workers, limit, expected, binding = case
    jobs = {job: Chain([ns(d)]) for job, d in seconds.items()}
    found = bound(jobs, workers=workers, limit=limit, parents=parents)
    assert (found.ns, found.binding) == (ns(expected), binding)


def test_two_attempts_with_a_backoff_between_them_are_a_chain() -> None:
    found = bound({"a": Chain([S, S], [S // 2])}, workers=1)
    assert (found.ns, found.binding) == (ns(2.5), Floor.CHAIN)


def test_a_path_of_retried_jobs_counts_their_waits_and_the_longest_path_does_not() -> None:
    jobs = {"a": Chain([S, 2 * S], [S]), "b": Chain([S])}
    found = bound(jobs, workers=4, parents={"b": ["a"]})
    assert found.floors[Floor.LONGEST] == 3 * S
    assert (found.ns, found.binding) == (5 * S, Floor.CHAIN)


def test_work_that_must_follow_or_precede_a_job_is_shared_by_the_workers() -> None:
    jobs = {name: Chain([S]) for name in "abcdefg"}
    fan = bound(jobs, workers=2, parents=dict.fromkeys("bcdefg", "a"))
    assert (fan.ns, fan.binding) == (4 * S, Floor.PIGEONHOLE)
    jobs["a"] = Chain([3 * S])
    fan = bound(jobs, workers=2, parents=dict.fromkeys("bcdefg", "a"))
    assert (fan.ns, fan.binding) == (6 * S, Floor.AFTER_WORK)
    fan = bound(jobs, workers=2, parents={"a": "bcdefg"})
    assert (fan.ns, fan.binding) == (6 * S, Floor.BEFORE_WORK)


def test_starts_that_must_precede_a_job_pay_the_rate_before_it() -> None:
    jobs = {"a": Chain([0]), "b": Chain([0]), "c": Chain([5 * S]), "d": Chain([S])}
    found = bound(jobs, workers=4, limit=spaced(1), parents={"c": ["a", "b"]})
    assert (found.ns, found.binding) == (7 * S, Floor.ANCESTOR_START)


def test_what_follows_a_start_comes_no_sooner_than_the_limit_allows() -> None:
    jobs = {"a": Chain([0, 0, 2 * S]), "b": Chain([S])}
    found = bound(jobs, workers=4, limit=window(1, 3))
    assert found.floors[Floor.CHAIN] == 2 * S
    assert (found.ns, found.binding) == (10 * S, Floor.START)
    assert found.floors[Floor.ANCESTOR_START] == 10 * S
    assert found.floors[Floor.START_TAIL] == 9 * S


def test_the_last_to_start_is_an_attempt_that_nothing_follows() -> None:
    jobs = {"a": Chain([0, 5 * S]), "b": Chain([4 * S])}
    assert bound(jobs, workers=4, limit=spaced(1)).floors[Floor.START] == 6 * S


def test_a_backoff_that_no_attempt_followed_counts_for_nothing() -> None:
    assert Chain([S], [5 * S]).extent_ns == S
    assert bound({"a": Chain([S], [5 * S])}, workers=1).ns == S
    assert bound({"a": Chain([S, S, S], [S])}, workers=1).ns == 4 * S


def test_the_classic_formula_is_no_bound() -> None:
    found = plain([0] * 10, 8, window(10))
    assert found.approximation_ns == S
    assert found.ns == 0


def test_the_approximation_is_the_largest_of_the_three_classic_terms() -> None:
    assert plain([1, 2, 3], 2).approximation_ns == 3 * S
    assert plain([2, 2, 3], 2).approximation_ns == ns(3.5)
    assert plain([0] * 7, 2, bucket(5, Fraction(1, 2))).approximation_ns == 14 * S


def test_a_bound_between_two_nanoseconds_is_rounded_up() -> None:
    assert bound({i: Chain([1]) for i in range(2)}, workers=3).floors[Floor.WORK] == 1


def test_a_job_that_never_began_counts_for_nothing_and_links_nothing() -> None:
    jobs = {"a": Chain([S]), "gone": Chain([]), "c": Chain([S])}
    found = bound(jobs, workers=2, parents={"gone": ["a"], "c": ["gone"]})
    assert found.ns == S


def test_without_any_attempt_the_bound_is_zero() -> None:
    found = bound({}, workers=2)
    assert (found.ns, found.binding, dict(found.floors)) == (0, Floor.LONGEST, {})


@pytest.mark.parametrize(
    ("jobs", "workers", "parents", "says"),
    [
        ({"a": Chain([1])}, 0, {}, "write 1 or more"),
        ({"a": Chain([-1])}, 1, {}, "write nanoseconds, 0 or more"),
        ({"a": Chain([1, 1], [-1])}, 1, {}, "write nanoseconds, 0 or more"),
        ({"a": Chain([1]), "b": Chain([1])}, 1, {"a": "b", "b": "a"}, "take one edge away"),
    ],
)
def test_what_can_be_no_batch_is_refused_with_what_to_write(jobs, workers, parents, says) -> None:
    with pytest.raises(UsageError, match=says):
        bound(jobs, workers=workers, parents=parents)


# --- the table, word by word: slow, in fractions, without prefix sums ---------------------------


def the_table(d: list[int], w: int, limit: StartLimit) -> dict[Floor, Fraction]:
    n = len(d)
    up, down = [0, *sorted(d)], [0, *sorted(d, reverse=True)]

    def e(k: int) -> int:
        return limit.earliest_offset_ns(k)

    def least(m: int) -> int:
        return sum(up[1 : m + 1])

    return {
        Floor.LONGEST: Fraction(down[1]),
        Floor.CHAIN: Fraction(down[1]),
        Floor.START: Fraction(e(n) + up[1]),
        Floor.WORK: Fraction(least(n), w),
        Floor.START_TAIL: Fraction(max(e(k) + down[k] for k in range(1, n + 1))),
        Floor.RAMPED_WORK: max(
            solve([e(k + i) for i in range(min(w, n - k + 1))], least(n - k + 1))
            for k in range(1, n + 1)
        ),
        Floor.PIGEONHOLE: Fraction(
            max(
                (sum(down[k * w + 1 - i] for i in range(k + 1)) for k in range(1, n) if k * w < n),
                default=0,
            )
        ),
        Floor.SUFFIX_PIGEONHOLE: Fraction(
            max(e(k) + least(math.ceil((n - k + 1) / w)) for k in range(1, n + 1))
        ),
    }


def solve(offsets: list[int], work: int) -> Fraction:
    """Return the M at which ``sum(max(0, M - e))`` reaches `work`, by pouring it in."""
    level, rest = Fraction(offsets[0]), Fraction(work)
    for width, wall in enumerate(offsets[1:], start=1):
        room = (wall - level) * width
        if room >= rest:
            return level + rest / width
        level, rest = Fraction(wall), rest - room
    return level + rest / len(offsets)


LIMITS = st.one_of(
    st.builds(window, st.integers(1, 5), st.integers(1, 3)),
    st.builds(bucket, st.integers(1, 5), st.fractions(Fraction(1, 3), 5, max_denominator=3)),
)
DURATIONS = st.lists(st.integers(0, 60).map(lambda d: d * S // 10), min_size=1, max_size=30)


@pytest.mark.slow
@settings(deadline=None)
@given(d=DURATIONS, workers=st.integers(1, 9), limit=LIMITS)
def test_prefix_sums_give_what_the_table_says(d, workers, limit) -> None:
    table = the_table(d, workers, limit)
    if workers == 1:
        h = limit.gap_ns
        shortened = the_table([min(x, h) for x in d], 1, limit)
        table[Floor.SERIAL_START] = max(shortened.values()) + sum(max(0, x - h) for x in d)
    found = bound({i: Chain([x]) for i, x in enumerate(d)}, workers=workers, limit=limit)
    assert found.floors == {floor: math.ceil(exact) for floor, exact in table.items()}
    assert list(found.floors) == [floor for floor in Floor if floor in table]
    assert found.ns == max(found.floors.values())
    assert found.binding is next(f for f, x in found.floors.items() if x == found.ns)


@pytest.mark.slow
@settings(deadline=None)
@given(d=DURATIONS, workers=st.integers(1, 9), limit=LIMITS, data=st.data())
def test_with_edges_no_floor_is_lower_than_the_table_says(d, workers, limit, data) -> None:
    d, n = d[:10], len(d[:10])
    up = [data.draw(st.sets(st.integers(0, max(0, i - 1)), max_size=2)) - {i} for i in range(n)]
    heads: list[int] = []
    above: list[set[int]] = []
    for parents in up:
        heads.append(max((heads[p] + d[p] for p in parents), default=0))
        above.append(parents.union(*(above[p] for p in parents)))
    tails = [0] * n
    for i in reversed(range(n)):
        tails[i] = max((d[c] + tails[c] for c in range(n) if i in up[c]), default=0)
    table = the_table(d, workers, limit)
    table[Floor.LONGEST] = table[Floor.CHAIN] = Fraction(max(map(add, heads, d)))
    table[Floor.AFTER_WORK] = max(
        heads[i] + d[i] + Fraction(sum(d[c] for c in range(n) if i in above[c]), workers)
        for i in range(n)
    )
    table[Floor.BEFORE_WORK] = max(
        Fraction(sum(d[p] for p in above[i]), workers) + d[i] + tails[i] for i in range(n)
    )
    table[Floor.ANCESTOR_START] = Fraction(
        max(
            max(limit.earliest_offset_ns(len(above[i]) + 1), heads[i]) + d[i] + tails[i]
            for i in range(n)
        )
    )
    found = bound(
        {i: Chain([x]) for i, x in enumerate(d)},
        workers=workers,
        limit=limit,
        parents=dict(enumerate(up)),
    )
    raised = {Floor.START, Floor.AFTER_WORK, Floor.BEFORE_WORK, Floor.ANCESTOR_START}
    for floor, exact in table.items():
        if floor in raised:
            assert found.floors[floor] >= exact, floor
        else:
            assert found.floors[floor] == math.ceil(exact), floor


# --- what it costs ------------------------------------------------------------------------------

N = 100_000


class Even(NamedTuple):
    """500 starts a second, one by one, for next to nothing: what is timed is the bound."""

    count: int = 500
    per_s: int = 1
    gap_ns: int = S // 500

    def earliest_offset_ns(self, k: int) -> int:
        return (k - 1) * (S // 500)


def cost_s(
    jobs: Mapping[int, Chain],
    workers: int,
    limit: StartLimit | None,
    parents: Mapping[int, Collection[int]] | None = None,
) -> float:
    def once() -> Bound:
        return bound(jobs, workers=workers, limit=limit, parents=parents)

    return min(timeit.repeat(once, timer=time.process_time, number=1, repeat=1 if parents else 2))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 64])
def test_a_hundred_thousand_attempts_are_bounded_within_a_second(workers) -> None:
    jobs = {i: Chain([i * 7_919 % 1_000_003 * 1_000]) for i in range(N)}
    took_s = cost_s(jobs, workers, Even())
    print(f"{N} attempts, W={workers}: {took_s:.2f} s")
    assert took_s < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["fan", "child first"])
def test_a_hundred_thousand_jobs_with_edges_are_bounded_within_three_seconds(shape) -> None:
    jobs = {i: Chain([i * 7_919 % 1_000_003 * 1_000]) for i in range(N)}
    parents = {
        "fan": {i: [0] for i in range(1, N - 1)} | {N - 1: range(N - 1)},
        "child first": {i: [i + 1] for i in range(0, N, 2)},
    }[shape]
    took_s = cost_s(jobs, 8, Even(), parents)
    print(f"{N} jobs, {shape}, looking along {REACH_BUDGET} edges at most: {took_s:.2f} s")
    assert took_s < 3.0


def test_a_weight_counts_as_that_many_starts() -> None:
    jobs = {"a": Chain([0], weight=3), "b": Chain([0], weight=2), "c": Chain([0], weight=1)}
    found = bound(jobs, workers=3, limit=Rate(3))
    # By the last start six have been taken, so it is the first of the second window.
    assert (found.ns, found.binding) == (S, Floor.START)
    assert found.approximation_ns == 2 * S
    assert bound(jobs, workers=3, limit=Rate(6)).ns == 0


def test_weights_without_a_limit_count_for_nothing() -> None:
    heavy = {name: Chain([S], weight=5) for name in "abc"}
    light = {name: Chain([S]) for name in "abc"}
    assert bound(heavy, workers=2) == bound(light, workers=2)
