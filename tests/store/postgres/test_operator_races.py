"""What operators do to ended jobs, beside whatever else happens to them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.store.postgres.sessions import Session, claim_all, settle_of, submit, worker_of

from timeball.core.records import JobSpec
from timeball.core.states import Ending, State
from timeball.store.postgres import PostgresStore

Make = Callable[[], Session]


def cancelled(store: PostgresStore) -> JobSpec:
    (spec,) = submit(store)
    store.cancel(spec.uuid)
    return spec


def test_of_two_revivals_one_makes_a_turn(ledger: PostgresStore, session: Make) -> None:
    spec = cancelled(ledger)
    one, two = session().begin(), session()
    one.verb("revive", uuids=[spec.uuid])
    two.verb_blocks("revive", uuids=[spec.uuid])
    one.commit()
    assert two.answer() == [(spec.uuid, "default", "refused")]
    (turn,) = claim_all(ledger, worker_of(ledger))
    assert (turn.turn, ledger.get(spec.uuid).state) == (2, State.RUNNING)


def test_a_revival_taken_back_leaves_the_job_to_the_next(
    ledger: PostgresStore, session: Make
) -> None:
    spec = cancelled(ledger)
    one, two = session().begin(), session()
    one.verb("revive", uuids=[spec.uuid])
    two.verb_blocks("revive", uuids=[spec.uuid])
    one.rollback()
    assert two.answer() == [(spec.uuid, "default", "revived")]
    assert [turn.turn for turn in claim_all(ledger, worker_of(ledger))] == [2]


@pytest.mark.parametrize("ending", [Ending.FAILED, Ending.RETRIED])
def test_a_revival_waits_for_the_ending_to_be_there(
    ledger: PostgresStore, session: Make, ending: Ending
) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turn, ending))
    if ending is Ending.RETRIED:  # which has the job's row locked
        two.verb_blocks("revive", uuids=[spec.uuid])
        one.commit()
        assert two.answer() == [(spec.uuid, "default", "refused")]
    else:
        assert two.verb("revive", uuids=[spec.uuid]) == [(spec.uuid, "default", "refused")]
        one.commit()
        assert two.verb("revive", uuids=[spec.uuid]) == [(spec.uuid, "default", "revived")]


def test_a_cancel_beside_a_revival_waits_for_nothing(ledger: PostgresStore, session: Make) -> None:
    spec = cancelled(ledger)
    one, two = session().begin(), session()
    one.verb("revive", uuids=[spec.uuid])
    assert two.verb("cancel", uuid=spec.uuid) == [("finished",)]
    one.commit()
    assert two.verb("cancel", uuid=spec.uuid) == [("cancelled",)]


def test_many_revivals_in_any_order_do_not_deadlock(ledger: PostgresStore, session: Make) -> None:
    specs = [cancelled(ledger) for _ in range(6)]
    uuids = [spec.uuid for spec in specs]
    one, two = session().begin(), session()
    one.verb("revive", uuids=uuids)
    two.verb_blocks("revive", uuids=uuids[::-1])
    one.commit()
    assert {answer for _, _, answer in two.answer()} == {"refused"}
    assert len(claim_all(ledger, worker_of(ledger))) == len(uuids)
