"""The law of the windows: every committed entry is granted once, whatever commits when."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from uuid import uuid4

import psycopg
import pytest
from tests.store.postgres.schedules import Schedule, Writer
from tests.store.postgres.sessions import (
    Session,
    claim_all,
    claim_of,
    jobs_json,
    submit,
    until,
    worker_of,
)

from timeball.core.audit import audit
from timeball.core.states import State
from timeball.errors import StoreUnavailable
from timeball.store.postgres import PostgresStore

Make = Callable[[], Session]
SCHEDULES = 300


@pytest.fixture
def writers(dsn: str) -> Iterator[list[Writer]]:
    """Five clients with transactions of their own."""
    found = [Writer(psycopg.connect(dsn, autocommit=True)) for _ in range(5)]
    yield found
    for writer in found:
        writer.connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, SCHEDULES, 50))
def test_every_committed_entry_is_granted_once_in_any_order(
    ledger: PostgresStore, writers: list[Writer], first: int
) -> None:
    for seed in range(first, first + 50):
        schedule = Schedule(ledger, writers, Random(seed), queue=f"q{seed}")
        schedule.run(schedule.random.randint(20, 90))
        schedule.check()


def granted(store: PostgresStore, worker: int) -> int:
    return len(claim_all(store, worker))


def test_a_transaction_older_than_the_first_lease_may_commit_after_fifty(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 5)])
    old, worker = session().begin(), worker_of(ledger)
    old.verb("submit", jobs=jobs_json(3))
    for _ in range(50):
        submit(ledger)
        assert granted(ledger, worker) == 1
    old.verb("submit", jobs=jobs_json(2))
    old.commit()
    assert granted(ledger, worker) == 5
    assert granted(ledger, worker) == 0


def test_a_transaction_that_is_open_at_both_snapshots_is_in_a_later_window(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 5)])
    worker, one, two = worker_of(ledger), session().begin(), session().begin()
    one.verb("submit", jobs=jobs_json(2))
    submit(ledger)
    assert granted(ledger, worker) == 1  # this window ends while `one` is open
    two.verb("submit", jobs=jobs_json(2))
    submit(ledger)
    assert granted(ledger, worker) == 1  # and so does this
    two.commit()
    assert granted(ledger, worker) == 2
    one.commit()
    assert granted(ledger, worker) == 2


def test_the_order_of_numbers_and_of_commits_may_differ(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 5)])
    worker, sessions = worker_of(ledger), [session().begin() for _ in range(4)]
    for one in sessions:
        one.verb("submit", jobs=jobs_json(1))
    for one in (sessions[2], sessions[0], sessions[3], sessions[1]):
        assert granted(ledger, worker) == 0
        one.commit()
        assert granted(ledger, worker) == 1


def test_a_window_read_in_pieces_takes_in_nobody_who_commits_meanwhile(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 5)])
    worker, late = worker_of(ledger), session().begin()
    late.verb("submit", jobs=jobs_json(2))
    early = submit(ledger, 6)
    first = ledger.claim(worker, limit=2, request=uuid4(), floors={})
    late.commit()
    rest = claim_all(ledger, worker)
    assert [turn.uuid for turn in (*first, *rest)][:6] == [spec.uuid for spec in early]
    assert len(rest) == 6


def test_a_transaction_taken_back_leaves_nothing(ledger: PostgresStore, session: Make) -> None:
    ledger.ensure_lanes([("default", 5)])
    one = session().begin()
    one.verb("submit", jobs=jobs_json(2))
    one.run("SAVEPOINT s")
    one.verb("submit", jobs=jobs_json(2))
    one.run("ROLLBACK TO s")
    one.run("RELEASE s")
    other = session().begin()
    other.verb("submit", jobs=jobs_json(7))
    other.rollback()
    one.commit()
    assert granted(ledger, worker_of(ledger)) == 2


def test_a_prepared_transaction_is_found_when_it_commits(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 5)])
    worker, one = worker_of(ledger), session().begin()
    one.verb("submit", jobs=jobs_json(2))
    one.run("PREPARE TRANSACTION 'timeball-test'")
    for _ in range(3):
        submit(ledger)
        assert granted(ledger, worker) == 1
    one.run("COMMIT PREPARED 'timeball-test'")
    assert granted(ledger, worker) == 2


def test_a_lane_made_by_an_open_transaction_appears_with_its_jobs(
    ledger: PostgresStore, session: Make
) -> None:
    one, worker = session().begin(), worker_of(ledger, "new")
    one.run("SELECT timeball.ensure_lane('new', 5)")
    one.verb("submit", jobs=jobs_json(2, queue="new"))
    assert granted(ledger, worker) == 0
    one.commit()
    assert granted(ledger, worker) == 2


def test_lanes_are_read_by_priority_whatever_commits_first(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", priority) for priority in (1, 5, 9)])
    one, worker = session().begin(), worker_of(ledger)
    one.verb("submit", jobs=jobs_json(1, priority=9))
    low = submit(ledger, 1, priority=1) + submit(ledger, 1, priority=5)
    one.commit()
    kinds = [turn.uuid for turn in claim_all(ledger, worker)]
    assert kinds[1:] == [low[1].uuid, low[0].uuid]


def test_what_was_granted_is_running_also_while_the_cursor_is_far_behind_it(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 5)])
    worker, late = worker_of(ledger), session().begin()
    old = [uuid4() for _ in range(2)]
    late.verb("submit", jobs=jobs_json(0, old))
    running = [spec.uuid for spec in submit(ledger, 3)]
    assert granted(ledger, worker) == 3
    late.commit()
    pending = [old[1], submit(ledger)[0].uuid]
    (turn,) = ledger.claim(worker, limit=1, request=uuid4(), floors={})
    running.append(turn.uuid)
    assert turn.uuid == old[0]  # its number is below those of all that run already
    states = {uuid: ledger.get(uuid).state for uuid in [*running, *pending]}
    assert states == {**dict.fromkeys(running, "running"), **dict.fromkeys(pending, "pending")}
    assert {ledger.cancel(uuid) for uuid in running} == {"requested"}
    assert {ledger.cancel(uuid) for uuid in pending} == {"cancelled"}
    assert granted(ledger, worker) == 0


@pytest.mark.slow
def test_a_transaction_with_many_uncommitted_entries_is_not_walked(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 5)])
    worker, long, reader = worker_of(ledger), session().begin(), session()
    submit(ledger)
    long.verb("submit", jobs=jobs_json(20_000))
    costs = []
    for _ in range(3):
        submit(ledger, 2)
        before = fetched(reader)
        assert reader.verb("claim", **claim_of(worker)) != [(None, None, None)]
        costs.append(fetched(reader) - before)
    assert max(costs) <= 10
    long.rollback()


def test_many_entries_taken_back_are_walked_once_also_under_an_old_snapshot(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 5)])
    worker, one, old = worker_of(ledger), session(), session()
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    old.run("SELECT count(*) FROM timeball.job")
    one.begin().verb("submit", jobs=jobs_json(2_000))
    one.rollback()
    costs = []
    for _ in range(4):
        before = fetched(one)
        assert one.verb("claim", **claim_of(worker)) == [(None, None, None)]
        costs.append(fetched(one) - before)
    old.rollback()
    assert max(costs[1:]) <= 10


def fetched(session: Session) -> int:
    """Entries read through their index, dead and invisible ones too, by this session so far."""
    session.run("SELECT pg_stat_force_next_flush()")
    rows = session.run(
        "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'entry_order'"
    )
    return int(rows[0][0])


@pytest.mark.slow
def test_threads_that_submit_and_claim_beside_a_long_transaction_lose_nothing(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 3), ("default", 5)])
    long = session().begin()
    long.verb("submit", jobs=jobs_json(2_000))
    stop, found = threading.Event(), []

    def submitting(seed: int) -> int:
        random, count = Random(seed), 0
        while count < 1_500:
            count += len(submit(ledger, random.randint(1, 40), priority=random.choice((3, 5))))
        return count

    def claiming(worker: int) -> None:
        random = Random(worker)
        while True:
            last = stop.is_set()  # read before the claim: what came before it is then seen
            try:
                turns = ledger.claim(
                    worker, limit=random.randint(1, 100), request=uuid4(), floors={}
                )
            except StoreUnavailable:
                continue
            found.extend(turn.uuid for turn in turns)
            if last and not turns:
                return

    with ThreadPoolExecutor(7) as pool:
        workers = [worker_of(ledger) for _ in range(3)]
        claims = [pool.submit(claiming, worker) for worker in workers]
        submits = [pool.submit(submitting, seed) for seed in range(4)]
        total = sum(each.result() for each in submits)
        until(lambda: len(found) >= total, "all but the long one's are granted")
        long.commit()
        stop.set()
        for each in claims:
            each.result()
    assert len(found) == len(set(found)) == total + 2_000
    assert not audit(ledger.histories(), quiesced=False).violations
    assert ledger.counts() == {State.RUNNING: total + 2_000}
