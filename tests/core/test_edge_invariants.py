"""I13, I14 and I15: records of edges that are sound, and those that are not."""

from __future__ import annotations

import pytest
from tests.core.histories import T0, attempt, entry, grant, held, job, unbegun

from timeball.core.audit import violations_of
from timeball.core.dependencies import Rule, RuledOut
from timeball.core.history import EdgeRecord, JobHistory, RevivalRecord
from timeball.core.states import Ending, State

RAN = attempt(1, Ending.SUCCEEDED, 3)
SKIPPED = unbegun(1, Ending.SKIPPED, 5)._replace(reason="parent")
WAITS = held(1, State.WAITING)


def edge(
    state: State | None = State.SUCCEEDED,
    at: float = 2,
    rule: Rule = Rule.ALL_SUCCESS,
    parent: int = 4,
    **fields: object,
) -> EdgeRecord:
    """A decided edge whose parent ended at that time; None: a linked one that has not."""
    if state is None:
        plain = EdgeRecord(parent, rule, T0, None, None, (), ended=False)
    else:
        met = state is State.SUCCEEDED or rule is Rule.ALL_DONE
        plain = EdgeRecord(parent, rule, T0, T0 + at, met, ((state, T0 + at),), ended=True)
    return plain._replace(**fields)


def child(*rows: object, edges: tuple[EdgeRecord, ...], **fields: object) -> JobHistory:
    return job(*rows, edges=edges, id=9, **fields)


FAILED = edge(State.FAILED)
SOUND = {
    "released": child(*RAN, edges=(edge(), edge(parent=5))),
    "waits": child(WAITS, edges=(edge(), edge(None, parent=5))),
    "waits to be linked": child(WAITS, edges=(edge(None, linked_at=None, ended=True),)),
    "skipped": child(SKIPPED, edges=(edge(State.FAILED, 5),)),
    "failed": child(
        unbegun(1, Ending.FAILED, 5)._replace(reason="parent"),
        edges=(FAILED,),
        ruled_out=RuledOut.FAIL,
    ),
    "runs although ruled out": child(*RAN, edges=(FAILED,), ruled_out=RuledOut.RUN),
    "one was enough": child(
        *RAN,
        edges=(edge(rule=Rule.ONE_SUCCESS), edge(None, rule=Rule.ONE_SUCCESS, parent=5)),
    ),
    "a deleted parent": child(*RAN, edges=(edge(ends=None),)),
    "decided late, when it had been cancelled": child(
        unbegun(1, Ending.CANCELLED, 1), edges=(FAILED,)
    ),
    "revived": child(
        SKIPPED,
        entry(2, 7),
        edges=(edge(State.FAILED, 5), edge(None, parent=5)),
        revivals=(RevivalRecord(1, T0 + 6),),
    ),
    "its parent was revived later": child(
        *RAN, edges=(edge(ends=((State.SUCCEEDED, T0 + 2), (State.FAILED, T0 + 9))),)
    ),
}
UNSOUND = [
    ("I13", "had not allowed it", child(*RAN, edges=(edge(None),))),
    ("I13", "had not allowed it", child(*RAN, edges=(edge(at=3.5),))),
    ("I13", "had not allowed it", child(*RAN, edges=(FAILED,))),
    (
        "I13",
        "had not allowed it",
        child(*RAN, edges=(FAILED, edge(None, parent=5)), ruled_out=RuledOut.RUN),
    ),
    ("I13", "that has not ended so", child(*RAN, edges=(edge(ends=()),))),
    ("I13", "that has not ended so", child(*RAN, edges=(edge(ends=((State.FAILED, T0 + 1),)),))),
    ("I13", "that has not ended so", child(*RAN, edges=(edge(ends=((State.SUCCEEDED, T0 + 8),)),))),
    ("I14", "its edges say release", child(WAITS, edges=(edge(),))),
    ("I14", "its edges say skip", child(WAITS, edges=(FAILED, edge(None, parent=5)))),
    ("I14", "which has ended, undecided", child(WAITS, edges=(edge(None, ended=True),))),
    ("I14", "which allow it to run", child(SKIPPED, edges=(edge(),))),
    ("I15", "which was added after it", child(*RAN, edges=(edge(parent=12),))),
    ("I15", "which was added after it", child(*RAN, edges=(edge(parent=9),))),
]


@pytest.mark.parametrize("history", SOUND.values(), ids=SOUND)
def test_sound_edges_are_clean(history: JobHistory) -> None:
    assert violations_of(history) == []


@pytest.mark.parametrize(("invariant", "text", "history"), UNSOUND)
def test_an_unsound_edge_is_named_by_its_invariant_and_no_other(
    invariant: str, text: str, history: JobHistory
) -> None:
    (violation,) = violations_of(history)
    assert violation.invariant == invariant
    assert text in str(violation)


def test_who_failed_by_its_parents_while_it_was_pending_breaks_the_table() -> None:
    end = unbegun(1, Ending.FAILED, 5)._replace(reason="parent")
    history = child(entry(1, 3), end, edges=(FAILED,), ruled_out=RuledOut.FAIL)
    assert {found.invariant for found in violations_of(history)} == {"I2", "I13"}


def test_a_revival_before_which_the_clock_was_set_back_is_one() -> None:
    rows = (SKIPPED, entry(2, 9), grant(2, 1))
    history = child(*rows, edges=(FAILED,), revivals=(RevivalRecord(1, T0 + 9),))
    assert violations_of(history, slack_s=20.0) == []
    assert "I13" in [violation.invariant for violation in violations_of(history)]
