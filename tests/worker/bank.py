"""A table that transactional jobs write to, and one worker that runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

import timeball as tb
from timeball.action.registry import Registry
from timeball.core.records import JobSpec, Turn, Verdict
from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.worker.attempt import Bench, TurnAttempt
from timeball.worker.permits import Batch
from timeball.worker.tenure import Tenure

INSERT = "INSERT INTO public.effect VALUES (1)"
Step = str | Callable[[tb.Context], Any]


class Bank:
    """A table that jobs write to, the store, and one worker."""

    def __init__(self, store: PostgresStore, dsn: str) -> None:
        self.store = store
        self.watcher = psycopg.connect(dsn, autocommit=True)
        self.watcher.execute("CREATE TABLE public.effect (n int)")
        self.registry = Registry()
        self.steps: list[Step] = []
        self.bench = Bench(lambda: 0.0, None, transactions=store.transactions)

        @self.registry.job(name="thread", transactional=True)
        def thread(ctx: tb.Context) -> Any:
            said = None
            for step in self.steps:
                said = ctx.connection.execute(step) if isinstance(step, str) else step(ctx)
            return None if isinstance(said, psycopg.Cursor) else said

        @self.registry.job(name="loop", transactional=True)
        async def loop(ctx: tb.Context) -> Any:
            said = None
            for step in self.steps:
                said = ctx.connection.execute(step) if isinstance(step, str) else step(ctx)
                said = await said if hasattr(said, "__await__") else said
            return None if isinstance(said, psycopg.AsyncCursor) else said

        self.worker = self.register()

    def close(self) -> None:
        self.watcher.execute("DROP TABLE public.effect")
        self.watcher.close()

    def register(self) -> int:
        kinds = ["thread", "loop"]
        return self.store.register("w", kinds=kinds, queues=["default"], lease_s=30.0)

    def submit(self, kind: str, **options: Any) -> UUID:
        spec = JobSpec(uuid=uuid4(), kind=kind, **options)
        self.store.submit([spec])
        return spec.uuid

    def claim(self) -> Turn:
        (turn,) = self.store.claim(self.worker, limit=1, request=uuid4(), floors={})
        return turn

    def attempt(self, kind: str, *, permits: Sequence[Batch] = (), **options: Any) -> TurnAttempt:
        """An attempt at a job that does `steps`."""
        self.submit(kind, **options)
        return self.of(self.claim(), permits)

    def of(self, turn: Turn, permits: Sequence[Batch] = ()) -> TurnAttempt:
        kind, tenure = self.registry[turn.kind], Tenure(self.worker)
        return TurnAttempt(turn, kind, tenure, arrived_s=0.0, bench=self.bench, permits=permits)

    def settle(self, attempt: TurnAttempt) -> Verdict:
        """Run an attempt, and have the store told what its transaction has not told it."""
        said = asyncio.run(attempt.run_async()) if attempt.is_async else attempt.run()
        self.said = said
        if attempt.accepted:
            return Verdict.ACCEPTED
        (verdict,) = self.store.settle(self.worker, [said])
        return verdict

    def effects(self) -> int:
        ((count,),) = self.watcher.execute("SELECT count(*) FROM public.effect").fetchall()
        return int(count)

    def sessions(self) -> int:
        """Sessions that somebody has open in a transaction."""
        row = self.watcher.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%%'"
        ).fetchone()
        assert row
        return int(row[0])

    def state(self, attempt: TurnAttempt) -> State:
        return self.store.get(attempt.turn.uuid).state


both = pytest.mark.parametrize("kind", ["thread", "loop"])
