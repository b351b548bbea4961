"""Edges that are added while parents end, children go on, and others add the opposite: stepped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from tests.store.batches import batch, job
from tests.store.postgres.sessions import Session, claim_all, settle_of
from tests.store.postgres.test_dependency_races import child_of, running, state

from timeball.core.dependencies import Edge, EdgesAnswer, Rule
from timeball.core.records import JobSpec
from timeball.core.states import State
from timeball.errors import UsageError
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.encoding import encode_edges, encode_specs

Make = Callable[[], Session]
ADDED, BUSY, REFUSED = [("added",)], [("busy",)], [("refused",)]


def edges_of(child: UUID, *parents: UUID, rule: Rule = Rule.ALL_SUCCESS) -> dict[str, Any]:
    return {"job": child, "after": encode_edges([Edge(each, rule) for each in parents])}


@pytest.mark.parametrize(
    ("event", "wanted"), [("succeeded", State.PENDING), ("failed", State.SKIPPED)]
)
@pytest.mark.parametrize("first", ["edge", "end"])
def test_an_edge_that_is_added_while_its_parent_ends_misses_nothing(
    ledger: PostgresStore, session: Make, event: str, wanted: State, first: str
) -> None:
    worker, turns = running(ledger, 2)
    child = child_of(ledger, turns[0].uuid)
    one, two = session().begin(), session()
    edges, settled = edges_of(child, turns[1].uuid), settle_of(worker, turns[1], event)
    if first == "edge":
        assert one.verb("add_edges", **edges) == ADDED
        two.verb_blocks("settle", **settled)
        one.commit()
        assert two.answer() == [(["accepted"],)]
    else:
        one.verb("settle", **settled)
        assert two.verb("add_edges", **edges) == BUSY
        one.commit()
        assert two.verb("add_edges", **edges) == ADDED
    ledger.connections.run("settle", **settle_of(worker, turns[0]))
    assert state(ledger, child) is State.WAITING  # the new edge has not been linked
    assert ledger.link(10) == 1
    assert state(ledger, child) is wanted


@pytest.mark.parametrize("first", ["edge", "end"])
def test_a_child_that_is_just_let_go_waits_for_more_or_the_edge_is_refused(
    ledger: PostgresStore, session: Make, first: str
) -> None:
    worker, turns = running(ledger, 2)
    child = child_of(ledger, turns[0].uuid)
    one, two = session().begin(), session()
    edges, settled = edges_of(child, turns[1].uuid), settle_of(worker, turns[0])
    if first == "edge":
        assert one.verb("add_edges", **edges) == ADDED
        two.verb_blocks("settle", **settled)
        one.commit()
        two.answer()
        assert state(ledger, child) is State.WAITING
        assert claim_all(ledger, worker) == []
    else:
        one.verb("settle", **settled)
        assert two.verb("add_edges", **edges) == BUSY
        one.commit()
        assert two.verb("add_edges", **edges) == REFUSED
        (turn,) = claim_all(ledger, worker)
        assert two.verb("add_edges", **edges) == REFUSED  # it runs
        ledger.connections.run("settle", **settle_of(worker, turn))
        assert two.verb("add_edges", **edges) == REFUSED  # it has ended


@pytest.mark.parametrize("commits", [True, False])
def test_of_two_opposite_edges_at_once_one_is_refused_and_the_way_is_named(
    ledger: PostgresStore, session: Make, *, commits: bool
) -> None:
    worker, (turn,) = running(ledger, 1)
    a, b = child_of(ledger, turn.uuid), child_of(ledger, turn.uuid)
    one, two = session().begin(), session()
    assert one.verb("add_edges", **edges_of(a, b)) == ADDED
    assert two.verb("add_edges", **edges_of(b, a)) == BUSY
    if not commits:
        one.rollback()
        assert two.verb("add_edges", **edges_of(b, a)) == ADDED
    else:
        one.commit()
        way = "^job 3 would wait for job 2, which waits for job 3: a cycle; leave"
        with pytest.raises(UsageError, match=way):
            ledger.add_edges(b, [Edge(turn.uuid), Edge(a)])
    ledger.link(10)
    ledger.connections.run("settle", **settle_of(worker, turn))
    for wanted in (b, a) if commits else (a, b):
        (turn,) = claim_all(ledger, worker)
        assert turn.uuid == wanted
        ledger.connections.run("settle", **settle_of(worker, turn))


def test_who_spawns_and_who_adds_an_edge_do_not_close_a_cycle_between_them(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns = running(ledger, 2)
    child = child_of(ledger, turns[1].uuid)
    lane, seq, job_id, number = turns[0][:4]
    spawned = JobSpec(uuid=uuid4(), kind="a", after=(Edge(child),))
    one, two = session().begin(), session()
    facts = {"worker": worker, "lane": lane, "seq": seq, "job_id": job_id, "turn": number}
    facts |= {"began": turns[0].granted_at, "ran_s": 0.0, "result": None}
    assert one.verb("spawn", **facts, jobs=encode_specs([spawned])) == [("accepted",)]
    assert two.verb("add_edges", **edges_of(child, turns[0].uuid)) == BUSY
    one.commit()
    ledger.link(10)
    way = "^job 3 would wait for job 1, which waits for job 4, which waits for job 3: a cycle"
    with pytest.raises(UsageError, match=way):
        ledger.add_edges(child, [Edge(turns[0].uuid)])


def test_who_finds_a_child_in_other_hands_does_not_wait_for_it_with_the_graph_in_his_own(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns = running(ledger, 3)
    child, other = child_of(ledger, turns[0].uuid), child_of(ledger, turns[2].uuid)
    ledger.ensure_lanes([("default", 9)])
    mover, one = session(), session()
    mover.run("BEGIN")
    mover.verb("move", uuid=child, queue=None, priority=9)
    assert one.verb("add_edges", **edges_of(child, turns[1].uuid)) == BUSY
    ledger.connections.run("settle", **settle_of(worker, turns[2]))
    assert state(ledger, other) is State.PENDING
    mover.commit()
    assert one.verb("add_edges", **edges_of(child, turns[1].uuid)) == ADDED
    ledger.link(10)


@pytest.mark.parametrize("first", ["edge", "cancel"])
def test_a_child_that_is_cancelled_meanwhile_stays_cancelled(
    ledger: PostgresStore, session: Make, first: str
) -> None:
    worker, turns = running(ledger, 2)
    child = child_of(ledger, turns[0].uuid)
    one, two = session().begin(), session()
    if first == "edge":
        assert one.verb("add_edges", **edges_of(child, turns[1].uuid)) == ADDED
        two.verb_blocks("cancel", uuid=child)
        one.commit()
        assert two.answer() == [("cancelled",)]
    else:
        one.verb("cancel", uuid=child)
        assert two.verb("add_edges", **edges_of(child, turns[1].uuid)) == BUSY
        one.commit()
        assert two.verb("add_edges", **edges_of(child, turns[1].uuid)) == REFUSED
    ledger.connections.run("settle", **settle_of(worker, turns[1]))
    ledger.link(10)
    assert state(ledger, child) is State.CANCELLED


def test_a_parent_that_is_deleted_while_the_edge_is_added_is_one_that_is_gone(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns = running(ledger, 2)
    ledger.connections.run("settle", **settle_of(worker, turns[1]))
    child = child_of(ledger, turns[0].uuid)
    deletion, one = session().begin(), session()
    deletion.run("SELECT timeball.delete_jobs(ARRAY[%s]::uuid[])", [turns[1].uuid])
    assert one.verb("add_edges", **edges_of(child, turns[1].uuid, rule=Rule.ALL_DONE)) == ADDED
    deletion.commit()
    ledger.link(10)
    ledger.connections.run("settle", **settle_of(worker, turns[0]))
    assert state(ledger, child) is State.PENDING


def test_the_end_of_a_batch_waits_for_no_earlier_one_that_is_in_other_hands(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns = running(ledger, 2)
    early = job(turns[0].uuid)
    first, second = batch(early), batch(turns[1].uuid)
    ledger.submit([early, first, second])
    assert ledger.add_edges(early.uuid, [Edge(second.uuid)]) is EdgesAnswer.ADDED
    one, two = session().begin(), session()
    one.verb("add_members", batch=first.uuid, jobs=encode_specs([job()]))
    assert two.verb("settle", **settle_of(worker, turns[1], "failed")) == [(["accepted"],)]
    assert state(ledger, second.uuid) is State.FAILED
    assert state(ledger, early.uuid) is State.WAITING
    one.commit()
    assert ledger.link(10) == 1
    assert state(ledger, early.uuid) is State.SKIPPED
    (last,) = claim_all(ledger, worker)
    ledger.connections.run("settle", **settle_of(worker, last))
    assert state(ledger, first.uuid) is State.SUCCEEDED


@pytest.mark.slow
def test_a_cycle_of_two_thousand_jobs_is_found_without_recursion(ledger: PostgresStore) -> None:
    _, (turn,) = running(ledger, 1)
    chain = [job(turn.uuid)]
    while len(chain) < 2_000:
        chain.append(job(chain[-1].uuid))
    ledger.submit(chain)
    with pytest.raises(UsageError, match="a cycle") as error:
        ledger.add_edges(chain[0].uuid, [Edge(chain[-1].uuid)])
    named = str(error.value).split(": a cycle")[0].split(", which waits for ")
    assert len(named) == len(chain)
    assert named[0] == f"job 2 would wait for job {1 + len(chain)}"
    assert named[-1] == "job 2"


def test_who_cancels_a_child_locks_what_comes_after_it_in_the_order_of_ids(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,) = running(ledger, 1)
    early, late = child_of(ledger, turn.uuid), child_of(ledger, turn.uuid)
    assert ledger.add_edges(early, [Edge(late, Rule.ALL_DONE)]) is EdgesAnswer.ADDED
    ledger.ensure_lanes([("default", 9)])
    mover, one, two = session(), session(), session()
    mover.run("BEGIN")
    mover.verb("move", uuid=early, queue=None, priority=9)
    one.verb_blocks("settle", **settle_of(worker, turn))
    two.verb_blocks("cancel", uuid=late)
    mover.commit()
    assert one.answer() == [(["accepted"],)]
    assert two.answer() == [("cancelled",)]
    assert state(ledger, late) is State.CANCELLED
    assert state(ledger, early) is State.PENDING
