"""The batch report: rates and their denominators, efficiency, text and JSON."""

from __future__ import annotations

import json
import random
from heapq import heappop, heappush
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.core.floors import Floor
from timeball.core.makespan import AttemptRecord, Cause, IdleSpan, Percentiles
from timeball.core.rate import Rate
from timeball.core.report import SETS, BatchRecord, BatchReport
from timeball.core.states import Ending, State

S = 10**9


def attempt(job: str, start_s: float, end_s: float, **more: Any) -> AttemptRecord[str]:
    given = {"attempt": 1, "slot": 0, "queued_ns": 0, "ending": Ending.SUCCEEDED} | more
    return AttemptRecord(
        job=job, started_ns=round(start_s * S), finished_ns=round(end_s * S), **given
    )


def report_on(states: dict[str, State], *attempts: AttemptRecord[str], **more: Any) -> BatchReport:
    given = {"workers": 2} | more
    return BatchReport.of(BatchRecord(states=states, attempts=attempts, **given))


def mixed() -> BatchReport:
    """Return ten jobs of every fate: two succeeded at once, one after a retry."""
    states = {
        "quick": State.SUCCEEDED,
        "second": State.SUCCEEDED,
        "retried": State.SUCCEEDED,
        "broken": State.FAILED,
        "lost": State.FAILED,
        "stopped": State.CANCELLED,
        "never began": State.CANCELLED,
        "ruled out": State.SKIPPED,
        "waiting": State.WAITING,
        "going on": State.RUNNING,
    }
    return report_on(
        states,
        attempt("quick", 10, 11),
        attempt("second", 10, 12, slot=1),
        attempt("retried", 11, 12, ending=Ending.RETRIED),
        attempt("broken", 12, 13, slot=1, ending=Ending.FAILED, queued_ns=2 * S),
        attempt("retried", 14, 15, attempt=2, queued_ns=14 * S, backoff_ns=2 * S),
        attempt("lost", 13, 14, slot=1, ending=Ending.FAILED),
        attempt("stopped", 15, 16, ending=Ending.CANCELLED),
        attempt("going on", 14, 18, slot=1, ending=None),
        idle=[IdleSpan(0, 12 * S, 14 * S, Cause.RETRY), IdleSpan(0, 16 * S, 18 * S, Cause.QUEUE)],
    )


def test_the_success_rate_is_succeeded_over_submitted() -> None:
    assert mixed().success_rate == mixed().success.submitted == 3 / 10


def test_cancelled_skipped_and_lost_jobs_stay_in_the_denominator() -> None:
    states = {"a": State.SUCCEEDED, "b": State.CANCELLED, "c": State.SKIPPED, "d": State.FAILED}
    report = report_on(states, attempt("a", 0, 1), attempt("d", 1, 2, ending=Ending.FAILED))
    assert report.success_rate == 1 / 4
    assert report.success.decided == 1 / 2


def test_a_job_that_succeeded_after_a_retry_counts_in_full_but_not_at_first_try() -> None:
    states = {"a": State.SUCCEEDED}
    first = attempt("a", 0, 1, ending=Ending.RETRIED)
    report = report_on(states, first, attempt("a", 1, 2, attempt=2))
    assert report.success == (1.0, 1.0, 0.0, 0.5)
    assert report.retries == 1


def test_all_four_conventions_are_told_apart() -> None:
    assert mixed().success == (3 / 10, 3 / 5, 2 / 10, 3 / 8)


def test_a_rate_over_nothing_is_none_and_not_a_success() -> None:
    assert report_on({}).success == (None, None, None, None)
    assert report_on({"a": State.CANCELLED}).success == (0.0, None, 0.0, None)


def test_the_four_sets_hold_every_state_once() -> None:
    assert sorted(s for states in SETS.values() for s in states) == sorted(State)


