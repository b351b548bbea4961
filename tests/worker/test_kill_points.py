"""A worker is killed before and after each statement that it sends: nothing is lost or doubled."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import psycopg
import pytest
from tests.e2e.programs import until
from tests.e2e.soundness import assert_agrees, assert_sound
from tests.worker.doomed import KINDS

from timeball.action.job_specs import job_spec
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.standing import standing
from timeball.core.states import TERMINAL, Ending
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.listen import DIRECT

ANOTHER_SERVER = "UPDATE timeball.home SET system = system + 1"
BROKEN_ZONE = "UPDATE timeball.schedule SET tz = 'No/Where' WHERE name = 'broken'"


class Point(NamedTuple):
    """A statement, and which of those that are sent under its name."""

    name: str
    detail: str = ""
    """An event or a reason among its parameters."""

    orderly: bool = False
    """Whether it is sent only by a worker that is told to stop."""


POINTS = (
    Point("register"),
    Point("backend"),
    Point("listen"),
    Point("claim"),
    Point("lease_turns"),
    Point("beat"),
    *(Point("settle", event) for event in ("succeeded", "retried", "snoozed", "failed")),
    Point("settle", "released", orderly=True),
    Point("begin_within"),
    Point("settle_within"),
    Point("cancels"),
    Point("promote"),
    Point("pulses"),
    Point("expire", "expired"),
    Point("expire", "retired", orderly=True),
    Point("lapse"),
    Point("trim_jobs"),
    Point("trim_leases"),
    Point("zones"),
    Point("admit"),
    Point("begin_tick"),
    Point("take_due"),
    Point("fire"),
    Point("notify"),
    Point("suspend"),
    Point("link"),
    Point("spawn"),
    Point("move_in"),
)

# Statements that no worker sends, or only one that does nothing else by them -> why no point.
_CLIENT = "a client's; a lost answer to it is no worker's death"
_READING = "changes nothing, and no worker waits for it"
_MIGRATION = "sent before there is a worker"
ELSEWHERE = {
    **dict.fromkeys(
        ("submit", "ensure_lanes", "cancel", "revive", "delete_jobs", "admit_keys", "backfill"),
        _CLIENT,
    ),
    **dict.fromkeys(("declare", "withdraw", "remove", "pause", "resume", "run_now"), _CLIENT),
    **dict.fromkeys(("set_limit", "lift_limit", "set_rate", "lift_rate", "bound_queue"), _CLIENT),
    **dict.fromkeys(("add_edges", "add_members", "cancel_many", "close_batch", "reopen"), _CLIENT),
    **dict.fromkeys(("pause_queue", "pass_lanes", "resume_queue", "move", "snooze"), _CLIENT),
    "call_back": "a server's; a lost answer to it is asked for again",
    **dict.fromkeys(("batch", "batches", "batch_left", "batch_members"), _READING),
    **dict.fromkeys(("get", "jobs", "counts", "ended", "deleted", "depths"), _READING),
    **dict.fromkeys(("limits", "rates", "queues", "now", "cron_lag"), _READING),
    **dict.fromkeys(("leases", "parents", "logs"), _READING),
    **dict.fromkeys(("begin_reading", "recent_endings", "recent_failures"), _READING),
    **dict.fromkeys(
        (
            "recent_starts",
            "recent_permitted",
            "schedules_ahead",
            "workers",
            "job_turns",
            "job_events",
            "latest_change",
            "marks",
            "jobs_ended",
            "jobs_held",
            "jobs_running",
            "horizon",
            "held_states",
        ),
        _READING,
    ),
    **dict.fromkeys(("around", "around_jobs"), _READING),
    **dict.fromkeys(
        (
            "doctor_clock",
            "doctor_indexes",
            "doctor_kinds",
            "doctor_schedules",
            "doctor_server",
            "doctor_sessions",
            "doctor_tables",
            "doctor_workers",
        ),
        _READING,
    ),
    **dict.fromkeys(("begin_operation", "end_operation", "operations"), _CLIENT),
    "permits": "what is granted and not used runs out by itself, as is tested without a process",
    "trim_permits": "deletes in one statement what changes nothing",
    "note": "what a job says while it runs, which decides nothing about any job",
    **dict.fromkeys(("schedule", "schedules", "occurrences", "read_snapshot", "ping"), _READING),
    "in_zone": "only where zone data are older: `fire` follows it, and has a point",
    **dict.fromkeys(
        ("create_schema", "has_schema", "migrations", "migration_applied", "migration_begin"),
        _MIGRATION,
    ),
    **dict.fromkeys(
        ("migration_table", "migration_index", "migration_drop", "migration_lock"), _MIGRATION
    ),
}


def test_every_statement_has_a_kill_point_or_a_reason_why_not() -> None:
    folder = files("timeball.store.postgres") / "sql"
    found = {each.name.removesuffix(".sql") for each in folder.iterdir()}
    found -= {name for name in found if name.startswith("history_")}  # of audits, reading
    points = {point.name for point in POINTS}
    assert not points & ELSEWHERE.keys()
    assert found == points | ELSEWHERE.keys()


class Stage:
    """A database with jobs and schedules, and the processes that work on them one by one."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.store, self._dsn, self._folder = PostgresStore(dsn), dsn, folder
        self.watcher = psycopg.connect(dsn, autocommit=True)
        self.watcher.execute("CREATE TABLE public.effect (job uuid)")
        self.effects = folder / "effects"
        self.effects.touch()
        self.jobs: dict[UUID, str] = {}
        self._processes: list[subprocess.Popen[bytes]] = []
        for name in ("steady", "broken"):
            spec = schedule_spec(name, "ends", cron="@every 1s", tz="UTC", catchup="all")
            self.store.declare(spec, standing(agenda_of(spec), self.store.now()))

    def submit(self) -> None:
        specs = [job_spec(kind, {"max_crashes": 1_000}) for kind in KINDS for _ in range(2)]
        self.store.submit(specs)
        self.jobs |= {spec.uuid: spec.kind for spec in specs}
        self.watcher.execute("UPDATE timeball.schedule SET state = 'active', error = NULL")
        self.watcher.execute(BROKEN_ZONE)

    def start(self, *point: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", "tests.worker.doomed", self._dsn, str(self._folder), *point]
        with (self._folder / f"log-{len(self._processes)}").open("wb") as log:
            root = Path(__file__).parents[2]
            self._processes.append(subprocess.Popen(argv, cwd=root, stderr=log))
        return self._processes[-1]

    def die(self, point: Point, moment: str) -> None:
        """Have a process work until it kills itself there."""
        self.submit()
        if point.name == "move_in":
            self.watcher.execute(ANOTHER_SERVER)
        stay = {str(uuid) for uuid, kind in self.jobs.items() if kind == "stays"}
        before = len(self.marks())
        process = self.start(point.name, point.detail, moment)
        if point.orderly:
            until(
                lambda: stay.intersection(self.marks()[before:]) or process.poll() is not None,
                "one that stays has begun",
            )
            process.send_signal(signal.SIGTERM)
        until(lambda: process.poll() is not None, f"it dies {moment} {point}")
        assert process.returncode == -signal.SIGKILL, self.log()

    def finish(self) -> None:
        """Have a process finish all that there is, and end in order."""
        process = self.start()
        until(
            lambda: (
                process.poll() is not None
                or all(self.store.get(uuid).state in TERMINAL for uuid in self.jobs)
            ),
            "every job has ended",
        )
        for name in ("steady", "broken"):
            self.store.remove(name)
        until(
            lambda: not set(self.store.counts()) - TERMINAL or process.poll() is not None,
            "those of the schedules too",
        )
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0, self.log()

    def marks(self) -> list[str]:
        return [line.split()[0] for line in self.effects.read_text().splitlines()]

    def log(self) -> str:
        return (self._folder / f"log-{len(self._processes) - 1}").read_text()

    def end(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()
        self.watcher.execute("DROP TABLE public.effect")
        self.watcher.close()
        self.store.close()


@pytest.fixture
def stage(
    dsn: str, direct: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    if dsn != direct:  # through a proxy of transactions nobody listens
        monkeypatch.setenv(DIRECT, direct)
    stage = Stage(dsn, tmp_path)
    yield stage
    stage.end()


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS, ids=lambda each: f"{each.name} {each.detail}".strip())
def test_a_worker_killed_at_a_statement_loses_nothing_and_doubles_nothing(
    stage: Stage, point: Point
) -> None:
    if point == ("expire", "expired", False):
        stage.die(Point("lease_turns"), "after")  # so that there is somebody to give up
    for moment in ("before", "after"):
        stage.die(point, moment)
    stage.finish()

    assert_sound(stage.store)
    histories = list(stage.store.histories())
    assert {job.uuid for job in histories} >= stage.jobs.keys()
    assert_agrees(histories, stage.effects.read_text().splitlines())
    wanted = {uuid: Ending.FAILED if kind == "fails" else Ending.SUCCEEDED
              for uuid, kind in stage.jobs.items()}  # fmt: skip
    ended = {job.uuid: job.endings[-1].ending for job in histories if job.uuid in wanted}
    assert {uuid: ended[uuid] for uuid in wanted if ended[uuid] is not wanted[uuid]} == {}
    written = Counter(row[0] for row in stage.watcher.execute("SELECT job FROM public.effect"))
    assert written == {uuid: 1 for uuid, kind in stage.jobs.items() if kind == "writes"}
