"""What the durable engine does on an embedded PostgreSQL with durable settings, as ratios.

    .venv/bin/python bench/durable.py [--smoke] [--only drain,pickup] [--metrics]

Drain and bulk submit of no-op jobs, pick-up latency, WAL and dead tuples per job, what is kept
under a held snapshot, with many pending and with many scheduled jobs, and the time of a claim
beside jobs that wait for their key. Beside them, in the same run, a loop that claims and deletes
rows and does nothing else. A job counts when its success is in the database; the audit must find
nothing. Absolute figures of one machine on one day: the ratios are what travels. --smoke takes
about two minutes; without it everything is larger, and the snapshot is held for a minute.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import psycopg

import timeball
from timeball.action.registry import Registry
from timeball.client import Client
from timeball.core.audit import audit
from timeball.core.states import State
from timeball.observe.board import Board
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.embedded import EmbeddedPostgres
from timeball.store.postgres.migrate import migrate
from timeball.worker.config import WorkerConfig
from timeball.worker.loop import Worker
from timeball.worker.telling import Counts

LEDGER = ("job", "entry", "lease", "ended")
SLOTS, THREADS = 500, 16
BATCH = 1_000
TICKS_S = os.sysconf("SC_CLK_TCK")
registry = Registry()
began_s: list[float] = []


@registry.job(name="noop")
async def noop(n: int) -> None: ...


@registry.job(name="noop_thread")
def noop_thread(n: int) -> None: ...


@registry.job(name="stamp")
async def stamp() -> None:
    began_s.append(time.perf_counter())


class Size(NamedTuple):
    """How much of everything."""

    jobs: int
    few: int
    many: int
    blocked: int
    pickups: int
    held_s: float


SMOKE = Size(jobs=40_000, few=10_000, many=100_000, blocked=10_000, pickups=200, held_s=12.0)
WHOLE = Size(jobs=100_000, few=10_000, many=1_000_000, blocked=100_000, pickups=1_000, held_s=60.0)


class Site:
    """A server, on which each measurement has a database of its own."""

    def __init__(self, dsn: str, size: Size, *, metrics: bool) -> None:
        self.dsn, self.size, self._metrics = dsn, size, metrics
        self._names = (f"bench_{number}" for number in count(1))
        self.rows: list[tuple[str, str, str]] = []
        self.good = True

    def tell(self, what: str, value: str, beside: str = "") -> None:
        self.rows.append((what, value, beside))
        print(f"  {what}: {value} {beside}".rstrip(), flush=True)

    @contextmanager
    def database(self) -> Iterator[PostgresStore]:
        name = next(self._names)
        with psycopg.connect(self.dsn, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE template0")
            store = PostgresStore(self.dsn.replace("/postgres?", f"/{name}?"))
            migrate(store.connections)
            yield store
            store.close()
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")

    @contextmanager
    def worker(self, store: PostgresStore, slots: int = SLOTS) -> Iterator[Worker]:
        """A worker with its listener, in threads of this process."""
        config = WorkerConfig(name="bench", slots=slots)
        worker = Worker(store, registry, config, draw=random.random)
        if self._metrics:
            worker.tell(Counts(Board.create(), registry))
        over = threading.Event()
        threads = [threading.Thread(target=worker.work),
                   threading.Thread(target=store.listen, args=(worker.wake, over))]  # fmt: skip
        for thread in threads:
            thread.start()
        yield worker
        worker.stop()
        over.set()
        for thread in threads:
            thread.join()


class Drained(NamedTuple):
    rate: float
    worker_us: float
    database_us: float


def submitted(store: PostgresStore, kind: str, jobs: int) -> float:
    """Submit jobs; return how many a second."""
    at = time.perf_counter()
    Client(store).submit_many(kind, ({"n": n} for n in range(jobs)))
    return jobs / (time.perf_counter() - at)


def drained(site: Site, store: PostgresStore, jobs: int, slots: int = SLOTS) -> Drained:
    """Have a worker end so many of the jobs that wait."""
    value(store, "VACUUM ANALYZE")
    value(store, "CHECKPOINT")
    wanted = value(store, "SELECT count(*) FROM timeball.ended") + jobs
    at, cpu, database = time.perf_counter(), time.process_time(), database_s(store)
    with site.worker(store, slots):
        while ended(store) < wanted:
            time.sleep(0.05)
        took_s, cpu, database = (time.perf_counter() - at, time.process_time() - cpu,
                                 database_s(store) - database)  # fmt: skip
    return Drained(jobs / took_s, cpu / jobs * 1e6, database / jobs * 1e6)


def ended(store: PostgresStore) -> int:
    return int(value(store, "SELECT count(*) FROM timeball.ended"))


def database_s(store: PostgresStore) -> float:
    """CPU seconds of the server's processes, those that have ended included."""
    folder = Path(value(store, "SHOW data_directory"))
    postmaster = int((folder / "postmaster.pid").read_text().splitlines()[0])
    ticks = 0
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(words[1]) == postmaster:
            ticks += int(words[11]) + int(words[12])
        elif int(path.name) == postmaster:
            ticks += sum(map(int, words[11:15]))
    return ticks / TICKS_S


