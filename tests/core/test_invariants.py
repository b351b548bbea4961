"""One sound and one corrupt history, at least, for each invariant of a job."""

from __future__ import annotations

import pytest
from tests.core.histories import (
    ONCE,
    RETRIED,
    T0,
    attempt,
    ended,
    entry,
    grant,
    held,
    job,
    unbegun,
)

from timeball.core.audit import violations_of
from timeball.core.callbacks import CALL, CALLBACK
from timeball.core.history import JobHistory, RevivalRecord, SlotRecord, state_of
from timeball.core.states import Ending, State

REVIVED = (RevivalRecord(1, T0 + 8),)
KEY, QUEUE = (SlotRecord("key", "x"),), (SlotRecord("queue", "x"),)

CALLED = unbegun(1, Ending.SUCCEEDED, 5)._replace(reason=CALL)

CLEAN = {
    "called from outside": job(CALLED, kind=CALLBACK),
    "pending": job(entry(1, 0)),
    "running": job(entry(1, 0), grant(1, 1)),
    "scheduled": job(held(1, State.SCHEDULED), run_at=T0 + 60),
    "succeeded": job(*attempt(1, Ending.SUCCEEDED, 0)),
    "retried": RETRIED,
    "waits for its retry": job(*attempt(1, Ending.RETRIED, 0), held(2, State.SCHEDULED)),
    "waits for children": job(*attempt(1, Ending.AWAITED, 0), held(2, State.WAITING)),
    "cancelled while held": job(unbegun(1, Ending.CANCELLED, 5)),
    "cancelled while pending": job(entry(1, 0), unbegun(1, Ending.CANCELLED, 5)),
    "cancelled while running": job(
        *attempt(1, Ending.CANCELLED, 0), cancels_requested_at=(T0 + 1.5,)
    ),
    "ruled out by a parent": job(unbegun(1, Ending.SKIPPED, 5)),
    "too late": job(entry(1, 0), unbegun(1, Ending.EXPIRED, 5), expires_at=T0 + 4),
    "given back, then too late": job(
        entry(1, 0),
        grant(1, 1),
        ended(1, Ending.RELEASED, 2, began_at=None),
        unbegun(2, Ending.EXPIRED, 5),
        expires_at=T0 + 4,
    ),
    "begun in time, and retried past its deadline": RETRIED._replace(expires_at=T0 + 1.5),
    "too late, and revived": job(
        entry(1, 0),
        unbegun(1, Ending.EXPIRED, 5),
        *attempt(2, Ending.SUCCEEDED, 1_000),
        revivals=(RevivalRecord(1, T0 + 999),),
        expires_at=T0 + 4,
    ),
    "revived": job(
        *attempt(1, Ending.FAILED, 0), *attempt(2, Ending.SUCCEEDED, 9), revivals=REVIVED
    ),
    "revived, and early": job(
        unbegun(1, Ending.CANCELLED, 5), entry(2, 9), run_at=T0 + 60, revivals=REVIVED
    ),
    "revived, and at most once": job(
        *attempt(1, Ending.FAILED, 0),
        *attempt(2, Ending.FAILED, 9),
        revivals=REVIVED,
        delivery=ONCE,
    ),
    "revived, though once asked to stop": job(
        *attempt(1, Ending.CANCELLED, 0),
        *attempt(2, Ending.SUCCEEDED, 9),
        revivals=REVIVED,
        cancels_requested_at=(T0 + 1.5,),
    ),
    "revived, with its retries whole again": job(
        *attempt(1, Ending.RETRIED, 0),
        *attempt(2, Ending.FAILED, 3, reason="exhausted"),
        *attempt(3, Ending.RETRIED, 9),
        *attempt(4, Ending.FAILED, 12, reason="exhausted"),
        revivals=(RevivalRecord(2, T0 + 8),),
        max_retries=1,
    ),
    "moved": job(entry(1, 0), unbegun(1, Ending.MOVED, 5), entry(2, 5)),
    "given back": job(
        entry(1, 0), grant(1, 1), ended(1, Ending.RELEASED, 2, began_at=None), entry(2, 2)
    ),
    "quarantined": job(
        *attempt(1, Ending.LOST, 0),
        *attempt(2, Ending.LOST, 2),
        *attempt(3, Ending.FAILED, 4, reason="quarantined"),
    ),
    "granted at the very instant": job(
        entry(1, 0), grant(1, 0), ended(1, Ending.SNOOZED, 0), entry(2, 0), grant(2, 1)
    ),
    "fell due between two floats": job(
        *attempt(1, Ending.RETRIED, 0, delay_s=1.000001), entry(2, 3), grant(2, 3)
    ),
    "given back and then begun, at most once": job(
        entry(1, 0),
        grant(1, 1),
        ended(1, Ending.RELEASED, 2, began_at=None),
        *attempt(2, Ending.SUCCEEDED, 2),
        delivery=ONCE,
    ),
    "counts against the limit of its key": job(entry(1, 0), slots=KEY),
    "counts against that of its queue": job(entry(1, 0), grant(1, 1), slots=QUEUE),
    "exhausted": job(*attempt(1, Ending.FAILED, 0, reason="exhausted"), max_retries=0),
}


