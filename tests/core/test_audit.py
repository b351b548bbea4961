"""Sound histories are clean, any corruption is found, and the figures are those of the rows."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.histories import (
    ONCE,
    RETRIED,
    SUCCESS,
    T0,
    attempt,
    ended,
    entry,
    grant,
    held,
    job,
    walks,
)

from timeball.core.audit import VIOLATIONS_KEPT, Violation, audit, violations_of
from timeball.core.history import EndingRecord, JobHistory, StaleRecord, state_of, went_plainly
from timeball.core.invariants import INVARIANTS, ledger
from timeball.core.states import TERMINAL, Ending, State


def numbered(*histories: JobHistory) -> list[JobHistory]:
    return [history._replace(id=n, uuid=UUID(int=n)) for n, history in enumerate(histories, 1)]


@settings(max_examples=40)
@given(walks())
def test_every_walk_along_the_table_is_clean(walk: tuple[JobHistory, State]) -> None:
    history, state = walk
    assert violations_of(history) == []
    assert state_of(history) is state


SMALL = st.integers(0, 2)


@given(
    st.tuples(SMALL, SMALL, SMALL),
    st.tuples(SMALL, SMALL, SMALL),
    st.sampled_from(Ending),
    st.sampled_from([None, 7, 8]),
    st.sampled_from(
        [{}, {"run_at": T0 + 1}, {"expires_at": T0 + 1}, {"cancels_requested_at": (T0,)}]
    ),
    st.sampled_from([(), (held(1, State.WAITING),), (entry(2, 1),), (grant(1, 1),)]),
)
def test_with_what_went_plainly_nothing_is_wrong(
    turns: tuple, ats: tuple, ending: Ending, worker: int | None, fields: dict, more: tuple
) -> None:
    end = ended(turns[2], ending, ats[2], worker=worker)
    rows = (entry(turns[0], ats[0]), grant(turns[1], ats[1]), end, *more)
    history = job(*rows, **fields, max_retries=0, max_crashes=0)
    if went_plainly(history):
        full = ledger(history)
        assert [text for check in INVARIANTS.values() for text in check(full)] == []
        assert state_of(history) is State.SUCCEEDED


def test_most_jobs_go_plainly() -> None:
    assert went_plainly(SUCCESS)
    assert not went_plainly(RETRIED)


@settings(max_examples=30)
@given(st.lists(walks(), max_size=4))
def test_once_quiet_the_lost_are_those_not_in_a_terminal_state(
    walked: list[tuple[JobHistory, State]],
) -> None:
    unfinished = sum(state not in TERMINAL for _, state in walked)
    report = audit(numbered(*(history for history, _ in walked)), quiesced=True)
    assert report.lost == unfinished == report.found.get("I6", 0)
    assert report.clean is (unfinished == 0)
    assert sum(report.states.values()) == report.jobs == len(walked)


# Each breaks a sound history at one of its turns, or gives None where it cannot.
Corruption = Callable[[JobHistory, int], JobHistory | None]


def last_turn(history: JobHistory) -> int:
    rows = (*history.entries, *history.grants, *history.endings, history.held)
    return max(row.turn for row in rows if row is not None)


def has_grant(history: JobHistory, turn: int) -> bool:
    return any(row.turn == turn for row in history.grants)


def ending_of(history: JobHistory, turn: int) -> EndingRecord | None:
    return next((row for row in history.endings if row.turn == turn), None)


def with_rows(history: JobHistory, field: str, rows: Iterable[Any]) -> JobHistory:
    fields: dict[str, Any] = {field: tuple(sorted(rows, key=lambda row: row.turn))}
    return history._replace(**fields)


def without(history: JobHistory, field: str, turn: int) -> JobHistory:
    return with_rows(history, field, (row for row in getattr(history, field) if row.turn != turn))


def changed(history: JobHistory, field: str, turn: int, **values: object) -> JobHistory:
    rows = getattr(history, field)
    new = (row._replace(**values) if row.turn == turn else row for row in rows)
    return with_rows(history, field, new)


def with_row(history: JobHistory, field: str, row: Any) -> JobHistory:
    return with_rows(history, field, (*getattr(history, field), row))


def drop_turn(history: JobHistory, turn: int) -> JobHistory | None:
    if turn == last_turn(history):
        return None
    for field in ("entries", "grants", "endings"):
        history = without(history, field, turn)
    return history


def revived(history: JobHistory) -> set[int]:
    return {row.turn for row in history.revivals}


def most_in_a_life(history: JobHistory, ending: Ending) -> int:
    turns = [row.turn for row in history.endings if row.ending is ending]
    return max(
        Counter(sum(end < turn for end in revived(history)) for turn in turns).values(), default=0
    )


def drop_last_turn(history: JobHistory, turn: int) -> JobHistory | None:
    if turn != last_turn(history):
        return None
    for field in ("entries", "grants", "endings"):
        history = without(history, field, turn)
    return history._replace(held=None)


def drop_ending(history: JobHistory, turn: int) -> JobHistory | None:
    return None if turn == last_turn(history) else without(history, "endings", turn)


def drop_entry(history: JobHistory, turn: int) -> JobHistory | None:
    return without(history, "entries", turn) if has_grant(history, turn) else None


def drop_grant(history: JobHistory, turn: int) -> JobHistory | None:
    if not has_grant(history, turn) or ending_of(history, turn) is None:
        return None
    return without(history, "grants", turn)


def repeat_entry(history: JobHistory, turn: int) -> JobHistory | None:
    rows = [row for row in history.entries if row.turn == turn]
    return with_row(history, "entries", rows[0]) if rows else None


def repeat_grant(history: JobHistory, turn: int) -> JobHistory | None:
    rows = [row for row in history.grants if row.turn == turn]
    if not rows:
        return None
    return with_row(history, "grants", rows[0]._replace(worker=99, seq=99))


def repeat_ending(history: JobHistory, turn: int) -> JobHistory | None:
    end = ending_of(history, turn)
    return end and with_row(history, "endings", end._replace(ending=Ending.RELEASED, at=end.at + 1))


def change_worker(history: JobHistory, turn: int) -> JobHistory | None:
    return changed(history, "endings", turn, worker=99) if ending_of(history, turn) else None


def follow_the_end(history: JobHistory, _turn: int) -> JobHistory | None:
    if state_of(history) not in TERMINAL:
        return None
    return with_row(history, "entries", entry(last_turn(history) + 1, 1000))


def hold_as_well(history: JobHistory, turn: int) -> JobHistory | None:
    return None if history.held else history._replace(held=held(turn, State.SCHEDULED))


def grant_early(history: JobHistory, turn: int) -> JobHistory | None:
    before = ending_of(history, turn - 1)
    due = history.run_at if before is None else before.delay_s and before.at + before.delay_s
    if not due or not has_grant(history, turn):
        return None
    return changed(history, "grants", turn, at=due - 1)


def begin_early(history: JobHistory, turn: int) -> JobHistory | None:
    end, first_life = ending_of(history, turn), min(revived(history), default=turn)
    if history.run_at is None or end is None or turn > first_life:
        return None
    return changed(history, "endings", turn, began_at=history.run_at - 1)


def overlap(history: JobHistory, turn: int) -> JobHistory | None:
    before = ending_of(history, turn - 1)
    if before is None or not has_grant(history, turn):
        return None
    return changed(history, "grants", turn, at=before.at - 1)


def spend_the_retries(history: JobHistory, _turn: int) -> JobHistory | None:
    retried = most_in_a_life(history, Ending.RETRIED)
    return history._replace(max_retries=retried - 1) if retried else None


def spend_the_crashes(history: JobHistory, _turn: int) -> JobHistory | None:
    lost = most_in_a_life(history, Ending.LOST)
    return history._replace(max_crashes=lost) if lost else None


def promise_once(history: JobHistory, turn: int) -> JobHistory | None:
    before = ending_of(history, turn - 1)
    if before is None or before.began_at is None or not has_grant(history, turn):
        return None
    return None if turn - 1 in revived(history) else history._replace(delivery=ONCE)


def cancel_before(history: JobHistory, turn: int) -> JobHistory | None:
    grants = [row for row in history.grants if row.turn == turn]
    if not grants or any(grants[0].at - 1 <= row.at <= grants[0].at for row in history.revivals):
        return None
    return history._replace(cancels_requested_at=(grants[0].at - 1,))


CORRUPTIONS: dict[Corruption, str] = {
    drop_last_turn: "I1",
    hold_as_well: "I1",
    drop_ending: "I2",
    drop_entry: "I2",
    follow_the_end: "I2",
    drop_turn: "I3",
    repeat_entry: "I3",
    repeat_grant: "I3",
    drop_grant: "I4",
    repeat_ending: "I4",
    change_worker: "I4",
    overlap: "I5",
    promise_once: "I6'",
    spend_the_retries: "I7",
    spend_the_crashes: "I7",
    grant_early: "I12",
    begin_early: "I12",
    cancel_before: "I19",
}

EVERYTHING = job(
    *attempt(1, Ending.RETRIED, 0),
    *attempt(2, Ending.LOST, 2),
    *attempt(3, Ending.SUCCEEDED, 4),
    run_at=T0,
)


def broken(history: JobHistory) -> Iterator[tuple[Corruption, JobHistory]]:
    for corrupt in CORRUPTIONS:
        for turn in range(1, last_turn(history) + 1):
            if (worse := corrupt(history, turn)) is not None:
                yield corrupt, worse


def found_in(history: JobHistory) -> set[str]:
    return {violation.invariant for violation in violations_of(history)}


@settings(max_examples=40)
@given(walks(), st.data())
def test_any_single_corruption_is_found(
    walk: tuple[JobHistory, State], data: st.DataObject
) -> None:
    corrupt, worse = data.draw(st.sampled_from(list(broken(walk[0]))))
    assert CORRUPTIONS[corrupt] in found_in(worse)


def test_every_corruption_can_happen_and_is_found() -> None:
    corruptions = list(broken(EVERYTHING))
    assert {corrupt for corrupt, _ in corruptions} == set(CORRUPTIONS)
    assert all(CORRUPTIONS[corrupt] in found_in(worse) for corrupt, worse in corruptions)


def test_the_figures_of_a_report_are_those_of_the_rows() -> None:
    waiting = job(held(1, State.WAITING), stale=(StaleRecord(1, 8, T0),) * 2)
    report = audit(numbered(SUCCESS, RETRIED, waiting), quiesced=False, accepted=3)
    assert report.clean
    assert report.states == {State.SUCCEEDED: 2, State.WAITING: 1}
    assert (report.jobs, report.turns, report.attempts, report.endings) == (3, 4, 3, 3)
    assert (report.stale, report.lost, report.twice) == (2, 0, 0)


def test_a_job_that_vanished_is_lost() -> None:
    report = audit([SUCCESS], quiesced=True, accepted=3)
    assert report.lost == 2
    assert report.violations == (Violation("I1", "store", "3 jobs should be on record, and 1 are"),)


def test_a_job_in_no_state_is_lost() -> None:
    report = audit([job()], quiesced=True)
    assert (report.lost, report.states, report.found) == (1, {}, {"I1": 1})


@pytest.mark.parametrize(
    "history",
    [
        job(entry(1, 0), grant(1, 1), grant(1, 1, worker=8)),
        job(*attempt(1, Ending.SUCCEEDED, 0), ended(1, Ending.SUCCEEDED, 3)),
        job(*attempt(1, Ending.SUCCEEDED, 0), *attempt(2, Ending.SUCCEEDED, 3)),
    ],
)
def test_a_second_grant_or_a_second_final_ending_counts_as_twice(history: JobHistory) -> None:
    assert audit([history], quiesced=False).twice == 1


def test_a_job_on_record_twice_is_found() -> None:
    (violation,) = audit([SUCCESS, SUCCESS], quiesced=True).violations
    assert str(violation) == "I1 job 1: follows job 1: on record twice, or read out of order"


def test_all_violations_are_counted_and_the_first_thousand_kept() -> None:
    report = audit(numbered(*[job(entry(1, 0))] * 1_200), quiesced=True)
    assert report.lost == report.found["I6"] == 1_200
    assert len(report.violations) == VIOLATIONS_KEPT
    assert str(report.violations[0]) == "I6 job 1: is still pending in turn 1, with all work done"


def test_a_report_takes_in_what_another_pass_found() -> None:
    before = audit([SUCCESS], quiesced=True)
    after = before.including([Violation("I17", "schedule nightly", "was never decided")])
    assert before.clean
    assert (after.clean, after.jobs, after.found) == (False, 1, {"I17": 1})


def test_the_work_grows_with_the_rows_and_not_faster() -> None:
    small, large = (calls_of_an_audit(numbered(*[RETRIED] * n)) for n in (50, 1_000))
    assert large <= 20.5 * small


def calls_of_an_audit(histories: list[JobHistory]) -> int:
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        audit(histories, quiesced=True)
    finally:
        sys.setprofile(before)
    return calls
