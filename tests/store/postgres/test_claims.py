"""What a claim waits for, what waits for it, and what it never costs."""

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
    submit,
    until,
    worker_of,
)

from timeball.core.states import State
from timeball.errors import UsageError, WorkerExpired
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import statement

Make = Callable[[], Session]
CLAIM_LOCKS = {"AccessShareLock", "RowShareLock", "RowExclusiveLock"}


def test_a_claim_in_a_transaction_that_has_written_raises_and_grants_nothing(
    ledger: PostgresStore, session: Make
) -> None:
    submit(ledger)
    worker = worker_of(ledger)
    one = session().begin()
    one.run("SELECT pg_current_xact_id()")
    with pytest.raises(psycopg.Error, match="runs alone"):
        one.verb("claim", **claim_of(worker))
    one.rollback()
    assert ledger.counts() == {State.PENDING: 1}


@pytest.mark.parametrize("isolation", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("verb", ["claim", "expire", "cancel"])
def test_a_verb_that_decides_under_a_lock_raises_unless_read_committed(
    ledger: PostgresStore, session: Make, isolation: str, verb: str
) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    params = {"claim": claim_of(worker), "expire": expire_of(worker), "cancel": {"uuid": spec.uuid}}
    one = session()
    one.run(f"BEGIN ISOLATION LEVEL {isolation}")
    with pytest.raises(psycopg.Error, match="READ COMMITTED"):
        one.verb(verb, **params[verb])
    one.rollback()
    assert ledger.counts() == {State.PENDING: 1}
    assert len(ledger.pulses()) == 1


def test_the_same_request_twice_at_once_gives_one_lease(
    ledger: PostgresStore, session: Make
) -> None:
    submit(ledger, 5)
    worker, request = worker_of(ledger), uuid4()
    one, two = session().begin(), session()
    first = one.verb("claim", **claim_of(worker, 3, request))
    two.verb_blocks("claim", **claim_of(worker, 3, request))
    one.commit()
    assert two.answer() == first
    assert ledger.counts() == {State.RUNNING: 3, State.PENDING: 2}


def test_the_same_request_twice_at_once_is_not_told_that_there_is_nothing(
    ledger: PostgresStore, session: Make
) -> None:
    """Or the turns of the first, whose answer was lost, would be with nobody."""
    submit(ledger, 5)
    worker, request = worker_of(ledger), uuid4()
    one, two = session().begin(), session()
    first = one.verb("claim", **claim_of(worker, 5, request))
    two.verb_blocks("claim", **claim_of(worker, 5, request))
    one.commit()
    assert two.answer() == first != [(None, None, None)]


def test_the_same_request_twice_at_once_finds_the_first_in_a_later_lane(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 9), ("default", 5)])
    submit(ledger, 2)
    worker, request = worker_of(ledger), uuid4()
    one, two = session().begin(), session()
    first = one.verb("claim", **claim_of(worker, 5, request))
    two.verb_blocks("claim", **claim_of(worker, 5, request))
    one.commit()
    assert two.answer() == first


def test_two_claimers_of_a_lane_wait_for_its_lock_only_and_only_until_the_commit(
    ledger: PostgresStore, session: Make
) -> None:
    submit(ledger, 4)
    one, two = session().begin(), session()
    one.verb("claim", **claim_of(worker_of(ledger), 2))
    two.verb_blocks("claim", **claim_of(worker_of(ledger), 2))
    waits = session().run(
        "SELECT locktype, mode FROM pg_locks WHERE pid = %s AND NOT granted", [two.pid]
    )
    assert waits == [("advisory", "ExclusiveLock")]
    assert two.blockers() == [one.pid]
    one.commit()
    two.answer()
    assert ledger.counts() == {State.RUNNING: 4}


def test_claimers_of_other_lanes_do_not_wait(ledger: PostgresStore, session: Make) -> None:
    submit(ledger, queue="x")
    submit(ledger, queue="y")
    one, two = session().begin(), session().begin()
    assert one.verb("claim", **claim_of(worker_of(ledger, "x"))) != [(None, None, None)]
    assert two.verb("claim", **claim_of(worker_of(ledger, "y"))) != [(None, None, None)]
    one.commit()
    two.commit()


