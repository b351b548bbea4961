"""What PostgreSQL does that surprises, shown on scratch tables; and that ours are not caught."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from uuid import uuid4

import psycopg
import pytest
from tests.store.postgres.plans import Explained
from tests.store.postgres.sessions import (
    Session,
    claim_all,
    jobs_json,
    settle_of,
    submit,
    until,
    worker_of,
)

from timeball.action.context import Context, StopSign
from timeball.core.records import JobSpec, Settlement, Turn
from timeball.core.states import Ending, State
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import Connections

Make = Callable[[], Session]


@pytest.fixture
def scratch(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection, and a schema that is gone afterwards."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA scratch")
        yield connection
        connection.execute("DROP SCHEMA scratch CASCADE")


# 1: a LIMIT in a subquery is evaluated again and again

TAKE = "UPDATE scratch.t SET taken = true WHERE id IN ({}) RETURNING id"
FREE = "SELECT id FROM scratch.t WHERE NOT taken ORDER BY id LIMIT 2 FOR UPDATE SKIP LOCKED"


def test_a_limit_within_in_may_take_more_and_a_materialized_one_does_not(
    scratch: psycopg.Connection,
) -> None:
    fill = "INSERT INTO scratch.t SELECT id FROM generate_series(1, 9) AS id"
    scratch.execute("CREATE TABLE scratch.t (id integer PRIMARY KEY, taken bool DEFAULT false)")
    scratch.execute(fill)
    scratch.execute("ANALYZE scratch.t")
    for plan in ("hashjoin", "mergejoin", "hashagg", "sort", "material", "memoize"):
        scratch.execute(f"SET enable_{plan} = off")
    assert len(scratch.execute(TAKE.format(FREE)).fetchall()) > 2
    scratch.execute("TRUNCATE scratch.t")
    scratch.execute(fill)
    once = f"WITH free AS MATERIALIZED ({FREE}) " + TAKE.format("SELECT id FROM free")
    assert len(scratch.execute(once).fetchall()) == 2


# 2 and 3: parents that end together, and an edge that is added while its parent ends

CHILDREN = (
    "CREATE TABLE scratch.job (id integer PRIMARY KEY, state text, unmet integer)",
    "CREATE TABLE scratch.edge (child integer, parent integer)",
    "INSERT INTO scratch.job VALUES (1, 'running', 0), (2, 'running', 0), (3, 'waiting', 2)",
    "INSERT INTO scratch.edge VALUES (3, 1), (3, 2)",
)
DONE = "UPDATE scratch.job SET state = 'done' WHERE id = %s"
BY_READING = """UPDATE scratch.job SET state = 'pending' WHERE id = 3 AND NOT EXISTS (
    SELECT FROM scratch.edge JOIN scratch.job AS p ON p.id = edge.parent
    WHERE edge.child = 3 AND p.state <> 'done')"""
BY_COUNTING = """UPDATE scratch.job SET unmet = unmet - 1,
    state = CASE WHEN unmet = 1 THEN 'pending' ELSE state END WHERE id = 3"""


@pytest.mark.parametrize(("release", "state"), [(BY_READING, "waiting"), (BY_COUNTING, "pending")])
def test_parents_that_end_together_are_missed_by_reading_them_again_and_not_by_counting(
    scratch: psycopg.Connection, session: Make, release: str, state: str
) -> None:
    for text in CHILDREN:
        scratch.execute(text)
    one, two = session().begin(), session().begin()
    one.run(DONE, [1])
    two.run(DONE, [2])
    one.run(release)
    if release is BY_READING:
        two.run(release)
        one.commit()
    else:
        two.blocks(release)
        one.commit()
        two.answer()
    two.commit()
    assert scratch.execute("SELECT state FROM scratch.job WHERE id = 3").fetchone() == (state,)


@pytest.mark.parametrize("lock", ["", "FOR KEY SHARE"])
def test_an_edge_that_is_added_while_its_parent_ends_is_missed_without_a_stronger_lock(
    scratch: psycopg.Connection, session: Make, lock: str
) -> None:
    for text in CHILDREN[:3]:
        scratch.execute(text)
    one, two = session().begin(), session().begin()
    one.run(DONE, [1])
    released = one.run("SELECT child FROM scratch.edge WHERE parent = 1")
    seen = two.run(f"SELECT state FROM scratch.job WHERE id = 1 {lock}")
    two.run("INSERT INTO scratch.edge VALUES (3, 1)")
    one.commit()
    two.commit()
    assert (released, seen) == ([], [("running",)])


@pytest.mark.parametrize("statements", [1, 2])
def test_an_edge_is_seen_only_by_a_later_statement_than_the_one_that_waited(
    scratch: psycopg.Connection, session: Make, statements: int
) -> None:
    for text in CHILDREN[:3]:
        scratch.execute(text)
    one, two = session().begin(), session().begin()
    two.run("SELECT state FROM scratch.job WHERE id = 1 FOR SHARE")
    two.run("INSERT INTO scratch.edge VALUES (3, 1)")
    edges = "SELECT child FROM scratch.edge WHERE parent = 1"
    both = f"WITH done AS ({DONE} RETURNING id) {edges} AND EXISTS (SELECT FROM done)"
    one.blocks(both if statements == 1 else DONE, [1])
    two.commit()
    seen = one.answer()
    if statements == 2:
        seen = one.run(edges)
    one.commit()
    assert seen == ([] if statements == 1 else [(3,)])


# 4: in a session that a proxy lends to one client after the other, nothing is one client's own


def test_clients_that_share_a_session_share_its_locks_settings_and_statements(
    session: Make,
) -> None:
    """Each line is another client, as a pooling proxy would have it."""
    shared = session()
    try:
        assert shared.run("SELECT pg_try_advisory_lock(4, 4)") == [(True,)]
        assert shared.run("SELECT pg_try_advisory_lock(4, 4)") == [(True,)], "granted to two"
        shared.run("SET application_name = 'mine'")
        assert shared.run("SHOW application_name") == [("mine",)]
        shared.run("PREPARE mine AS SELECT 1")
        with pytest.raises(psycopg.Error, match="already exists"):
            shared.run("PREPARE mine AS SELECT 2")
        shared.run("LISTEN mine")
        assert shared.run("SELECT * FROM pg_listening_channels()") == [("mine",)]
    finally:
        shared.connection.close()


SESSION = (
    r"\bpg_(try_)?advisory_lock",
    r"\bset_config\([^()]*,\s*false\)",
    r"(?m)^\s*SET\s+(?!TRANSACTION|CONSTRAINTS|LOCAL|\w+ = )",
    r"(?i)\b(prepare|temp|temporary|declare \w+ cursor)\b (?!transaction)",
    r"(?m)^\s*LISTEN\b",
)


def test_nothing_of_ours_needs_a_session_but_the_listener() -> None:
    folder = files("timeball.store.postgres")
    found = {
        path.name
        for kind in ("sql", "functions", "migrations")
        for path in (folder / kind).iterdir()
        for text in [re.sub(r"--.*", "", path.read_text("utf-8"))]
        if any(re.search(state, text) for state in SESSION)
    }
    assert found == {"listen.sql"}


def test_no_statement_is_prepared_by_itself(dsn: str) -> None:
    connections = Connections(dsn)
    with connections.borrowed() as connection:
        assert connection.prepare_threshold is None
    connections.close()


# 5: after a failover numbers are given again (test_failover.py promotes a standby)


def test_a_number_that_was_given_may_come_again_and_a_uuid_may_not(
    ledger: PostgresStore, session: Make
) -> None:
    """What a standby has not heard of is as if it had never been: here it is taken back."""
    submit(ledger)
    one = session()
    ((last,),) = one.run("SELECT last_value FROM timeball.job_id_seq")
    uuids = set()
    for _ in range(2):
        one.begin()
        (job,) = one.verb("submit", jobs=jobs_json(1))
        one.rollback()
        uuids.add(job[1])
        one.run("SELECT setval('timeball.job_id_seq', %s)", [last])
        assert job[0] == last + 1
    assert len(uuids) == 2


def test_what_a_job_gives_to_others_is_made_of_its_uuid_alone(ledger: PostgresStore) -> None:
    submit(ledger)
    (turn,) = claim_all(ledger, worker_of(ledger))

    def key(turn: Turn) -> str:
        given = {"timeout_s": None, "occurrence": None, "monotonic": lambda: 0.0}
        return Context(turn, StopSign(), **given).key

    assert key(turn) == key(turn._replace(job_id=7, turn=8, lane=9)) == str(turn.uuid)


# 9: what JSON may say and jsonb cannot hold


@pytest.mark.parametrize(
    ("text", "state"),
    [
        (r'"\u0000"', "22P05"),
        (r'"\ud800"', "22P02"),
        ("NaN", "22P02"),
        ("1e400000", "22003"),
    ],
)
def test_what_jsonb_cannot_hold_is_refused_whole(
    ledger: PostgresStore, text: str, state: str
) -> None:
    good = JobSpec(uuid=uuid4(), kind="a")
    bad = JobSpec(uuid=uuid4(), kind="a", args=f'{{"x":{text}}}')
    with pytest.raises(psycopg.DataError) as caught:
        ledger.submit([good, bad])
    assert caught.value.sqlstate == state
    assert ledger.counts() == {}


# 10: a clock that an index can use

SLOW_CLOCK = """CREATE FUNCTION scratch.now() RETURNS timestamptz LANGUAGE plpgsql VOLATILE
AS 'BEGIN RETURN statement_timestamp(); END'"""


def explain(connection: psycopg.Connection, clock: str) -> str:
    rows = connection.execute(
        f"EXPLAIN SELECT * FROM timeball.held WHERE state = 'scheduled' AND run_at <= {clock}"
    )
    return "\n".join(row[0] for row in rows)


def test_our_clock_is_inlined_into_the_index_condition(scratch: psycopg.Connection) -> None:
    scratch.execute(SLOW_CLOCK)
    scratch.execute("SET enable_seqscan = off")
    scratch.execute("SET enable_bitmapscan = off")
    ours, slow = explain(scratch, "timeball.now()"), explain(scratch, "scratch.now()")
    assert "Index Cond: (run_at <= COALESCE(" in ours
    assert "Index Cond" not in slow


# 11: dead rows under an old snapshot


@pytest.mark.slow
@pytest.mark.parametrize("writes", [False, True])
def test_a_claim_costs_the_same_under_an_old_snapshot_and_an_open_write_transaction(
    ledger: PostgresStore, session: Make, dsn: str, *, writes: bool
) -> None:
    old, explained, watcher, writer = session(), Explained(dsn), session(), session()
    query = (
        "SELECT sum(n_tup_upd + n_tup_del) FROM pg_stat_user_tables"
        " WHERE relname IN ('job', 'entry', 'ended', 'lease') AND schemaname = 'timeball'"
    )
    before = watcher.run(query)  # of other tests, some of which delete
    submit(ledger)
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    old.run("SELECT count(*) FROM timeball.job")
    worker, costs = worker_of(ledger), []
    if writes:
        writer.begin().verb("submit", jobs=jobs_json(1_000))
    for _ in range(12):
        submit(ledger, 20)
        params = {
            "worker": worker,
            "limit": 20,
            "request": uuid4(),
            "newest": None,
            "aging_s": 10.0,
            "permits": "{}",
        }
        params |= {"lanes": [], "floors": []}
        _, plans = explained.run("claim", params)
        costs.append(plans[-1].blocks)
        for turn in claim_all(ledger, worker):
            ledger.connections.run("settle", **settle_of(worker, turn))
    old.rollback()
    explained.close()
    assert max(costs[6:]) <= max(costs[1:6]) + 10
    assert watcher.run(query) == before
    if writes:
        writer.commit()
        assert len(claim_all(ledger, worker)) == 1_000, "what came late is granted, each job once"


# 12: one notification per submit and queue


def test_a_submit_wakes_once_per_queue(ledger: PostgresStore, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as ear:
        ear.execute("LISTEN timeball_wake")
        worker_of(ledger, "x", "y", "last", "later")
        ledger.submit(
            [JobSpec(uuid=uuid4(), kind="a", queue=queue) for queue in ("x", "y", "x", "y", "x")]
        )
        ledger.submit([JobSpec(uuid=uuid4(), kind="a", queue="later", delay_s=60.0)])
        ledger.submit([JobSpec(uuid=uuid4(), kind="a", queue="last")])
        heard = []
        until(lambda: heard.extend(ear.notifies(timeout=0.05)) or "last" in str(heard), "the last")
    assert sorted(each.payload for each in heard) == ["last", "x", "y"]


# 13: a snapshot does not contain the transaction that takes it


def test_what_a_transaction_wrote_is_not_in_its_own_snapshot(session: Make) -> None:
    one = session().begin()
    one.run("SELECT pg_current_xact_id()")
    seen = one.run("SELECT pg_visible_in_snapshot(pg_current_xact_id(), pg_current_snapshot())")
    assert seen == [(False,)]
    one.rollback()


def test_jobs_of_an_open_transaction_are_not_lost_to_its_own_claim(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 5)])
    worker, one = worker_of(ledger), session().begin()
    one.verb("submit", jobs=jobs_json(2))
    with pytest.raises(psycopg.Error, match="runs alone"):
        one.run("SELECT timeball.claim(%s, 5, gen_random_uuid(), '{}', '{}')", [worker])
    one.rollback()
    one.begin().verb("submit", jobs=jobs_json(2))
    one.commit()
    assert len(claim_all(ledger, worker)) == 2


# 14: a lock is held while the answer is sent


@pytest.mark.slow
def test_a_lock_is_held_until_a_long_answer_is_read(session: Make, dsn: str) -> None:
    deaf, one = psycopg.connect(dsn, autocommit=True), session()
    deaf.pgconn.send_query(b"SELECT repeat('x', 60000000), pg_advisory_xact_lock(7, 7)")
    wait = "SELECT wait_event FROM pg_stat_activity WHERE pid = %s"
    pid = deaf.info.backend_pid
    until(lambda: one.run(wait, [pid]) == [("ClientWrite",)], "it waits for its client")
    assert one.run("SELECT pg_try_advisory_xact_lock(7, 7)") == [(False,)]
    deaf.close()


# 15: whoever waited for a lock may still read what was before


@pytest.mark.parametrize(("isolation", "seen"), [("REPEATABLE READ", 0), ("READ COMMITTED", 1)])
def test_after_waiting_for_a_lock_only_read_committed_sees_what_was_done(
    scratch: psycopg.Connection, session: Make, isolation: str, seen: int
) -> None:
    scratch.execute("CREATE TABLE scratch.done (n integer)")
    one, two = session().begin(), session()
    one.run("SELECT pg_advisory_xact_lock(8, 8)")
    two.run(f"BEGIN ISOLATION LEVEL {isolation}")
    two.blocks("SELECT pg_advisory_xact_lock(8, 8)")
    one.run("INSERT INTO scratch.done VALUES (1)")
    one.commit()
    two.answer()
    assert two.run("SELECT count(*) FROM scratch.done") == [(seen,)]
    two.rollback()


# Not numbered: waits that no clock can hold


@pytest.mark.parametrize("delay_s", [1e300, float("inf"), float("nan"), -1e300])
def test_an_impossible_wait_harms_no_other(ledger: PostgresStore, delay_s: float) -> None:
    submit(ledger, 3)
    worker = worker_of(ledger)
    turns = claim_all(ledger, worker)
    said = [Settlement(*turn[:4], Ending.SUCCEEDED, began_at=turn.granted_at) for turn in turns]
    said[1] = said[1]._replace(ending=Ending.SNOOZED, delay_s=delay_s)
    assert ledger.settle(worker, said) == ["accepted"] * 3
    assert ledger.counts() == {State.SUCCEEDED: 2, State.SCHEDULED: 1}
