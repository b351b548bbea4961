"""`timeball demo --web`: a small company's jobs, to be looked at in the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from timeball.cli.demo_story import LOADS, QUEUES, begin, go_on
from timeball.cli.demonstration import database
from timeball.cli.output import say
from timeball.cli.serving import beside
from timeball.client import Client
from timeball.store.postgres import PostgresStore
from timeball.worker.child import Load
from timeball.worker.config import WorkerConfig
from timeball.worker.supervisor import Supervisor, SupervisorConfig


def show(port: int, *, keep: bool) -> int:
    """Run the story and the dashboard until SIGINT or SIGTERM; return the exit code."""
    with database(keep=keep) as store:
        client = Client(store)
        supervisor = Supervisor(_config(store))
        with beside(client, ("127.0.0.1", port)):
            begin(client)
            say("four queues, five schedules, some failures; Ctrl-C stops")
            with _going_on(client):
                return supervisor.run()


@contextmanager
def _going_on(client: Client) -> Iterator[None]:
    stop = Event()
    thread = Thread(target=go_on, args=(client, stop), name="timeball-story")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _config(store: PostgresStore) -> SupervisorConfig:
    return SupervisorConfig(
        dsn=store.connections.dsn,
        loads=(Load(target=LOADS),),
        worker=WorkerConfig(name="demo", queues=QUEUES, slots=6),
        children=2,
    )