def test_a_claim_takes_no_strong_relation_lock(ledger: PostgresStore, session: Make) -> None:
    submit(ledger, 4)
    one = session().begin()
    one.verb("claim", **claim_of(worker_of(ledger), 2))
    modes = session().run(
        "SELECT DISTINCT mode FROM pg_locks WHERE pid = %s AND locktype = 'relation'", [one.pid]
    )
    assert {mode for (mode,) in modes} <= CLAIM_LOCKS
    one.commit()


def test_a_claim_that_finds_nothing_writes_nothing(ledger: PostgresStore, session: Make) -> None:
    """No transaction number, no WAL, no flush: a thousand idle workers cost nothing."""
    submit(ledger)
    worker, one = worker_of(ledger), session()
    claim_all(ledger, worker)
    one.begin()
    assert one.verb("claim", **claim_of(worker)) == [(None, None, None)]
    assert one.verb("promote", limit=10, after="") == [(0, None, "", [], False)]
    assert one.run("SELECT pg_current_xact_id_if_assigned()") == [(None,)]
    one.commit()


def test_a_client_that_does_not_read_does_not_hold_the_lane(
    ledger: PostgresStore, session: Make, dsn: str
) -> None:
    submit(ledger, 2_000, queue="q" * 200)
    worker = worker_of(ledger, "q" * 200)
    deaf, watcher = psycopg.connect(dsn, autocommit=True), session()
    params = [b"%d" % worker, b"1000", str(uuid4()).encode(), b"{}", b"{}"]
    text = "SELECT * FROM timeball.claim($1, $2, $3, $4, $5)"
    deaf.pgconn.send_query_params(text.encode(), params)
    pid = deaf.info.backend_pid
    state = "SELECT state, query = %s FROM pg_stat_activity WHERE pid = %s"
    until(lambda: watcher.run(state, [text, pid]) == [("idle", True)], "the claim has let go")
    assert watcher.verb("claim", **claim_of(worker_of(ledger, "q" * 200))) != [(None, None, None)]
    deaf.close()
    assert ledger.counts() == {State.RUNNING: 2_000}


def test_a_worker_is_not_given_up_in_the_middle_of_a_claim(
    ledger: PostgresStore, session: Make
) -> None:
    """Or the lease of a worker that nobody watches any more would be lost."""
    submit(ledger, 3)
    worker = worker_of(ledger)
    one, two = session().begin(), session()
    one.verb("claim", **claim_of(worker, 2))
    two.verb_blocks("expire", **expire_of(worker))
    one.commit()
    assert two.answer() == [(0, 2, 0, 0)]
    assert ledger.counts() == {State.PENDING: 3}


def test_a_worker_given_up_just_now_gets_nothing(ledger: PostgresStore, session: Make) -> None:
    submit(ledger, 3)
    worker = worker_of(ledger)
    one, two = session().begin(), session()
    one.verb("expire", **expire_of(worker))
    two.verb_blocks("claim", **claim_of(worker))
    one.commit()
    with pytest.raises(psycopg.Error, match="given up"):
        two.answer()
    with pytest.raises(WorkerExpired):
        ledger.claim(worker, limit=1, request=uuid4(), floors={})
    assert ledger.counts() == {State.PENDING: 3}


def test_a_claim_does_not_hold_up_the_beat(ledger: PostgresStore, session: Make) -> None:
    submit(ledger)
    worker = worker_of(ledger)
    one, two = session().begin(), session()
    one.verb("claim", **claim_of(worker))
    assert two.verb("beat", workers=[worker]) == [(worker,)]
    one.commit()


