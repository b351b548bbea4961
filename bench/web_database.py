"""A database with a life behind it, for `web.py`: millions of jobs, and of all else the worst.

The worst that pages draw whole: a batch of 490 jobs with 10 layers of edges, and one of 3,000 that
are counted; a schedule with a long past, a long record of changes, limits of every kind with rates,
the runs of certify.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import Connection

from timeball.certify.results import Run, document
from timeball.certify.scenario import Outcome, Profile, Result, Scenario, Status
from timeball.client import Client
from timeball.core.records import Settlement
from timeball.core.states import Ending
from timeball.store.postgres import PostgresStore

CHUNK = 500_000
QUEUES, KINDS, WORKERS = 20, 37, 4
LAYERS, LAYER, COUNTED = 10, 49, 3_000
RUNS, SCENARIOS = 25, 30

# Every 1,000th job is of a kind of its own, far back; one in 100 failed, one in ten was retried.
JOBS = """INSERT INTO timeball.job (uuid, lane, kind, args, max_retries, max_crashes, at_most_once)
SELECT gen_random_uuid(), 1 + g % {queues},
    CASE WHEN g BETWEEN 10 AND 12 THEN 'rare.kind' ELSE 'kind.' || g % {kinds} END,
    jsonb_build_object('user', g), 3, 3, false
FROM generate_series(%(low)s::bigint, %(high)s) AS g ORDER BY g"""
ENTRIES = """INSERT INTO timeball.entry (lane, job_id)
SELECT lane, id FROM timeball.job WHERE id BETWEEN %(low)s AND %(high)s ORDER BY id"""
AGAIN = """INSERT INTO timeball.entry (lane, job_id, turn, attempts, failures, crashes, delay_s)
SELECT lane, id, 2, 1, 1, 0, 1.0 FROM timeball.job
WHERE id BETWEEN %(low)s AND %(high)s AND id % 10 = 5"""
ENDED = """INSERT INTO timeball.ended
    (job_id, turn, event, began_at, ran_s, worker, result, error_type, error, at)
SELECT entry.job_id, entry.turn, each.event, each.at, 0.1, 1 + entry.job_id % {workers},
    CASE WHEN each.event = 'succeeded' THEN '7'::jsonb END,
    CASE WHEN each.event IN ('failed', 'retried') THEN 'OSError' END,
    CASE WHEN each.event IN ('failed', 'retried') THEN 'connection reset' END, each.at
FROM timeball.entry
CROSS JOIN LATERAL (SELECT CASE
        WHEN entry.job_id % 10 = 5 AND entry.turn = 1 THEN 'retried'
        WHEN entry.job_id % 100 = 0 THEN 'failed'
        WHEN entry.job_id % 997 = 0 THEN 'cancelled' ELSE 'succeeded' END AS event,
    now() - make_interval(secs => (%(all)s - entry.job_id) / 1000.0) AS at) AS each
WHERE entry.job_id BETWEEN %(low)s AND %(high)s AND entry.job_id <= %(all)s - 40
ORDER BY 1, 2"""
LEASES = """INSERT INTO timeball.lease
    (lane, seq, worker, request, floor, prev, cur, pos_xid, pos_id, job_ids, turns)
SELECT lane, seq, 1 + seq % {workers}, gen_random_uuid(), seq, %(prev)s::pg_snapshot,
    %(cur)s::pg_snapshot, (array_agg(xid ORDER BY job_id DESC, turn DESC))[1], max(job_id),
    array_agg(job_id ORDER BY job_id, turn), array_agg(turn ORDER BY job_id, turn)
FROM (SELECT entry.*, 1 + (entry.job_id - 1) / 20000 AS seq FROM timeball.entry
    WHERE job_id BETWEEN %(low)s AND %(high)s) AS granted
