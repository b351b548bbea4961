"""Real connections that a test steps statement by statement, and sees blocked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self
from uuid import UUID, uuid4

import psycopg

from timeball.core.records import JobSpec, Turn
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import statement

Rows = list[tuple[Any, ...]]
DEADLINE_S = 30.0


def until(true: Callable[[], object], what: str) -> None:
    """Poll until something is so."""
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline, f"never: {what}"


class Session:
    """One connection, with a thread of its own that waits for its answers."""

    def __init__(self, dsn: str, watcher: psycopg.Connection) -> None:
        self.connection = psycopg.connect(dsn, autocommit=True)
        self.pid = self.connection.info.backend_pid
        self._watcher = watcher
        self._thread = ThreadPoolExecutor(1)
        self._call: Future[Rows] | None = None

    def close(self) -> None:
        self.connection.cancel_safe()
        self._thread.shutdown()
        self.connection.close()

    def run(self, sql: str, params: Sequence | Mapping | None = None) -> Rows:
        """Run a statement that must not block."""
        call = self._send(sql, params)
        try:  # somebody may be in the way for a moment, such as autovacuum
            return call.result(DEADLINE_S)
        except TimeoutError:
            raise AssertionError(f"blocked by {self.blockers()}: {sql}") from None

    def blocks(self, sql: str, params: Sequence | Mapping | None = None) -> Self:
        """Run a statement that must block; `answer` gets what it returns in the end."""
        call = self._send(sql, params)
        until(lambda: call.done() or self.blockers(), "blocked or answered")
        assert not call.done(), f"did not block, but gave {call.result()}"
        self._call = call
        return self

    def answer(self) -> Rows:
        assert self._call is not None, "nothing was sent"
        return self._call.result(DEADLINE_S)

    def verb(self, name: str, **params: object) -> Rows:
        """Run the store's statement of that name, which must not block."""
        return self.run(statement(name), params)

    def verb_blocks(self, name: str, **params: object) -> Self:
        return self.blocks(statement(name), params)

    def blockers(self) -> list[int]:
        """The processes that it waits for."""
        row = self._watcher.execute("SELECT pg_blocking_pids(%s)", [self.pid]).fetchone()
        return list(row[0]) if row else []

    def begin(self) -> Self:
        self.run("BEGIN")
        return self

    def commit(self) -> None:
        self.run("COMMIT")

    def rollback(self) -> None:
        self.run("ROLLBACK")

    def _send(self, sql: str, params: Sequence | Mapping | None) -> Future[Rows]:
        return self._thread.submit(self._execute, sql, params)

    def _execute(self, sql: str, params: Sequence | Mapping | None) -> Rows:
        cursor = self.connection.execute(sql, params)
        return cursor.fetchall() if cursor.description else []


def submit(store: PostgresStore, count: int = 1, **fields: Any) -> list[JobSpec]:
    """Submit some jobs of kind `a`."""
    specs = [JobSpec(uuid=uuid4(), kind="a", **fields) for _ in range(count)]
    store.submit(specs)
    return specs


def worker_of(store: PostgresStore, *queues: str) -> int:
    """A new worker that knows kind `a`."""
    return store.register("w", kinds=["a"], queues=queues or ["default"], lease_s=30.0)


def claim_all(store: PostgresStore, worker: int) -> list[Turn]:
    """Claim until nothing is left."""
    turns: list[Turn] = []
    while more := store.claim(worker, limit=1_000, request=uuid4(), floors={}):
        turns += more
    return turns


def jobs_json(count: int, uuids: Sequence[UUID] = (), **fields: object) -> str:
    """A JSON array of jobs, as `timeball.submit` takes it."""
    ids = uuids or [uuid4() for _ in range(count)]
    return json.dumps([{"uuid": str(uuid), "kind": "a", **fields} for uuid in ids])


def claim_of(worker: int, limit: int = 1_000, request: UUID | None = None) -> dict[str, object]:
    """What the statement `claim` takes."""
    ask = request or uuid4()
    return {
        "worker": worker,
        "limit": limit,
        "request": ask,
        "lanes": [],
        "floors": [],
        "newest": None,
        "aging_s": 10.0,
        "permits": "{}",
    }


def expire_of(worker: int, beat: int | None = None, reason: str = "expired") -> dict[str, object]:
    """What the statement `expire` takes, where nothing is known of what had begun."""
    unknown = {"begun_jobs": None, "begun_turns": None}
    return {"worker": worker, "beat": beat, **unknown, "reason": reason}


def settle_of(worker: int, turn: Turn, event: str = "succeeded", delay_s: float = 0.0) -> dict:
    """What the statement `settle` takes for one turn that began."""
    return {
        "worker": worker,
        "lanes": [turn.lane],
        "seqs": [turn.seq],
        "job_ids": [turn.job_id],
        "turns": [turn.turn],
        "events": [event],
        "reasons": [],
        "delays_s": [delay_s],
        "began": [turn.granted_at],
        "ran_s": [0.0],
        "results": [],
        "error_types": [],
        "errors": [],
    }
