"""Jobs that count as several starts for the scheduler's rate."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.conftest import Table

from timeball import Rate, Retry, Scheduler
from timeball.core.rate import most_in_window
from timeball.engine.chronicle import violations_in
from timeball.engine.options import Options
from timeball.errors import UsageError

S = 10**9


def play(bench: Table) -> list[int]:
    """Run all jobs, each of which takes no time; return their starts."""
    first_ns = bench.now_ns
    starts: list[int] = []
    attempt = bench.begin()
    while bench.engine.agenda.tally.open:
        if attempt is None:
            bench.now_ns = bench.engine.agenda.wake_ns
            attempt = bench.begin()
        else:
            starts.append(attempt.started_ns - first_ns)
            attempt = bench.end(attempt)
    return starts


def test_a_weight_counts_as_that_many_starts(table: Callable[..., Table]) -> None:
    bench = table(rate=Rate(3))
    for weight in (2, 2, 1, 3):
        bench.submit(weight=weight)
    assert play(bench) == [0, S, S, 2 * S]
    assert [record.weight for record in bench.engine.records()] == [2, 2, 1, 3]
    report = bench.engine.report()
    assert (report.bound.ns, report.efficiency) == (2 * S, 1)


def test_a_retry_pays_the_whole_weight_again(table: Callable[..., Table]) -> None:
    bench = table(rate=Rate(1, burst=4), retry=Retry(1, base_s=0))
    bench.submit(lambda: 1 // 0, weight=4)
    assert play(bench) == [0, 4 * S]


@pytest.mark.parametrize("rate", [Rate(3), Rate(10, burst=3)])
def test_07_a_weight_that_could_never_start_is_refused_at_once(
    scheduler: Callable[..., Scheduler], rate: Rate
) -> None:
    s = scheduler(rate=rate)
    with pytest.raises(UsageError, match="never lets more than 3 start at once: write a smaller"):
        s.submit(pow, 2, 2, weight=4)
    assert s.submit(pow, 2, 2, weight=3).result(20) == 4


@pytest.mark.parametrize("weight", [0, -1, 1.5, "2", None, True])
def test_what_is_no_weight_is_refused(scheduler: Callable[..., Scheduler], weight: object) -> None:
    for rate in (None, Rate(3)):
        with pytest.raises(UsageError, match="write a whole number, 1 or more"):
            scheduler(rate=rate).submit(pow, 2, 2, weight=weight)


def test_without_a_rate_a_weight_changes_nothing(table: Callable[..., Table]) -> None:
    bench = table()
    for _ in range(3):
        bench.submit(weight=1_000_000)
    assert play(bench) == [0, 0, 0]


def test_starts_that_are_too_heavy_together_are_a_violation(table: Callable[..., Table]) -> None:
    bench = table(2)
    bench.submit(weight=2)
    bench.submit(weight=2)
    play(bench)
    snapshot = bench.engine.snapshot()
    assert list(violations_in(snapshot, Options(workers=2, rate=Rate(4)))) == []
    found = list(violations_in(snapshot, Options(workers=2, rate=Rate(3))))
    assert [violation.invariant for violation in found] == ["I8"]


RATES = st.one_of(
    st.builds(Rate, st.integers(4, 9)),
    st.builds(Rate, st.integers(1, 9), burst=st.integers(4, 9)),
)


@given(rate=RATES, weights=st.lists(st.integers(1, 4), max_size=40), workers=st.integers(1, 3))
def test_no_window_bears_more_than_the_rate_and_no_bound_is_above_the_record(
    rate: Rate, weights: list[int], workers: int
) -> None:
    bench = Table(workers, rate=rate)
    for weight in weights:
        bench.submit(weight=weight)
    starts = play(bench)
    assert bench.engine.violations() == []
    bench.engine.report()  # which asserts that the bound holds
    if rate.is_window:
        taken = [at for at, weight in zip(starts, weights, strict=True) for _ in range(weight)]
        assert most_in_window(taken, S)[0] <= rate.count
