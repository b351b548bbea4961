"""A worker that was given up for dead and comes back changes nothing, and works again."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from uuid import UUID

import pytest
from tests.e2e.programs import Place, Program, until
from tests.e2e.soundness import assert_agrees, assert_sound

from timeball.client import Client
from timeball.core.records import Job
from timeball.core.states import State
from timeball.store.postgres import PostgresStore

pytestmark = pytest.mark.slow

# A turn of `hold` tells where it runs and waits for a gate of its own; `quick` does not wait.
APP = """
import os, time
from pathlib import Path
import timeball as tb

HERE = Path(__file__).parent
EFFECTS = os.open(HERE / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

@tb.job(name="hold")
def hold(context: tb.Context) -> str:
    os.write(EFFECTS, f"{context.id} {context.turn}\\n".encode())
    began = HERE / f"began-{context.turn}"
    began.with_suffix(".new").write_text(str(os.getpid()))
    began.with_suffix(".new").rename(began)
    while not (HERE / f"go-{context.turn}").exists():
        time.sleep(0.01)
    return f"turn {context.turn}"

@tb.job(name="quick")
def quick(context: tb.Context) -> int:
    os.write(EFFECTS, f"{context.id} {context.turn}\\n".encode())
    return os.getpid()
"""


class Stage:
    """One database, the programs that work on it, and a job that they fight about."""

    def __init__(self, place: Place, store: PostgresStore) -> None:
        self.place, self.store, self.client = place, store, Client(store)
        place.write("app.py", APP)
        self.uuid: UUID = self.client.submit("hold").uuid

    def worker(self) -> Program:
        words = ("worker", "-a", "app.py", "--threads", "2", "--lease", "2s", "--poll", "0.1s")
        return self.place.start(*words)

    def began(self, turn: int) -> int:
        """The process in which that turn runs, once it does."""
        path = self.place.work / f"began-{turn}"
        until(path.exists, f"turn {turn} has begun")
        return int(path.read_text())

    def go(self, turn: int) -> None:
        (self.place.work / f"go-{turn}").touch()

    def job(self) -> Job:
        return self.store.get(self.uuid)

    def ended(self) -> bool:
        return self.job().state is State.SUCCEEDED

    def refused(self) -> list[int]:
        return [row.turn for job in self.store.histories() for row in job.stale]

    def assert_works(self, worker: Program, child: int) -> None:
        """See that a worker, and nobody else, still does what comes: it has registered anew."""
        result = self.client.submit("quick").wait(60).result
        assert result == child
        assert worker.stop() == 0
        assert_sound(self.store, 2)
        effects = (self.place.work / "effects").read_text().splitlines()
        assert_agrees(self.store.histories(), effects)


@pytest.fixture
def stage(
    dsn: str, make_place: Callable[[str], Place], open_store: Callable[[str], PostgresStore]
) -> Stage:
    return Stage(make_place(dsn), open_store(dsn))


def test_a_zombie_is_refused_and_recorded_and_works_again(stage: Stage) -> None:
    zombie = stage.worker()
    child = stage.began(1)
    for pid in (zombie.pid, child):
        os.kill(pid, signal.SIGSTOP)
    other = stage.worker()
    assert stage.began(2) != child
    stage.go(2)
    until(stage.ended, "the other has run it")
    before = stage.job()
    assert before.result == "turn 2"

    stage.go(1)
    for pid in (child, zombie.pid):
        os.kill(pid, signal.SIGCONT)
    until(stage.refused, "the zombie has spoken")
    assert stage.refused() == [1]
    assert stage.job() == before
    assert other.stop() == 0
    stage.assert_works(zombie, child)


def test_a_child_whose_supervisor_is_frozen_is_refused_while_the_next_turn_runs(
    stage: Stage,
) -> None:
    frozen = stage.worker()
    child = stage.began(1)
    os.kill(frozen.pid, signal.SIGSTOP)
    other = stage.worker()
    stage.began(2)
    stage.go(1)
    until(stage.refused, "the first turn has ended too late")
    assert (stage.job().state, stage.job().turn) == (State.RUNNING, 2)
    stage.go(2)
    until(stage.ended, "the second turn has ended")
    assert stage.job().result == "turn 2"
    os.kill(frozen.pid, signal.SIGCONT)
    assert other.stop() == 0
    stage.assert_works(frozen, child)


def test_a_zombie_that_wakes_before_the_next_turn_ends_does_not_disturb_it(stage: Stage) -> None:
    zombie = stage.worker()
    child = stage.began(1)
    for pid in (zombie.pid, child):
        os.kill(pid, signal.SIGSTOP)
    other = stage.worker()
    second = stage.began(2)
    stage.go(1)
    for pid in (zombie.pid, child):
        os.kill(pid, signal.SIGCONT)
    until(stage.refused, "the zombie has spoken")
    job = stage.job()
    assert (job.state, job.turn, job.result) == (State.RUNNING, 2, None)
    stage.go(2)
    until(stage.ended, "the second turn has ended")
    assert (stage.job().result, stage.job().attempts) == ("turn 2", 2)
    assert second != child
    assert other.stop() == 0
    stage.assert_works(zombie, child)