def test_sets_and_states_count_every_job_once() -> None:
    report = mixed()
    assert report.sets == {"pending": 1, "running": 1, "completed": 3, "failed": 5}
    assert report.states[State.CANCELLED] == 2
    assert report.states[State.SCHEDULED] == 0
    assert sum(report.states.values()) == sum(report.sets.values()) == report.jobs == 10


def test_makespan_and_throughput_begin_with_the_first_start() -> None:
    report = mixed()
    assert report.makespan_ns == 8 * S
    assert (report.starts_per_s, report.succeeded_per_s) == (1.0, 3 / 8)


def test_efficiency_is_bound_over_makespan() -> None:
    report = mixed()
    assert report.bound.binding is Floor.WORK
    assert report.bound.ns == 6 * S
    assert report.efficiency == 6 / 8


def test_a_batch_that_took_no_time_could_not_be_faster() -> None:
    assert report_on({}).efficiency == 1.0
    assert report_on({"a": State.SUCCEEDED}, attempt("a", 1, 1)).efficiency == 1.0


def test_latencies_are_of_attempts_and_leave_out_what_still_runs() -> None:
    report = mixed()
    assert report.run_time == Percentiles(S, 2 * S, 2 * S, 2 * S)
    assert report.queue_wait is not None
    assert report.queue_wait.most == 15 * S
    only = report_on({"a": State.RUNNING}, attempt("a", 0, 1, ending=None))
    assert only.run_time is None
    assert only.queue_wait == Percentiles(0, 0, 0, 0)


