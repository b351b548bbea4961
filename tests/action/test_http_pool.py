"""Connections of HTTP jobs: none is closed under a job, and none is made by a list in error."""

from __future__ import annotations

import asyncio

import pytest
from tests.action.requests import failure
from tests.action.server import plain

import timeball as tb
from timeball.action import http_pool
from timeball.action.addresses import ALLOW_VARIABLE, Allowed
from timeball.action.http_pool import Pools
from timeball.action.http_target import Target
from timeball.action.own_kinds import serve
from timeball.action.registry import Registry


class Pool:
    """A pool whose end lasts until the gate is open."""

    def __init__(self, gate: asyncio.Event) -> None:
        self.gate = gate
        self.closing = asyncio.Event()

    async def aclose(self) -> None:
        self.closing.set()
        await self.gate.wait()


def target(host: str) -> Target:
    return Target.of(f"http://{host}.example/", Allowed())


def test_a_pool_that_is_lent_while_others_are_closed_stays_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main() -> None:
        gate, made = asyncio.Event(), []

        def make(_key: object) -> Pool:
            made.append(Pool(gate))
            return made[-1]

        monkeypatch.setattr(http_pool, "_pool", make)
        monkeypatch.setattr(http_pool, "POOLS_MAX", 2)
        pools, none = Pools(), Allowed()
        for host in "ab":
            async with pools.lent(target(host), None, none):
                pass
        done = asyncio.Event()

        async def third() -> None:
            async with pools.lent(target("c"), None, none), pools.lent(target("d"), None, none):
                pass
            done.set()

        task = asyncio.create_task(third())
        await made[0].closing.wait()  # of a; b would be the next
        async with pools.lent(target("b"), None, none) as lent:
            gate.set()
            await done.wait()
            assert isinstance(lent, Pool)
            assert not lent.closing.is_set()
        await task

    asyncio.run(main())


@pytest.mark.parametrize("text", ["10.0.0.1/8", "10.0.0.0/8, a b c!", "http://10.0.0.1"])
def test_a_list_of_the_worker_that_cannot_be_read_stops_it_at_its_start(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(ALLOW_VARIABLE, text)
    with pytest.raises(tb.UsageError, match=f"{ALLOW_VARIABLE}: .*write"):
        serve(Registry())
    # Where there is no start that could look, as in a Scheduler, the job fails for good.
    found = failure(plain())
    assert (found.error_type, found.again) == ("HttpRefused", False)
    assert found.error.startswith(f"{ALLOW_VARIABLE}: ")
