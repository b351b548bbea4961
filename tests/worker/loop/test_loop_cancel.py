"""A cancel reaches the attempt that runs, wherever that is, and no other one."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from tests.worker.loop.workshop import PATIENCE_S, Workshop

from timeball.action.command import Command
from timeball.action.command_kind import command_kind
from timeball.action.context import Context
from timeball.core.retry import PermanentError
from timeball.core.states import State


def test_a_coroutine_is_cancelled_once_and_others_go_on(shop: Workshop) -> None:
    begun, cancelled, gate = threading.Semaphore(0), [], threading.Event()

    @shop.job(name="waits")
    async def waits(n: int) -> int:
        begun.release()
        try:
            while not gate.is_set():
                await asyncio.sleep(0.001)
        except asyncio.CancelledError:
            cancelled.append(n)
            raise
        return n

    first, second = (shop.submit("waits", f'{{"n":{n}}}') for n in (1, 2))
    with shop.at_work(slots=2):
        assert all(begun.acquire(timeout=PATIENCE_S) for _ in range(2))
        assert shop.store.cancel(first) == "requested"
        shop.store.until(lambda: shop.get(first).state is State.CANCELLED)
        gate.set()
        shop.store.until(shop.all_ended)
    job = shop.get(first)
    assert (job.reason, job.attempts, job.turn, cancelled) == ("requested", 1, 1, [1])
    assert (shop.get(second).state, shop.get(second).attempts) == (State.SUCCEEDED, 1)
    shop.assert_clean()


def test_a_thread_is_told_by_its_context_and_may_end_as_it_likes(shop: Workshop) -> None:
    begun = threading.Semaphore(0)

    @shop.job(name="looks")
    def looks(ctx: Context, *, well: bool) -> str:
        begun.release()
        while not ctx.cancelled():
            time.sleep(0.001)
        if not well:
            raise PermanentError("asked to stop")
        return "in time"

    well, ill = (shop.submit("looks", f'{{"well":{word}}}') for word in ("true", "false"))
    with shop.at_work(slots=2):
        assert all(begun.acquire(timeout=PATIENCE_S) for _ in range(2))
        for uuid in (well, ill):
            assert shop.store.cancel(uuid) == "requested"
        shop.store.until(shop.all_ended)
    assert (shop.get(well).state, shop.get(well).result) == (State.SUCCEEDED, "in time")
    assert (shop.get(ill).state, shop.get(ill).turn) == (State.FAILED, 1)
    shop.assert_clean()


@pytest.mark.slow
def test_a_command_is_ended_and_its_job_is_cancelled(shop: Workshop, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    shop.registry.add(
        command_kind("sleeps", Command(shell_text=f"touch {begun}; exec sleep 600", grace_s=0.1))
    )
    uuid = shop.submit("sleeps")
    with shop.at_work():
        shop.store.until(begun.exists)
        assert shop.store.cancel(uuid) == "requested"
        shop.store.until(shop.all_ended)
    assert (shop.get(uuid).state, shop.get(uuid).reason) == (State.CANCELLED, "requested")
    shop.assert_clean()


def test_a_worker_that_is_drained_still_heeds_a_cancel(shop: Workshop) -> None:
    begun = threading.Event()

    @shop.job(name="endless")
    async def endless() -> None:
        begun.set()
        await asyncio.sleep(3600)

    uuid = shop.submit("endless")
    with shop.at_work() as worker:
        assert begun.wait(PATIENCE_S)
        worker.stop()
        assert shop.store.cancel(uuid) == "requested"
        shop.store.until(shop.all_ended)
    assert (shop.get(uuid).state, shop.get(uuid).turn) == (State.CANCELLED, 1)
    shop.assert_clean()


def test_where_nothing_runs_nobody_asks_for_cancels(shop: Workshop) -> None:
    shop.job(name="quick")(lambda: None)
    with shop.at_work():
        shop.store.until(lambda: shop.store.calls["promote"] > 2)
    assert shop.store.calls["cancels"] == 0