def value(store: PostgresStore, query: str) -> Any:
    with store.connections.borrowed() as connection:
        cursor = connection.execute(query.encode())
        row = cursor.fetchone() if cursor.description else None
        return row and row[0]


# The measurements


def floor(site: Site) -> float:
    """Claim and delete rows by the thousand, and nothing else."""
    with site.database() as store, store.connections.connect() as connection:
        connection.execute("CREATE TABLE raw (id bigint PRIMARY KEY, args jsonb)")
        connection.execute(
            "INSERT INTO raw SELECT n, jsonb_build_object('n', n) FROM generate_series(1, %s) AS n",
            [site.size.jobs],
        )
        connection.execute("VACUUM ANALYZE raw")
        at = time.perf_counter()
        while connection.execute(
            "WITH mine AS MATERIALIZED (SELECT id FROM raw ORDER BY id LIMIT %s"
            " FOR UPDATE SKIP LOCKED) DELETE FROM raw USING mine WHERE raw.id = mine.id"
            " RETURNING raw.id, raw.args",
            [BATCH],
        ).fetchall():
            pass
        return site.size.jobs / (time.perf_counter() - at)


def drain(site: Site) -> None:
    raw = floor(site)
    site.tell("raw claim-and-delete loop", f"{raw:,.0f} jobs/s", f"{BATCH:,} at a time")
    for kind, slots in (("noop", SLOTS), ("noop_thread", THREADS)):
        with site.database() as store:
            jobs, wal = site.size.jobs, value(store, "SELECT pg_current_wal_insert_lsn()")
            rate = submitted(store, kind, jobs)
            value(store, "VACUUM ANALYZE")
            here = value(store, "SELECT pg_current_wal_insert_lsn()")
            found = drained(site, store, jobs, slots)
            spent = value(store, f"SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '{here}')")
            life = value(store, f"SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '{wal}')")
            dead = sum(dead_tuples(store, table) for table in LEDGER)
            site.good = site.good and sound(store, jobs) and not dead
        if kind == "noop":
            site.tell("bulk submit", f"{rate:,.0f} jobs/s")
        site.tell(f"drain, {slots} {'threads' if slots == THREADS else 'coroutines'}",
                  f"{found.rate:,.0f} jobs/s", f"{found.rate / raw:.2f} of the loop; CPU a job: "
                  f"worker {found.worker_us:.1f} us, database {found.database_us:.1f}")  # fmt: skip
    site.tell("WAL a job", f"{int(life) // jobs} bytes", f"{int(spent) // jobs} of it after submit")
    site.tell("dead tuples a job", f"{dead / jobs:g}", ", ".join(LEDGER))


def dead_tuples(store: PostgresStore, table: str) -> int:
    value(store, "SELECT pg_stat_force_next_flush()")
    return int(value(store, f"SELECT n_dead_tup FROM pg_stat_all_tables "
                            f"WHERE relid = 'timeball.{table}'::regclass"))  # fmt: skip


def sound(store: PostgresStore, jobs: int) -> bool:
    report = audit(store.histories(), quiesced=True)
    return report.clean and report.states.get(State.SUCCEEDED, 0) == jobs


def pickup(site: Site) -> None:
    """From the call of a submit to the first line of the job, where the worker is idle."""
    with site.database() as store:
        with site.worker(store):
            before = picked_up(store, site.size.pickups)
        schedule(store, site.size.many)
        with site.worker(store):
            after = picked_up(store, site.size.pickups)
    p50, p99 = statistics.median(before), statistics.quantiles(before, n=100)[98]
    site.tell("idle pick-up, p50 / p99", f"{p50 * 1e3:.1f} / {p99 * 1e3:.1f} ms")
    site.tell(f"pick-up with {site.size.many:,} scheduled / none",
              f"{statistics.median(after) / p50:.2f}")  # fmt: skip


def picked_up(store: PostgresStore, times: int) -> list[float]:
    client, found = Client(store), []
    for _ in range(times):
        began_s.clear()
        time.sleep(0.01)  # until the worker rests again
        at = time.perf_counter()
        client.submit("stamp")
        while not began_s:
            time.sleep(0.0002)
        found.append(began_s[0] - at)
    return found


ADD = """WITH added AS (
    INSERT INTO timeball.job
        (uuid, lane, kind, args, max_retries, max_crashes, at_most_once, run_at, key)
    SELECT gen_random_uuid(), lane.id, %(kind)s, jsonb_build_object('n', n), 3, 3, false,
        %(run_at)s, %(key)s FROM timeball.lane, generate_series(1, %(jobs)s) AS n
    WHERE lane.priority = 5 RETURNING id, lane, run_at, key)"""
