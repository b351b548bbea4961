"""Running what `up` has read: the database, the schedules, the workers, and news of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

from timeball.cli.database import given_dsn
from timeball.cli.declared import Reading
from timeball.cli.job_text import summary
from timeball.cli.monitoring import say_url
from timeball.cli.output import say, shown
from timeball.cli.serving import beside
from timeball.client import Client
from timeball.client.connect import open_store
from timeball.core.records import Job
from timeball.core.states import TERMINAL
from timeball.errors import StoreUnavailable
from timeball.observe.transitions import LogFormat, configure
from timeball.store.base import Store
from timeball.worker.config import WorkerConfig
from timeball.worker.supervisor import Supervisor, SupervisorConfig

_NEWS_S = 0.5
_PAGE = 200
_FOLLOWED = 1_000
"""So many of the newest open jobs are asked about: others may submit any number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """How what was read is run."""

    dsn: str | None
    slots: int
    children: int
    utc: bool
    """Whether instants are told in UTC."""

    metrics: tuple[str, int] | None
    web: tuple[str, int] | None
    """Where the dashboard is; None: nowhere."""

    results: Path | None
    """A folder of runs of certify, for the dashboard."""

    log: LogFormat


def run(reading: Reading, how: Running) -> int:
    """Declare the schedules and run them until SIGTERM or SIGINT; return the exit code."""
    configure(how.log)
    if given_dsn(how.dsn) is None:
        say("starting PostgreSQL, or joining it …")
    store, close = open_store(how.dsn)
    try:
        declare(store, reading)
        config = SupervisorConfig(
            dsn=store.connections.dsn,
            loads=tuple(reading.loads),
            worker=WorkerConfig(
                name=f"up-{os.getpid()}", queues=tuple(sorted(reading.queues)), slots=how.slots
            ),
            children=how.children,
            metrics=how.metrics,
            log=how.log,
        )
        supervisor = Supervisor(config)
        say(f"{how.children} worker(s) of {how.slots} slots; Ctrl-C stops")
        say_url(supervisor.metrics_url)
        client = Client(store)
        with beside(client, how.web, how.results), _told(client, utc=how.utc):
            return supervisor.run()
    finally:
        close()


def declare(store: Store, reading: Reading) -> None:
    """Make the schedules of the store those of the files: new, changed and withdrawn ones."""
    client = Client(store)
    for each in reading.schedules:
        client.declare(each.spec)
        if each.paused:
            client.pause_schedule(each.spec.name)
    names = [each.spec.name for each in reading.schedules]
    for source in reading.sources:
        for name in store.withdraw(source, keep=names):
            say(f"withdrawn, for it is no longer in its file: {name}")


@contextmanager
def _told(client: Client, *, utc: bool) -> Iterator[None]:
    """Write a line for every job that is added and every job that ends, while the block runs."""
    stop = Event()
    thread = Thread(target=_tell, args=(News(client), stop, utc), name="timeball-news")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _tell(news: News, stop: Event, utc: bool) -> None:  # noqa: FBT001 - a thread's arguments
    while True:
        last = stop.wait(_NEWS_S)
        try:
            for job in news.take():
                instant = shown(job.ended_at or job.created_at, utc=utc)
                what = job.state if job.state in TERMINAL else "added"
                say(f"{instant}  {job.kind}  {what} {summary(job)}".rstrip())
        except StoreUnavailable:
            pass  # the supervisor has said so; the next look finds what this one missed
        if last:
            return


class News:
    """Which jobs are new and which have ended since one last looked."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known = {job.id for job in client.jobs(limit=_PAGE)}
        self._open: dict[int, Job] = {}

    def take(self) -> list[Job]:
        """Return jobs that are new, then jobs that have ended."""
        added = self._added()
        self._open |= {job.id: job for job in added}
        for job_id in list(self._open)[:-_FOLLOWED]:
            del self._open[job_id]
        ended_uuids = self._client.store.ended([job.uuid for job in self._open.values()])
        ended = [self._client.get(uuid) for uuid in sorted(ended_uuids)]
        for job in ended:
            del self._open[job.id]
        return [*(job for job in added if job.state not in TERMINAL), *ended]

    def _added(self) -> list[Job]:
        """Return the jobs since the last look, oldest first; the latest of them where many."""
        newest = self._client.jobs(limit=1)
        if all(job.id in self._known for job in newest):
            return []
        page = self._client.jobs(limit=_PAGE)
        # Not by their numbers: a job may become visible after one with a higher number.
        added = [job for job in page if job.id not in self._known]
        self._known = {job.id for job in page}
        return added[::-1]
