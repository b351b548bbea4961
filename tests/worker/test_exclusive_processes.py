"""A worker with an exclusive job is cut off: no second attempt begins while the first one runs."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from uuid import UUID

import pytest
from tests.proxy import Proxy, proxied
from tests.worker.supervision import assert_clean, configured, in_state, submit, until

from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.worker.child import Load
from timeball.worker.supervisor import SupervisorConfig

pytestmark = pytest.mark.slow

LEASE_S = 4.0
APP = """
import os, time
from pathlib import Path
import timeball as tb

HERE = Path(__file__).parent

def run(name, ctx):
    with (HERE / name).open("a", buffering=1) as file:
        while not (HERE / "go").exists():
            file.write(f"{ctx.turn} {os.getppid()} {time.monotonic_ns()}\\n")
            time.sleep(0.01)

@tb.job(name="alone", exclusive=True)
def alone(ctx: tb.Context):
    run("alone", ctx)

@tb.job(name="loose", runner="process")
def loose(ctx: tb.Context):
    run("loose", ctx)
"""


class Trail:
    """What the attempts of a job have left: when each of them was seen to run."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self) -> list[tuple[int, int, int]]:
        if not self.path.exists():
            return []
        *whole, _ = self.path.read_text().split("\n")
        return [(int(t), int(p), int(ns)) for t, p, ns in (row.split() for row in whole)]

    def turns(self) -> set[int]:
        return {turn for turn, _, _ in self.rows()}

    def overlaps(self) -> bool:
        """Whether an attempt still ran once the next one did."""
        rows = self.rows()
        runs = [[ns for turn, _, ns in rows if turn == number] for number in sorted(self.turns())]
        return any(max(first) >= min(second) for first, second in pairwise(runs))

    def worker(self) -> int:
        """The process of the worker: the parent of the minder of the first attempt."""
        minder = self.rows()[0][1]
        return int(Path(f"/proc/{minder}/stat").read_text().rpartition(")")[2].split()[1])


def cut(proxy: Proxy, _supervisor: int, _worker: int) -> None:
    proxy.down()


def freeze_supervisor(_proxy: Proxy, supervisor: int, _worker: int) -> None:
    os.kill(supervisor, signal.SIGSTOP)


def freeze_worker(_proxy: Proxy, _supervisor: int, worker: int) -> None:
    os.kill(worker, signal.SIGSTOP)


def kill_worker(_proxy: Proxy, _supervisor: int, worker: int) -> None:
    os.kill(worker, signal.SIGKILL)


class Scene:
    """A worker behind a proxy, and another one that is never cut off."""

    def __init__(self, store: PostgresStore, folder: Path, proxy: Proxy) -> None:
        (folder / "apart.py").write_text(APP)
        self.store, self.folder, self.proxy = store, folder, proxy

    def config(self, dsn: str) -> SupervisorConfig:
        config = configured(dsn, self.folder, lease_s=LEASE_S, grace_s=0.2)
        return replace(config, loads=(Load(target=str(self.folder / "apart.py")),))

    def begin(self, launch: Callable, kind: str) -> tuple[subprocess.Popen[bytes], UUID, Trail]:
        """The worker behind the proxy has begun a job."""
        process = launch(self.config(self.proxy.dsn))
        uuid, trail = submit(self.store, kind), Trail(self.folder / kind)
        until(trail.rows, "it has begun")
        return process, uuid, trail

    def finish(self, uuid: UUID) -> None:
        (self.folder / "go").touch()
        until(in_state(self.store, uuid, State.SUCCEEDED), "the second attempt has ended it")


@pytest.fixture
def scene(direct: str, store: PostgresStore, folder: Path) -> Iterator[Scene]:
    with proxied(direct) as proxy:
        yield Scene(store, folder, proxy)


@pytest.mark.parametrize(
    "fault", [cut, freeze_supervisor, freeze_worker, kill_worker], ids=lambda fault: fault.__name__
)
def test_the_second_attempt_begins_when_nothing_is_left_of_the_first(
    fault: Callable[[Proxy, int, int], None],
    scene: Scene,
    direct: str,
    launch: Callable,
    supervise: Callable,
) -> None:
    process, uuid, trail = scene.begin(launch, "alone")
    supervise(scene.config(direct))
    until(lambda: len(scene.store.pulses()) == 2, "the other one is there")
    fault(scene.proxy, process.pid, trail.worker())
    until(lambda: len(trail.turns()) > 1, "a second attempt runs")
    scene.finish(uuid)
    assert not trail.overlaps()
    assert_clean(scene.store, 1)


def test_without_it_a_worker_that_is_cut_off_goes_on_and_that_is_recorded(
    scene: Scene, direct: str, launch: Callable, supervise: Callable
) -> None:
    _, uuid, trail = scene.begin(launch, "loose")
    supervise(scene.config(direct))
    until(lambda: len(scene.store.pulses()) == 2, "the other one is there")
    scene.proxy.down()
    until(lambda: 2 in trail.turns(), "the second attempt runs")
    seen = len(trail.rows())
    until(lambda: 1 in {turn for turn, _, _ in trail.rows()[seen:]}, "and so does the first")
    assert trail.overlaps()
    scene.proxy.up()
    scene.finish(uuid)
    until(
        lambda: [row.turn for history in scene.store.histories() for row in history.stale] == [1],
        "the success of the first one was refused, which is on record",
    )
    assert_clean(scene.store, 1)
