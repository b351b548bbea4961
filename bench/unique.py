"""Unique jobs from many sessions at once, in random order: how many a second, and no deadlock.

    .venv/bin/python bench/unique.py [--jobs 100000] [--sessions 8] [--batch 100] [--smoke]

Every session submits each key once, in an order of its own, on an embedded PostgreSQL with durable
settings; all but one of them meet somebody else's job. The server's own count of deadlocks must
stay at nothing, no session may see an error, and each key must have one job in the end.
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from uuid import uuid4

import psycopg

import timeball
from timeball.core.records import JobSpec
from timeball.core.states import State
from timeball.core.uniqueness import Unique
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.embedded import EmbeddedPostgres
from timeball.store.postgres.migrate import migrate

DEADLOCKS = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
SEED = 18


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--sessions", type=int, default=8)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--smoke", action="store_true", help="small and quick: only that it works")
    options = parser.parse_args()
    if options.smoke:
        options.jobs = 4_000
    with (
        tempfile.TemporaryDirectory(prefix="timeball-bench-", ignore_cleanup_errors=True) as folder,
        EmbeddedPostgres(Path(folder) / "data", linger_s=0.0) as server,
    ):
        store = PostgresStore(server.dsn)
        migrate(store.connections)
        store.ensure_lanes([("default", 5)])
        print(f"timeball {timeball.__version__}, CPython {platform.python_version()}, "
              f"{options.jobs:,} unique jobs from {options.sessions} sessions")  # fmt: skip
        took_s = insert(store, options)
        kept = store.counts().get(State.PENDING, 0)
        store.close()
        deadlocks = counted(server.dsn)
    keys = options.jobs // options.sessions
    print(f"{options.jobs / took_s:,.0f} submissions/s in {took_s:.1f} s; {kept:,} jobs of "
          f"{keys:,} keys; deadlocks {deadlocks}")  # fmt: skip
    return int(deadlocks > 0 or kept != keys)


def insert(store: PostgresStore, options: argparse.Namespace) -> float:
    """Submit all keys from all sessions; return the seconds. A deadlock would raise."""
    start = Barrier(options.sessions + 1)

    def submit(session: int) -> None:
        keys = [f"key-{n}" for n in range(options.jobs // options.sessions)]
        random.Random(SEED + session).shuffle(keys)
        start.wait()
        for at in range(0, len(keys), options.batch):
            part = [Unique(key=key) for key in keys[at : at + options.batch]]
            store.submit([JobSpec(uuid=uuid4(), kind="bench", unique=unique) for unique in part])

    with ThreadPoolExecutor(options.sessions) as pool:
        done = [pool.submit(submit, session) for session in range(options.sessions)]
        start.wait()
        begun_s = time.monotonic()
        for each in done:
            each.result()
        return time.monotonic() - begun_s


def counted(dsn: str) -> int:
    """Return how many deadlocks the server has seen, once all others have told it."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
        row = connection.execute(DEADLOCKS).fetchone()
    return int(row[0]) if row else 0


if __name__ == "__main__":
    sys.exit(main())
