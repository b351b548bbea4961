"""The event loop of the race lab: an ordinary loop, but for the order, which is chosen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from timeball.certify import modelled
from timeball.certify.looped import run
from timeball.certify.schedules import bounded, first_failure, mixed, replay
from timeball.certify.stepper import Chooser, Stepper, check
from timeball.certify.story import Outcome


def stepped(main: Callable[[], Any]) -> Callable[[Chooser], Outcome]:
    return lambda chooser: Stepper(chooser, files=[__file__]).run(lambda: run(main()))


def test_every_order_of_ready_callbacks_comes_about() -> None:
    orders: set[str] = set()

    async def main() -> None:
        order: list[str] = []
        loop = asyncio.get_running_loop()
        for name in "abc":
            loop.call_soon(order.append, name)
        while len(order) < 3:
            await asyncio.sleep(0)
        orders.add("".join(order))

    assert first_failure(islice(bounded(stepped(main)), 200)) is None
    assert orders == {"abc", "acb", "bac", "bca", "cab", "cba"}


def test_a_race_of_two_coroutines_is_found_and_replayed() -> None:
    async def main() -> None:
        count = 0

        async def adds() -> None:
            nonlocal count
            seen = count
            await asyncio.sleep(0)
            count = seen + 1

        await asyncio.gather(adds(), adds())
        check("sums", count == 2, f"counted {count}")

    found = first_failure(islice(mixed(stepped(main)), 50))
    assert found is not None
    assert found.check == "sums"
    assert replay(stepped(main), found.schedule).text == "counted 1"


def test_time_is_virtual_and_threads_may_speak_up() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        heard: asyncio.Future[float] = loop.create_future()

        def say() -> None:
            modelled.sleep(1000)
            loop.call_soon_threadsafe(lambda: heard.set_result(loop.time()))

        modelled.Thread(target=say, name="other").start()
        await asyncio.sleep(500)
        check("late", await heard >= 1000, "before it was said")
        check("value", await asyncio.to_thread(pow, 2, 10) == 1024, "not what it returned")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.sleep(10), 5)

    found = first_failure(islice(mixed(stepped(main)), 30))
    assert found is None, found.story()


def test_a_callback_that_raises_ends_the_run() -> None:
    async def main() -> None:
        asyncio.get_running_loop().call_soon(lambda: 1 // 0)
        await asyncio.sleep(1)

    found = first_failure(islice(mixed(stepped(main)), 1))
    assert found is not None
    assert (found.check, "ZeroDivisionError" in found.text) == ("crash", True)


def test_a_wait_that_nobody_ends_is_told() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    found = first_failure(islice(mixed(stepped(main)), 1))
    assert found is not None
    assert found.check == "lost-wake-up"
    assert "the event loop" in found.text