PEND = ADD + "INSERT INTO timeball.entry (lane, job_id) SELECT lane, id FROM added ORDER BY id"
HOLD = (
    ADD
    + """INSERT INTO timeball.held (job_id, turn, state, lane, run_at, kind, key, reason)
    SELECT id, 1, CASE WHEN run_at IS NULL THEN 'pending' ELSE 'scheduled' END, lane, run_at,
        %(kind)s, key, CASE WHEN run_at IS NULL THEN 'key' END FROM added"""
)


def add(store: PostgresStore, how: str, jobs: int, **fields: Any) -> None:
    """Add many jobs the short way."""
    store.ensure_lanes([("default", 5)])
    given = {"kind": "noop", "run_at": None, "key": None, "jobs": jobs} | fields
    with store.connections.connect() as connection:
        connection.execute(how.encode(), given)
    value(store, "VACUUM ANALYZE")


def schedule(store: PostgresStore, jobs: int) -> None:
    add(store, HOLD, jobs, run_at="2999-01-01T00:00:00Z")


def depth(site: Site) -> None:
    """The same number of jobs, of a few that wait and of many."""
    rates = []
    for pending in (site.size.few, site.size.many):
        with site.database() as store:
            add(store, PEND, pending)
            rates.append(drained(site, store, site.size.few).rate)
    site.tell(f"drain with {site.size.many:,} pending / {site.size.few:,}",
              f"{rates[1] / rates[0]:.2f}")  # fmt: skip


def snapshot(site: Site) -> None:
    """Submit and drain again and again, without a snapshot and beside an old one."""
    with site.database() as store:
        rounds(site, store, site.size.held_s / 4)
        control = rounds(site, store, site.size.held_s / 2)
        with store.connections.connect() as old:
            old.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
            old.execute("SELECT count(*) FROM timeball.ended")
            rates = rounds(site, store, site.size.held_s)
            old.execute("ROLLBACK")
    late = rates[len(rates) // 2 :]
    site.tell(f"kept under a snapshot held {site.size.held_s:.0f} s",
              f"{statistics.median(late) / statistics.median(control):.2f}",
              "drain, later half / control")  # fmt: skip


def rounds(site: Site, store: PostgresStore, lasting_s: float) -> list[float]:
    until, rates = time.monotonic() + lasting_s, list[float]()
    while time.monotonic() < until:
        submitted(store, "noop", site.size.few)
        rates.append(drained(site, store, site.size.few).rate)
    return rates


def limits(site: Site) -> None:
    """Claims of ten, of a thousand jobs beside many that are scheduled or wait for their key."""
    with site.database() as store:
        schedule(store, site.size.many)
        add(store, HOLD, site.size.blocked, key="one")
        worker = store.register("bench", kinds=["noop"], queues=["default"], lease_s=3600.0)
        add(store, PEND, BATCH)
        took, newest = list[float](), dict[int, int]()
        while True:
            at = time.perf_counter()
            floors = {lane: seq + 1 for lane, seq in newest.items()}
            turns = store.claim(worker, limit=10, request=uuid4(), floors=floors, newest=newest)
            took.append(time.perf_counter() - at)
            if not turns:
                break
            newest[turns[0].lane] = turns[0].seq
            store.promote(BATCH)
    site.good = site.good and len(took) > BATCH // 10
    site.tell(f"claim beside {site.size.many:,} scheduled and {site.size.blocked:,} blocked",
              f"p95 {statistics.quantiles(took, n=20)[18] * 1e3:.1f} ms")  # fmt: skip


MEASURES: dict[str, Callable[[Site], None]] = {
    "drain": drain, "pickup": pickup, "depth": depth, "limits": limits, "snapshot": snapshot,
}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="smaller, in about two minutes")
    parser.add_argument("--only", default=",".join(MEASURES), help="some of " + ", ".join(MEASURES))
    parser.add_argument("--metrics", action="store_true", help="workers count as for /metrics")
    options = parser.parse_args()
    print(f"timeball {timeball.__version__}, CPython {platform.python_version()}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="timeball-bench-") as folder,
        EmbeddedPostgres(Path(folder) / "data", linger_s=0.0) as server,
    ):
        site = Site(server.dsn, SMOKE if options.smoke else WHOLE, metrics=options.metrics)
        for name in options.only.split(","):
            MEASURES[name](site)
    wide = max(len(what) for what, _, _ in site.rows)
    print()
    for what, found, beside in site.rows:
        print(f"{what:<{wide}}  {found:<18} {beside}".rstrip())
    print("sound" if site.good else "NOT SOUND: the audit, or a count, is wrong")
    return 0 if site.good else 1


if __name__ == "__main__":
    sys.exit(main())
