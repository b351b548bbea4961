"""A scheduler whose jobs run in processes: what it takes in, and what becomes of it."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engine import process_jobs as jobs
from tests.engine.conftest import PATIENCE_S, eventually

from timeball import Context, Processes, Retry, Scheduler
from timeball.core.records import CancelAnswer
from timeball.core.states import State
from timeball.errors import UsageError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

Make = Callable[..., Scheduler]


class Locked:
    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("it holds a lock")

    def __call__(self) -> None: ...


async def is_on_the_loop() -> int:
    return os.getpid()


def takes_a_context(context: Context) -> str:
    return context.kind


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: 1, "write a def in a module"),
        (functools.partial(lambda: 1), "write a def in a module"),
        (Locked(), "give a function from the top level of a module"),
        (takes_a_context, "leave the parameter out, or use runner='threads'"),
    ],
)
def test_what_no_process_could_call_is_refused_at_submit(
    scheduler: Make, call: Callable[..., Any], advice: str
) -> None:
    def inner() -> None: ...

    s = scheduler(1, runner="processes")
    with pytest.raises(UsageError, match=advice):
        s.submit(call)
    with pytest.raises(UsageError, match="move it to the top level of a module"):
        s.submit(inner)
    assert sum(s.counts().values()) == 0


def test_a_coroutine_runs_on_the_loop_whatever_the_runner_is(scheduler: Make) -> None:
    assert scheduler(1, runner="processes").submit(is_on_the_loop).result(20) == os.getpid()


@pytest.mark.slow
def test_a_runner_made_by_hand_has_its_options_and_is_ended_by_its_scheduler(
    scheduler: Make,
) -> None:
    with jobs.marking() as mark:
        runner = Processes(initializer=jobs.keep, start_method="spawn", grace_s=0.1)
        s = scheduler(1, runner=runner)
        assert len(s.submit(jobs.keep).result(PATIENCE_S)) == 2
        assert jobs.marked(mark)
        s.shutdown()
        assert jobs.eventually(lambda: not jobs.marked(mark))


def test_wrong_options_of_processes_are_refused() -> None:
    with pytest.raises(UsageError, match="write 'forkserver' or 'spawn'"):
        Processes(start_method="fork")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="write seconds, 0 or more"):
        Processes(grace_s=-1)
    with pytest.raises(UsageError, match="write a def in a module"):
        Processes(initializer=lambda: None)


@pytest.mark.slow
def test_a_cancelled_job_in_a_process_is_ended_and_is_not_tried_again(
    scheduler: Make, tmp_path: Path
) -> None:
    s = scheduler(1, runner=Processes(grace_s=0.0), retry=Retry(5, base_s=0))
    stays = s.submit(jobs.note_and_wait, path := str(tmp_path / uuid.uuid4().hex))
    eventually(Path(path).exists)
    assert stays.cancel() is CancelAnswer.REQUESTED
    s.wait(timeout_s=PATIENCE_S)
    assert (stays.state, len(s.records())) == (State.CANCELLED, 1)
    assert not jobs.alive(int(Path(path).read_text()))
    assert s.submit(jobs.add, 1).result(PATIENCE_S) == 2


@pytest.mark.slow
def test_a_job_past_its_timeout_is_ended_with_its_process_and_tried_again(
    scheduler: Make, tmp_path: Path
) -> None:
    s = scheduler(1, runner=Processes(grace_s=0.0), retry=Retry(1, base_s=0))
    late = s.submit(jobs.note_and_wait, str(tmp_path / "pid"), timeout_s=0.05)
    s.wait(timeout_s=PATIENCE_S)
    assert (late.state, late.reason, late.retry_count) == (State.FAILED, "timeout", 1)


@pytest.mark.slow
def test_a_result_that_cannot_be_pickled_fails_its_job_with_its_repr(scheduler: Make) -> None:
    s = scheduler(1, runner="processes")
    unfit = s.submit(jobs.give, Unfit)
    s.wait(timeout_s=PATIENCE_S)
    assert unfit.reason == "result-not-transferable"
    assert "<unfit 7>" in str(unfit.error)
    assert s.submit(jobs.add, 1).result(PATIENCE_S) == 2


class Unfit:
    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TypeError("it holds a lock")

    def __repr__(self) -> str:
        return "<unfit 7>"


@pytest.mark.slow
def test_14_tiny_jobs_by_the_thousand_come_to_an_end(scheduler: Make) -> None:
    s = scheduler(2, runner="processes")
    for number in range(5_000):
        s.submit(jobs.nothing, number)
    s.wait(timeout_s=5 * PATIENCE_S)
    assert s.counts()[State.SUCCEEDED] == 5_000


@pytest.mark.slow
def test_16_one_exit_among_a_hundred_jobs_fails_that_one_alone(scheduler: Make) -> None:
    s = scheduler(2, runner="processes")
    handles = [s.submit(*((os._exit, 1) if n == 50 else (jobs.add, n))) for n in range(100)]
    s.wait(timeout_s=PATIENCE_S)
    deadly = handles.pop(50)
    assert (deadly.state, deadly.reason) == (State.FAILED, "quarantined")
    assert [handle.result() for handle in handles] == [n + 1 for n in range(100) if n != 50]


@pytest.mark.slow
def test_the_exit_of_the_program_ends_a_process_whose_job_never_returns() -> None:
    code = (
        "import time, timeball.engine.scheduler as m\n"
        "s = m.Scheduler(workers=1, runner='processes')\n"
        "s.submit(time.sleep, 1000)\n"
        "m.Scheduler.shutdown.__kwdefaults__['deadline_s'] = 0.3\n"
    )
    with jobs.marking() as mark:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
        )
        assert jobs.eventually(lambda: not jobs.marked(mark))
    assert done.returncode == 0
    assert "1 (sleep)" in done.stderr
