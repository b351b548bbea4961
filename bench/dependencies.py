"""What edges cost: one parent with 100,000 children, one child with 10,000 parents, a long chain.

    .venv/bin/python bench/dependencies.py [--children 100000] [--parents 10000] [--smoke]

On an embedded PostgreSQL with durable settings. Jobs do nothing: workers here only claim and
settle, in threads of this process, each with connections of its own. Each figure is given for a
tenth as many edges too: cost that grows faster than their number would show. Absolute figures of
one machine on one day.
"""

from __future__ import annotations

import argparse
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import timeball
from timeball.core.dependencies import Edge
from timeball.core.records import JobSpec, Settlement, Turn
from timeball.core.states import Ending
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.embedded import EmbeddedPostgres
from timeball.store.postgres.migrate import migrate

BATCH = 500
FLOOR = 0.8
"""What eight workers must do of what one does, on the children of one parent."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--children", type=int, default=100_000)
    parser.add_argument("--parents", type=int, default=10_000)
    parser.add_argument("--smoke", action="store_true", help="small and quick: only that it works")
    options = parser.parse_args()
    if options.smoke:
        options.children, options.parents = 2_000, 500
    with (
        tempfile.TemporaryDirectory(prefix="timeball-bench-") as folder,
        EmbeddedPostgres(Path(folder) / "data", linger_s=0.0) as server,
    ):
        store = PostgresStore(server.dsn)
        migrate(store.connections)
        print(f"timeball {timeball.__version__}, CPython {platform.python_version()}")
        bench = Bench(store, server.dsn)
        for count in (options.children // 10, options.children):
            bench.fan_out(count)
        for count in (options.parents // 10, options.parents):
            bench.fan_in(count)
            bench.chain(count)
        share = bench.many_hands(options.children // 5)
        store.close()
    return 0 if options.smoke or share >= FLOOR else 1


class Bench:
    """The rounds, on one database."""

    def __init__(self, store: PostgresStore, dsn: str) -> None:
        self._store, self._dsn = store, dsn
        self._worker = store.register("bench", kinds=["a"], queues=["default"], lease_s=600.0)

    def fan_out(self, count: int) -> None:
        (parent,) = self._running(1)
        submitted_s = timed(lambda: self._submit(count, parent))
        released_s = timed(lambda: self._settle([parent]))
        told(f"{count:,} children of one parent", count, submit=submitted_s, release=released_s)
        self._drain()

    def fan_in(self, count: int) -> None:
        turns = self._running(count)
        edges = tuple(Edge(turn.uuid) for turn in turns)
        child = JobSpec(uuid=uuid4(), kind="a", after=edges)
        submitted_s = timed(lambda: self._store.submit([child]))
        ended_s = timed(lambda: self._settle(turns))
        told(f"one child of {count:,} parents", count, submit=submitted_s, end=ended_s)
        self._drain()

    def chain(self, count: int) -> None:
        (parent,) = self._running(1)
        specs = [JobSpec(uuid=uuid4(), kind="a", after=(Edge(parent.uuid),))]
        while len(specs) < count:
            specs.append(JobSpec(uuid=uuid4(), kind="a", after=(Edge(specs[-1].uuid),)))
        submitted_s = timed(lambda: self._store.submit(specs))
        skipped_s = timed(lambda: self._settle([parent], Ending.FAILED))
        told(f"{count:,} in a row, together", count, submit=submitted_s, skip=skipped_s)

    def many_hands(self, count: int) -> float:
        """Return what eight workers do of what one does."""
        rates = []
        for workers in (1, 8, 1, 8):
            (parent,) = self._running(1)
            self._submit(count, parent)
            self._settle([parent])
            begun_s = time.perf_counter()
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(self._work, range(workers)))
            spent_s = time.perf_counter() - begun_s
            rates.append(count / spent_s)
            print(f"{workers} worker{'s' * (workers > 1)} on {count:,} children of one parent: "
                  f"{rates[-1]:,.0f} jobs/s")  # fmt: skip
        share = max(rates[1::2]) / max(rates[::2])
        print(f"eight workers do {share:.2f} of what one does (at least {FLOOR})")
        return share

    def _work(self, _: int) -> None:
        store = PostgresStore(self._dsn)
        worker = store.register("hand", kinds=["a"], queues=["default"], lease_s=600.0)
        while turns := store.claim(worker, limit=BATCH, request=uuid4(), floors={}):
            store.settle(worker, [ending(turn) for turn in turns])
        store.close()

    def _submit(self, count: int, parent: Turn) -> None:
        after = (Edge(parent.uuid),)
        for start in range(0, count, 1_000):
            part = range(min(1_000, count - start))
            self._store.submit([JobSpec(uuid=uuid4(), kind="a", after=after) for _ in part])

    def _running(self, count: int) -> list[Turn]:
        for start in range(0, count, 1_000):
            part = range(min(1_000, count - start))
            self._store.submit([JobSpec(uuid=uuid4(), kind="a") for _ in part])
        turns: list[Turn] = []
        while len(turns) < count:
            turns += self._store.claim(self._worker, limit=1_000, request=uuid4(), floors={})
        return turns

    def _settle(self, turns: list[Turn], how: Ending = Ending.SUCCEEDED) -> None:
        for start in range(0, len(turns), BATCH):
            part = turns[start : start + BATCH]
            self._store.settle(self._worker, [ending(turn, how) for turn in part])

    def _drain(self) -> None:
        while turns := self._store.claim(self._worker, limit=1_000, request=uuid4(), floors={}):
            self._settle(turns)


def ending(turn: Turn, how: Ending = Ending.SUCCEEDED) -> Settlement:
    return Settlement(*turn[:4], how, began_at=turn.granted_at)


def timed(call: Callable[[], object]) -> float:
    begun_s = time.perf_counter()
    call()
    return time.perf_counter() - begun_s


def told(what: str, edges: int, **spent_s: float) -> None:
    cells = (f"{name} {s:.2f} s, {s / edges * 1e6:.0f} us each" for name, s in spent_s.items())
    print(f"{what}: {'; '.join(cells)}")


if __name__ == "__main__":
    sys.exit(main())
