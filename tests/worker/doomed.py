"""A program that does all that a supervisor and its worker do, and dies at one statement.

    python -m tests.worker.doomed DSN FOLDER [NAME DETAIL MOMENT]

It kills itself with SIGKILL just before the statement of that name is sent, or just after the
database has carried it out, the first time that its parameters fit the detail. Without a name it
lives until SIGTERM, which lets it end in order.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from random import random
from threading import Event, Thread
from typing import Any

import psycopg

import timeball as tb
from timeball.action.registry import Registry
from timeball.core.upkeep import Keep
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import statement
from timeball.worker.beat import Beat
from timeball.worker.config import WorkerConfig
from timeball.worker.loop import Worker
from timeball.worker.retention import Retention
from timeball.worker.rounds import deadlines, linking
from timeball.worker.sweeper import Sweeper
from timeball.worker.ticker import Ticker

LEASE_S = 1.0
KINDS = ("ends", "retries", "fails", "snoozes", "writes", "spawns", "stays")


def names() -> dict[str, str]:
    """The name of each statement by its text."""
    folder = files("timeball.store.postgres") / "sql"
    found = [each.name.removesuffix(".sql") for each in folder.iterdir()]
    return {statement(name): name for name in found}


def doom(name: str, detail: str, moment: str) -> None:
    """Have this process killed at a statement, whoever sends it: all go through a cursor."""
    known, execute = names(), psycopg.Cursor.execute

    def fits(params: dict[str, Any]) -> bool:
        return not detail or detail in [*params.get("events", ()), params.get("reason")]

    def deadly(cursor: psycopg.Cursor, query: Any, params: Any = None, **options: Any) -> Any:
        hit = known.get(query) == name and fits(params or {})
        if hit and moment == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        answer = execute(cursor, query, params, **options)
        if hit:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    psycopg.Cursor.execute = deadly  # type: ignore[method-assign]  # where all statements pass


def add_plain(registry: Registry, mark: Callable[[tb.Context], None]) -> None:
    """Kinds that end in the four plain ways, each of which leaves a mark beside the ledger."""

    @registry.job(name="ends")
    def ends(context: tb.Context) -> None:
        mark(context)

    @registry.job(name="retries", retry=tb.Retry(3, base_s=0.02, cap_s=0.05))
    def retries(context: tb.Context) -> None:
        mark(context)
        if context.attempt == 1:
            raise ConnectionError("the first time it fails")

    @registry.job(name="fails")
    def fails(context: tb.Context) -> None:
        mark(context)
        raise tb.PermanentError("always")

    @registry.job(name="snoozes")
    def snoozes(context: tb.Context) -> tb.Snooze | None:
        mark(context)
        return tb.Snooze(0.02) if context.attempt == 1 else None


def add_others(registry: Registry, mark: Callable[..., None], *, dying: bool) -> None:
    """Kinds that write in the database, spawn, and go on where the process is to die."""

    @registry.job(name="writes", transactional=True)
    def writes(context: tb.Context) -> None:
        mark(context)
        context.connection.execute("INSERT INTO public.effect VALUES (%s)", [context.id])

    @registry.job(name="spawns")
    def spawns(context: tb.Context) -> None:
        mark(context, alone=True)  # its last turn calls nothing
        context.spawn("ends", after=[context.spawn("ends")])

    @registry.job(name="stays")
    async def stays(context: tb.Context) -> None:
        mark(context)
        if dying:
            await asyncio.Event().wait()


def main(dsn: str, folder: Path, *point: str) -> None:
    """Work until SIGTERM, or until the end comes."""
    if point:
        doom(*point)
    effects = os.open(folder / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def mark(context: tb.Context, *, alone: bool = False) -> None:
        os.write(effects, f"{context.id}{'' if alone else f' {context.turn}'}\n".encode())

    registry = Registry()
    add_plain(registry, mark)
    add_others(registry, mark, dying=bool(point))
    store, alive, stop = PostgresStore(dsn), set[int](), Event()
    config = WorkerConfig(name="doomed", slots=8, lease_s=LEASE_S, poll_s=0.1, drain_s=0.1)
    worker = Worker(
        store,
        registry,
        config,
        draw=random,
        on_registered=alive.add,
    )
    worker.lend(transactions=store.transactions)
    signal.signal(signal.SIGTERM, lambda _number, _frame: worker.stop())
    beat = Beat(PostgresStore(dsn), lambda: alive, alive.difference_update, lease_s=LEASE_S)
    keep = Keep(succeeded_s=3600.0, others_s=3600.0)
    duties = (Ticker(store), deadlines(store), linking(store), Retention(store, keep))
    for duty in (*duties, Sweeper(store), beat):
        Thread(target=duty.run, args=(stop,), daemon=True).start()
    Thread(target=store.listen, args=(worker.wake, stop), daemon=True).start()
    worker.work()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
