"""Random orders of begin, submit, savepoint, prepare, commit, abort, cancel and claim."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from uuid import UUID, uuid4

import psycopg
from tests.store.postgres.sessions import jobs_json

from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import statement

SUBMIT = statement("submit")


@dataclass
class Writer:
    """One client: a transaction at a time, which may be prepared and finished much later."""

    connection: psycopg.Connection
    open: list[UUID] = field(default_factory=list)

    def begin(self) -> None:
        if self.connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            self.connection.execute("BEGIN")

    def end(self, word: str) -> list[UUID]:
        self.connection.execute(word)
        done, self.open = self.open, []
        return done


@dataclass
class Schedule:
    """Draws steps and keeps the books: what has committed, been granted, been cancelled."""

    store: PostgresStore
    writers: list[Writer]
    random: Random
    queue: str
    worker: int = 0
    committed: set[UUID] = field(default_factory=set)
    cancelled: set[UUID] = field(default_factory=set)
    granted: list[UUID] = field(default_factory=list)
    prepared: dict[str, list[UUID]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        priorities = [(self.queue, priority) for priority in (2, 5)]
        self.store.ensure_lanes(priorities)
        self.worker = self.store.register("w", kinds=["a"], queues=[self.queue], lease_s=30.0)

    def run(self, steps: int) -> None:
        verbs = [*[self.submit] * 7, *[self.claim] * 6, *[self.finish] * 4]
        verbs += [self.settle_prepared, self.cancel, self.waste_a_number]
        for _ in range(steps):
            self.random.choice(verbs)()
        for writer in self.writers:
            self.finish(writer)
        while self.prepared:
            self.settle_prepared()
        while self.claim(7):
            pass

    def check(self) -> None:
        assert len(self.granted) == len(set(self.granted)), "granted twice"
        assert not self.cancelled & set(self.granted), "cancelled and granted"
        assert set(self.granted) | self.cancelled == self.committed, "lost, or granted too early"

    def submit(self) -> None:
        writer = self.random.choice(self.writers)
        writer.begin()
        nested = self.random.random() < 0.3
        if nested:
            writer.connection.execute("SAVEPOINT s")
        uuids = [uuid4() for _ in range(self.random.randint(1, 4))]
        priority = self.random.choice((2, 5))
        text = jobs_json(0, uuids, queue=self.queue, priority=priority)
        writer.connection.execute(SUBMIT, {"jobs": text})
        if nested and self.random.random() < 0.4:
            writer.connection.execute("ROLLBACK TO s")
        else:
            writer.open += uuids

    def claim(self, limit: int | None = None) -> int:
        limit = limit or self.random.choice((1, 2, 5, 50))
        turns = self.store.claim(self.worker, limit=limit, request=uuid4(), floors={})
        self.granted += [turn.uuid for turn in turns]
        return len(turns)

    def finish(self, writer: Writer | None = None) -> None:
        writer = writer or self.random.choice(self.writers)
        how = self.random.random()
        if writer.connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            return
        if how < 0.2:
            writer.end("ROLLBACK")
        elif how < 0.4 and len(self.prepared) < 4:
            name = f"timeball-test-{uuid4()}"
            self.prepared[name] = writer.end(f"PREPARE TRANSACTION '{name}'")
        else:
            self.committed.update(writer.end("COMMIT"))

    def settle_prepared(self) -> None:
        if not self.prepared:
            return
        name = self.random.choice(sorted(self.prepared))
        uuids = self.prepared.pop(name)
        if self.random.random() < 0.7:
            self.elsewhere(f"COMMIT PREPARED '{name}'")
            self.committed.update(uuids)
        else:
            self.elsewhere(f"ROLLBACK PREPARED '{name}'")

    def cancel(self) -> None:
        waiting = sorted(self.committed - set(self.granted) - self.cancelled)
        if waiting:
            uuid = self.random.choice(waiting)
            assert self.store.cancel(uuid) == "cancelled"
            self.cancelled.add(uuid)

    def waste_a_number(self) -> None:
        """A transaction that has nothing to do with jobs."""
        self.elsewhere("SELECT pg_current_xact_id()")

    def elsewhere(self, sql: str) -> None:
        with self.store.connections.borrowed() as connection:
            connection.execute(sql)
