"""Connections of HTTP jobs: none is closed under a job, and none is made by a list in error."""

from __future__ import annotations

import asyncio
import gc
from contextlib import AbstractAsyncContextManager
from ipaddress import ip_address
from weakref import ReferenceType, ref

import pytest
from tests.action.requests import carried_out, failure
from tests.action.server import Server, plain, serving

import timeball as tb
from timeball.action import http_pool
from timeball.action.addresses import ALLOW_VARIABLE, Address, Allowed
from timeball.action.http_connection import Connection
from timeball.action.http_pool import Pools
from timeball.action.http_target import Target
from timeball.action.own_kinds import serve
from timeball.action.registry import Registry
from timeball.core.outcomes import Returned


def test_of_more_hosts_than_are_kept_those_are_ended_that_nobody_uses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_pool, "POOLS_MAX", 2)
    allow = Allowed.of(["127.0.0.0/8"])

    async def resolve(_host: str, _port: int) -> list[Address]:
        return [ip_address("127.0.0.1")]

    async def main() -> None:
        async with serving(plain(b"x")) as server:

            def lent(host: str) -> AbstractAsyncContextManager[Connection]:
                target = Target.of(f"http://{host}.example:{server.port}/", allow)
                return pools.lent(target, None, allow, connect_s=10)

            async def use(connection: Connection) -> Connection:
                headers = {"Host": "x"}
                await connection.ask("GET", "/", headers=headers, body=None, read_s=10)
                async for _ in connection.chunks():
                    pass
                return connection

            pools = Pools.here()
            async with lent("a") as connection:
                first = await use(connection)
            async with lent("a") as connection, lent("b") as second, lent("c") as third:
                assert connection is first
                assert await use(first) is not await use(second)
                await use(third)
            # Of three hosts one was too many, and c was the first that nobody used.
            assert (first.wire.rests, second.wire.rests, third.wire.rests) == (True, True, False)

    monkeypatch.setattr(http_pool, "resolve", resolve)
    monkeypatch.setenv(ALLOW_VARIABLE, "127.0.0.0/8")
    asyncio.run(main())


def test_a_request_that_is_given_up_before_it_is_sent_leaves_no_connection_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(ALLOW_VARIABLE, "127.0.0.0/8")
    allow = Allowed.of(["127.0.0.0/8"])

    async def main() -> None:
        async with serving(plain(b"x")) as server:
            target = Target.of(server.url, allow)
            pools, lent = Pools.here(), []

            async def use() -> None:
                async with pools.lent(target, None, allow, connect_s=10) as connection:
                    lent.append(connection)
                    await connection.ask("GET", "/", headers={"Host": "x"}, body=None, read_s=10)
                    async for _ in connection.chunks():
                        pass

            await use()
            assert lent[0].wire.rests
            for turns in range(1, 4):
                task = asyncio.create_task(use())
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                assert not lent[-1].wire.rests
                await use()

    asyncio.run(main())


def test_a_connection_that_nobody_uses_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_pool, "IDLE_S", 0.0)
    monkeypatch.setenv(ALLOW_VARIABLE, "127.0.0.0/8")

    async def main() -> None:
        ended = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
            await reader.read()
            writer.close()
            ended.set()

        listening = await asyncio.start_server(serve, "127.0.0.1", 0)
        server = Server(answers=[], port=listening.sockets[0].getsockname()[1])
        await carried_out(server, None)
        async with asyncio.timeout(60):
            await ended.wait()
        listening.close()
        await listening.wait_closed()

    asyncio.run(main())


def test_no_more_connections_to_a_host_are_made_than_is_right(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_pool, "CONNECTIONS_MAX", 3)
    monkeypatch.setenv(ALLOW_VARIABLE, "127.0.0.0/8")

    async def main() -> None:
        async with serving(plain(b"x")) as server:
            ends = await asyncio.gather(*(carried_out(server, None) for _ in range(20)))
            assert all(isinstance(end, Returned) for end in ends)
            assert server.connections <= 3

    asyncio.run(main())


def test_of_an_event_loop_that_has_ended_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW_VARIABLE, "127.0.0.0/8")

    async def main() -> ReferenceType[asyncio.AbstractEventLoop]:
        async with serving(plain(b"x")) as server:
            await carried_out(server, None)
        return ref(asyncio.get_running_loop())

    loop = asyncio.run(main())
    gc.collect()
    assert loop() is None


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
