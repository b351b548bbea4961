"""Scenario E: parents that end while others do, while edges are linked, while children go."""

from __future__ import annotations

import json
from collections.abc import Callable
from uuid import UUID, uuid4

import pytest
from tests.store.postgres.sessions import (
    Session,
    claim_all,
    expire_of,
    settle_of,
    submit,
    until,
    worker_of,
)

from timeball.core.dependencies import Edge, Rule
from timeball.core.records import JobSpec, Turn
from timeball.core.states import State
from timeball.core.uniqueness import Unique
from timeball.store.postgres import PostgresStore

Make = Callable[[], Session]


def child_of(
    store: PostgresStore, *parents: UUID, rule: Rule = Rule.ALL_SUCCESS, **fields: object
) -> UUID:
    """A child whose edges are linked."""
    (spec,) = submit(store, after=tuple(Edge(parent, rule) for parent in parents), **fields)
    return spec.uuid


def child_json(parent: UUID, rule: str = "all_success") -> tuple[UUID, str]:
    """A child as `timeball.submit` takes it, whose edge is for somebody else to link."""
    child = uuid4()
    after = [{"job": str(parent), "rule": rule}]
    return child, json.dumps([{"uuid": str(child), "kind": "a", "after": after}])


def running(store: PostgresStore, count: int) -> tuple[int, list[Turn]]:
    """A worker, and jobs that it runs."""
    submit(store, count)
    worker = worker_of(store)
    return worker, claim_all(store, worker)


def state(store: PostgresStore, job: UUID) -> State:
    return store.get(job).state


# Two parents end at the same time


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("events", [("succeeded", "succeeded"), ("succeeded", "failed")])
def test_of_two_parents_that_end_together_the_second_releases_the_child(
    ledger: PostgresStore, session: Make, events: tuple[str, str], first: int
) -> None:
    worker, turns = running(ledger, 2)
    child = child_of(ledger, *(turn.uuid for turn in turns))
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turns[first], events[first]))
    two.verb_blocks("settle", **settle_of(worker, turns[1 - first], events[1 - first]))
    one.commit()
    assert two.answer() == [(["accepted"],)]
    wanted = State.PENDING if "failed" not in events else State.SKIPPED
    assert state(ledger, child) is wanted
    assert len(claim_all(ledger, worker)) == (wanted is State.PENDING)


def test_a_parent_whose_end_is_taken_back_has_not_ended(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns = running(ledger, 2)
    child = child_of(ledger, *(turn.uuid for turn in turns))
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turns[0]))
    two.verb_blocks("settle", **settle_of(worker, turns[1]))
    one.rollback()
    assert two.answer() == [(["accepted"],)]
    assert state(ledger, child) is State.WAITING
    ledger.connections.run("settle", **settle_of(worker, turns[0]))
    assert state(ledger, child) is State.PENDING


def test_a_settlement_and_an_expiry_decide_one_child_between_them(
    ledger: PostgresStore, session: Make
) -> None:
    (mine, other), worker = submit(ledger, 2, max_crashes=1), worker_of(ledger)
    turns = claim_all(ledger, worker)
    child = child_of(ledger, mine.uuid, other.uuid, rule=Rule.ALL_DONE)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turns[0]))
    two.verb_blocks("expire", **expire_of(worker))
    one.commit()
    assert two.answer() == [(0, 0, 1, 0)]
    assert state(ledger, child) is State.PENDING


# A child is added while its parent ends: four orders of two commits and a link