def test_a_worker_that_beats_meanwhile_is_not_given_up(
    ledger: PostgresStore, session: Make
) -> None:
    worker = worker_of(ledger)
    one, two = session().begin(), session()
    one.verb("beat", workers=[worker])
    two.verb_blocks("expire", **expire_of(worker, beat=0))
    one.commit()
    assert two.answer() == []
    assert len(ledger.pulses()) == 1


def test_a_worker_whose_answer_was_lost_is_heard_again(ledger: PostgresStore) -> None:
    specs = submit(ledger, 3)
    worker, request = worker_of(ledger), uuid4()
    ledger.connections.run("claim", **claim_of(worker, 3, request))
    turns = ledger.claim(worker, limit=3, request=request, floors={})
    assert [turn.uuid for turn in turns] == [spec.uuid for spec in specs]


def test_the_leases_of_an_idle_worker_are_not_walked_when_it_leaves(
    ledger: PostgresStore, session: Make
) -> None:
    """A lane without a floor has no open turn below this lease."""
    worker = worker_of(ledger)
    for _ in range(3):
        submit(ledger)
        ledger.claim(worker, limit=1, request=uuid4(), floors={})
    floors = session().run("SELECT seq, floor FROM timeball.lease ORDER BY seq")
    assert floors == [(1, 1), (2, 2), (3, 3)]


def test_cancelled_entries_are_walked_once_in_bounded_steps(
    ledger: PostgresStore, session: Make
) -> None:
    one = session()
    ledger.ensure_lanes([("default", 5)])
    one.run("SELECT count(*) FROM timeball.submit(%s::jsonb)", [jobs_json(2_000)])
    one.run(
        "INSERT INTO timeball.ended (job_id, turn, event)"
        " SELECT job_id, turn, 'cancelled' FROM timeball.entry"
    )
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    seen = []
    while True:
        before = read(one)
        lane, seq, _ = one.verb("claim", **claim_of(worker, 100))[0]
        seen.append(read(one) - before)
        if turns := ledger.connections.run("lease_turns", lane=lane, seq=seq, worker=worker):
            break
    assert [turn[2] for turn in turns] == [spec.uuid]
    assert 5 <= len(seen) <= 10
    assert max(seen) <= 400
    assert ledger.claim(worker, limit=100, request=uuid4(), floors={}) == []


def read(session: Session) -> int:
    """How many entries this session has read from the table so far."""
    session.run("SELECT pg_stat_force_next_flush()")
    session.run("SELECT 1")
    return session.run("SELECT idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'entry'")[0][
        0
    ]


def test_the_limit_of_a_claim_is_checked_before_it_is_sent(ledger: PostgresStore) -> None:
    with pytest.raises(UsageError, match="1 to 1,000"):
        ledger.claim(1, limit=0, request=uuid4(), floors={})


def test_no_statement_of_a_claim_is_prepared(ledger: PostgresStore) -> None:
    """Behind a pooling proxy prepared statements collide."""
    submit(ledger, 12)
    worker = worker_of(ledger)
    for _ in range(8):
        ledger.claim(worker, limit=1, request=uuid4(), floors={})
    with ledger.connections.borrowed() as connection:
        assert connection.execute("SELECT name FROM pg_prepared_statements").fetchall() == []
    assert "PREPARE" not in statement("claim").upper()


@pytest.mark.parametrize(("set_to", "committed"), [("off", "on"), ("remote_apply",) * 2])
@pytest.mark.parametrize("verb", ["submit", "claim", "cancel", "expire"])
def test_what_must_not_be_forgotten_is_durable_even_where_other_commits_are_not(
    ledger: PostgresStore, session: Make, verb: str, set_to: str, committed: str
) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    params = {"claim": claim_of(worker), "expire": expire_of(worker), "cancel": {"uuid": spec.uuid}}
    one = session()
    one.run(f"SET synchronous_commit = {set_to}")
    one.begin()
    one.verb(verb, **params.get(verb, {"jobs": jobs_json(1)}))
    assert one.run("SHOW synchronous_commit") == [(committed,)]
    one.commit()
    assert one.run("SHOW synchronous_commit") == [(set_to,)]
