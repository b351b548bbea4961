"""Forks, shutdown, and the end of the program."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.conftest import PATIENCE_S, eventually

from timeball import Scheduler, SchedulerClosed
from timeball.core.states import State

Make = Callable[..., Scheduler]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_copy_refuses_and_the_original_is_unharmed(scheduler: Make) -> None:
    s = scheduler()
    handle = s.submit(pow, 2, 3)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            s.submit(pow, 2, 2)
        except SchedulerClosed as error:
            code = 0 if "forked" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert handle.result(PATIENCE_S) == 8
    assert s.submit(pow, 2, 2).result(PATIENCE_S) == 4


# Exit


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.slow
def test_the_exit_of_the_program_does_not_hang_and_names_what_was_left() -> None:
    code = (
        "import threading, timeball.engine.scheduler as m\n"
        "def hangs(): threading.Event().wait()\n"
        "s = m.Scheduler(workers=1)\n"
        "s.submit(hangs); s.submit(pow, 2, 2)\n"
        "m.Scheduler.shutdown.__kwdefaults__['deadline_s'] = 0.3\n"
    )
    done = run(code)
    assert done.returncode == 0
    assert "given up" in done.stderr
    assert "1 (hangs)" in done.stderr


@pytest.mark.slow
def test_the_exit_of_the_program_drains_what_was_submitted() -> None:
    code = (
        "import sys\nfrom timeball import Scheduler\n"
        "s = Scheduler(workers=2)\n"
        "for n in range(20): s.submit(sys.stdout.write, f'job {n}\\n')\n"
    )
    done = run(code)
    assert sorted(done.stdout.split("\n")) == sorted([f"job {n}" for n in range(20)] + [""])


# Shutdown


@pytest.mark.parametrize("mode", ["drain", "cancel", "abort"])
def test_after_shutdown_nothing_starts_and_everything_has_ended(scheduler: Make, mode: Any) -> None:
    s, gate, started = scheduler(workers=1), threading.Event(), threading.Event()

    def body() -> None:
        started.set()
        gate.wait(PATIENCE_S)

    running = s.submit(body)
    others = [s.submit(pow, 2, n) for n in range(3)] + [s.submit(pow, 2, 2, delay_s=0.01)]
    assert started.wait(PATIENCE_S)
    threading.Timer(0.02, gate.set).start()
    s.shutdown(mode, deadline_s=PATIENCE_S)
    expected = State.SUCCEEDED if mode == "drain" else State.CANCELLED
    assert {job.state for job in others} == {expected}
    assert running.state is State.SUCCEEDED
    with pytest.raises(SchedulerClosed):
        s.submit(pow, 2, 2)


def test_abort_cancels_coroutines(scheduler: Make) -> None:
    s, started = scheduler(), threading.Event()

    async def for_ever() -> None:
        started.set()
        await asyncio.Event().wait()

    handle = s.submit(for_ever)
    assert started.wait(PATIENCE_S)
    s.shutdown("abort", deadline_s=PATIENCE_S)
    assert handle.state is State.CANCELLED


def test_a_job_that_never_returns_is_given_up_at_the_deadline(
    scheduler: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    s, gate = scheduler(workers=1), threading.Event()
    handles = [s.submit(gate.wait), s.submit(pow, 2, 2)]
    s._crew.join = lambda: None  # type: ignore[method-assign]  # its second is not this test's
    s.shutdown(deadline_s=0.02)
    assert [handle.state for handle in handles] == [State.CANCELLED] * 2
    assert "given up, since they did not end in time: 1 (" in capsys.readouterr().err
    gate.set()  # what it says now is not heard
    eventually(lambda: s._engine.agenda.tally.stale == 1)
    assert handles[0].state is State.CANCELLED


def test_an_exception_in_the_block_cancels_what_has_not_begun() -> None:
    gate = threading.Event()
    with pytest.raises(ZeroDivisionError), Scheduler(workers=1) as s:  # noqa: PT012 - the block
        first, second = s.submit(gate.wait), s.submit(pow, 2, 2)
        eventually(lambda: first.state is State.RUNNING)
        threading.Timer(0.02, gate.set).start()
        raise ZeroDivisionError
    assert (first.state, second.state) == (State.SUCCEEDED, State.CANCELLED)


def test_the_end_of_the_block_waits_for_all() -> None:
    with Scheduler(workers=2) as s:
        handles = [s.submit(pow, 2, n, delay_s=0.01) for n in range(10)]
    assert [handle.result(0) for handle in handles] == [2**n for n in range(10)]
    s.shutdown()  # again, which does nothing


def test_submitters_that_wait_for_room_are_turned_away(scheduler: Make) -> None:
    s, gate = scheduler(workers=1, max_pending=2), threading.Event()
    first = s.submit(gate.wait)
    eventually(lambda: first.state is State.RUNNING)
    pending = [s.submit(pow, 2, n) for n in range(2)]
    told: list[BaseException] = []

    def submits() -> None:
        try:
            s.submit(pow, 2, 9)
        except SchedulerClosed as error:
            told.append(error)

    threads = [threading.Thread(target=submits) for _ in range(3)]
    for thread in threads:
        thread.start()
    room = s._engine.room
    assert room is not None
    eventually(lambda: len(room._line) == 3)
    threading.Timer(0.02, gate.set).start()
    s.shutdown("cancel", deadline_s=PATIENCE_S)
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(told) == 3
    assert {job.state for job in pending} == {State.CANCELLED}


def test_a_scheduler_in_a_job_of_a_scheduler_ends(scheduler: Make) -> None:
    def inner() -> int:
        with Scheduler(workers=2) as s:
            return sum(s.map(pow, [2] * 5, range(5)))

    assert scheduler(workers=2).submit(inner).result(PATIENCE_S) == 31


def test_a_bug_of_ours_is_told_to_whoever_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    s, gate = Scheduler(workers=1), threading.Event()
    s.submit(gate.wait)
    handle = s.submit(pow, 2, 2)
    monkeypatch.setattr(threading, "excepthook", lambda *_: None)
    monkeypatch.setattr(s._engine.agenda, "finish", None)
    gate.set()
    with pytest.raises(AssertionError, match="a bug of ours"):
        handle.result(PATIENCE_S)
    with pytest.raises(SchedulerClosed):
        s.submit(pow, 2, 2)
    s.shutdown(deadline_s=0)
