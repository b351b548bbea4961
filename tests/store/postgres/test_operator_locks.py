"""Deletions, revivals and deadlines in the way of each other: no cycle, and nothing left over."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

from tests.store.postgres.sessions import (
    Session,
    claim_all,
    expire_of,
    jobs_json,
    settle_of,
    submit,
    worker_of,
)

from timeball.core.records import JobSpec, Settlement, Turn
from timeball.core.states import Ending, State
from timeball.store.postgres import PostgresStore

Make = Callable[[], Session]

LOCK_JOB = "SELECT FROM timeball.job WHERE id = %s FOR UPDATE"
LOCK_LANE = "SELECT pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, %s)"
ORPHANS = """
SELECT count(*) FROM timeball.ended
WHERE NOT EXISTS (SELECT FROM timeball.job WHERE job.id = ended.job_id)
"""


def late(store: PostgresStore, **fields: object) -> JobSpec:
    """A job whose deadline has passed."""
    return submit(store, expires_at=store.now() - timedelta(seconds=1), **fields)[0]


def running(store: PostgresStore, worker: int, **fields: object) -> Turn:
    """A job that is being carried out."""
    submit(store, **fields)
    return claim_all(store, worker)[-1]


def let_pass(session: Session, job: int) -> None:
    """Let the deadline of a job be now."""
    session.run("UPDATE timeball.job SET expires_at = clock_timestamp() WHERE id = %s", [job])
    session.run("UPDATE timeball.deadline SET look_at = clock_timestamp() WHERE job_id = %s", [job])


def keyed(uuid: UUID) -> dict[str, object]:
    return {"jobs": jobs_json(1, [uuid], unique_key="k")}


def test_a_cancel_that_waited_while_its_job_was_deleted_leaves_nothing(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    one, two = session().begin(), session()
    one.verb("cancel", uuid=spec.uuid)
    two.verb_blocks("cancel", uuid=spec.uuid)
    one.verb("delete_jobs", uuids=[spec.uuid])
    one.commit()
    assert two.answer() == [("not_found",)]
    assert two.run(ORPHANS) == [(0,)]


def test_giving_a_worker_up_leaves_nothing_of_a_job_deleted_meanwhile(
    ledger: PostgresStore, session: Make
) -> None:
    worker = worker_of(ledger)
    submit(ledger, 2)
    first, second = claim_all(ledger, worker)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, first))
    two.verb_blocks("expire", **expire_of(worker))  # has seen both turns open
    ledger.settle(worker, [Settlement(*second[:4], Ending.SUCCEEDED)])
    ledger.delete([second.uuid])
    one.commit()
    assert two.answer() == [(0, 0, 0, 0)]
    assert two.run(ORPHANS) == [(0,)]


def test_a_deletion_waits_for_no_deadline(ledger: PostgresStore, session: Make) -> None:
    worker = worker_of(ledger)
    soon = ledger.now() + timedelta(hours=1)
    turn = running(ledger, worker, expires_at=soon)
    other = late(ledger)
    front, cancel, lapse = session(), session(), session()
    let_pass(front, turn.job_id)
    front.begin().run(LOCK_LANE, [turn.lane])
    cancel.verb_blocks("cancel", uuid=turn.uuid)
    ledger.settle(worker, [Settlement(*turn[:4], Ending.SUCCEEDED)])
    lapse.verb_blocks("lapse", limit=10)
    deletion = session().begin()
    assert deletion.verb("delete_jobs", uuids=[turn.uuid]) == [(turn.uuid, "deleted")]
    front.commit()
    assert cancel.answer() == [("finished",)]  # whoever asks does not wait for the deletion either
    assert lapse.answer() == [(1,)]
    deletion.commit()
    assert ledger.get(other.uuid).state is State.SKIPPED
    assert front.run("SELECT count(*) FROM timeball.deadline") == [(0,)]


def test_a_deadline_of_a_held_job_and_a_cancel_of_it_do_not_deadlock(
    ledger: PostgresStore, session: Make
) -> None:
    worker = worker_of(ledger)
    turn = running(ledger, worker, expires_at=ledger.now() + timedelta(hours=1))
    other = late(ledger)
    front, second, cancel, lapse = session(), session(), session(), session()
    let_pass(front, turn.job_id)
    unfit = settle_of(worker, turn, "released") | {"began": [None], "reasons": ["no_worker"]}
    front.begin().verb("settle", **unfit)
    second.begin().blocks(LOCK_JOB, [turn.job_id])
    cancel.verb_blocks("cancel", uuid=turn.uuid)  # holds the lane
    front.commit()
    second.answer()
    lapse.verb_blocks("lapse", limit=10)
    second.commit()
    assert cancel.answer() == [("cancelled",)]
    assert lapse.answer() == [(1,)]
    assert ledger.get(other.uuid).state is State.SKIPPED


def test_a_revival_that_waits_for_a_caller_keeps_no_worker_waiting(
    ledger: PostgresStore, session: Make
) -> None:
    worker, old = worker_of(ledger), uuid4()
    turn = running(ledger, worker)
    caller, operator, settler = session(), session(), session()
    caller.verb("submit", **keyed(old))
    ledger.cancel(old)
    caller.begin().verb("submit", **keyed(uuid4()))
    operator.verb_blocks("revive", uuids=[old, turn.uuid])
    assert settler.verb("settle", **settle_of(worker, turn, "retried")) == [(["accepted"],)]
    caller.commit()
    assert {answer for _, _, answer in operator.answer()} == {"clashed", "refused"}