@pytest.mark.parametrize("history", CLEAN.values(), ids=CLEAN)
def test_a_sound_history_is_clean(history: JobHistory) -> None:
    assert violations_of(history) == []


LATE_END = (entry(1, 0), grant(1, 1), ended(1, Ending.SNOOZED, 9))

CORRUPT = [
    # invariant, what its text must say, history
    ("I1", "nothing is on record", job()),
    ("I1", "nothing follows", job(*attempt(1, Ending.RETRIED, 0))),
    ("I1", "held as scheduled", job(*attempt(1, Ending.SUCCEEDED, 0), held(1, State.SCHEDULED))),
    ("I1", "and pending in turn 1", job(entry(1, 0), held(1, State.WAITING))),
    (
        "I1",
        "and running in turn 2",
        job(*attempt(1, Ending.RETRIED, 0), entry(2, 3), grant(2, 4), held(1, State.SCHEDULED)),
    ),
    ("I1", "held as running", job(held(1, State.RUNNING))),
    ("I2", "yet turn 2 followed", job(*attempt(1, Ending.SUCCEEDED, 0), entry(2, 3))),
    ("I2", "yet turn 2 followed", job(*attempt(1, Ending.FAILED, 0), held(2, State.SCHEDULED))),
    ("I2", "turn 1 has not ended", job(entry(1, 0), grant(1, 1), entry(2, 3))),
    ("I2", "without having been pending", job(grant(1, 1), ended(1, Ending.SUCCEEDED, 2))),
    ("I2", "moved while running", job(*attempt(1, Ending.MOVED, 0), entry(2, 2))),
    ("I2", "expired while running", job(*attempt(1, Ending.EXPIRED, 0))),
    ("I2", "skipped while pending", job(entry(1, 0), unbegun(1, Ending.SKIPPED, 5))),
    ("I2", "held as waiting", job(*attempt(1, Ending.RETRIED, 0), held(2, State.WAITING))),
    ("I2", "held as scheduled", job(*attempt(1, Ending.RELEASED, 0), held(2, State.SCHEDULED))),
    ("I3", "[1, 3]", job(*attempt(1, Ending.RETRIED, 0), *attempt(3, Ending.SUCCEEDED, 4))),
    ("I3", "[2]", job(*attempt(2, Ending.SUCCEEDED, 4))),
    ("I3", "[0, 2]", job(*attempt(0, Ending.RETRIED, 0), *attempt(2, Ending.SUCCEEDED, 4))),
    ("I3", "entered 2 times", job(entry(1, 0), entry(1, 1))),
    (
        "I3",
        "2 times: to worker 7 (lane 1, lease 101), to worker 8 (lane 1, lease 103)",
        job(entry(1, 0), grant(1, 1), grant(1, 3, worker=8)),
    ),
    (
        "I3",
        "granted 2 times",
        job(*attempt(1, Ending.SUCCEEDED, 0, worker=8), grant(1, 1, worker=8)),
    ),
    ("I4", "by worker 7 without a grant", job(entry(1, 0), ended(1, Ending.SUCCEEDED, 2))),
    ("I4", "succeeded without a grant", job(CALLED)),  # of a kind that workers run
    ("I4", "failed without a grant", job(CALLED._replace(ending=Ending.FAILED), kind=CALLBACK)),
    ("I2", "succeeded while pending", job(entry(1, 0), CALLED, kind=CALLBACK)),
    ("I4", "lost without a grant", job(entry(1, 0), unbegun(1, Ending.LOST, 2), entry(2, 2))),
    ("I4", "cancelled by worker 7 without", job(entry(1, 0), ended(1, Ending.CANCELLED, 2))),
    ("I4", "ended by worker 8", job(*attempt(1, Ending.SUCCEEDED, 0, worker=8))),
    ("I4", "ended by worker None", job(*attempt(1, Ending.CANCELLED, 0, worker=None))),
    ("I4", "before its grant", job(entry(1, 0), grant(1, 3), ended(1, Ending.SUCCEEDED, 2))),
    (
        "I4",
        "ended 2 times: succeeded by worker 7",
        job(*attempt(1, Ending.SUCCEEDED, 0), ended(1, Ending.SUCCEEDED, 9)),
    ),
    (
        "I4",
        "ended 2 times: retried by worker 7",
        job(*attempt(1, Ending.RETRIED, 0), ended(1, Ending.FAILED, 9)),
    ),
    (
        "I5",
        "before turn 1 ended",
        job(*LATE_END, entry(2, 9), grant(2, 8, lane=2)),
    ),
    (
        "I5",
        "but turn 1 to worker 7 (lane 1, lease 101)",
        job(*attempt(1, Ending.LOST, 0), entry(2, 2), grant(2, 2)._replace(seq=100)),
    ),
    (
        "I2",
        "which ended succeeded",
        job(*attempt(1, Ending.SUCCEEDED, 0), entry(2, 9), revivals=REVIVED),
    ),
    ("I2", "has no deadline", job(entry(1, 0), unbegun(1, Ending.EXPIRED, 5))),
    (
        "I2",
        "its deadline is",
        job(entry(1, 0), unbegun(1, Ending.EXPIRED, 5), expires_at=T0 + 6),
    ),
    ("I2", "past its deadline", job(entry(1, 0), grant(1, 70), expires_at=T0 + 5)),
    ("I1", "yet no turn follows 1", job(*attempt(1, Ending.FAILED, 0), revivals=REVIVED)),
    (
        "I2",
        "before turn 1 ended",
        job(*attempt(1, Ending.FAILED, 9), entry(2, 12), revivals=REVIVED),
    ),
    ("I2", "had not ended", job(entry(1, 0), grant(1, 1), revivals=REVIVED)),
    ("I6'", "turn 1 began, yet turns [2] were granted", RETRIED._replace(delivery=ONCE)),
    ("I7", "retried 1 times with max_retries 0", RETRIED._replace(max_retries=0)),
    ("I7", "crashed 1 times", job(*attempt(1, Ending.LOST, 0), entry(2, 2), max_crashes=1)),
    ("I7", "exhausted after 0 retries", job(*attempt(1, Ending.FAILED, 0, reason="exhausted"))),
    (
        "I9",
        "has a slot of key x, and is succeeded",
        job(*attempt(1, Ending.SUCCEEDED, 0), slots=KEY),
    ),
    (
        "I9",
        "a slot of queue x, and is pending",
        job(entry(1, 0), slots=QUEUE),
    ),
    (
        "I9",
        "a slot of key x, and is pending",
        job(held(1, State.PENDING), slots=KEY),
    ),
    ("I12", "was entered", job(*attempt(1, Ending.SUCCEEDED, 0), run_at=T0 + 0.5)),
    ("I12", "was granted", job(entry(1, 2), grant(1, 1), run_at=T0 + 1.5)),
    ("I12", "began", job(*attempt(1, Ending.SUCCEEDED, 0, began_at=T0 - 1), run_at=T0)),
    (
        "I12",
        "was entered at 2023-11-14T22:13:27.000000+00:00, 3.000000 s before",
        job(*attempt(1, Ending.RETRIED, 0, delay_s=8.0), entry(2, 7), grant(2, 10)),
    ),
    ("I19", "after its cancel was requested", RETRIED._replace(cancels_requested_at=(T0 + 1.5,))),
]


@pytest.mark.parametrize(("invariant", "text", "history"), CORRUPT)
def test_a_corrupt_history_is_named_by_its_invariant_and_no_other(
    invariant: str, text: str, history: JobHistory
) -> None:
    (violation,) = violations_of(history)
    assert violation.invariant == invariant
    assert text in str(violation)


def test_a_clock_that_was_set_back_is_forgiven_only_so_far() -> None:
    history = job(*LATE_END, entry(2, 9), grant(2, 8))
    assert [found.invariant for found in violations_of(history)] == ["I5"]
    assert violations_of(history, slack_s=1) == []


def test_the_state_of_a_corrupt_history_is_refused() -> None:
    with pytest.raises(AssertionError, match="in 2 states: run the audit"):
        state_of(job(entry(1, 0), held(1, State.WAITING)))