@pytest.mark.parametrize("linked", ["before the end", "during the end", "after the end"])
@pytest.mark.parametrize("event", ["succeeded", "failed"])
def test_a_child_that_is_added_while_its_parent_ends_misses_nothing(
    ledger: PostgresStore, session: Make, linked: str, event: str
) -> None:
    worker, (turn,) = running(ledger, 1)
    child, text = child_json(turn.uuid)
    one, two = session().begin(), session().begin()
    two.verb("submit", jobs=text)
    if linked == "before the end":
        two.commit()
        assert session().verb("link", limit=10) == [(1,)]
        one.verb("settle", **settle_of(worker, turn, event))
    elif linked == "during the end":
        one.verb("settle", **settle_of(worker, turn, event))
        two.commit()
        assert session().verb("link", limit=10) == [(None,)]
    else:
        one.verb("settle", **settle_of(worker, turn, event))
    one.commit()
    if linked == "after the end":
        two.commit()
    ledger.link(10)
    assert state(ledger, child) is (State.PENDING if event == "succeeded" else State.SKIPPED)


def test_who_ends_a_parent_while_its_edge_is_linked_waits_and_sees_it(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,) = running(ledger, 1)
    child, text = child_json(turn.uuid)
    session().verb("submit", jobs=text)
    one, two = session().begin(), session()
    assert one.verb("link", limit=10) == [(1,)]
    two.verb_blocks("settle", **settle_of(worker, turn))
    one.commit()
    assert two.answer() == [(["accepted"],)]
    assert state(ledger, child) is State.PENDING


def test_two_who_link_at_once_link_each_edge_once(ledger: PostgresStore, session: Make) -> None:
    worker, (turn,) = running(ledger, 1)
    child, text = child_json(turn.uuid)
    session().verb("submit", jobs=text)
    ledger.connections.run("settle", **settle_of(worker, turn))
    one, two = session().begin(), session()
    assert one.verb("link", limit=10) == [(1,)]
    assert two.verb("link", limit=10) == [(None,)]
    one.commit()
    assert two.verb("link", limit=10) == [(0,)]
    assert state(ledger, child) is State.PENDING


@pytest.mark.parametrize(
    ("rule", "wanted"), [("all_success", State.SKIPPED), ("all_done", State.PENDING)]
)
def test_a_parent_that_was_deleted_before_the_commit_has_ended_somehow(
    ledger: PostgresStore, session: Make, rule: str, wanted: State
) -> None:
    worker, (turn,) = running(ledger, 1)
    ledger.connections.run("settle", **settle_of(worker, turn))
    child, text = child_json(turn.uuid, rule)
    one = session().begin()
    one.verb("submit", jobs=text)
    assert ledger.delete([turn.uuid]) == ["deleted"]
    one.commit()
    assert ledger.link(10) == 1
    assert state(ledger, child) is wanted


def test_a_parent_with_an_open_edge_is_not_deleted(ledger: PostgresStore, session: Make) -> None:
    worker, (turn,) = running(ledger, 1)
    child, text = child_json(turn.uuid)
    session().verb("submit", jobs=text)
    ledger.connections.run("settle", **settle_of(worker, turn))
    assert ledger.delete([turn.uuid]) == ["refused"]
    ledger.link(10)
    assert ledger.delete([turn.uuid]) == ["deleted"]
    assert state(ledger, child) is State.PENDING


def test_a_child_that_was_rolled_back_leaves_nothing(ledger: PostgresStore, session: Make) -> None:
    worker, (turn,) = running(ledger, 1)
    one = session().begin()
    one.verb("submit", jobs=child_json(turn.uuid)[1])
    one.rollback()
    assert ledger.link(10) == 0
    ledger.connections.run("settle", **settle_of(worker, turn))
    assert one.run("SELECT count(*) FROM timeball.dependency") == [(0,)]


def test_parents_and_children_of_one_transaction_need_no_link(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 5)])
    parent = uuid4()
    child, text = child_json(parent)
    one = session().begin()
    one.verb("submit", jobs=json.dumps([{"uuid": str(parent), "kind": "a"}]))
    one.verb("submit", jobs=text)
    one.commit()
    assert ledger.link(10) == 0
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    ledger.connections.run("settle", **settle_of(worker, turn))
    assert state(ledger, child) is State.PENDING


# Children that go


