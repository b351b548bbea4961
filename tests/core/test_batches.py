"""How batches end and which of their jobs start again; and what the audit says of their record."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.histories import T0, held, job, unbegun

from timeball.core.audit import violations_of
from timeball.core.batches import (
    BATCH,
    MEMBERS,
    OPEN,
    Member,
    MemberEdge,
    Told,
    end_of,
    failed_part,
    parents_first,
)
from timeball.core.dependencies import PARENT, Rule, RuledOut
from timeball.core.history import EdgeRecord, JobHistory, RevivalRecord
from timeball.core.states import TERMINAL, Ending, State
from timeball.errors import UsageError

ENDS = sorted(TERMINAL)
GOOD = Told(Rule.MEMBER, met=True, how=State.SUCCEEDED)
told = st.sampled_from(ENDS).map(lambda s: Told(Rule.MEMBER, s is State.SUCCEEDED, s))


@pytest.mark.parametrize(
    ("edges", "state"),
    [
        ([], State.SUCCEEDED),
        ([GOOD, Told(Rule.MEMBER, met=False, how=State.SKIPPED)], State.SUCCEEDED),
        ([Told(Rule.MEMBER, met=False, how=State.SKIPPED)], State.SKIPPED),
        ([GOOD, Told(Rule.MEMBER, met=False, how=State.CANCELLED)], State.CANCELLED),
        ([GOOD, Told(Rule.MEMBER, met=False, how=None)], State.FAILED),
        ([Told(Rule.ALL_SUCCESS, met=False, how=State.FAILED)], State.SKIPPED),
        ([Told(Rule.ALL_DONE, met=True, how=State.FAILED)], State.SUCCEEDED),
        ([Told(Rule.ONE_SUCCESS, met=False, how=State.FAILED)], State.SKIPPED),
    ],
)
def test_a_batch_ends_as_the_worst_of_its_jobs(edges: list[Told], state: State) -> None:
    assert end_of(edges) is state


@given(st.lists(told), st.randoms(use_true_random=False))
def test_how_a_batch_ends_depends_on_no_order(edges: list[Told], chance) -> None:
    mixed = [*edges]
    chance.shuffle(mixed)
    assert end_of(mixed) is end_of(edges)
    assert (end_of(edges) is State.FAILED) is any(edge.how is State.FAILED for edge in edges)


# Once more


def member(n: int, state: State, *edges: MemberEdge, reason: str | None = None, **fields) -> Member:
    kind = BATCH if fields.pop("is_batch", False) else "a"
    ruled_out = fields.pop("ruled_out", RuledOut.SKIP)
    return Member(n, UUID(int=n), kind, state, n, reason, ruled_out, "", edges, ())


def test_the_failed_part_is_closed_under_what_it_rules_out() -> None:
    members = [
        member(1, State.FAILED),
        member(2, State.SKIPPED, MemberEdge(1, Rule.ALL_SUCCESS, met=False), reason=PARENT),
        member(3, State.CANCELLED),
        member(4, State.SKIPPED, MemberEdge(5, Rule.ALL_SUCCESS, met=False), reason=PARENT),
        member(5, State.FAILED, MemberEdge(3, Rule.MEMBER, met=False), is_batch=True),
        member(6, State.SUCCEEDED, MemberEdge(1, Rule.ALL_DONE, met=True)),
        member(7, State.SKIPPED, MemberEdge(6, Rule.ONE_FAILED, met=False), reason=PARENT),
        member(8, State.SKIPPED, reason="expired"),
        member(9, State.RUNNING),
    ]
    assert failed_part(members) == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert failed_part(reversed(members)) == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_who_is_ruled_out_by_somebody_else_too_stays() -> None:
    edges = (MemberEdge(1, Rule.ALL_SUCCESS, met=False), MemberEdge(99, Rule.ALL_DONE, met=True))
    lost = (edges[0], MemberEdge(99, Rule.ALL_SUCCESS, met=False))
    fine = member(2, State.FAILED, *edges, reason=PARENT, ruled_out=RuledOut.FAIL)
    both = member(3, State.SKIPPED, *lost, reason=PARENT)
    assert failed_part([member(1, State.FAILED), fine, both]) == [(1, 1), (2, 2)]


# The record


def edge(state: State | None, parent: int = 4) -> EdgeRecord:
    if state is None:
        return EdgeRecord(parent, Rule.MEMBER, T0, None, None, (), ended=False)
    met = state is State.SUCCEEDED
    return EdgeRecord(parent, Rule.MEMBER, T0, T0 + 2, met, ((state, T0 + 2),), ended=True)


def whole(*rows: object, edges: tuple[EdgeRecord, ...], **fields: object) -> JobHistory:
    return job(*rows, edges=edges, id=9, kind=BATCH, ruled_out=RuledOut.RUN, **fields)


def over(ending: Ending, turn: int = 1):
    return unbegun(turn, ending, 5)._replace(reason=MEMBERS)


WAITS = held(1, State.WAITING)._replace(reason=MEMBERS)
GONE = edge(State.FAILED)._replace(ends=None)
SOUND = {
    "ended": whole(over(Ending.SUCCEEDED), edges=(edge(State.SUCCEEDED),)),
    "failed": whole(over(Ending.FAILED), edges=(edge(State.FAILED), edge(State.SUCCEEDED, 5))),
    "a later job": whole(over(Ending.SUCCEEDED), edges=(edge(State.SUCCEEDED, 12),)),
    "waits": whole(WAITS, edges=(edge(State.SUCCEEDED), edge(None, 5))),
    "open": whole(WAITS._replace(reason=OPEN), edges=(edge(State.SUCCEEDED),)),
    "a deleted job": whole(over(Ending.SKIPPED), edges=(GONE,)),
    "started again": whole(
        over(Ending.FAILED),
        WAITS._replace(turn=2),
        edges=(edge(None),),
        revivals=(RevivalRecord(1, T0 + 6),),
    ),
}
UNSOUND = [
    ("I14", "its edges say release", whole(WAITS, edges=(edge(State.FAILED),))),
    ("I14", "with 1 edges undecided", whole(over(Ending.SUCCEEDED), edges=(edge(None),))),
    ("I14", "its jobs say failed", whole(over(Ending.SUCCEEDED), edges=(edge(State.FAILED),))),
    ("I15", "added after it", job(edges=(edge(None, 12),), id=9)._replace(held=WAITS)),
]


@pytest.mark.parametrize("history", SOUND.values(), ids=SOUND)
def test_the_record_of_a_sound_batch_is_clean(history: JobHistory) -> None:
    assert violations_of(history) == []


@pytest.mark.parametrize(("invariant", "text", "history"), UNSOUND)
def test_what_is_wrong_with_a_batch_is_named(
    invariant: str, text: str, history: JobHistory
) -> None:
    (violation,) = violations_of(history)
    assert violation.invariant == invariant
    assert text in str(violation)


def test_jobs_that_would_wait_for_each_other_are_not_started_again_together() -> None:
    given_up = MemberEdge(2, Rule.ALL_DONE, met=True)
    members = [
        member(1, State.CANCELLED, given_up),  # while it waited; then it became a parent itself
        member(2, State.FAILED, MemberEdge(1, Rule.ALL_DONE, met=True)),
        member(3, State.FAILED),
    ]
    with pytest.raises(UsageError, match=r"job [12], job [12] would wait for each other: revive"):
        failed_part(members)
    order = [each.id for each in parents_first({each.id: each for each in members})]
    assert order.index(1) < order.index(2)
    assert failed_part([members[0]._replace(state=State.SUCCEEDED), *members[1:]]) == [
        (2, 2),
        (3, 3),
    ]
