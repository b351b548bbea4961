"""How fast one worker process drains no-op jobs from PostgreSQL, and what it leaves behind.

    .venv/bin/python bench/drain.py [--jobs 100000] [--slots 500] [--threads] [--metrics]

Prints jobs per second for submit and drain, CPU per job, WAL per job and the dead tuples of the
ledger's tables. A job counts when its success is recorded in the database; settings are durable
(fsync on). Absolute figures of one machine on one day: compare ratios within one run only.
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

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
from timeball.worker.loop import Worker, WorkerConfig
from timeball.worker.telling import Counts

LEDGER = ("job", "entry", "lease", "ended")
registry = Registry()


@registry.job(name="noop")
async def noop(n: int) -> None: ...


@registry.job(name="noop_thread")
def noop_thread(n: int) -> None: ...


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--slots", type=int, default=500)
    parser.add_argument("--threads", action="store_true", help="no-op functions in 16 threads")
    parser.add_argument("--metrics", action="store_true", help="count as for /metrics")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="timeball-bench-") as folder,
        EmbeddedPostgres(Path(folder) / "data", linger_s=0.0) as server,
    ):
        store = PostgresStore(server.dsn)
        migrate(store.connections)
        good = measure(store, options)
        store.close()
    return 0 if good else 1


def measure(store: PostgresStore, options: argparse.Namespace) -> bool:
    jobs, client = options.jobs, Client(store)
    print(f"timeball {timeball.__version__}, CPython {platform.python_version()}, "
          f"PostgreSQL {value(store, 'SHOW server_version')}, {jobs:,} no-op jobs")  # fmt: skip
    kind = registry["noop_thread" if options.threads else "noop"]
    began_s = time.perf_counter()
    client.submit_many(kind.name, ({"n": n} for n in range(jobs)))
    rate("submit", jobs, time.perf_counter() - began_s)
    value(store, "VACUUM ANALYZE")
    value(store, "CHECKPOINT")

    slots = 16 if options.threads else options.slots
    config = WorkerConfig(name="bench", slots=slots)
    worker = Worker(store, registry, config, draw=random.random)
    if options.metrics:
        worker.tell(Counts(Board.create(), registry))
    wal = value(store, "SELECT pg_current_wal_insert_lsn()")
    began_s, cpu_s = time.perf_counter(), time.process_time()
    thread = threading.Thread(target=worker.work)
    thread.start()
    while value(store, "SELECT count(*) FROM timeball.ended") < jobs:
        time.sleep(0.05)
    elapsed_s, cpu_s = time.perf_counter() - began_s, time.process_time() - cpu_s
    worker.stop()
    thread.join()
    rate("drain", jobs, elapsed_s)
    written = value(store, f"SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '{wal}')")
    print(f"  worker CPU {cpu_s / jobs * 1e6:.1f} us/job, WAL {int(written) // jobs} bytes/job")
    return clean(store, jobs)


def clean(store: PostgresStore, jobs: int) -> bool:
    value(store, "SELECT pg_stat_force_next_flush()")
    dead = {table: dead_tuples(store, table) for table in LEDGER}
    print("  dead tuples " + ", ".join(f"{table} {count}" for table, count in dead.items()))
    report = audit(store.histories(), quiesced=True)
    succeeded = report.states.get(State.SUCCEEDED, 0)
    print(f"  audit: succeeded {succeeded:,}, lost {report.lost}, twice {report.twice}, "
          f"violations {sum(report.found.values())}")  # fmt: skip
    return report.clean and succeeded == jobs and not any(dead.values())


def dead_tuples(store: PostgresStore, table: str) -> int:
    return int(value(store, f"SELECT n_dead_tup FROM pg_stat_all_tables "
                            f"WHERE relid = 'timeball.{table}'::regclass"))  # fmt: skip


def value(store: PostgresStore, query: str) -> object:
    with store.connections.connect() as connection:
        assert isinstance(connection, psycopg.Connection)
        cursor = connection.execute(query)
        return cursor.fetchone()[0] if cursor.description else None


def rate(what: str, jobs: int, elapsed_s: float) -> None:
    print(f"{what}: {jobs / elapsed_s:,.0f} jobs/s")


if __name__ == "__main__":
    sys.exit(main())