GROUP BY lane, seq"""
FINISHED = ((JOBS, ENTRIES), (AGAIN, ENDED))  # two transactions, as an attempt that fails has
FAST = ("fsync = off", "full_page_writes = off", "max_wal_size = '8GB'", "autovacuum = off")
WIDE = (
    "SELECT timeball.ensure_lane('wide.' || g, 5) FROM generate_series(1, %(n)s) AS g",
    """INSERT INTO timeball.limiter (scope, name, at_once)
    SELECT 'key', 'customer:' || g, 5 FROM generate_series(1, %(n)s) AS g""",
)

WORST = (
    """INSERT INTO timeball.operation (who, origin, what, target, before, after, ended_at)
    SELECT 'ops', '10.0.0.8', 'job.cancel', 'job ' || g, '{"state": "pending"}',
        '{"answer": "cancelled"}', now() FROM generate_series(1, 100000) AS g""",
    """INSERT INTO timeball.occurrence (schedule_id, nominal_at, decision, job_id)
    SELECT id, timestamptz '2020-01-01 UTC' + make_interval(mins => g), 'fired', g
    FROM timeball.schedule CROSS JOIN generate_series(1, 500000) AS g WHERE name = 'schedule.0'""",
    """INSERT INTO timeball.limiter (scope, name, starts, window_us, since)
    VALUES ('queue', 'queue.3', 100, 1000000, '-infinity'),
        ('kind', 'kind.1', 100, 1000000, '-infinity'), ('key', '*', 5, 60000000, '-infinity')""",
    "ANALYZE timeball.operation, timeball.occurrence, timeball.limiter",
)


def fill(store: PostgresStore, finished: int, pending: int) -> None:
    """Fill the empty tables."""
    with psycopg.connect(store.connections.dsn, autocommit=True) as connection:
        for setting in FAST:
            connection.execute(f"ALTER SYSTEM SET {setting}")
        connection.execute("SELECT pg_reload_conf()")
        names = [f"queue.{n}" for n in range(QUEUES)]
        for name in names:
            connection.execute("SELECT timeball.ensure_lane(%s, 5)", [name])
        kinds = [f"kind.{n}" for n in range(KINDS)]
        for n in range(WORKERS):
            connection.execute("SELECT timeball.register(%s, %s, %s, 9e6)", [f"w{n}", kinds, names])
        prev = snapshot(connection)
        for low in range(1, finished + 1, CHUNK):
            prev = finish(connection, low, min(low + CHUNK - 1, finished), finished, prev)
        with connection.transaction():
            for text in (JOBS, ENTRIES):
                run(connection, text, low=finished + 1, high=finished + pending)
        connection.execute("VACUUM ANALYZE")


def finish(connection: Connection[Any], low: int, high: int, last: int, prev: str) -> str:
    """Add jobs that have ended, and the leases that granted them; return the snapshot of these."""
    for texts in FINISHED:
        with connection.transaction():
            for text in texts:
                run(connection, text, low=low, high=high, all=last)
    cur = snapshot(connection)
    run(connection, LEASES, low=low, high=high, prev=prev, cur=cur)
    print(f"{high:,} finished", file=sys.stderr)
    return cur


def run(connection: Connection[Any], text: str, **params: object) -> None:
    """Run one of the statements above."""
    for name, value in (("queues", QUEUES), ("kinds", KINDS), ("workers", WORKERS)):
        text = text.replace(f"{{{name}}}", str(value))
    connection.execute(text.replace(" % ", " %% ").encode(), params)


def snapshot(connection: Connection[Any]) -> str:
    """Return what is committed by now."""
    return str(connection.execute("SELECT pg_current_snapshot()::text").fetchall()[0][0])


def widen(client: Client, n: int) -> None:
    """Add so many queues, schedules and limits, one queue in ten with a job that waits; a batch."""
    store = client.store
    assert isinstance(store, PostgresStore)
    with psycopg.connect(store.connections.dsn, autocommit=True) as connection:
        for text in WIDE:
            connection.execute(text, {"n": n})
        connection.execute("ANALYZE")
    with client.batch("a batch") as batch:
        for each in range(200):
            batch.submit("kind.1", args={"user": each})
    for each in range(n):
        client.schedule(
            f"schedule.{each}",
            "kind.1",
            cron=f"{each % 60} {each % 24} * * *",
            tz=("Europe/Berlin", "America/New_York", "UTC")[each % 3],
        )
    for each in range(1, n, 10):
        client.submit("kind.1", queue=f"wide.{each}")


def burden(client: Client) -> None:
    """Add the worst of all that a page draws whole."""
    store = client.store
    assert isinstance(store, PostgresStore)
    with psycopg.connect(store.connections.dsn, autocommit=True) as connection:
        for text in WORST:
            connection.execute(text)
    with client.batch("the largest that is counted") as batch:
        batch.submit_many("kind.1", [{"user": n} for n in range(COUNTED)])
    with client.batch("the largest that is drawn") as batch:
        before = [batch.submit("layer", queue="layers") for _ in range(LAYER)]
        for _ in range(LAYERS - 1):
            before = [
                batch.submit("layer", queue="layers", after=[before[n], before[n - 1]])
                for n in range(LAYER)
            ]
    worker = store.register("layers", kinds=["layer"], queues=["layers"], lease_s=9e6)
    floors: dict[int, int] = {}
    while turns := store.claim(worker, limit=500, request=uuid4(), floors=floors):
        store.settle(
            worker,
            [
                Settlement(*turn[:4], Ending.SUCCEEDED, began_at=turn.granted_at, ran_s=0.1)
                for turn in turns
            ],
        )


def run_often(folder: Path) -> None:
    """Leave so many runs of certify in a folder."""
    for n in range(RUNS):
        out = folder / str(n)
        out.mkdir(parents=True)
        (out / "results.json").write_text(json.dumps(ran(n)))


def ran(n: int) -> dict[str, Any]:
    """Return the document of a run of which every scenario has failed."""
    nothing = Outcome(expected={}, observed={})
    results = [
        Result(
            scenario=Scenario(id=f"S{i}", title=f"a title {i}", invariants=("I1",),
                              run=lambda _: nothing),
            seed=n, status=Status.VIOLATED, outcome=nothing, checks=(), reason="a reason",
        )
        for i in range(SCENARIOS)
    ]  # fmt: skip
    at = f"2026-11-30T10:{n:02}:00Z"
    return document(Run(results=results, profile=Profile.QUICK, seed=n, at=at))
