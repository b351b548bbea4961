"""A worker that is stopped leaves nothing behind, and takes nothing with it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from tests.worker.loop.workshop import PATIENCE_S, Workshop

from timeball.action.command import Command
from timeball.action.command_kind import command_kind
from timeball.action.context import Context
from timeball.core.records import Turn
from timeball.core.states import Ending, State
from timeball.worker.attempt import Bench, TurnAttempt
from timeball.worker.loop import Worker
from timeball.worker.tenure import Tenure


def endings(shop: Workshop) -> list[list[Ending]]:
    return [[end.ending for end in job.endings] for job in shop.store.inner.histories()]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be stopped is not waited for."""
    monkeypatch.setattr("timeball.worker.loop._INTERRUPT_S", 0.02)
    monkeypatch.setattr("timeball.engine.kernel._CLOSE_S", 0.05)


def test_a_stop_lets_what_runs_end_and_gives_the_rest_back(
    shop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timeball.worker.pace.Pace.lacking", lambda *_: 5)
    gate, begun = threading.Event(), threading.Semaphore(0)
    shop.job(name="long")(lambda: begun.release() or (gate.wait(PATIENCE_S) and None))
    for _ in range(5):
        shop.submit("long")
    with shop.at_work(slots=2) as worker:
        assert all(begun.acquire(timeout=PATIENCE_S) for _ in range(2))
        shop.store.until(lambda: shop.count(State.RUNNING) == 5)
        worker.stop()
        shop.store.until(lambda: shop.count(State.PENDING) == 3)
        claims = shop.store.calls["claim"]
        gate.set()
    assert shop.store.calls["claim"] == claims
    assert endings(shop) == [[Ending.SUCCEEDED]] * 2 + [[Ending.RELEASED]] * 3
    assert all(job.attempts == 0 for job in shop.page() if job.state is State.PENDING)
    assert shop.store.inner.pulses() == []
    assert shop.report(quiesced=False).clean


def test_a_coroutine_that_outlasts_the_drain_is_cancelled_and_given_back(shop: Workshop) -> None:
    begun, cleaned = threading.Event(), threading.Event()

    @shop.job(name="long")
    async def long() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.set()

    uuid = shop.submit("long")
    with shop.at_work(drain_s=0.02):
        assert begun.wait(PATIENCE_S)
    assert cleaned.is_set()
    job = shop.get(uuid)
    assert (job.state, job.failures, job.crashes) == (State.PENDING, 0, 0)
    assert endings(shop) == [[Ending.RELEASED]]


def test_a_coroutine_that_ends_well_when_it_is_cancelled_has_succeeded(shop: Workshop) -> None:
    begun = threading.Event()

    @shop.job(name="long")
    async def long() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "as far as it went"
        return "never"

    uuid = shop.submit("long")
    with shop.at_work(drain_s=0.02):
        assert begun.wait(PATIENCE_S)
    assert shop.get(uuid).result == "as far as it went"
    shop.assert_clean()


def test_an_attempt_that_is_stopped_before_its_first_step_has_not_begun(shop: Workshop) -> None:
    ran = []

    @shop.job(name="job")
    async def job() -> None:
        ran.append(1)

    turn = Turn(1, 1, 1, 1, UUID(int=1), "job", "{}", 0, 0, 0, 0.0, 3, None, 1_000.0)
    bench = Bench(lambda: 0.0, None)
    attempt = TurnAttempt(turn, shop.registry["job"], Tenure(1), arrived_s=0.0, bench=bench)
    attempt.stop.raise_()
    settlement = asyncio.run(attempt.run_async())
    assert (settlement.ending, settlement.began_at) == (Ending.RELEASED, None)
    assert not ran


@pytest.mark.usefixtures("hasty")
def test_a_thread_that_outlasts_the_drain_is_given_back_and_not_heard(shop: Workshop) -> None:
    begun, gate, asked = threading.Event(), threading.Event(), threading.Event()

    @shop.job(name="long")
    def long(ctx: Context) -> str:
        ctx.stop.when_raised(asked.set)
        begun.set()
        gate.wait(PATIENCE_S)
        return "too late"

    uuid = shop.submit("long")
    with shop.at_work(drain_s=0.01):
        assert begun.wait(PATIENCE_S)
    assert asked.is_set()
    assert shop.get(uuid).state is State.PENDING
    gate.set()
    wait_for(lambda: threading.active_count() == 1)
    assert endings(shop) == [[Ending.RELEASED]]
    assert shop.report(quiesced=False).stale == 0


def wait_for(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_a_thread_that_looks_at_its_context_ends_in_time(shop: Workshop) -> None:
    begun = threading.Event()

    @shop.job(name="long")
    def long(ctx: Context) -> str:
        begun.set()
        while not ctx.cancelled():
            threading.Event().wait(0.001)
        return "as far as it went"

    uuid = shop.submit("long")
    with shop.at_work(drain_s=0.01):
        assert begun.wait(PATIENCE_S)
    assert shop.get(uuid).result == "as far as it went"
    shop.assert_clean()


@pytest.mark.parametrize("on_loop", [False, True])
@pytest.mark.usefixtures("hasty")
def test_what_may_run_at_most_once_is_not_given_back_once_begun(
    shop: Workshop, *, on_loop: bool
) -> None:
    begun, gate = threading.Event(), threading.Event()

    def thread() -> None:
        begun.set()
        gate.wait(PATIENCE_S)

    async def loop() -> None:
        begun.set()
        await asyncio.Event().wait()

    shop.job(name="once", delivery="at_most_once")(loop if on_loop else thread)
    uuid = shop.submit("once")
    with shop.at_work(drain_s=0.01):
        assert begun.wait(PATIENCE_S)
    gate.set()
    wait_for(lambda: threading.active_count() == 1)
    assert (shop.get(uuid).state, shop.get(uuid).reason) == (State.FAILED, "lost")
    shop.assert_clean()


def test_a_stop_now_does_not_wait_for_the_drain(shop: Workshop) -> None:
    begun = threading.Event()

    @shop.job(name="long")
    async def long() -> None:
        begun.set()
        await asyncio.Event().wait()

    uuid = shop.submit("long")
    with shop.at_work(drain_s=3600) as worker:
        assert begun.wait(PATIENCE_S)
        worker.stop()
        shop.store.until(lambda: shop.store.calls["claim"] > 0)
        worker.stop(now=True)
    assert shop.get(uuid).state is State.PENDING


def test_a_command_is_ended_by_a_stop_and_given_back(shop: Workshop, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    command = Command(shell_text=f"touch {seen}; exec sleep 600", grace_s=0.1)
    shop.registry.add(command_kind("sleep", command))
    uuid = shop.submit("sleep")
    with shop.at_work() as worker:
        wait_for(seen.exists)
        worker.stop(now=True)
    assert shop.get(uuid).state is State.PENDING
    assert endings(shop) == [[Ending.RELEASED]]


@pytest.mark.parametrize("slots", [1, 2])
def test_a_stop_may_come_from_a_signal_handler(shop: Workshop, slots: int) -> None:
    worker = shop.build(slots=slots, poll_s=3600)

    @shop.job(name="signals")
    def signals() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)

    shop.submit("signals")
    previous = signal.signal(signal.SIGUSR1, lambda *_: worker.stop())
    try:
        worker.work()
    finally:
        signal.signal(signal.SIGUSR1, previous)
    shop.assert_clean()


def test_a_stop_may_come_from_a_job(shop: Workshop) -> None:
    worker: Worker

    @shop.job(name="last")
    def last() -> None:
        worker.stop()

    shop.submit("last")
    worker = shop.build()
    worker.work()
    shop.assert_clean()


def test_a_stop_before_the_start_is_a_stop(shop: Workshop) -> None:
    worker = shop.build()
    worker.stop()
    worker.work()
    assert not shop.store.calls


def test_a_stop_that_comes_during_a_claim_begins_nothing(shop: Workshop) -> None:
    ran = []
    shop.job(name="job")(lambda: ran.append(1))
    for _ in range(3):
        shop.submit("job")
    worker = shop.build()
    shop.store.before["claim"] = lambda *_, **__: worker.stop()
    worker.work()
    assert not ran
    assert endings(shop) == [[Ending.RELEASED]] * 3