def test_a_child_that_is_cancelled_first_is_not_released(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,) = running(ledger, 1)
    child = child_of(ledger, turn.uuid)
    one, two = session().begin(), session()
    assert one.verb("cancel", uuid=child) == [("cancelled",)]
    two.verb_blocks("settle", **settle_of(worker, turn))
    one.commit()
    assert two.answer() == [(["accepted"],)]
    assert state(ledger, child) is State.CANCELLED
    assert claim_all(ledger, worker) == []


@pytest.mark.parametrize(("event", "answer"), [("succeeded", "cancelled"), ("failed", "finished")])
def test_a_child_that_is_decided_first_is_cancelled_as_what_it_is_by_then(
    ledger: PostgresStore, session: Make, event: str, answer: str
) -> None:
    worker, (turn,) = running(ledger, 1)
    child = child_of(ledger, turn.uuid)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turn, event))
    two.verb_blocks("cancel", uuid=child)
    one.commit()
    assert two.answer() == [(answer,)]
    assert claim_all(ledger, worker) == []


@pytest.mark.parametrize("cancel_first", [True, False])
def test_a_cascade_and_a_cancel_in_its_way_end_each_job_once(
    ledger: PostgresStore, session: Make, *, cancel_first: bool
) -> None:
    worker, (turn,) = running(ledger, 1)
    child = child_of(ledger, turn.uuid)
    grandchild = child_of(ledger, child)
    last = child_of(ledger, grandchild, rule=Rule.ALL_DONE)
    one, two = session().begin(), session()
    if cancel_first:
        one.verb("cancel", uuid=grandchild)
        two.verb_blocks("settle", **settle_of(worker, turn, "failed"))
    else:
        one.verb("settle", **settle_of(worker, turn, "failed"))
        two.verb_blocks("cancel", uuid=grandchild)
    one.commit()
    assert two.answer() in ([(["accepted"],)], [("finished",)])
    assert state(ledger, child) is State.SKIPPED
    assert state(ledger, grandchild) is (State.CANCELLED if cancel_first else State.SKIPPED)
    assert state(ledger, last) is State.PENDING


def test_cascades_that_meet_in_different_depths_do_not_block_each_other_for_ever(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns = running(ledger, 2)
    left = child_of(ledger, turns[0].uuid)
    deep = child_of(ledger, left, turns[1].uuid)
    both = child_of(ledger, turns[0].uuid, turns[1].uuid)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turns[0], "failed"))
    two.verb_blocks("settle", **settle_of(worker, turns[1], "failed"))
    one.commit()
    assert two.answer() == [(["accepted"],)]
    assert {state(ledger, job) for job in (left, deep, both)} == {State.SKIPPED}


# Nobody waits for a caller's own transaction


