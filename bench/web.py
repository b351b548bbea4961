"""How fast the dashboard and the API answer beside millions of jobs, and what open pages cost.

    .venv/bin/python bench/web.py [--finished 10_000_000] [--pending 1_000_000] [--wide 2_000]
        [--rounds 40] [--keep FOLDER]

Fills a new database (some minutes, 1.2 kB a job), asks for every page and every list, and prints
the p95 of each and its CPU, which tells more on a busy machine. `--keep` leaves the database in a
folder, and takes it up there again. `--wide` adds so many queues, schedules and limits. Ends with
1 if an answer is slower than 150 ms, or 200 open pages take more than 5 % of a core where nothing
happens.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import Connection

from timeball.client import Client
from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.embedded import EmbeddedPostgres
from timeball.store.postgres.migrate import migrate
from timeball.web import create_app
from timeball.web.server import bound, served
from timeball.web.shell import NAVIGATION

CHUNK = 500_000
QUEUES, KINDS, WORKERS = 20, 37, 4
P = 0.95
ANSWER_MS, REST_SHARE = 150.0, 0.05
OPEN, REST_S = 200, 20.0
TICKS_S = os.sysconf("SC_CLK_TCK")

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


def addresses(client: Client, finished: int) -> list[str]:
    """Return every page and list, those included that find little or nothing."""
    words = [f"state:{state}" for state in State] + ["kind:rare.kind", "kind:nobody.has.it"]
    words += ["queue:queue.3", "queue:nobody", "queue:queue.3 kind:rare.kind"]
    words += [f"state:{state} kind:rare.kind" for state in State]
    lists = [f"/jobs?q={quote(word)}" for word in words]
    far = [f"/jobs?before={finished // 2}", f"/jobs?q=kind:kind.1&before={finished // 2}"]
    api = ["jobs", "jobs?kind=rare.kind", "jobs?limit=500", "counts", "batches", "queues", "limits"]
    api += ["workers", "operations", "schedules", f"jobs/{finished // 2}"]
    pages = ["/login", *(f"/{entry.path}" for entry in NAVIGATION)]  # the first asks for nothing
    one = [f"/jobs/{finished // 2}", f"/jobs/{finished - 5}", f"/jobs/{finished + 7}"]
    for batch in client.batches(limit=1):
        one += [f"/batches/{batch.uuid}", f"/dependencies/{batch.uuid}"]
    one += ["/metrics", *(f"/schedules/{each.spec.name}" for each in client.schedules()[:1])]
    return [*pages, *lists, *far, *one, *(f"/api/v1/{each}" for each in api)]


def asked(host: str, path: str) -> tuple[int, float]:
    """Ask for an address once; return the status, and how many milliseconds it took."""
    connection = HTTPConnection(host, timeout=60)
    began = time.perf_counter()
    connection.request("GET", path, headers={"accept": "text/html"})
    answer = connection.getresponse()
    answer.read()
    took = 1000 * (time.perf_counter() - began)
    connection.close()
    return answer.status, took


class Cost(NamedTuple):
    """What one address costs."""

    path: str
    status: int
    p95_ms: float
    cpu_ms: float
    """Of this process and the database's sessions, on average: what else runs does not matter."""


def costs(host: str, dsn: str, paths: list[str], rounds: int) -> Iterator[Cost]:
    """Ask for each address so often, once before."""
    for path in paths:
        status, _ = asked(host, path)
        before = cpu_s(dsn)
        found = [asked(host, path)[1] for _ in range(rounds)]
        cpu_ms = 1000 * (cpu_s(dsn) - before) / rounds
        yield Cost(path, status, quantile(found), cpu_ms)


def quantile(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, int(P * len(times)))]


def rest_share(host: str, dsn: str) -> float:
    """Return what share of a core open pages cost where nothing happens, the database included."""
    with ExitStack() as stack:
        for _ in range(OPEN):
            connection = HTTPConnection(host, timeout=60)
            stack.callback(connection.close)
            connection.request("GET", "/events")
            connection.getresponse()
        time.sleep(2.0)
        before = cpu_s(dsn)
        time.sleep(REST_S)
        return (cpu_s(dsn) - before) / REST_S


def cpu_s(dsn: str) -> float:
    """Return the seconds of CPU that this process and its database's sessions have had."""
    with psycopg.connect(dsn) as connection:
        pids = connection.execute("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        found = time.process_time()
        for (pid,) in pids.fetchall():
            ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            found += sum(map(int, ticks)) / TICKS_S
    return found


def main() -> int:
    """Measure; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--finished", type=int, default=10_000_000)
    parser.add_argument("--pending", type=int, default=1_000_000)
    parser.add_argument("--wide", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--keep", type=Path)
    asks = parser.parse_args()
    with ExitStack() as stack:
        folder = asks.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        new = not (folder / "data").exists()
        server = stack.enter_context(EmbeddedPostgres(folder, linger_s=0.0))
        store = PostgresStore(server.dsn)
        stack.callback(store.close)
        if new:
            migrate(store.connections)
            fill(store, asks.finished, asks.pending)
        client = Client(store)
        if asks.wide and not client.schedules():
            widen(client, asks.wide)
        url = stack.enter_context(served(create_app(client), bound("127.0.0.1", 0, tokens=False)))
        host = urlsplit(url).netloc
        paths = addresses(client, asks.finished)
        late = 0
        for cost in costs(host, server.dsn, paths, asks.rounds):
            late += cost.p95_ms > ANSWER_MS
            told = f"p95 {cost.p95_ms:5.0f} ms, CPU {cost.cpu_ms:5.0f} ms"
            print(f"{told}  {cost.status}  {cost.path}", flush=True)
        share = rest_share(host, server.dsn)
        print(f"{OPEN} open pages at rest: {share:.1%} of a core")
    return 1 if late or share > REST_SHARE else 0


if __name__ == "__main__":
    sys.exit(main())
