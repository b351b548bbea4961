"""Processes that die, are stopped, or do not start: the job hears of it, the slot is as new."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.engine import process_jobs as jobs
from tests.engine.process_jobs import alive, eventually, freeze, run, value, waiting_in

from timeball.action.context import StopSign
from timeball.core.outcomes import Raised, Unbegun
from timeball.engine import processes
from timeball.engine.processes import ProcessSlot
from timeball.engine.runner import Done, Ended, Lost

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

UNBEGUN = Unbegun("stopped")
KILLED = Lost("its process was ended by SIGKILL")


@pytest.fixture(scope="module", autouse=True)
def mark() -> Iterator[str]:
    with jobs.marking() as mark:
        yield mark


@pytest.fixture(scope="module")
def shared() -> Iterator[ProcessSlot]:
    slot = ProcessSlot(grace_s=0.1)
    run(slot, jobs.nothing)
    yield slot
    slot.close(5.0)


@pytest.fixture
def slot(shared: ProcessSlot) -> Iterator[ProcessSlot]:
    """Whatever a test does to it, in the end it carries out jobs."""
    yield shared
    assert value(shared, jobs.add, 1) == 2


@pytest.fixture
def aside() -> Iterator[Callable[..., Future[Ended]]]:
    """Runs a job in a thread of its own; what still runs when the test ends is killed."""
    used: list[ProcessSlot] = []

    def submit(slot: ProcessSlot, *args: Any, **options: Any) -> Future[Ended]:
        used.append(slot)
        return pool.submit(run, slot, *args, **options)

    with ThreadPoolExecutor(2) as pool:
        yield submit
        for slot in used:
            slot.kill()


def noted(path: Path) -> int:
    assert eventually(path.exists)
    return int(path.read_text())


# Killed at each step ------------------------------------------------------------------------


def test_killed_before_it_reads_the_job(
    slot: ProcessSlot, aside: Callable[..., Future[Ended]]
) -> None:
    child = value(slot, os.getpid)
    freeze(child)
    assert slot._child is not None
    pipe = slot._child._jobs
    ended = aside(slot, jobs.nothing)
    assert eventually(lambda: waiting_in(pipe) > 0)
    os.kill(child, signal.SIGKILL)
    assert ended.result(10) == KILLED


@pytest.mark.parametrize(
    "deadly",
    [
        pytest.param(partial(jobs.nothing, jobs.DiesOnArrival()), id="reading the job"),
        pytest.param(jobs.die, id="running"),
        pytest.param(jobs.DiesOnTheWay, id="before the answer"),
        pytest.param(jobs.answer_half, id="in the middle of the answer"),
    ],
)
def test_killed_at_any_later_step(slot: ProcessSlot, deadly: Callable[[], object]) -> None:
    child = value(slot, os.getpid)
    assert run(slot, deadly) == KILLED
    assert not alive(child)


def test_killed_while_it_is_idle_costs_no_job(slot: ProcessSlot) -> None:
    child = value(slot, os.getpid)
    os.kill(child, signal.SIGKILL)
    assert eventually(lambda: not alive(child))
    assert value(slot, os.getpid) != child


@pytest.mark.slow
def test_killed_with_its_minder_costs_no_more(slot: ProcessSlot) -> None:
    minder, child = value(slot, os.getppid), value(slot, os.getpid)
    os.kill(minder, signal.SIGKILL)
    assert eventually(lambda: not (alive(minder) or alive(child)))
    assert value(slot, os.getppid) != minder


@pytest.mark.slow
def test_one_exit_among_a_hundred_jobs_costs_one(slot: ProcessSlot) -> None:
    calls: list[tuple[Any, ...]] = [(jobs.add, number) for number in range(100)]
    calls[50] = (os._exit, 1)
    ended = [run(slot, *call) for call in calls]
    assert ended.pop(50) == Lost("its process exited with 1")
    assert all(isinstance(end, Done) for end in ended)


def test_a_forked_copy_of_a_job_has_no_pipes_and_does_not_answer(slot: ProcessSlot) -> None:
    assert value(slot, jobs.descriptors_of_a_copy) == 4  # three, and the folder
    assert value(slot, jobs.fork_and_return) == 70
    assert value(slot, jobs.add, 1) == 2


def test_deaths_cost_no_descriptors(slot: ProcessSlot) -> None:
    minder = value(slot, os.getppid)
    before = [jobs.descriptors(pid) for pid in (os.getpid(), minder)]
    assert [run(slot, jobs.die) for _ in range(3)] == [KILLED] * 3
    assert value(slot, os.getppid) == minder
    assert [jobs.descriptors(pid) for pid in (os.getpid(), minder)] == before


def test_a_job_that_closes_all_descriptors_loses_its_process_only(slot: ProcessSlot) -> None:
    child = value(slot, os.getpid)
    assert isinstance(run(slot, jobs.close_everything), Lost)
    assert not alive(child)


# Time is up ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_timeout_ends_what_has_detached_itself(slot: ProcessSlot, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    child = value(slot, os.getpid)
    ended = run(slot, jobs.detach_and_wait, str(path), timeout_s=1.5)
    assert isinstance(ended, Raised)
    assert (ended.reason, ended.again) == ("timeout", True)
    assert "ran longer than its 1.5 s" in ended.error
    assert not alive(child)
    assert not alive(noted(path))


@pytest.mark.slow
def test_who_defies_sigterm_is_killed_after_the_grace(slot: ProcessSlot, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    begun = time.monotonic()
    ended = run(slot, jobs.defy, str(path), timeout_s=1.0)
    assert time.monotonic() - begun >= 1.0 + 0.1
    assert isinstance(ended, Raised)
    assert not alive(noted(path))


def test_a_timeout_strikes_also_while_the_job_is_being_sent(slot: ProcessSlot) -> None:
    freeze(value(slot, os.getpid))
    ended = run(slot, len, bytes(1 << 20), timeout_s=0.05)
    assert isinstance(ended, Raised)
    assert ended.reason == "timeout"


def test_what_a_job_leaves_behind_ends_with_its_child(slot: ProcessSlot, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    value(slot, jobs.detach, str(path))
    stayed = noted(path)
    value(slot, jobs.add, 1)
    assert alive(stayed)
    assert run(slot, jobs.die) == KILLED
    assert not alive(stayed)


# Stopped ------------------------------------------------------------------------------------


def test_a_stop_ends_the_job_and_what_it_started(
    slot: ProcessSlot, tmp_path: Path, aside: Callable[..., Future[Ended]]
) -> None:
    path, stop = tmp_path / "pid", StopSign()
    ended = aside(slot, jobs.detach_and_wait, str(path), stop=stop)
    stayed = noted(path)
    stop.raise_()
    assert ended.result(10) == UNBEGUN
    assert not alive(stayed)


def test_a_job_that_returns_all_the_same_has_returned(
    slot: ProcessSlot, tmp_path: Path, aside: Callable[..., Future[Ended]]
) -> None:
    path, stop = tmp_path / "pid", StopSign()
    ended = aside(slot, jobs.return_when_asked, str(path), stop=stop)
    child = noted(path)
    stop.raise_()
    assert ended.result(10) == Done("in peace")
    assert not alive(child)


def test_what_is_stopped_before_it_begins_does_not_begin(slot: ProcessSlot) -> None:
    stop = StopSign()
    stop.raise_()
    child = value(slot, os.getpid)
    assert run(slot, jobs.die, stop=stop) == UNBEGUN
    assert value(slot, os.getpid) == child


class RaisedInBetween(StopSign):
    """Raised when the job has looked at it and nothing has been started yet."""

    def when_raised(self, callback: Callable[[], None]) -> None:
        super().when_raised(callback)
        self.raise_()


def test_a_stop_is_heard_also_before_there_is_a_child(
    slot: ProcessSlot, aside: Callable[..., Future[Ended]]
) -> None:
    for _ in range(2):  # with an idle child, and with none
        assert aside(slot, signal.pause, stop=RaisedInBetween()).result(10) == UNBEGUN


def test_a_stop_that_comes_too_late_stops_nobody_else(slot: ProcessSlot) -> None:
    stop = StopSign()
    child = value(slot, os.getpid, stop=stop)
    stop.raise_()
    assert value(slot, os.getpid) == child


@pytest.mark.slow
def test_a_job_can_be_stopped_while_its_child_starts(
    tmp_path: Path, aside: Callable[..., Future[Ended]]
) -> None:
    path, stop = tmp_path / "pid", StopSign()
    slot = ProcessSlot(initializer=partial(jobs.defy, str(path)), grace_s=0.05)
    ended = aside(slot, jobs.nothing, stop=stop)
    child = noted(path)
    stop.raise_()
    assert ended.result(10) == UNBEGUN
    assert not alive(child)
    slot.close(5.0)


@pytest.mark.slow
def test_kill_waits_for_no_grace(
    tmp_path: Path,
    aside: Callable[..., Future[Ended]],
) -> None:
    patient = ProcessSlot(grace_s=60.0)
    for word in (patient.kill, partial(patient.close, 0.0)):
        path, stop = tmp_path / f"{word}", StopSign()
        ended = aside(patient, jobs.defy, str(path), stop=stop)
        child = noted(path)
        stop.raise_()
        word()
        assert ended.result(10) == UNBEGUN
        assert not alive(child)


class Interrupt(BaseException):
    """As Ctrl-C raises one."""


def test_an_answer_that_nobody_waited_for_meets_no_other_job(slot: ProcessSlot) -> None:
    def interrupt(_number: int, _frame: object) -> None:
        raise Interrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    with pytest.raises(Interrupt):
        run(slot, jobs.signal_and_answer, os.getpid())
    signal.signal(signal.SIGUSR1, before)
    assert value(slot, jobs.add, 2) == 3


# Closed -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_closed_slot_lets_the_job_finish_and_carries_out_no_more(
    tmp_path: Path, aside: Callable[..., Future[Ended]]
) -> None:
    slot, path = ProcessSlot(grace_s=0.1), tmp_path / "pid"
    ended = aside(slot, jobs.return_when_asked, str(path))
    child = noted(path)
    slot.retire()
    os.kill(child, signal.SIGTERM)
    slot.close(10.0)
    assert ended.result(0) == Done("in peace")
    assert not alive(child)
    assert run(slot, jobs.add, 1) == UNBEGUN
    slot.close(0.0)


@pytest.mark.slow
def test_a_child_that_does_not_leave_is_killed_at_the_deadline() -> None:
    slot = ProcessSlot(grace_s=60.0)
    value(slot, jobs.linger)
    child = value(slot, os.getpid)
    slot.close(0.05)
    assert not alive(child)


@pytest.mark.slow
def test_not_even_a_frozen_minder_holds_up_the_end(
    tmp_path: Path, aside: Callable[..., Future[Ended]], monkeypatch: pytest.MonkeyPatch
) -> None:
    slot, path = ProcessSlot(grace_s=0.1), tmp_path / "pid"
    minder = value(slot, os.getppid)
    ended = aside(slot, jobs.defy, str(path))
    child = noted(path)
    freeze(minder)
    monkeypatch.setattr(processes, "_PATIENCE_S", 0.1)
    slot.close(0.0)
    assert ended.result(10) == UNBEGUN
    assert eventually(lambda: not alive(child))


PARENT = """
    import os, sys
    from tests.engine import process_jobs as jobs
    from timeball.engine.processes import ProcessSlot
    slot = ProcessSlot(grace_s=0.1, start_method=sys.argv[2])
    jobs.run(slot, jobs.detach, sys.argv[1] + "/left")
    if os.fork() == 0:  # a copy of the parent, with all its descriptors
        jobs.note_and_wait(sys.argv[1] + "/copy")
    jobs.run(slot, jobs.detach_and_wait, sys.argv[1] + "/detached")
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_nothing_outlives_a_parent_that_was_killed(tmp_path: Path, method: str, mark: str) -> None:
    before = jobs.marked(mark)
    path = os.pathsep.join(filter(None, sys.path))
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PARENT), str(tmp_path), method],
        env={**os.environ, "PYTHONPATH": path},
    ) as parent:
        pids = [noted(tmp_path / "left"), noted(tmp_path / "detached")]
        copy = noted(tmp_path / "copy")
        parent.kill()
    assert eventually(lambda: not any(map(alive, pids)))
    os.kill(copy, signal.SIGKILL)
    assert eventually(lambda: set(jobs.marked(mark)) <= set(before))