def test_an_open_transaction_with_children_of_existing_parents_delays_nobody(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns = running(ledger, 3)
    one, two = session().begin(), session()
    child, text = child_json(turns[0].uuid)
    one.verb("submit", jobs=text)
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = %s"
    assert one.run(locks, [one.pid]) == [(0,)]
    other = child_of(ledger, turns[0].uuid)
    assert two.verb("settle", **settle_of(worker, turns[0])) == [(["accepted"],)]
    assert state(ledger, other) is State.PENDING
    assert ledger.cancel(other) == "cancelled"
    assert two.verb("settle", **settle_of(worker, turns[1], "retried")) == [(["accepted"],)]
    assert two.verb("link", limit=10) == [(0,)]
    assert ledger.expire(worker, beat=None, begun=None) is not None
    one.commit()
    ledger.link(10)
    assert state(ledger, child) is State.PENDING


def test_an_open_transaction_that_replaces_a_parent_delays_nobody(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,) = running(ledger, 1)
    (parent,) = submit(ledger, delay_s=60.0, unique=Unique(key="k"))
    child = child_of(ledger, parent.uuid, turn.uuid, rule=Rule.ALL_DONE)
    one, two = session().begin(), session()
    newer = {"uuid": str(uuid4()), "kind": "a", "unique_key": "k", "on_clash": "replace"}
    one.verb("submit", jobs=json.dumps([newer]))
    late, text = child_json(parent.uuid, "all_done")
    two.verb("submit", jobs=text)
    assert two.verb("link", limit=10) == [(0,)]
    assert two.verb("settle", **settle_of(worker, turn)) == [(["accepted"],)]
    one.commit()
    assert ledger.link(10) == 2
    assert [state(ledger, job) for job in (child, late)] == [State.PENDING] * 2


def test_edges_of_a_parent_that_is_being_replaced_take_no_place_of_others(
    ledger: PostgresStore, session: Make
) -> None:
    (turn,) = running(ledger, 1)[1]
    (parent,) = submit(ledger, delay_s=60.0, unique=Unique(key="k"))
    one, two = session().begin(), session()
    newer = {"uuid": str(uuid4()), "kind": "a", "unique_key": "k", "on_clash": "replace"}
    one.verb("submit", jobs=json.dumps([newer]))
    for each in (parent.uuid, parent.uuid, parent.uuid, turn.uuid, turn.uuid):
        two.verb("submit", jobs=child_json(each)[1])
    assert [two.verb("link", limit=1) for _ in range(3)] == [[(1,)], [(1,)], [(0,)]]
    one.commit()
    assert ledger.link(10) == 3


def test_a_replacement_that_waits_for_a_link_sees_the_edge(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 5)])
    (parent,) = submit(ledger, delay_s=60.0, unique=Unique(key="k"))
    child, text = child_json(parent.uuid, "one_failed")
    session().verb("submit", jobs=text)
    one, two = session().begin(), session()
    assert one.verb("link", limit=10) == [(1,)]
    newer = {"uuid": str(uuid4()), "kind": "a", "unique_key": "k", "on_clash": "replace"}
    two.verb_blocks("submit", jobs=json.dumps([newer]))
    one.commit()
    two.answer()
    assert ledger.link(10) == 1
    assert state(ledger, child) is State.PENDING


def test_a_waiting_child_does_not_give_way(ledger: PostgresStore, session: Make) -> None:
    worker, (turn,) = running(ledger, 1)
    child = child_of(ledger, turn.uuid, unique=Unique(key="k"))
    one = session()
    newer = {"uuid": str(uuid4()), "kind": "a", "unique_key": "k", "on_clash": "replace"}
    with pytest.raises(Exception, match="holds the unique key"):
        one.verb("submit", jobs=json.dumps([newer]))
    ledger.connections.run("settle", **settle_of(worker, turn))
    assert state(ledger, child) is State.PENDING


# Deep and wide


@pytest.mark.slow
def test_ten_thousand_in_a_row_are_skipped_by_one_settlement(ledger: PostgresStore) -> None:
    worker, (turn,) = running(ledger, 1)
    specs = [JobSpec(uuid=uuid4(), kind="a", after=(Edge(turn.uuid),))]
    for _ in range(9_999):
        specs.append(JobSpec(uuid=uuid4(), kind="a", after=(Edge(specs[-1].uuid),)))
    for start in range(0, len(specs), 1_000):
        ledger.submit(specs[start : start + 1_000])
    until(lambda: ledger.link(1_000) == 0, "all linked")
    ledger.connections.run("settle", **settle_of(worker, turn, "failed"))
    assert ledger.counts() == {State.FAILED: 1, State.SKIPPED: 10_000}


@pytest.mark.slow
def test_many_children_of_one_parent_are_released_by_one_settlement(
    ledger: PostgresStore,
) -> None:
    worker, (turn,) = running(ledger, 1)
    for _ in range(10):
        submit(ledger, 1_000, after=(Edge(turn.uuid),))
    ledger.connections.run("settle", **settle_of(worker, turn))
    assert ledger.counts() == {State.SUCCEEDED: 1, State.PENDING: 10_000}