def test_a_batch_faster_than_its_limit_allows_is_a_bug_of_the_engine() -> None:
    states = {"a": State.SUCCEEDED, "b": State.SUCCEEDED}
    attempts = (attempt("a", 0, 0.1), attempt("b", 0.5, 0.6))
    with pytest.raises(AssertionError, match="start does not allow below 1100000000 ns"):
        report_on(states, *attempts, limit=Rate(1))
    assert report_on(states, *attempts, limit=Rate(1), clock_ns=S // 2).efficiency == 1.0


def test_a_child_that_overlaps_its_parent_is_a_bug_of_the_engine() -> None:
    states = {"a": State.SUCCEEDED, "b": State.SUCCEEDED}
    attempts = (attempt("a", 0, 2), attempt("b", 1, 3, slot=1))
    with pytest.raises(AssertionError, match="longest does not allow below 4000000000 ns"):
        report_on(states, *attempts, parents={"b": ["a"]})


def test_a_retry_before_its_backoff_is_a_bug_of_the_engine() -> None:
    first = attempt("a", 0, 1, ending=Ending.RETRIED)
    again = attempt("a", 2, 3, attempt=2, backoff_ns=2 * S)
    with pytest.raises(AssertionError, match="chain does not allow below 4000000000 ns"):
        report_on({"a": State.SUCCEEDED}, first, again)


def test_an_attempt_of_an_unknown_job_is_a_bug_of_the_engine() -> None:
    with pytest.raises(AssertionError, match="not submitted"):
        report_on({}, attempt("a", 0, 1))


# --- a small engine, to have records that nobody made up ----------------------------------------


def simulate(seed: int, jobs: int, workers: int, rate: Rate | None) -> BatchRecord[int]:
    """Run jobs first come, first served; one in five fails once, waits, and tries again."""
    r = random.Random(seed)
    ready = [(0, job, 1, 0) for job in range(jobs)]
    free = [(0, slot) for slot in range(workers)]
    attempts: list[AttemptRecord[int]] = []
    idle: list[IdleSpan] = []
    while ready:
        at, job, number, wait = heappop(ready)
        since, slot = heappop(free)
        claimed = max(at, since)
        start = max(claimed, allowed_ns(rate, [a.started_ns for a in attempts]))
        idle += [
            IdleSpan(slot, since, claimed, Cause.RETRY),
            IdleSpan(slot, claimed, start, Cause.LIMITER),
        ]
        end = start + r.randint(0, S)
        again = number == 1 and r.random() < 0.2
        ending = Ending.RETRIED if again else Ending.SUCCEEDED
        attempts.append(
            AttemptRecord(job, number, slot, at, start, end, ending, start - claimed, wait)
        )
        heappush(free, (end, slot))
        if again:
            backoff = r.randint(0, S)
            heappush(ready, (end + backoff, job, 2, backoff))
    states = dict.fromkeys(range(jobs), State.SUCCEEDED)
    return BatchRecord(states=states, attempts=attempts, workers=workers, idle=idle, limit=rate)


def allowed_ns(rate: Rate | None, starts: list[int]) -> int:
    """Return the earliest next start: as far from each earlier one as from a first one."""
    if rate is None:
        return 0
    n = len(starts)
    return max((at + rate.earliest_offset_ns(n - i + 1) for i, at in enumerate(starts)), default=0)


@pytest.mark.slow
@given(
    seed=st.integers(0, 10**6),
    jobs=st.integers(1, 40),
    workers=st.integers(1, 6),
    rate=st.sampled_from([None, Rate(3), Rate(20), Rate(4, burst=2), Rate(10, spread=True)]),
)
@settings(deadline=None, max_examples=40)
def test_of_any_run_the_bound_holds_and_the_ledger_balances(seed, jobs, workers, rate) -> None:
    record = simulate(seed, jobs, workers, rate)
    report = BatchReport.of(record)
    assert 0 < report.efficiency <= 1
    assert report.bound.ns <= report.makespan_ns
    ledger = report.ledger
    assert ledger.running_ns + sum(ledger.causes.values()) == workers * report.makespan_ns
    assert min(ledger.causes.values()) >= 0
    assert report.success_rate == 1.0
    assert report.retries == len(record.attempts) - jobs


# --- text and JSON ------------------------------------------------------------------------------


def test_the_dict_is_json_and_says_which_version_it_is() -> None:
    told = mixed().as_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["schema_version"] == 1
    assert json.loads(json.dumps(report_on({}).as_dict()))["queue_wait_ns"] is None


def test_the_dict_tells_the_ledger_to_the_nanosecond() -> None:
    told = mixed().as_dict()
    assert told["running_ns"] + sum(told["idle_ns"].values()) == 2 * told["makespan_ns"]
    assert told["floors_ns"][told["binding"]] == told["bound_ns"] == max(told["floors_ns"].values())


TEXT = """\
Batch     10 jobs: 1 waiting, 1 running, 3 succeeded, 2 failed, 2 cancelled, 1 skipped
Sets      pending 1, running 1, completed 3, failed 5
Success   30.0 % of all jobs submitted (60.0 % of succeeded and failed, 20.0 % at first try, \
37.5 % of attempts)
"""


def test_the_text_tells_everything_in_one_plain_block() -> None:
    text = str(mixed())
    assert text.startswith(TEXT)
    assert (
        "Makespan  8.000 s; no schedule takes less than 6.000 s (work): efficiency 75.0 %" in text
    )
    assert "          work                   6.000 s  ##################  binds" in text
    assert "          retry wait              12.5 %  ###" in text
    assert text.isascii()
    assert all(line == line.rstrip() for line in text.splitlines())


def test_an_empty_batch_has_a_text_too() -> None:
    assert str(report_on({})).startswith("Batch     0 jobs: none\n")


def test_what_is_not_all_is_never_called_a_hundred_percent() -> None:
    states = {str(i): State.SUCCEEDED for i in range(5_000)} | {"x": State.CANCELLED}
    assert "Success   99.9 % of all jobs submitted" in str(report_on(states))


@pytest.mark.parametrize("ended", [False, True])
def test_a_job_that_waits_for_what_it_spawned_was_called_once(*, ended: bool) -> None:
    first = attempt("a", 0, 1, ending=Ending.AWAITED)
    state = State.SUCCEEDED if ended else State.WAITING
    report = report_on({"a": state}, first, *[attempt("a", 5, 6, attempt=2)] * ended)
    assert (report.attempts, report.started, report.retries) == (1 + ended, 1, 0)
    assert report.success.first_try == report.success.attempts == float(ended)
