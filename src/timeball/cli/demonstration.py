"""What `timeball demo` does: work, a killed worker, and an audit that counts what became of it."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from timeball.cli.audit import schedule_violations
from timeball.cli.demo_jobs import QUEUE, send, troubled
from timeball.cli.output import say, write, write_table
from timeball.cli.progress import Bar
from timeball.client import Client, Handle
from timeball.client.specs import agenda_of
from timeball.core.audit import Report, audit
from timeball.core.cron import Agenda
from timeball.core.history import JobHistory
from timeball.core.states import TERMINAL, Ending, State
from timeball.errors import TimeballError
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.embedded import EmbeddedPostgres, reset
from timeball.store.postgres.migrate import migrate
from timeball.worker.child import Load
from timeball.worker.config import WorkerConfig
from timeball.worker.supervisor import Supervisor, SupervisorConfig

JOBS: Final = 300
OCCURRENCES: Final = 4
KILL_AFTER: Final = 80
"""So many jobs have ended when a worker is killed."""

SCHEDULE: Final = "demo.tick"
_PATIENCE_S: Final = 120.0
_LOOK_S: Final = 0.05
_FAILED, _VIOLATED = 1, 7


def show(*, keep: bool) -> int:
    """Give the demonstration and return the exit code; only `keep` leaves something behind."""
    signal.signal(signal.SIGTERM, _leave)
    with database(keep=keep) as store:
        say("starting two workers …")
        demonstration = Demonstration(store)
        supervisor = Supervisor(_config(store))
        supervisor.start()
        try:
            demonstration.run(supervisor)
        finally:
            supervisor.stop(now=sys.exc_info()[0] is not None)
            supervisor.wait()
        code = demonstration.verdict()
    if keep:
        say("look around: timeball jobs list, timeball audit")
    return code


class Demonstration:
    """One run of the demo against a store."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._client = Client(store)
        newest = self._client.jobs(limit=1)
        self._floor = newest[0].id if newest else 0
        self._handles: list[Handle] = []
        self._tables: dict[str, Agenda] = {}
        self._killed = 0
        self._endings: Counter[Ending] = Counter()
        self._occurrences = 0

    def run(self, supervisor: Supervisor) -> None:
        """Submit, kill a worker in the middle of its work, and wait until all is done."""
        client = self._client
        client.schedule(SCHEDULE, SCHEDULE, cron="* * * * * *", tz="UTC", source=QUEUE, queue=QUEUE)
        self._tables = {each.spec.name: agenda_of(each.spec) for each in client.schedules()}
        numbers = range(1, JOBS + 1)
        self._handles = client.submit_many(send, [{"number": number} for number in numbers])
        with Bar("jobs", JOBS) as bar:
            _until(lambda: self._ended(bar) >= KILL_AFTER)
            _until(lambda: self._kill_one(supervisor))
            bar.say("a worker was killed in the middle of its jobs (SIGKILL)")
            _until(lambda: self._ended(bar) >= JOBS + OCCURRENCES)
            client.withdraw(QUEUE, keep=())
            _until(self._quiet)
            bar.advance(JOBS)

    def verdict(self) -> int:
        """Write the audit's table and return the exit code."""
        report = self._audit()
        failed = report.states.get(State.FAILED, 0)
        succeeded = report.states.get(State.SUCCEEDED, 0)
        rows = [
            ("submitted", len(self._handles), ""),
            ("occurrences", self._occurrences, "of a schedule, each one job"),
            ("succeeded", succeeded, ""),
            ("failed", failed, "on purpose: an error that no retry can mend"),
            ("retried", self._endings[Ending.RETRIED], "attempts that failed and were repeated"),
            ("workers killed", self._killed, ""),
            ("cut off", self._endings[Ending.LOST], "attempts by that, begun again elsewhere"),
            ("lost", report.lost, ""),
            ("twice", report.twice, ""),
        ]
        write_table(("what", "count", ""), rows)
        for violation in report.violations:
            write(str(violation))
        if not report.clean:
            return _VIOLATED
        right = self._as_planned() and failed == 1
        right = right and succeeded == JOBS - 1 + self._occurrences and self._killed == 1
        say("the audit is clean" if right else "the audit is clean, but the figures are not right")
        return 0 if right else _FAILED

    def _audit(self) -> Report:
        def ours() -> Iterator[JobHistory]:
            for history in self._store.histories():
                if history.id > self._floor and history.kind.startswith(f"{QUEUE}."):
                    self._endings.update(row.ending for row in history.endings)
                    yield history

        decided = [
            (record, list(rows))
            for record, rows in self._store.schedule_histories()
            if record.name == SCHEDULE
        ]
        jobs = [row.job_id for _, rows in decided for row in rows if row.job_id]
        self._occurrences = sum(job_id > self._floor for job_id in jobs)
        accepted = len(self._handles) + self._occurrences
        report = audit(ours(), quiesced=True, accepted=accepted)
        return report.including(schedule_violations(decided, self._tables))

    def _as_planned(self) -> bool:
        """Return whether the jobs that were to fail twice were tried three times."""
        jobs = [self._client.get(each) for each in self._handles]
        return all(job.attempts > 2 for job in jobs if troubled(job.args["number"]))  # noqa: PLR2004 - after two failures

    def _ended(self, bar: Bar) -> int:
        counts = self._client.counts(QUEUE)
        ended = sum(counts[state] for state in TERMINAL)
        bar.advance(ended)
        return ended

    def _quiet(self) -> bool:
        counts = self._client.counts(QUEUE)
        return not any(count for state, count in counts.items() if state not in TERMINAL)

    def _kill_one(self, supervisor: Supervisor) -> bool:
        """Kill a worker process that is in the middle of a job; return whether there was one."""
        busy = {job.worker for job in self._client.jobs(state=State.RUNNING, queue=QUEUE)}
        for child in supervisor.children():
            if child.workers & busy:
                os.kill(child.pid, signal.SIGKILL)
                self._killed += 1
                return True
        return False


def _until(done: Callable[[], bool]) -> None:
    """Look until it is done."""
    deadline = time.monotonic() + _PATIENCE_S
    while not done():
        if time.monotonic() > deadline:
            raise TimeballError(f"the demo did not get on for {_PATIENCE_S:.0f} s")
        time.sleep(_LOOK_S)


def _config(store: PostgresStore) -> SupervisorConfig:
    return SupervisorConfig(
        dsn=store.connections.dsn,
        loads=(Load(target="timeball.cli.demo_jobs"),),
        worker=WorkerConfig(name="demo", queues=(QUEUE,)),
        children=2,
    )


@contextmanager
def database(*, keep: bool) -> Iterator[PostgresStore]:
    """Lend a store on a database of its own; only `keep` leaves it behind."""
    folder = None if keep else Path(tempfile.mkdtemp(prefix="timeball-demo-"))
    server = EmbeddedPostgres(folder)
    try:
        store = PostgresStore(server.start())
        try:
            migrate(store.connections)
            yield store
        finally:
            store.close()
    finally:
        server.stop()
        if folder is not None:
            reset(folder)


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)
