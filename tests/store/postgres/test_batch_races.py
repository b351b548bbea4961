"""Batches under races, stepped on real connections: they end once, never early, never missed."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.store.batches import batch, job
from tests.store.postgres.sessions import Session, claim_all, claim_of, settle_of, worker_of

from timeball.core.batches import ReopenAnswer, failed_part
from timeball.core.dependencies import Rule
from timeball.core.records import JobSpec, Turn
from timeball.core.states import State
from timeball.core.uniqueness import Unique
from timeball.errors import UsageError
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.encoding import encode_specs

Make = Callable[[], Session]


def running(store: PostgresStore, count: int, *more: JobSpec) -> tuple[int, list[Turn], UUID]:
    """A worker, the jobs of a batch that it runs, and the batch."""
    members = [job() for _ in range(count)]
    whole = batch(*members)
    store.submit([*members, whole, *more])
    worker = worker_of(store)
    return worker, claim_all(store, worker), whole.uuid


def state(store: PostgresStore, uuid: UUID) -> State:
    return store.get(uuid).state


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("events", [("succeeded", "succeeded"), ("succeeded", "failed")])
def test_of_the_last_two_members_that_end_together_the_second_ends_the_batch(
    ledger: PostgresStore, session: Make, events: tuple[str, str], first: int
) -> None:
    worker, turns, whole = running(ledger, 2)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turns[first], events[first]))
    # The first has seen that the other is in nobody's hands, and holds it until he commits.
    two.verb_blocks("settle", **settle_of(worker, turns[1 - first], events[1 - first]))
    assert state(ledger, whole) is State.WAITING
    one.commit()
    assert two.answer() == [(["accepted"],)]
    assert state(ledger, whole) is (State.FAILED if "failed" in events else State.SUCCEEDED)


def test_members_that_are_not_the_last_do_not_wait_for_each_other(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns, whole = running(ledger, 200)
    sessions = [session().begin() for _ in range(4)]
    for each, turn in zip(sessions, turns, strict=False):
        each.verb("settle", **settle_of(worker, turn))
    for each in reversed(sessions):
        each.commit()
    assert state(ledger, whole) is State.WAITING
    ledger.connections.run("settle", **many(worker, turns[4:]))
    assert state(ledger, whole) is State.SUCCEEDED


def many(worker: int, turns: list[Turn], event: str = "succeeded") -> dict[str, object]:
    """What the statement `settle` takes for some turns that began."""
    every = [settle_of(worker, turn, event) for turn in turns]
    lists = {k: [x for each in every for x in each[k]] for k in every[0] if k != "worker"}
    return {"worker": worker, **lists}


def test_who_was_the_last_and_takes_it_back_leaves_the_batch_waiting(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns, whole = running(ledger, 2)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turns[0]))
    two.verb_blocks("settle", **settle_of(worker, turns[1]))
    one.rollback()
    assert two.answer() == [(["accepted"],)]
    assert state(ledger, whole) is State.WAITING
    ledger.connections.run("settle", **settle_of(worker, turns[0]))
    assert state(ledger, whole) is State.SUCCEEDED


def test_who_finds_nothing_left_but_what_others_have_in_hand_leaves_the_end_to_them(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns, whole = running(ledger, 2)
    one, two = session().begin(), session()
    edge = "SELECT 1 FROM timeball.dependency WHERE parent = %s FOR NO KEY UPDATE"
    one.run(edge, [turns[0].job_id])  # about to decide it
    two.verb("settle", **settle_of(worker, turns[1]))
    assert state(ledger, whole) is State.WAITING
    one.verb("settle", **settle_of(worker, turns[0]))
    one.commit()
    assert state(ledger, whole) is State.SUCCEEDED


@pytest.mark.parametrize("first", [0, 1])
def test_nested_batches_whose_last_jobs_end_together_end_once(
    ledger: PostgresStore, session: Make, first: int
) -> None:
    members = [job(), job()]
    inner = [batch(members[0]), batch(members[1])]
    outer = batch(*inner)
    done = job(outer.uuid, rule=Rule.ALL_DONE)
    ledger.submit([*members, *inner, outer, done])
    worker = worker_of(ledger)
    turns = claim_all(ledger, worker)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turns[first]))
    two.verb_blocks("settle", **settle_of(worker, turns[1 - first]))
    one.commit()
    assert two.answer() == [(["accepted"],)]
    assert state(ledger, outer.uuid) is State.SUCCEEDED
    assert [turn.uuid for turn in claim_all(ledger, worker)] == [done.uuid]


def test_what_comes_after_a_batch_and_is_in_other_hands_is_left_to_link(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,), whole = running(ledger, 1)
    child = job(whole)
    ledger.submit([child])
    one = session().begin()
    one.run("SELECT 1 FROM timeball.held JOIN timeball.job ON job.id = held.job_id"
            " WHERE job.uuid = %s FOR UPDATE OF held", [child.uuid])  # fmt: skip
    session().verb("settle", **settle_of(worker, turn))
    assert (state(ledger, whole), state(ledger, child.uuid)) == (State.SUCCEEDED, State.WAITING)
    one.commit()
    assert ledger.link(10) == 1
    assert state(ledger, child.uuid) is State.PENDING


@pytest.mark.parametrize("order", ["settle first", "cancel first"])
def test_a_cancel_and_a_settlement_end_a_batch_between_them(
    ledger: PostgresStore, session: Make, order: str
) -> None:
    one, two = job(), job()
    whole = batch(one, two)
    ledger.submit([one, two, whole])
    worker = worker_of(ledger)
    (turn,) = ledger.claim(worker, limit=1, request=one.uuid, floors={})
    first, second = session().begin(), session()
    settle = ("settle", settle_of(worker, turn))
    cancel = ("cancel", {"uuid": two.uuid})
    verbs = [settle, cancel] if order == "settle first" else [cancel, settle]
    first.verb(verbs[0][0], **verbs[0][1])
    second.verb_blocks(verbs[1][0], **verbs[1][1])
    first.commit()
    second.answer()
    assert state(ledger, whole.uuid) is State.CANCELLED


# Members that are added


def added(whole: UUID, *specs: JobSpec) -> dict[str, object]:
    return {"batch": whole, "jobs": encode_specs(specs)}


def test_who_ends_the_last_job_waits_for_what_is_being_added(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,), whole = running(ledger, 1)
    more = job()
    one, two = session().begin(), session()
    one.verb("add_members", **added(whole, more))
    two.verb_blocks("settle", **settle_of(worker, turn))
    one.commit()
    assert two.answer() == [(["accepted"],)]
    assert state(ledger, whole) is State.WAITING
    (last,) = claim_all(ledger, worker)
    assert last.uuid == more.uuid
    ledger.connections.run("settle", **settle_of(worker, last))
    assert state(ledger, whole) is State.SUCCEEDED


def test_what_was_to_be_added_and_is_taken_back_leaves_the_end_to_the_others(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,), whole = running(ledger, 1)
    one, two = session().begin(), session()
    one.verb("add_members", **added(whole, job()))
    two.verb_blocks("settle", **settle_of(worker, turn))
    one.rollback()
    two.answer()
    assert state(ledger, whole) is State.SUCCEEDED


def test_nothing_is_added_to_a_batch_that_is_just_ending(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,), whole = running(ledger, 1)
    more = job()
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turn))
    two.verb_blocks("add_members", **added(whole, more))
    one.commit()
    with pytest.raises(psycopg.errors.DatabaseError, match="has ended"):
        two.answer()
    assert state(ledger, whole) is State.SUCCEEDED
    assert claim_all(ledger, worker) == []


@pytest.mark.parametrize("first", ["close", "settle"])
def test_a_close_and_the_last_end_make_one_end(
    ledger: PostgresStore, session: Make, first: str
) -> None:
    member = job()
    whole = batch(member, is_open=True)
    ledger.submit([member, whole])
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    verbs = [
        ("close_batch", {"batch": whole.uuid, "stop": False}),
        ("settle", settle_of(worker, turn)),
    ]
    one, two = session().begin(), session()
    (name, params), (other, others) = verbs if first == "close" else verbs[::-1]
    one.verb(name, **params)
    two.verb_blocks(other, **others)
    one.commit()
    two.answer()
    assert state(ledger, whole.uuid) is State.SUCCEEDED


# Once more


def test_a_late_settlement_does_not_touch_a_job_that_was_started_again(
    ledger: PostgresStore, session: Make
) -> None:
    member = JobSpec(uuid=uuid4(), kind="a", max_crashes=1)
    whole = batch(member)
    ledger.submit([member, whole])
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    ledger.expire(worker, beat=None, begun=None)
    assert state(ledger, whole.uuid) is State.FAILED
    one, two = session().begin(), session()
    ((job_id, at),) = failed_part(ledger.batch_members(whole.uuid))
    assert one.verb("reopen", jobs=[job_id], turns=[at]) == [("done",)]
    two.verb_blocks("settle", **settle_of(worker, turn))
    one.commit()
    assert two.answer() == [(["stale"],)]
    assert (state(ledger, member.uuid), state(ledger, whole.uuid)) == (
        State.PENDING,
        State.WAITING,
    )


def test_a_retry_does_not_begin_while_somebody_ends_a_job(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns, whole = running(ledger, 2)
    ledger.connections.run("settle", **settle_of(worker, turns[0], "failed"))
    part = failed_part(ledger.batch_members(whole))
    one = session().begin()
    one.verb("settle", **settle_of(worker, turns[1]))
    assert ledger.reopen(part) is ReopenAnswer.BUSY
    one.commit()
    assert state(ledger, whole) is State.FAILED
    assert ledger.reopen(part) is ReopenAnswer.DONE
    assert state(ledger, whole) is State.WAITING
    (again,) = claim_all(ledger, worker)
    ledger.connections.run("settle", **settle_of(worker, again))
    assert state(ledger, whole) is State.SUCCEEDED


def test_of_two_retries_the_second_finds_nothing_to_do(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns, whole = running(ledger, 1)
    ledger.connections.run("settle", **settle_of(worker, turns[0], "failed"))
    ((job_id, at),) = failed_part(ledger.batch_members(whole))
    one = session().begin()
    assert one.verb("reopen", jobs=[job_id], turns=[at]) == [("done",)]
    assert ledger.reopen([(job_id, at)]) is ReopenAnswer.BUSY
    one.commit()
    assert ledger.reopen([(job_id, at)]) is ReopenAnswer.CHANGED


@pytest.mark.parametrize("first", ["claim", "cancel"])
def test_a_member_that_is_cancelled_while_it_is_claimed_ends_the_batch_once(
    ledger: PostgresStore, session: Make, first: str
) -> None:
    member = job()
    whole = batch(member)
    ledger.submit([member, whole])
    worker = worker_of(ledger)
    one, two = session().begin(), session()
    claim, cancel = ("claim", claim_of(worker)), ("cancel", {"uuid": member.uuid})
    (name, params), (other, others) = (claim, cancel) if first == "claim" else (cancel, claim)
    one.verb(name, **params)
    two.verb_blocks(other, **others)
    one.commit()
    answer = two.answer()
    if first == "claim":
        assert answer == [("requested",)]
        assert state(ledger, whole.uuid) is State.WAITING
    else:
        assert state(ledger, whole.uuid) is State.CANCELLED
        assert claim_all(ledger, worker) == []


def test_who_waits_for_somebodys_unique_key_keeps_no_batch_from_ending(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,), whole = running(ledger, 1)
    mine = JobSpec(uuid=uuid4(), kind="a", unique=Unique(key="u"))
    one, two, three = session().begin(), session(), session()
    one.verb("submit", jobs=encode_specs([mine]))  # a caller's own transaction, for ever
    other = JobSpec(uuid=uuid4(), kind="a", unique=Unique(key="u"))
    two.verb_blocks("add_members", **added(whole, other))
    three.verb("settle", **settle_of(worker, turn))
    assert state(ledger, whole) is State.SUCCEEDED
    one.rollback()
    with pytest.raises(psycopg.errors.DatabaseError, match="has ended"):
        two.answer()


# Many at once


@pytest.mark.parametrize("first", ["claim", "cancel_many"])
def test_a_claim_and_the_cancel_of_a_batch_share_its_jobs(
    ledger: PostgresStore, session: Make, first: str
) -> None:
    members = [job() for _ in range(4)]
    whole = batch(*members)
    ledger.submit([*members, whole])
    worker = worker_of(ledger)
    uuids = [member.uuid for member in members]
    verbs = [("claim", claim_of(worker, 2)), ("cancel_many", {"uuids": uuids})]
    (name, params), (other, others) = verbs if first == "claim" else verbs[::-1]
    one, two = session().begin(), session()
    one.verb(name, **params)
    two.verb_blocks(other, **others)
    one.commit()
    two.answer()
    states = [state(ledger, uuid) for uuid in uuids]
    if first == "claim":
        assert states == [*[State.RUNNING] * 2, *[State.CANCELLED] * 2]
        assert state(ledger, whole.uuid) is State.WAITING
    else:
        assert set(states) == {State.CANCELLED}
        assert state(ledger, whole.uuid) is State.CANCELLED


def test_of_many_those_in_other_hands_are_left_and_children_of_others_to_link(
    ledger: PostgresStore, session: Make
) -> None:
    parent, other = job(), job()
    child, free = job(parent.uuid), job(other.uuid)
    whole = batch(parent, child)
    ledger.submit([parent, other, child, free, whole])
    one, two = session().begin(), session()
    one.run(
        "SELECT 1 FROM timeball.held JOIN timeball.job ON job.id = held.job_id"
        " WHERE job.uuid = %s FOR UPDATE OF held",
        [child.uuid],
    )
    ((done,),) = two.verb("cancel_many", uuids=[parent.uuid, child.uuid, free.uuid])
    assert set(done) == {parent.uuid, free.uuid}
    assert (state(ledger, child.uuid), state(ledger, whole.uuid)) == (State.WAITING,) * 2
    one.commit()
    ledger.link(10)
    assert state(ledger, child.uuid) is State.SKIPPED
    assert state(ledger, whole.uuid) is State.CANCELLED


def test_a_number_of_another_server_s_transaction_makes_no_ended_job_a_new_member(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,), whole = running(ledger, 1)
    old = job()
    ledger.submit([old])
    ledger.connections.run("settle", **settle_of(worker, claim_all(ledger, worker)[0]))
    # As after pg_restore on a server whose transactions are numbered from less.
    session().run(
        "UPDATE timeball.job SET xid = (pg_current_xact_id()::text::bigint + 1)::text::xid8"
        " WHERE uuid = %s",
        [old.uuid],
    )
    with pytest.raises(UsageError, match="was there before"):
        ledger.connections.run("add_members", **added(whole, old))
    ledger.connections.run("settle", **settle_of(worker, turn))
    assert state(ledger, whole) is State.SUCCEEDED
