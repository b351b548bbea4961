"""Moves beside the verbs that meet them on one job, in every order in which they can."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.store.postgres.sessions import (
    Session,
    claim_all,
    claim_of,
    settle_of,
    submit,
    until,
    worker_of,
)
from tests.store.world import schedule

from timeball.core.audit import audit
from timeball.core.records import JobSpec, Standing
from timeball.core.states import State
from timeball.core.upkeep import MoveAnswer
from timeball.store.postgres import PostgresStore

Make = Callable[[], Session]
NOTHING = [(None, None, None)]
PROMOTE = {"limit": 10, "after": ""}


@pytest.fixture(autouse=True)
def _lanes(ledger: PostgresStore) -> None:
    ledger.ensure_lanes([("default", 5), ("other", 5), ("third", 5)])


def to(spec: JobSpec, queue: str = "other") -> dict[str, object]:
    return {"uuid": spec.uuid, "queue": queue, "priority": None}


def moved(queue: str = "other") -> list[tuple[str, str, int]]:
    return [("moved", queue, 5)]


def due_job(store: PostgresStore, session: Session) -> JobSpec:
    """A scheduled job whose instant has come."""
    (spec,) = submit(store, delay_s=60.0)
    for table in ("held", "job"):
        session.run(f"UPDATE timeball.{table} SET run_at = run_at - interval '2 minutes'")
    return spec


def clean(store: PostgresStore) -> bool:
    return not audit(store.histories(), quiesced=False).violations


# Move and claim


def test_a_claim_that_waits_for_a_move_does_not_get_the_turn_that_has_ended(
    ledger: PostgresStore, session: Make
) -> None:
    first, second = submit(ledger, 2)
    worker = worker_of(ledger)
    one, two = session().begin(), session()
    assert one.verb("move", **to(first)) == moved()
    two.verb_blocks("claim", **claim_of(worker))
    one.commit()
    lane, seq, _ = two.answer()[0]
    turns = ledger.connections.run("lease_turns", lane=lane, seq=seq, worker=worker)
    assert [turn[2] for turn in turns] == [second.uuid]
    (turn,) = claim_all(ledger, worker_of(ledger, "other"))
    assert (turn.uuid, turn.turn) == (first.uuid, 2)


def test_a_move_that_waits_for_a_claim_finds_the_job_running(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    one, two = session().begin(), session()
    one.verb("claim", **claim_of(worker_of(ledger)))
    two.verb_blocks("move", **to(spec))
    one.commit()
    assert two.answer() == [("running", None, None)]
    assert ledger.get(spec.uuid).queue == "default"


def test_a_move_after_a_claim_taken_back_takes_hold(ledger: PostgresStore, session: Make) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    one, two = session().begin(), session()
    one.verb("claim", **claim_of(worker))
    two.verb_blocks("move", **to(spec))
    one.rollback()
    assert two.answer() == moved()
    assert claim_all(ledger, worker) == []


def test_a_claim_of_the_new_lane_waits_for_no_move_and_misses_nothing(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    there = worker_of(ledger, "other")
    one, two = session().begin(), session()
    one.verb("move", **to(spec))
    assert two.verb("claim", **claim_of(there)) == NOTHING
    submit(ledger, queue="other")  # so that the lane's window ends behind the move's number
    assert len(claim_all(ledger, there)) == 1
    one.commit()
    assert [turn.uuid for turn in claim_all(ledger, there)] == [spec.uuid]


def test_a_move_taken_back_leaves_the_job_in_its_place(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    one = session().begin()
    one.verb("move", **to(spec))
    one.rollback()
    (turn,) = claim_all(ledger, worker_of(ledger, "default", "other"))
    assert (turn.uuid, turn.turn, ledger.get(spec.uuid).queue) == (spec.uuid, 1, "default")


# Move and cancel


def test_a_cancel_that_waits_for_a_move_cancels_the_next_turn(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    one, two = session().begin(), session()
    one.verb("move", **to(spec))
    two.verb_blocks("cancel", uuid=spec.uuid)
    one.commit()
    assert two.answer() == [("cancelled",)]
    assert claim_all(ledger, worker_of(ledger, "default", "other")) == []
    assert (ledger.get(spec.uuid).turn, clean(ledger)) == (2, True)


def test_a_move_that_waits_for_a_cancel_changes_nothing(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    one, two = session().begin(), session()
    one.verb("cancel", uuid=spec.uuid)
    two.verb_blocks("move", **to(spec))
    one.commit()
    assert two.answer() == [("finished", None, None)]
    assert (ledger.get(spec.uuid).queue, ledger.get(spec.uuid).turn) == ("default", 1)


@pytest.mark.parametrize("verb", ["cancel", "move"])
def test_who_looks_again_after_a_move_has_let_go_of_the_lane_that_it_left(
    ledger: PostgresStore, session: Make, verb: str
) -> None:
    """I26: the lane that it waits for next may be one whose holder waits for this one."""
    (spec,) = submit(ledger)
    how = {"uuid": spec.uuid} if verb == "cancel" else to(spec, "third")
    one, two, third, claim = session().begin(), session(), session().begin(), session()
    one.verb("move", **to(spec))
    two.verb_blocks(verb, **how)
    third.verb("pass_lanes", queue="other")
    one.commit()
    until(lambda: two.blockers() == [third.pid], "waits for the lane it was moved to")
    claim.verb("pass_lanes", queue="default")
    third.commit()
    assert two.answer() == ([("cancelled",)] if verb == "cancel" else moved("third"))


# Two moves


def test_of_two_moves_the_second_follows_the_first(ledger: PostgresStore, session: Make) -> None:
    (spec,) = submit(ledger)
    one, two = session().begin(), session()
    one.verb("move", **to(spec))
    two.verb_blocks("move", **to(spec, "third"))
    one.commit()
    assert two.answer() == moved("third")
    (turn,) = claim_all(ledger, worker_of(ledger, "default", "other", "third"))
    assert (turn.turn, ledger.get(spec.uuid).queue) == (3, "third")
    assert clean(ledger)


def test_of_two_moves_to_one_lane_the_second_keeps_the_place(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    one, two = session().begin(), session()
    one.verb("move", **to(spec))
    two.verb_blocks("move", **to(spec))
    one.commit()
    assert two.answer() == moved()
    assert ledger.get(spec.uuid).turn == 2


# Move and promote


def test_a_promotion_leaves_a_job_alone_that_is_being_moved_and_takes_it_next(
    ledger: PostgresStore, session: Make
) -> None:
    one, two = session().begin(), session()
    spec = due_job(ledger, two)
    one.verb("move", **to(spec))
    assert two.verb("promote", **PROMOTE)[0][0] == 0
    one.commit()
    assert two.verb("promote", **PROMOTE)[0][0] == 1
    (turn,) = claim_all(ledger, worker_of(ledger, "other"))
    assert (turn.uuid, turn.turn) == (spec.uuid, 1)


def test_a_move_that_waits_for_a_promotion_ends_the_turn_that_lined_up(
    ledger: PostgresStore, session: Make
) -> None:
    one, two = session().begin(), session()
    spec = due_job(ledger, two)
    one.verb("promote", **PROMOTE)
    two.verb_blocks("move", **to(spec))
    one.commit()
    assert two.answer() == moved()
    (turn,) = claim_all(ledger, worker_of(ledger, "default", "other"))
    assert (turn.uuid, turn.turn) == (spec.uuid, 2)
    assert clean(ledger)


# Move and what ends an attempt


@pytest.mark.parametrize("event", ["retried", "released"])
def test_a_move_beside_a_settlement_takes_the_running_turn_or_the_next_one(
    ledger: PostgresStore, session: Make, event: str
) -> None:
    (spec,) = submit(ledger, max_retries=3)
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    one = session().begin()
    one.verb("settle", **settle_of(worker, turn, event, 1.0))
    assert ledger.move(spec.uuid, queue="other", priority=None) is MoveAnswer.RUNNING
    one.commit()
    assert ledger.move(spec.uuid, queue="other", priority=None) is MoveAnswer.MOVED
    assert (ledger.get(spec.uuid).queue, clean(ledger)) == ("other", True)


# Move and pause


def test_a_pause_waits_for_a_move_out_of_its_lane_and_holds_what_it_did_not_take(
    ledger: PostgresStore, session: Make
) -> None:
    first, _ = submit(ledger, 2)
    one, two = session().begin(), session()
    one.verb("move", **to(first))
    two.verb("pause_queue", queue="default", by="ann")
    two.verb_blocks("pass_lanes", queue="default")
    one.commit()
    two.answer()
    (turn,) = claim_all(ledger, worker_of(ledger, "default", "other"))
    assert (turn.uuid, turn.turn) == (first.uuid, 2)


def test_a_move_into_a_queue_that_is_just_paused_waits_for_nobody_and_starts_nothing(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    one, two = session().begin(), session()
    one.verb("pause_queue", queue="other", by="ann")
    assert two.verb("move", **to(spec)) == moved()
    one.commit()
    assert claim_all(ledger, worker_of(ledger, "default", "other")) == []
    assert ledger.get(spec.uuid).reason == "paused"


# What a move needs, and what others pay for it


def test_a_move_on_another_server_moves_the_ledger_in_before(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    session().run("UPDATE timeball.home SET system = system + 1")
    assert ledger.move(spec.uuid, queue="other", priority=None) is MoveAnswer.MOVED
    (turn,) = claim_all(ledger, worker_of(ledger, "default", "other"))
    assert (turn.uuid, ledger.get(spec.uuid).queue, clean(ledger)) == (spec.uuid, "other", True)


def test_a_lane_that_is_missing_is_made_and_one_lost_by_a_failover_too(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    assert ledger.move(spec.uuid, queue="new", priority=0) is MoveAnswer.MOVED
    session().run("DELETE FROM timeball.lane WHERE queue = 'third'")
    assert ledger.move(spec.uuid, queue="third", priority=5) is MoveAnswer.MOVED
    job = ledger.get(spec.uuid)
    assert (job.queue, job.priority, job.turn) == ("third", 5, 3)


def test_a_move_runs_alone(ledger: PostgresStore, session: Make) -> None:
    (spec,) = submit(ledger)
    one = session()
    one.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    with pytest.raises(Exception, match="READ COMMITTED"):
        one.verb("move", **to(spec))
    one.rollback()


def test_what_replaces_the_runs_of_a_schedule_finds_them_where_they_were_moved(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    ledger.move(spec.uuid, queue="other", priority=None)
    now = ledger.now()
    standing = Standing(now, now + timedelta(hours=1), None, "2026a", "f", 0)
    number = ledger.declare(schedule(), standing)
    one, two = session().begin(), session()
    one.run("UPDATE timeball.schedule SET runs = array(SELECT job.id FROM timeball.job)")
    one.commit()
    one.begin().verb("pass_lanes", queue="other")
    two.blocks("SELECT timeball.replace_runs(ARRAY[%s]::bigint[])", [number])
    one.commit()
    two.answer()
    assert ledger.get(spec.uuid).state is State.CANCELLED
