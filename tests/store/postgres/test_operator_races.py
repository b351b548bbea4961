"""What operators do to ended jobs, beside whatever else happens to them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.store.postgres.sessions import Session, claim_all, claim_of, settle_of, submit, worker_of

from timeball.core.records import (
    JobSpec,
    Settlement,
)
from timeball.core.states import Ending, State
from timeball.core.upkeep import Keep
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
    assert two.verb("revive", uuids=[spec.uuid]) == [(spec.uuid, "default", "refused")]
    one.commit()
    answer = "revived" if ending is Ending.FAILED else "refused"
    assert two.verb("revive", uuids=[spec.uuid]) == [(spec.uuid, "default", answer)]


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


# Delete


def test_a_deletion_beside_a_revival_leaves_one_of_them(
    ledger: PostgresStore, session: Make
) -> None:
    first, second = cancelled(ledger), cancelled(ledger)
    one, two = session().begin(), session()
    one.verb("revive", uuids=[first.uuid])
    two.verb_blocks("delete_jobs", uuids=[first.uuid])
    one.commit()
    assert two.answer() == [(first.uuid, "refused")]
    one.begin()
    one.verb("delete_jobs", uuids=[second.uuid])
    two.verb_blocks("revive", uuids=[second.uuid])
    one.commit()
    assert two.answer() == []
    assert [turn.uuid for turn in claim_all(ledger, worker_of(ledger))] == [first.uuid]


@pytest.mark.parametrize("event", ["succeeded", "retried"])
def test_a_settlement_that_waited_for_a_deletion_leaves_nothing(
    ledger: PostgresStore, session: Make, event: str
) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    ledger.settle(worker, [Settlement(*turn[:4], Ending.SUCCEEDED, began_at=turn.granted_at)])
    one, two = session().begin(), session()
    assert one.verb("delete_jobs", uuids=[spec.uuid]) == [(spec.uuid, "deleted")]
    two.verb_blocks("settle", **settle_of(worker, turn, event))
    one.commit()
    assert two.answer() == [(["stale"],)]
    for table in ("job", "entry", "ended", "held"):
        assert two.run(f"SELECT count(*) FROM timeball.{table}") == [(0,)]


def test_a_deletion_taken_back_leaves_the_settlement_refused_by_its_key(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    ledger.settle(worker, [Settlement(*turn[:4], Ending.FAILED, began_at=turn.granted_at)])
    one, two = session().begin(), session()
    one.verb("delete_jobs", uuids=[spec.uuid])
    two.verb_blocks("settle", **settle_of(worker, turn))
    one.rollback()
    assert two.answer() == [(["stale"],)]
    assert ledger.get(spec.uuid).state is State.FAILED


def test_a_cancel_whose_job_is_deleted_meanwhile_comes_to_an_end(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    job = ledger.get(spec.uuid).id
    ledger.cancel(spec.uuid)
    ledger.delete([spec.uuid])
    assert session().run("SELECT timeball.cancel_job(%s)", [job]) == [("not_found",)]


# Retention


def trim_of(after: int = 0, limit: int = 100) -> dict[str, object]:
    return {"after": after, "limit": limit, "succeeded_s": 0.0, "others_s": 0.0}


def done(store: PostgresStore, count: int = 1) -> list[JobSpec]:
    """Jobs that have succeeded."""
    specs, worker = submit(store, count), worker_of(store)
    turns = claim_all(store, worker)
    store.settle(worker, [Settlement(*turn[:4], Ending.SUCCEEDED) for turn in turns])
    return specs


def test_retention_waits_for_nobody(ledger: PostgresStore, session: Make) -> None:
    specs = [cancelled(ledger), cancelled(ledger), *done(ledger)]
    one, two = session().begin(), session()
    one.verb("revive", uuids=[specs[0].uuid])
    assert two.verb("trim_jobs", **trim_of()) == [(2, None)]
    one.commit()
    assert ledger.get(specs[0].uuid).state is State.PENDING
    assert two.verb("trim_jobs", **trim_of()) == [(0, None)]


def test_retention_leaves_what_the_lane_has_not_passed(
    ledger: PostgresStore, session: Make
) -> None:
    done(ledger)
    spec = cancelled(ledger)  # behind it nothing has been claimed
    one = session()
    assert one.verb("trim_jobs", **trim_of()) == [(1, None)]
    assert ledger.get(spec.uuid).state is State.CANCELLED
    done(ledger)
    assert one.verb("trim_jobs", **trim_of()) == [(2, None)]


def test_leases_go_with_the_last_of_their_jobs_but_never_the_newest(
    ledger: PostgresStore, session: Make
) -> None:
    for _ in range(3):
        done(ledger)
    kept = submit(ledger)[0]
    claim_all(ledger, worker_of(ledger))  # runs
    done(ledger)
    one = session()

    def look() -> list[tuple[int]]:
        one.run("UPDATE timeball.lease SET at = at - interval '1 day'")
        after: tuple[int, ...] | None = ()
        while after is not None:
            after = ledger.trim(Keep(0.0, 0.0), after=after, limit=2).after
        return one.run("SELECT seq FROM timeball.lease ORDER BY seq")

    assert look() == [(4,), (5,)]
    assert ledger.get(kept.uuid).worker is not None
    done(ledger)
    assert look() == [(4,), (6,)]
    assert ledger.get(kept.uuid).state is State.RUNNING


def test_young_leases_are_passed_over_at_once(ledger: PostgresStore, session: Make) -> None:
    for _ in range(5):
        done(ledger)
    parameters = {"lane": 0, "seq": 0, "limit": 2, "keep_s": 3_600.0}
    ((lane, seq),) = session().verb("trim_leases", **parameters)
    assert (lane, seq) == (1, 2**63 - 1)
    parameters |= {"lane": lane, "seq": seq}
    assert session().verb("trim_leases", **parameters) == [(None, None)]


# Deadlines


def late(store: PostgresStore, **fields) -> JobSpec:
    """A job whose deadline has passed."""
    return submit(store, expires_at=store.now() - timedelta(seconds=1), **fields)[0]


def test_a_deadline_beside_a_claim_skips_the_job_once(ledger: PostgresStore, session: Make) -> None:
    spec = late(ledger)
    one, two = session().begin(), session()
    one.verb("claim", **claim_of(worker_of(ledger)))
    two.verb_blocks("lapse", limit=10)
    one.commit()
    assert two.answer() == [(0,)]
    assert ledger.get(spec.uuid).state is State.SKIPPED


def test_a_claim_beside_a_deadline_grants_the_others(ledger: PostgresStore, session: Make) -> None:
    spec, (other,) = late(ledger), submit(ledger)
    worker = worker_of(ledger)
    one, two = session().begin(), session()
    assert one.verb("lapse", limit=10) == [(1,)]
    two.verb_blocks("claim", **claim_of(worker))
    one.commit()
    ((lane, seq, _),) = two.answer()
    rows = ledger.connections.run("lease_turns", lane=lane, seq=seq, worker=worker)
    assert [row[2] for row in rows] == [other.uuid]
    assert ledger.get(spec.uuid).state is State.SKIPPED


@pytest.mark.parametrize("fields", [{}, {"delay_s": 60.0}])
@pytest.mark.parametrize("commits", [True, False])
def test_a_deadline_beside_a_cancel_ends_the_job_once(
    ledger: PostgresStore, session: Make, fields: dict, *, commits: bool
) -> None:
    spec = late(ledger, **fields)
    one, two = session().begin(), session()
    assert one.verb("lapse", limit=10) == [(1,)]
    two.verb_blocks("cancel", uuid=spec.uuid)
    one.run("COMMIT" if commits else "ROLLBACK")
    assert two.answer() == [("finished" if commits else "cancelled",)]
    assert ledger.lapse(10) == 0
    assert session().run("SELECT count(*) FROM timeball.deadline") == [(0,)]


def test_a_second_look_at_deadlines_passes_by_the_first(
    ledger: PostgresStore, session: Make
) -> None:
    late(ledger)
    one, two = session().begin(), session()
    assert one.verb("lapse", limit=10) == [(1,)]
    assert two.verb("lapse", limit=10) == [(0,)]
    one.commit()
