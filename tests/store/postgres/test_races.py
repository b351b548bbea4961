"""Pairs of verbs that meet on one job, in every order in which they can."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest
from tests.store.postgres.sessions import (
    Session,
    claim_all,
    claim_of,
    expire_of,
    jobs_json,
    settle_of,
    submit,
    worker_of,
)

from timeball.core.records import CancelAnswer, JobSpec, Settlement
from timeball.core.states import Ending, State
from timeball.store.base import NO_WORKER
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import statement

Make = Callable[[], Session]
WORKER = {"name": "w", "kinds": ["a"], "queues": ["default"], "lease_s": 30.0}


def due_job(store: PostgresStore, session: Session) -> JobSpec:
    """A scheduled job whose instant has come."""
    (spec,) = submit(store, delay_s=60.0)
    for table in ("held", "job"):
        session.run(f"UPDATE timeball.{table} SET run_at = run_at - interval '2 minutes'")
    return spec


# Settle and expire


def test_a_settlement_before_the_expiry_stands(ledger: PostgresStore, session: Make) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    one, two = session().begin(), session()
    assert one.verb("settle", **settle_of(worker, turn)) == [(["accepted"],)]
    two.verb_blocks("expire", **expire_of(worker))
    one.commit()
    assert two.answer() == [(0, 0, 0, 0)]
    assert ledger.get(spec.uuid).state is State.SUCCEEDED


def test_a_settlement_taken_back_leaves_the_turn_to_the_expiry(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turn))
    two.verb_blocks("expire", **expire_of(worker))
    one.rollback()
    assert two.answer() == [(0, 1, 0, 0)]
    assert ledger.get(spec.uuid).state is State.PENDING


@pytest.mark.parametrize("event", ["succeeded", "retried", "failed", "released"])
def test_a_zombie_changes_nothing(ledger: PostgresStore, session: Make, event: str) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    one, two = session().begin(), session()
    assert one.verb("expire", **expire_of(worker)) == [(0, 1, 0, 0)]
    two.verb_blocks("settle", **settle_of(worker, turn, event))
    one.commit()
    assert two.answer() == [(["stale"],)]
    job = ledger.get(spec.uuid)
    assert (job.state, job.turn, job.crashes, job.failures) == (State.PENDING, 2, 1, 0)
    assert [len(history.stale) for history in ledger.histories()] == [1]


def test_a_settlement_sent_again_while_the_first_is_in_flight_is_already(
    ledger: PostgresStore, session: Make
) -> None:
    submit(ledger)
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turn, "retried", 5.0))
    two.verb_blocks("settle", **settle_of(worker, turn, "retried", 5.0))
    one.commit()
    assert two.answer() == [(["already"],)]
    assert ledger.counts() == {State.SCHEDULED: 1}


def test_two_expiries_at_once_count_one_crash(ledger: PostgresStore, session: Make) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    claim_all(ledger, worker)
    one, two = session().begin(), session()
    one.verb("expire", **expire_of(worker))
    two.verb_blocks("expire", **expire_of(worker))
    one.commit()
    assert two.answer() == []
    assert ledger.get(spec.uuid).crashes == 1


# Cancel and settle


@pytest.mark.parametrize("event", ["retried", "snoozed", "released"])
def test_a_request_before_the_next_turn_is_made_is_heeded(
    ledger: PostgresStore, session: Make, event: str
) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    one, two = session().begin(), session()
    assert one.verb("cancel", uuid=spec.uuid) == [("requested",)]
    two.verb_blocks("settle", **settle_of(worker, turn, event, 1.0))
    one.commit()
    assert two.answer() == [(["accepted"],)]
    assert ledger.get(spec.uuid).state is State.CANCELLED


@pytest.mark.parametrize("event", ["retried", "snoozed", "released"])
def test_a_cancel_after_the_next_turn_was_made_takes_that(
    ledger: PostgresStore, session: Make, event: str
) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turn, event, 1.0))
    two.verb_blocks("cancel", uuid=spec.uuid)
    one.commit()
    assert two.answer() == [("cancelled",)]
    assert ledger.get(spec.uuid).state is State.CANCELLED
    assert claim_all(ledger, worker) == []


def test_a_cancel_beside_a_success_asks_and_the_success_stands(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turn))
    assert two.verb("cancel", uuid=spec.uuid) == [("requested",)]
    one.commit()
    assert ledger.get(spec.uuid).state is State.SUCCEEDED
    assert ledger.cancel(spec.uuid) is CancelAnswer.FINISHED


@pytest.mark.parametrize("cancel_first", [True, False])
def test_a_cancel_beside_an_expiry_leaves_no_further_turn(
    ledger: PostgresStore, session: Make, *, cancel_first: bool
) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    claim_all(ledger, worker)
    verbs = [("cancel", {"uuid": spec.uuid}), ("expire", expire_of(worker))]
    (first, a), (second, b) = verbs if cancel_first else reversed(verbs)
    one, two = session().begin(), session()
    one.verb(first, **a)
    two.verb_blocks(second, **b)
    one.commit()
    two.answer()
    assert ledger.get(spec.uuid).state is State.CANCELLED
    assert claim_all(ledger, worker_of(ledger)) == []


# Cancel and claim


def test_a_cancel_before_the_claim_is_final(ledger: PostgresStore, session: Make) -> None:
    first, second = submit(ledger, 2)
    worker = worker_of(ledger)
    one, two = session().begin(), session()
    assert one.verb("cancel", uuid=first.uuid) == [("cancelled",)]
    two.verb_blocks("claim", **claim_of(worker))
    one.commit()
    lane, seq, _ = two.answer()[0]
    turns = ledger.connections.run("lease_turns", lane=lane, seq=seq, worker=worker)
    assert [turn[2] for turn in turns] == [second.uuid]


def test_a_cancel_after_the_claim_is_a_request(ledger: PostgresStore, session: Make) -> None:
    (spec,) = submit(ledger)
    one, two = session().begin(), session()
    one.verb("claim", **claim_of(worker_of(ledger)))
    two.verb_blocks("cancel", uuid=spec.uuid)
    one.commit()
    assert two.answer() == [("requested",)]
    assert ledger.get(spec.uuid).state is State.RUNNING


def test_a_cancel_after_a_claim_taken_back_is_final(ledger: PostgresStore, session: Make) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    one, two = session().begin(), session()
    one.verb("claim", **claim_of(worker))
    two.verb_blocks("cancel", uuid=spec.uuid)
    one.rollback()
    assert two.answer() == [("cancelled",)]
    assert claim_all(ledger, worker) == []


def test_two_cancels_at_once_give_one_ending(ledger: PostgresStore, session: Make) -> None:
    (spec,) = submit(ledger)
    one, two = session().begin(), session()
    one.verb("cancel", uuid=spec.uuid)
    two.verb_blocks("cancel", uuid=spec.uuid)
    one.commit()
    assert two.answer()[0][0] in {"cancelled", "finished"}
    assert [len(history.endings) for history in ledger.histories()] == [1]


def test_a_cancel_does_not_run_in_a_transaction_that_has_written(
    ledger: PostgresStore, session: Make
) -> None:
    """It would hold the lane until that transaction ends."""
    (spec,) = submit(ledger)
    one = session().begin()
    one.run("SELECT pg_current_xact_id()")
    with pytest.raises(psycopg.Error, match="alone"):
        one.verb("cancel", uuid=spec.uuid)
    one.rollback()
    assert ledger.get(spec.uuid).state is State.PENDING


# Cancel and promote


def test_a_cancel_before_the_promotion_is_final(ledger: PostgresStore, session: Make) -> None:
    one, two = session(), session()
    spec = due_job(ledger, one)
    one.begin()
    assert one.verb("cancel", uuid=spec.uuid) == [("cancelled",)]
    assert two.verb("promote", limit=10, after="")[0][0] == 0
    one.commit()
    assert ledger.get(spec.uuid).state is State.CANCELLED


def test_a_cancel_after_the_promotion_is_final(ledger: PostgresStore, session: Make) -> None:
    one, two = session(), session()
    spec = due_job(ledger, one)
    one.begin()
    assert one.verb("promote", limit=10, after="")[0][0] == 1
    two.verb_blocks("cancel", uuid=spec.uuid)
    one.commit()
    assert two.answer() == [("cancelled",)]
    assert claim_all(ledger, worker_of(ledger)) == []
    assert [len(history.entries) for history in ledger.histories()] == [1]


# Promote and register


def test_two_promotions_at_once_share_the_work(ledger: PostgresStore, session: Make) -> None:
    one, two = session(), session()
    for _ in range(4):
        due_job(ledger, one)
    one.begin()
    assert one.verb("promote", limit=3, after="")[0][0] == 3
    assert two.verb("promote", limit=3, after="")[0][0] == 1
    one.commit()
    assert len(claim_all(ledger, worker_of(ledger))) == 4


@pytest.mark.parametrize("off", ["hashjoin", "mergejoin", "nestloop", "material"])
def test_a_promotion_moves_no_more_than_its_limit_under_any_plan(
    ledger: PostgresStore, session: Make, off: str
) -> None:
    one = session()
    for _ in range(6):
        due_job(ledger, one)
    one.run(f"SET enable_{off} = off")
    assert [one.verb("promote", limit=4, after="")[0][0] for _ in range(3)] == [4, 2, 0]


def test_a_job_released_while_its_worker_registers_is_found_by_a_promotion(
    ledger: PostgresStore, session: Make
) -> None:
    submit(ledger)
    stranger = ledger.register("s", kinds=["other"], queues=["default"], lease_s=30.0)
    (turn,) = claim_all(ledger, stranger)
    one, two = session().begin(), session()
    params = settle_of(stranger, turn, "released") | {"reasons": [NO_WORKER], "began": [None]}
    one.verb("settle", **params)
    worker = worker_of(ledger)
    one.commit()
    assert claim_all(ledger, worker) == []
    two.run("UPDATE timeball.held SET at = at - interval '2 seconds'")
    assert ledger.promote(10).moved == 1
    assert [turn.turn for turn in claim_all(ledger, worker)] == [2]


def test_a_registration_beside_a_promotion_gives_one_entry(
    ledger: PostgresStore, session: Make
) -> None:
    submit(ledger)
    stranger = ledger.register("s", kinds=["other"], queues=["default"], lease_s=30.0)
    (turn,) = claim_all(ledger, stranger)
    ledger.settle(stranger, [Settlement(*turn[:4], Ending.RELEASED, reason=NO_WORKER)])
    one, two = session().begin(), session()
    ((worker,),) = one.run(statement("register"), WORKER)
    assert two.verb("promote", limit=10, after="")[0][0] == 0
    one.commit()
    assert len(claim_all(ledger, worker)) == 1


def test_the_same_submit_twice_at_once_gives_one_job(ledger: PostgresStore, session: Make) -> None:
    ledger.ensure_lanes([("default", 5)])
    text = jobs_json(3, [uuid4() for _ in range(3)])
    one, two = session().begin(), session()
    first = one.verb("submit", jobs=text)
    two.verb_blocks("submit", jobs=text)
    one.commit()
    assert two.answer() == first
    assert ledger.counts() == {State.PENDING: 3}
