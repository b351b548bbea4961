"""Many threads, all verbs: nobody deadlocks, nothing is lost, and the record passes the audit."""

from __future__ import annotations

import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from random import Random
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.store.postgres.sessions import submit

from timeball.core.audit import audit
from timeball.core.limits import Scope
from timeball.core.records import Settlement, Turn
from timeball.core.states import TERMINAL, Ending
from timeball.errors import WorkerExpired
from timeball.store.base import NO_WORKER
from timeball.store.postgres import PostgresStore

QUEUES = ("x", "y")
ENDINGS = (
    *[(Ending.SUCCEEDED, {})] * 4,
    (Ending.FAILED, {"reason": "permanent"}),
    (Ending.RETRIED, {"delay_s": 0.01}),
    (Ending.SNOOZED, {"delay_s": 0.01}),
    (Ending.RELEASED, {}),
    (Ending.RELEASED, {"reason": NO_WORKER}),
)


@dataclass
class Clients:
    """What the threads share: the store, the jobs that there are, and the live workers."""

    store: PostgresStore
    stop: threading.Event = field(default_factory=threading.Event)
    uuids: list[UUID] = field(default_factory=list)
    workers: list[int] = field(default_factory=list)
    verbs: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.store.limit(Scope.QUEUE, "x", 60)
        self.store.limit(Scope.KEY, "k*", 20)
        self.store.ensure_lanes([(queue, p) for queue in QUEUES for p in (1, 5)])
        self.register(Random(0))

    def work(self, seed: int) -> None:
        random = Random(seed)
        verbs = [*[self.submit] * 3, *[self.claim_and_settle] * 6, *[self.cancel] * 3]
        verbs += [self.promote, self.expire, self.register]
        while not self.stop.is_set():
            verb = random.choice(verbs)
            try:
                verb(random)
            except WorkerExpired:
                self.verbs["refused"] += 1
            self.verbs[verb.__name__] += 1

    def submit(self, random: Random) -> None:
        many = random.randint(1, 20)
        where = {"queue": random.choice(QUEUES), "priority": random.choice((1, 5))}
        where["key"] = random.choice((None, *(f"k{n}" for n in range(9))))
        specs = submit(self.store, many, delay_s=random.choice((None, 0.01)), **where)
        self.uuids += [spec.uuid for spec in specs]

    def register(self, random: Random) -> None:
        queues = random.sample(QUEUES, random.randint(1, 2))
        kinds = random.choice((["a"], ["a"], ["b"]))
        self.workers.append(self.store.register("w", kinds=kinds, queues=queues, lease_s=9.0))

    def claim_and_settle(self, random: Random) -> None:
        worker, limit = random.choice(self.workers[-6:]), random.randint(1, 30)
        turns = self.store.claim(worker, limit=limit, request=uuid4(), floors={})
        self.store.settle(worker, [self.end(turn, random) for turn in turns])

    def end(self, turn: Turn, random: Random) -> Settlement:
        ending, how = random.choice(ENDINGS)
        if ending is Ending.RETRIED and turn.failures >= turn.max_retries:
            ending, how = Ending.FAILED, {"reason": "exhausted"}
        began = None if how.get("reason") == NO_WORKER else turn.granted_at
        return Settlement(*turn[:4], ending, began_at=began, **how)

    def cancel(self, random: Random) -> None:
        for uuid in random.sample(self.uuids, min(5, len(self.uuids))):
            self.store.cancel(uuid)

    def promote(self, random: Random) -> None:
        self.store.promote(random.randint(1, 50))

    def expire(self, random: Random) -> None:
        self.store.beat(self.workers[-6:])
        if random.random() < 0.5:
            worker = random.choice(self.workers[-6:])
            self.store.expire(worker, beat=None, begun=random.choice((None, ())))

    def drain(self) -> None:
        """Bring what is left to an end: this is I6, that nothing accepted is lost."""
        for worker in self.workers:
            self.store.expire(worker, beat=None, begun=())
        worker = self.store.register("w", kinds=["a"], queues=QUEUES, lease_s=9.0)
        deadline = time.monotonic() + 20
        while not set(self.store.counts()) <= TERMINAL:
            assert time.monotonic() < deadline, self.store.counts()
            self.store.promote(1_000)
            turns = self.store.claim(worker, limit=1_000, request=uuid4(), floors={})
            ends = [
                Settlement(*turn[:4], Ending.SUCCEEDED, began_at=turn.granted_at) for turn in turns
            ]
            self.store.settle(worker, ends)


def deadlocks(dsn: str) -> int:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    return int(row[0]) if row else 0


@pytest.mark.slow
def test_threads_with_all_verbs_neither_deadlock_nor_lose_a_job(
    ledger: PostgresStore, dsn: str
) -> None:
    before, clients = deadlocks(dsn), Clients(ledger)
    with ThreadPoolExecutor(8) as pool:
        threads = [pool.submit(clients.work, seed) for seed in range(8)]
        clients.stop.wait(2.0)
        clients.stop.set()
        for thread in threads:
            thread.result()
    clients.drain()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
    assert deadlocks(dsn) == before
    assert sum(ledger.counts().values()) == len(clients.uuids)
    assert not audit(ledger.histories(), quiesced=True).violations
    assert min(clients.verbs.values()) > 0, clients.verbs
    assert len(clients.verbs) == 7
