"""The retry budget: of all starts, no more than a share are retries."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.conftest import Table

from timeball import Retry, Scheduler, Snooze
from timeball.core.states import State
from timeball.engine.chronicle import violations_in
from timeball.engine.options import Options
from timeball.engine.runner import Lost
from timeball.errors import UsageError

AT_ONCE = Retry(10, base_s=0, jitter="none")


def fail() -> None:
    raise ValueError("no")


def states(bench: Table) -> list[State]:
    return [work.state for work in bench.engine.agenda.jobs.values()]


def test_with_a_budget_of_a_fifth_no_more_than_every_fifth_start_is_a_retry(
    table: Callable[..., Table],
) -> None:
    bench = table(retry=AT_ONCE, retry_budget=0.2)
    jobs = [bench.submit(fail) for _ in range(12)]
    # The retry of 4 is one of 5 starts; that of 9 makes two of 10, and its next one three of 15.
    assert bench.started() == [*range(1, 13), 4, 9, 9]
    assert {job.id: job.retry_count for job in jobs if job.retry_count} == {4: 1, 9: 2}
    assert {(job.state, job.reason) for job in jobs} == {(State.FAILED, "retry-budget")}
    assert all("no" in str(job.error) for job in jobs)


@pytest.mark.parametrize(("share", "starts"), [(0, 3), (1, 9), (None, 9)])
def test_a_budget_of_nothing_allows_no_retry_and_one_of_all_every_retry(
    table: Callable[..., Table], share: float | None, starts: int
) -> None:
    bench = table(retry=Retry(2, base_s=0, jitter="none"), retry_budget=share)
    for _ in range(3):
        bench.submit(fail)
    assert len(bench.started()) == starts
    assert states(bench) == [State.FAILED] * 3


def test_neither_a_snooze_nor_a_crash_is_a_retry(table: Callable[..., Table]) -> None:
    bench = table(retry=AT_ONCE, retry_budget=0)
    asked: list[int] = []

    def snoozes_once() -> Any:
        asked.append(1)
        return Snooze(0) if len(asked) == 1 else None

    snoozed, lost = bench.submit(snoozes_once), bench.submit()
    bench.begin()
    bench.end()
    bench.end(said=Lost("it died"))
    bench.end()
    bench.end()
    assert (snoozed.state, lost.state) == (State.SUCCEEDED, State.SUCCEEDED)


def test_a_job_without_retries_left_fails_for_that_reason(table: Callable[..., Table]) -> None:
    bench = table(retry=Retry(0), retry_budget=0)
    job = bench.submit(fail)
    bench.started()
    assert job.reason == "exhausted"


@given(
    share=st.fractions(0, 1, max_denominator=20),
    plan=st.lists(st.booleans(), min_size=1, max_size=60),
    workers=st.integers(1, 3),
)
def test_at_every_instant_the_retries_are_no_more_than_their_share(
    share: Fraction, plan: list[bool], workers: int
) -> None:
    bench = Table(workers, retry=AT_ONCE, retry_budget=share)
    for works in plan:
        bench.submit((lambda: None) if works else fail)
    while bench.begin() is not None:
        pass
    begun = {attempt.work.id: 1 for attempt in bench.running}
    starts = len(bench.running)
    retries = 0
    while bench.running:
        following = bench.end()
        if following is None:
            continue
        starts += 1
        retries += following.work.id in begun
        begun[following.work.id] = 1
        assert retries <= share * starts
    assert bench.engine.violations() == []


def test_more_retries_than_their_share_are_a_violation(scheduler: Callable[..., Scheduler]) -> None:
    s = scheduler(workers=1, retry=Retry(1, base_s=0))
    s.submit(fail)
    s.wait()
    snapshot = s._engine.snapshot()
    (found,) = violations_in(snapshot, Options(workers=1, retry_budget=0.4))
    assert (found.invariant, found.subject) == ("I7", "scheduler")
    assert "1 of 2 starts were retries" in found.text
    assert list(violations_in(snapshot, Options(workers=1, retry_budget=0.5))) == []


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "a fifth", True])
def test_what_is_no_share_is_refused(share: Any) -> None:
    with pytest.raises(UsageError, match="write a share of all starts, 0 to 1"):
        Scheduler(retry_budget=share)
