"""The makespan, and the ledger of what the slots did meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.core.floors import Chain
from timeball.core.makespan import (
    AttemptRecord,
    Cause,
    IdleSpan,
    Percentiles,
    chains_of,
    idle_ledger,
    percentiles,
    span_of,
)
from timeball.core.states import Ending


def ran(job: str, slot: int, start: int, end: int, **more) -> AttemptRecord[str]:
    given = {"attempt": 1, "queued_ns": 0, "ending": Ending.SUCCEEDED} | more
    return AttemptRecord(job=job, slot=slot, started_ns=start, finished_ns=end, **given)


def test_the_makespan_is_the_latest_end_minus_the_earliest_start() -> None:
    span = span_of([ran("a", 0, 30, 95), ran("b", 1, 20, 40), ran("c", 1, 50, 60)])
    assert (span.from_ns, span.to_ns, span.length_ns) == (20, 95, 75)


def test_the_makespan_begins_with_the_first_start_not_with_the_submit() -> None:
    assert span_of([ran("a", 0, 1_000, 1_500, queued_ns=0)]).length_ns == 500


def test_an_attempt_that_failed_is_part_of_the_makespan() -> None:
    first = ran("a", 0, 10, 20, ending=Ending.RETRIED)
    last = ran("a", 0, 90, 95, attempt=2, ending=Ending.FAILED)
    assert span_of([last, first, ran("b", 1, 30, 40)]).length_ns == 85


def test_where_nothing_started_the_makespan_has_no_length() -> None:
    assert span_of([]).length_ns == 0


def test_a_chain_has_the_attempts_in_order_and_the_waits_between_them() -> None:
    third = ran("a", 0, 90, 99, attempt=3, backoff_ns=7)
    second = ran("a", 0, 50, 52, attempt=2, backoff_ns=5)
    first = ran("a", 1, 10, 11, backoff_ns=1_000)
    found = chains_of([third, first, ran("b", 0, 0, 4), second])
    assert found == {"a": Chain([1, 2, 9], [5, 7]), "b": Chain([4], [])}


# --- the idle ledger ----------------------------------------------------------------------------


def test_what_is_neither_running_nor_recorded_is_dispatch() -> None:
    attempts = [ran("a", 0, 0, 40), ran("b", 1, 5, 25), ran("c", 0, 43, 100)]
    ledger = idle_ledger(
        attempts, [IdleSpan(1, 25, 60, Cause.LIMITER), IdleSpan(1, 60, 98, Cause.RETRY)], workers=2
    )
    assert ledger.running_ns == 117
    assert ledger.causes == dict.fromkeys(Cause, 0) | {
        Cause.LIMITER: 35,
        Cause.RETRY: 38,
        Cause.DISPATCH: 3 + 5 + 2,
    }
    assert ledger.total_ns == 200


def test_a_span_is_cut_to_the_batch() -> None:
    idle = [IdleSpan(1, -50, 500, Cause.QUEUE), IdleSpan(0, 0, 10, Cause.SCHEDULE)]
    ledger = idle_ledger([ran("a", 0, 10, 30)], idle, workers=2)
    assert ledger.causes[Cause.QUEUE] == 20
    assert ledger.causes[Cause.SCHEDULE] == ledger.causes[Cause.DISPATCH] == 0


@pytest.mark.parametrize(
    "twice",
    [
        [ran("b", 0, 20, 40)],
        [IdleSpan(0, 29, 40, Cause.RETRY)],
        [IdleSpan(0, 15, 16, Cause.RETRY)],
        [IdleSpan(0, 40, 50, Cause.RETRY), IdleSpan(0, 45, 46, Cause.QUEUE)],
        [IdleSpan(0, 60, 50, Cause.RETRY)],
    ],
)
def test_a_slot_that_does_two_things_at_once_is_a_bug(twice) -> None:
    attempts = [ran("a", 0, 10, 30), *(x for x in twice if isinstance(x, AttemptRecord))]
    idle = [x for x in twice if isinstance(x, IdleSpan)]
    with pytest.raises(AssertionError, match="slot 0"):
        idle_ledger(attempts, idle, workers=1)


def test_two_things_of_one_slot_may_touch() -> None:
    attempts = [ran("a", 0, 10, 30), ran("nothing", 0, 30, 30), ran("b", 0, 35, 50)]
    ledger = idle_ledger(attempts, [IdleSpan(0, 30, 35, Cause.DEPENDENCY)], workers=1)
    assert ledger.causes[Cause.DEPENDENCY] == 5
    assert ledger.causes[Cause.DISPATCH] == 0


@st.composite
def timelines(draw: st.DrawFn) -> tuple[list[AttemptRecord[str]], list[IdleSpan], int]:
    """Return what some slots did, piece by piece, each piece of a random kind and length."""
    workers = draw(st.integers(1, 4))
    attempts, idle = [], []
    for slot in range(workers):
        at = draw(st.integers(0, 20))
        kinds = st.sampled_from(["run", "gap", *Cause])
        for kind, length in draw(st.lists(st.tuples(kinds, st.integers(0, 30)), max_size=8)):
            if kind == "run":
                attempts.append(ran(f"{slot}-{at}", slot, at, at + length))
            elif kind != "gap":
                idle.append(IdleSpan(slot, at, at + length, Cause(kind)))
            at += length
    return attempts, idle, workers


@pytest.mark.slow
@given(timeline=timelines())
@settings(deadline=None)
def test_the_ledger_balances_and_tells_each_nanosecond_of_each_slot(timeline) -> None:
    attempts, idle, workers = timeline
    ledger = idle_ledger(attempts, idle, workers=workers)
    span = span_of(attempts)
    assert ledger.running_ns + sum(ledger.causes.values()) == workers * span.length_ns
    counted = dict.fromkeys(Cause, 0)
    for slot in range(workers):
        for now in range(span.from_ns, span.to_ns):
            if any(a.slot == slot and a.started_ns <= now < a.finished_ns for a in attempts):
                continue
            causes = [c for s, start, end, c in idle if s == slot and start <= now < end]
            counted[causes[0] if causes else Cause.DISPATCH] += 1
    assert ledger.causes == counted


# --- percentiles --------------------------------------------------------------------------------


def test_a_percentile_is_the_value_of_nearest_rank() -> None:
    assert percentiles(range(1, 101)) == Percentiles(50, 95, 99, 100)
    assert percentiles([7]) == Percentiles(7, 7, 7, 7)
    assert percentiles([9, 1]) == Percentiles(1, 9, 9, 9)
    assert percentiles([]) is None


@given(values=st.lists(st.integers(0, 50), min_size=1))
def test_so_many_percent_do_not_exceed_a_percentile_and_fewer_lie_below(values) -> None:
    found = percentiles(values)
    assert found is not None
    for percent, value in ((50, found.p50), (95, found.p95), (99, found.p99)):
        assert 100 * sum(v <= value for v in values) >= percent * len(values)
        assert 100 * sum(v < value for v in values) < percent * len(values)
