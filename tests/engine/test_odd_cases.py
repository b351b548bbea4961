"""What jobs and their submitters may do that a scheduler had better survive."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from tests.engine.conftest import PATIENCE_S, eventually

from timeball import Context, DeadlockError, Retry, Scheduler, SchedulerClosed
from timeball.core.records import CancelAnswer
from timeball.core.states import State
from timeball.errors import JobFailed

Make = Callable[..., Scheduler]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("is_async", [False, True])
def test_an_exit_in_a_job_fails_it_once_and_the_worker_lives(
    scheduler: Make, error: type[BaseException], *, is_async: bool
) -> None:
    def dies() -> None:
        raise error

    async def dies_async() -> None:
        raise error

    s = scheduler(workers=1, retry=Retry(3, base_s=0))
    doomed = s.submit(dies_async if is_async else dies)
    with pytest.raises(JobFailed, match="failed"):
        doomed.result(PATIENCE_S)
    assert len(s.records()) == 1
    assert s.submit(pow, 2, 3).result(PATIENCE_S) == 8


def test_a_coroutine_or_generator_that_is_returned_is_closed_and_fails_the_job(
    scheduler: Make,
) -> None:
    closed = []

    def numbers() -> Iterator[int]:
        try:
            yield 1
        finally:
            closed.append("generator")

    def starts() -> Iterator[int]:
        generator = numbers()
        next(generator)
        return generator

    def later() -> Any:
        return asyncio.sleep(0)

    s = scheduler()
    for call in (starts, later):
        handle = s.submit(call)
        with pytest.raises(JobFailed, match="returned a"):
            handle.result(PATIENCE_S)
    assert closed == ["generator"]


def test_an_async_callable_runs_on_a_loop(scheduler: Make) -> None:
    async def where() -> str:
        await asyncio.sleep(0)
        return threading.current_thread().name

    class Asynchronous:
        async def __call__(self) -> str:
            return await where()

    s = scheduler()
    assert s.submit(where).result(PATIENCE_S) == "timeball-loop"
    assert s.submit(Asynchronous()).result(PATIENCE_S) == "timeball-loop"


def test_a_thread_job_past_its_timeout_is_overdue_and_keeps_its_slot(scheduler: Make) -> None:
    gate, s = threading.Event(), scheduler(workers=1)
    slow = s.submit(gate.wait, timeout_s=0.01)
    other = s.submit(pow, 2, 2)
    eventually(lambda: slow.overdue)
    assert s.sets() == {"pending": {2}, "running": {1}, "completed": set(), "failed": set()}
    gate.set()
    assert slow.result(PATIENCE_S) is True
    assert other.result(PATIENCE_S) == 4
    assert not slow.overdue


def test_a_coroutine_past_its_timeout_is_cancelled_and_tried_again(scheduler: Make) -> None:
    tries = []

    async def slow_at_first() -> str:
        tries.append(0)
        if len(tries) == 1:
            await asyncio.Event().wait()
        return "done"

    s = scheduler()
    handle = s.submit(slow_at_first, timeout_s=0.2, retry=Retry(1, base_s=0))
    assert handle.result(PATIENCE_S) == "done"
    assert [record.ending for record in s.records()] == ["retried", "succeeded"]


def test_a_job_may_submit_and_wait_for_what_it_has_submitted(scheduler: Make) -> None:
    s = scheduler(workers=2)

    def parent() -> int:
        return s.submit(pow, 2, 5).result()

    assert s.submit(parent).result(PATIENCE_S) == 32


def test_a_wait_that_closes_a_circle_is_refused_at_once(scheduler: Make) -> None:
    s = scheduler(workers=1)

    def parent() -> int:
        return s.submit(pow, 2, 5).result()

    handle = s.submit(parent)
    with pytest.raises(JobFailed, match="cannot end before"):
        handle.result(PATIENCE_S)
    eventually(lambda: s.counts()[State.SUCCEEDED] == 1)  # the child, once its parent gave up


def test_two_jobs_that_wait_for_each_other_are_told_though_slots_are_free(
    scheduler: Make,
) -> None:
    s = scheduler(workers=8)
    handles: dict[str, Any] = {}
    both = threading.Barrier(3)

    def waits_for(name: str) -> None:
        both.wait(PATIENCE_S)
        handles[name].result()

    handles["a"] = s.submit(waits_for, "b", id="a")
    handles["b"] = s.submit(waits_for, "a", id="b")
    both.wait(PATIENCE_S)
    s.wait(timeout_s=PATIENCE_S)
    errors = {handle.outcome.error_type for handle in handles.values()}
    assert "timeball.errors.DeadlockError" in errors


def test_a_job_that_waits_for_itself_or_for_all_is_told(scheduler: Make) -> None:
    s = scheduler()
    for name, wait in {"itself": lambda: s.get("itself").result(), "all": s.wait}.items():
        with pytest.raises(JobFailed, match=r"cannot end before|for itself"):
            s.submit(wait, id=name).result(PATIENCE_S)


def test_a_wait_with_a_time_limit_is_no_deadlock(scheduler: Make) -> None:
    s = scheduler(workers=1)

    def parent() -> str:
        try:
            s.submit(pow, 2, 5).result(0.01)
        except TimeoutError:
            return "went on"
        return "no"

    assert s.submit(parent).result(PATIENCE_S) == "went on"


def test_a_coroutine_may_not_wait_for_itself_either(scheduler: Make) -> None:
    s = scheduler(workers=1)

    async def parent() -> int:
        return s.submit(pow, 2, 5).result()

    with pytest.raises(JobFailed, match="cannot end before"):
        s.submit(parent).result(PATIENCE_S)


def test_shutdown_from_a_job_drains_without_waiting_for_it(scheduler: Make) -> None:
    s = scheduler(workers=1)
    handles = [s.submit(s.shutdown)] + [s.submit(pow, 2, n) for n in range(5)]
    s.wait(timeout_s=PATIENCE_S)
    assert {handle.state for handle in handles} == {State.SUCCEEDED}
    with pytest.raises(SchedulerClosed, match="new one"):
        s.submit(pow, 2, 2)


def test_shutdown_and_submit_from_a_signal_handler_return(scheduler: Make) -> None:
    s = scheduler(workers=2)
    seen: list[Any] = []

    def handler(*_: object) -> None:
        seen.append(s.submit(pow, 2, 10))
        s.shutdown("drain")
        seen.append("returned")

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with suppress(SchedulerClosed):
            submit_for_ever(s)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen[0].result(0) == 1024
    assert seen[1] == "returned"


def submit_for_ever(s: Scheduler) -> None:
    while True:
        if s.submit(time.sleep, 0).id == 200:
            os.kill(os.getpid(), signal.SIGUSR1)


def test_a_finalizer_may_submit(scheduler: Make) -> None:
    s = scheduler()

    class Dying:
        def __del__(self) -> None:
            s.submit(pow, 2, 3, id="last words")

    ring: list[Any] = [Dying()]
    ring.append(ring)
    section = s._engine.section
    section.enter()  # the worst moment
    try:
        del ring
        gc.collect()
    finally:
        section.leave()
    assert s.get("last words").result(PATIENCE_S) == 8


def test_a_finalizer_inside_the_section_may_cancel(scheduler: Make) -> None:
    s, gate = scheduler(workers=1), threading.Event()
    s.submit(gate.wait)
    handle = s.submit(pow, 2, 2)
    section = s._engine.section
    section.enter()
    assert handle.cancel() is CancelAnswer.REQUESTED
    with pytest.raises(DeadlockError, match="only submit and shutdown"):
        s.counts()
    section.leave()
    gate.set()
    s.wait(timeout_s=PATIENCE_S)
    assert handle.state is State.CANCELLED


def test_context_variables_are_those_of_the_submit(scheduler: Make) -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")
    s = scheduler(workers=1)

    def sets_it() -> str:
        seen = variable.get()
        variable.set("spoilt")
        return seen

    async def sets_it_async() -> str:
        return sets_it()

    before = [s.submit(sets_it), s.submit(sets_it_async)]
    token = variable.set("mine")
    mine = [s.submit(sets_it), s.submit(sets_it_async)]
    again = s.submit(sets_it)
    variable.reset(token)
    results = [handle.result(PATIENCE_S) for handle in [*before, *mine, again]]
    assert results == ["none", "none", "mine", "mine", "mine"]


def test_each_attempt_has_the_variables_of_the_submit(scheduler: Make) -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")
    seen, s = [], scheduler()

    def counts() -> None:
        seen.append(variable.get())
        variable.set(variable.get() + 1)
        if len(seen) < 3:
            raise ValueError

    token = variable.set(7)
    handle = s.submit(counts, retry=Retry(2, base_s=0))
    variable.reset(token)
    handle.result(PATIENCE_S)
    assert seen == [7, 7, 7]


# Results


def test_an_exception_is_kept_as_text_and_keeps_nothing_alive(scheduler: Make) -> None:
    class Big:
        pass

    s, alive = scheduler(), []

    def fails() -> None:
        big = Big()
        alive.append(sys.getrefcount(big))
        raise ValueError("too big")

    handle = s.submit(fails)
    with pytest.raises(JobFailed, match="too big") as told:
        handle.result(PATIENCE_S)
    assert told.value.error_type == "ValueError"
    assert "in fails" in "".join(told.value.__notes__)
    gc.collect()
    assert not [each for each in gc.get_objects() if isinstance(each, Big)]


def test_only_the_last_jobs_are_remembered_where_told_so(scheduler: Make) -> None:
    s = scheduler(workers=1, keep_results=3)
    handles = [s.submit(pow, 2, n) for n in range(10)]
    s.wait(timeout_s=PATIENCE_S)
    assert s.sets()["completed"] == {8, 9, 10}
    assert s.counts()[State.SUCCEEDED] == 10
    assert handles[0].result() == 1
    forgetful = scheduler(keep_results="none")
    assert forgetful.submit(pow, 2, 3).result(PATIENCE_S) == 8
    assert forgetful.sets()["completed"] == set()


def test_a_job_written_for_a_worker_may_say_how_far_it_is(caplog: pytest.LogCaptureFixture) -> None:
    def call(ctx: Context) -> str:
        ctx.progress(1, 2, "half")
        ctx.log("a line")
        return "done"

    with caplog.at_level("INFO", logger="timeball.job"), Scheduler(1) as scheduler:
        assert scheduler.submit(call).result() == "done"
    assert "a line" in caplog.messages
