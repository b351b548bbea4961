"""Verbs that meet on one limit, statement by statement; and what admission reads."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from uuid import uuid4

import psycopg
import pytest
from tests.store.postgres.plans import Explained
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

from timeball.core.limits import Scope, limit_violations
from timeball.core.records import CancelAnswer, Settlement
from timeball.core.states import Ending, State
from timeball.store.base import KEY_BUSY
from timeball.store.postgres import PostgresStore

Make = Callable[[], Session]
ADMIT = {"keys": ["k"], "limit": 1_000}


def used(session: Session) -> list[tuple]:
    return session.run("SELECT scope, name, n, job_id FROM timeball.slot ORDER BY scope, name, n")


def waiting(store: PostgresStore, session: Session, count: int = 1) -> None:
    """Jobs that nobody has looked for room for: their submitter died after his commit."""
    store.ensure_lanes([("default", 5)])
    session.verb("submit", jobs=jobs_json(count, key="k"))


def test_of_two_who_admit_at_once_only_one_finds_the_slot(
    ledger: PostgresStore, session: Make
) -> None:
    one, two = session(), session()
    worker_of(ledger)
    waiting(ledger, one, 2)
    one.begin()
    assert one.verb("admit_keys", **ADMIT) == [(1,)]
    two.verb_blocks("admit_keys", **ADMIT)  # for the slot, which may yet be given back
    one.commit()
    assert two.answer() == [(0,)]
    assert len(used(one)) == 1


def test_who_admits_gets_the_slot_that_another_gives_back(
    ledger: PostgresStore, session: Make
) -> None:
    one, two = session(), session()
    worker_of(ledger)
    waiting(ledger, one, 2)
    one.begin()
    one.verb("admit_keys", **ADMIT)
    two.verb_blocks("admit_keys", **ADMIT)
    one.rollback()
    assert two.answer() == [(1,)]
    assert len(used(one)) == 1


def test_who_admits_while_the_holder_settles_does_not_wait_and_does_not_exceed(
    ledger: PostgresStore, session: Make
) -> None:
    worker = worker_of(ledger)
    submit(ledger, 2, key="k")
    (turn,) = claim_all(ledger, worker)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turn))
    assert two.verb("admit_keys", **ADMIT) == [(0,)]
    one.commit()
    assert len(claim_all(ledger, worker)) == 1


def test_who_is_submitted_while_the_holder_settles_is_found_by_the_next_promotion(
    ledger: PostgresStore, session: Make
) -> None:
    worker = worker_of(ledger)
    submit(ledger, key="k")
    (turn,) = claim_all(ledger, worker)
    one = session().begin()
    one.verb("settle", **settle_of(worker, turn))
    submit(ledger, key="k")
    one.commit()
    assert claim_all(ledger, worker) == []
    assert ledger.promote(1_000).moved == 1
    assert len(claim_all(ledger, worker)) == 1


@pytest.mark.parametrize("first", ["settle", "expire"])
def test_a_settlement_and_an_expiry_free_a_slot_once(
    ledger: PostgresStore, session: Make, first: str
) -> None:
    worker = worker_of(ledger)
    worker_of(ledger)
    submit(ledger, 3, key="k")
    (turn,) = claim_all(ledger, worker)
    one, two = session().begin(), session()
    verbs = {"settle": settle_of(worker, turn), "expire": expire_of(worker)}
    one.verb(first, **verbs.pop(first))
    ((second, words),) = verbs.items()
    two.verb_blocks(second, **words)
    one.commit()
    two.answer()
    assert len(used(one)) == 1


def test_a_cancel_and_an_admission_of_one_job(ledger: PostgresStore, session: Make) -> None:
    one = session()
    worker = worker_of(ledger)
    waiting(ledger, one)
    ((uuid,),) = one.run("SELECT uuid FROM timeball.job")
    one.begin()
    one.verb("admit_keys", **ADMIT)
    two = session().verb_blocks("cancel", uuid=uuid)
    one.commit()
    assert two.answer() == [("cancelled",)]
    assert used(one) == []
    assert claim_all(ledger, worker) == []


def test_an_admission_passes_by_who_is_being_cancelled(
    ledger: PostgresStore, session: Make
) -> None:
    one, two = session(), session()
    worker_of(ledger)
    waiting(ledger, one, 2)
    ((first,), (second,)) = one.run("SELECT uuid FROM timeball.job ORDER BY id")
    one.begin()
    one.run("DELETE FROM timeball.held WHERE job_id = 1")
    assert two.verb("admit_keys", **ADMIT) == [(1,)]
    one.rollback()
    assert ledger.get(first).reason == KEY_BUSY
    assert ledger.get(second).reason is None


def test_a_cancel_of_the_one_that_holds_the_slot_and_a_claim_of_it(
    ledger: PostgresStore, session: Make
) -> None:
    worker = worker_of(ledger)
    first, _ = submit(ledger, 2, key="k")
    one = session().begin()
    one.verb("claim", **claim_of(worker))
    two = session().verb_blocks("cancel", uuid=first.uuid)
    one.commit()
    assert two.answer() == [(CancelAnswer.REQUESTED,)]
    assert [row[3] for row in used(one)] == [ledger.get(first.uuid).id]


def test_claims_of_two_classes_of_one_queue_share_what_is_free(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.limit(Scope.QUEUE, "default", 3)
    low, high = worker_of(ledger), worker_of(ledger)
    submit(ledger, 2, priority=2)
    one, two = session().begin(), session()
    one.verb("claim", **claim_of(low))
    submit(ledger, 2, priority=8)
    two.verb_blocks("claim", **claim_of(high))
    one.commit()
    ((lane, seq, _),) = two.answer()
    rows = ledger.connections.run("lease_turns", lane=lane, seq=seq, worker=high)
    assert len(rows) == 1
    assert len(used(one)) == 3
    # The one that found no room is still ahead of the lane's cursor.
    ledger.limit(Scope.QUEUE, "default", None)
    assert len(claim_all(ledger, high)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("scope", list(Scope))
def test_eight_workers_at_a_barrier_never_exceed_a_limit(
    ledger: PostgresStore, scope: Scope, at_once: int
) -> None:
    name = "k" if scope is Scope.KEY else "default"
    ledger.limit(scope, name, at_once)
    key = "k" if scope is Scope.KEY else None
    workers = [worker_of(ledger) for _ in range(8)]
    submit(ledger, 40, key=key, priority=3)
    barrier = Barrier(8)

    def work(worker: int) -> int:
        done = 0
        for round_ in range(10):
            barrier.wait()
            if round_ == worker % 8:
                submit(ledger, key=key, priority=9)
            turns = ledger.claim(worker, limit=5, request=uuid4(), floors={})
            said = [
                Settlement(*turn[:4], Ending.SUCCEEDED, began_at=turn.granted_at) for turn in turns
            ]
            ledger.settle(worker, said)
            done += len(turns)
        return done

    with ThreadPoolExecutor(8) as pool:
        done = sum(pool.map(work, workers))
    assert done >= 10  # somebody in every round
    while ledger.promote(1_000).moved or claim_and_end(ledger, workers[0]):
        pass
    assert ledger.counts() == {State.SUCCEEDED: 48}
    assert [row.until for row in ledger.holdings()].count(None) == 0


UNDER_WAY = (
    "SELECT array(SELECT slot.job_id FROM timeball.slot WHERE slot.scope = %(scope)s ORDER BY 1),"
    " array(SELECT jobs.id FROM timeball.jobs WHERE jobs.state = 'running' ORDER BY 1)"
)


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("scope", [Scope.KEY, Scope.QUEUE])
def test_holders_that_are_killed_leave_no_slot_behind(
    ledger: PostgresStore, dsn: str, scope: Scope, at_once: int
) -> None:
    """Eight at a barrier, again and again; of those that hold something every second one dies."""
    name = "k" if scope is Scope.KEY else "default"
    ledger.limit(scope, name, at_once)
    submit(ledger, 200, key="k" if scope is Scope.KEY else None)
    holders, wrong = itertools.count(), []
    line = psycopg.connect(dsn, autocommit=True)

    def look() -> None:
        """All stand at the barrier: nobody is in the middle of anything."""
        slots, running = line.execute(UNDER_WAY, {"scope": scope}).fetchone() or ((), ())
        if len(slots) > at_once or not set(running) <= set(slots):
            wrong.append((slots, running))

    claimed, over = Barrier(8, action=look), Barrier(8, action=look)

    def work(worker: int) -> None:
        for _ in range(40):
            ledger.promote(100)
            turns = ledger.claim(worker, limit=1, request=uuid4(), floors={})
            claimed.wait()
            if turns and next(holders) % 2:
                ledger.expire(worker, beat=None, begun=None)
                worker = worker_of(ledger)
            else:
                ledger.settle(worker, [Settlement(*turn[:4], Ending.SUCCEEDED) for turn in turns])
            over.wait()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, [worker_of(ledger) for _ in range(8)]))
    line.close()
    assert (wrong, next(holders) >= 40) == ([], True)
    assert not list(limit_violations(ledger.holdings()))


def claim_and_end(store: PostgresStore, worker: int) -> int:
    turns = store.claim(worker, limit=100, request=uuid4(), floors={})
    said = [Settlement(*turn[:4], Ending.SUCCEEDED, began_at=turn.granted_at) for turn in turns]
    store.settle(worker, said)
    return len(turns)


@pytest.mark.slow
def test_a_hundred_thousand_who_wait_for_one_key_cost_the_others_nothing(
    ledger: PostgresStore, dsn: str
) -> None:
    worker = worker_of(ledger)
    submit(ledger, key="busy")
    (turn,) = claim_all(ledger, worker)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO timeball.job (uuid, lane, kind, args, max_retries, max_crashes,"
            " at_most_once, key) SELECT gen_random_uuid(), 1, 'a', '{}', 3, 3, false,"
            " CASE WHEN n <= 100000 THEN 'busy' ELSE 'key-' || n END"
            " FROM generate_series(1, 101000) AS n"
        )
        connection.execute(
            "INSERT INTO timeball.held (job_id, turn, state, lane, reason, kind, key)"
            " SELECT id, 1, 'pending', 1, 'key', kind, key FROM timeball.job WHERE id > 1"
        )
    explained = Explained(dsn)
    rows, plans = explained.run("promote", {"limit": 1_000, "after": ""})
    assert rows[0][0] == 999  # of the first thousand keys one is busy
    assert max(plan.most_rows() for plan in plans) <= 4_000
    assert not any(plan.scanned() & {"held", "job", "entry", "slot"} for plan in plans)
    rows, plans = explained.run("promote", {"limit": 1_000, "after": rows[0][2]})
    assert rows[0][0] == 1
    _, plans = explained.run("settle", settle_of(worker, turn))
    assert max(plan.most_rows() for plan in plans) <= 10
    _, plans = explained.run("promote", {"limit": 1_000, "after": ""})
    assert max(plan.most_rows() for plan in plans) <= 100
    explained.close()
    assert len(claim_all(ledger, worker)) == 1_001


def test_jobs_without_a_key_in_a_queue_without_a_limit_touch_no_slot(
    ledger: PostgresStore, dsn: str
) -> None:
    worker = worker_of(ledger)
    submit(ledger, 3)
    explained = Explained(dsn)
    ((lane, seq, _),), plans = explained.run("claim", claim_of(worker))
    assert not [plan for plan in plans if "timeball.slot" in plan.query]
    (row, *_) = ledger.connections.run("lease_turns", lane=lane, seq=seq, worker=worker)
    assert not row[-1]
    explained.close()
