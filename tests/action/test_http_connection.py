"""Connections that are used again: what a server says beyond one answer answers nobody else."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import Any

import pytest
from tests.action.requests import carried_out, failure, result
from tests.action.server import CA, DATA, Answer, Asked, Server, plain, raw, serving

from timeball.action.http_connection import INTERIM_MAX
from timeball.action.http_wire import Wire
from timeball.core.outcomes import Raised, Returned

FIRST = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst"
POISON = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n0\r\n\r\n"


@pytest.fixture(autouse=True)
def worker_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_HTTP_ALLOW", "127.0.0.0/8")


def spoken(*parts: bytes) -> Answer:
    """These bytes, and the connection stays open."""

    async def answer(writer: asyncio.StreamWriter, _asked: Asked) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    return answer


def bodies(*answers: Answer, certificate: str | None = None, **args: Any) -> tuple[list[str], int]:
    """What two requests after each other are answered, and over how many connections."""

    async def main() -> tuple[list[str], int]:
        async with serving(*answers, certificate=certificate) as server:
            found = []
            for _ in range(2):
                end = await carried_out(server, None, **args)
                assert isinstance(end, Returned), end
                found.append("poison" if "poison" in str(end.result) else "own")
            return found, server.connections

    return asyncio.run(main())


@pytest.mark.parametrize(
    "first",
    [
        FIRST + POISON,
        CHUNKED + POISON,
        FIRST + POISON[:10],  # the real answer would go on in the middle of its head
        FIRST + b"\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n" + POISON,
    ],
    ids=["length", "chunked", "half", "line-end", "no-content"],
)
@pytest.mark.parametrize("certificate", [None, "server.pem"])
def test_two_answers_to_one_request_end_the_connection(
    first: bytes, certificate: str | None
) -> None:
    ca = {"ca": CA} if certificate else {}
    found = bodies(spoken(first), plain(b"own"), certificate=certificate, **ca)
    assert found == (["own", "own"], 2)


def test_an_answer_to_no_request_ends_a_connection_at_rest() -> None:
    async def main() -> None:
        quiet, told = asyncio.Event(), asyncio.Event()

        async def and_later(writer: asyncio.StreamWriter, _asked: Asked) -> None:
            writer.write(FIRST)

            async def more() -> None:
                await quiet.wait()
                writer.write(POISON)
                await writer.drain()
                told.set()

            tasks.append(asyncio.create_task(more()))

        tasks: list[asyncio.Task[None]] = []
        async with serving(and_later, plain(b"own")) as server:
            assert isinstance(await carried_out(server, None), Returned)
            quiet.set()
            await told.wait()  # it is on its way, and on loopback that is in our buffer
            end = await carried_out(server, None)
            assert isinstance(end, Returned)
            assert "own" in str(end.result)
            assert server.connections == 2

    asyncio.run(main())


@pytest.mark.parametrize("certificate", [None, "server.pem"])
def test_of_two_encrypted_records_in_one_packet_none_is_left_for_the_next(
    certificate: str | None,
) -> None:
    """The second lies decrypted in no buffer of the socket's; a layer below HTTP holds it."""

    async def twice(writer: asyncio.StreamWriter, _asked: Asked) -> None:
        writer.write(FIRST)
        writer.write(POISON)  # a record of its own, before anybody else has a turn

    ca = {"ca": CA} if certificate else {}
    found = bodies(twice, plain(b"own"), certificate=certificate, **ca)
    assert found == (["own", "own"], 2)


@asynccontextmanager
async def deaf(answer: bytes, certificate: str | None = None) -> AsyncIterator[Server]:
    """A server that answers at once and does not read."""

    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        server.connections += 1
        writer.write(answer)

    context = None
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(DATA / certificate)
    writers: list[asyncio.StreamWriter] = []
    # So small that not all of the content fits what lies between the two.
    with socket.create_server(("127.0.0.1", 0)) as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        listening = await asyncio.start_server(serve, sock=bound, limit=1024, ssl=context)
        server = Server(answers=[], scheme="https" if context else "http")
        server.port = bound.getsockname()[1]
        try:
            yield server
        finally:
            listening.close()
            for writer in writers:
                writer.transport.abort()
            await asyncio.gather(*(w.wait_closed() for w in writers), return_exceptions=True)


@pytest.mark.parametrize("certificate", [None, "server.pem"])
def test_an_answer_that_comes_before_the_request_is_sent_counts_and_ends_the_connection(
    certificate: str | None,
) -> None:
    """A server that does not read on would take the rest of the content for the next request."""
    answer = b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"
    given: dict[str, Any] = {"ca": CA} if certificate else {}

    async def main() -> None:
        async with deaf(answer, certificate) as server:
            for _ in range(2):
                end = await carried_out(server, None, method="POST", body="x" * 250_000, **given)
                assert isinstance(end, Raised)
                assert end.error.endswith("big")
            assert server.connections == 2

    asyncio.run(main())


@pytest.mark.parametrize("certificate", [None, "server.pem"])
def test_a_connection_does_not_rest_while_a_part_of_a_request_is_not_sent(
    certificate: str | None,
) -> None:
    trust = ssl.create_default_context(cadata=CA) if certificate else None

    async def main() -> None:
        async with deaf(b"", certificate) as server:
            here = ip_address("127.0.0.1")
            wire = await Wire.dial(here, server.port, trust=trust, name="127.0.0.1")
            while not server.connections:
                await asyncio.sleep(0)
            assert wire.rest()
            wire.write(b"x" * 16_000_000)  # more than any kernel takes
            assert not wire.rest()
            wire.abort()

    asyncio.run(main())


def test_an_answer_that_is_no_success_may_leave_content_unread() -> None:
    async def main() -> None:
        async with serving(plain(status="403 No"), plain(b"own")) as server:
            await carried_out(server, None, method="POST", body="x")
            await carried_out(server, None)
            assert server.connections == 2

    asyncio.run(main())


@pytest.mark.parametrize("status", [100, 102, 103])
def test_announcements_are_passed_over_and_a_flood_of_them_is_none(status: int) -> None:
    interim = b"HTTP/1.1 %d Wait\r\nLink: </a>\r\n\r\n" % status
    assert result(spoken(interim * INTERIM_MAX + FIRST))["body"] == "first"
    found = failure(spoken(interim * (INTERIM_MAX + 1) + FIRST))
    assert (found.error_type, found.again) == ("HttpBroken", True)
    endless = failure(spoken(interim * 20_000), read_s=30)
    assert endless.error_type == "HttpBroken"


def test_no_protocol_is_switched() -> None:
    found = failure(spoken(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"))
    assert found.error_type == "HttpBroken"


def test_a_head_without_end_is_cut_off() -> None:
    async def endless(writer: asyncio.StreamWriter, _asked: Asked) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        while not writer.is_closing():
            writer.write(b"X-More: and more\r\n" * 100)
            await writer.drain()

    assert failure(endless).error_type == "HttpBroken"


@pytest.mark.parametrize(
    "first",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nfirst",
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nfirst",
    ],
)
def test_a_server_that_will_end_the_connection_is_not_asked_again_on_it(first: bytes) -> None:
    assert bodies(spoken(first), plain(b"own"))[1] == 2


def test_a_connection_that_the_server_ends_while_it_rests_is_not_used_again() -> None:
    async def main() -> None:
        gone = asyncio.Event()

        async def then_ends(writer: asyncio.StreamWriter, _asked: Asked) -> None:
            writer.write(FIRST)
            await writer.drain()
            await asked_once.wait()
            writer.transport.abort()
            gone.set()

        asked_once = asyncio.Event()
        async with serving(then_ends, plain(b"own")) as server:
            assert isinstance(await carried_out(server, None), Returned)
            asked_once.set()
            await gone.wait()
            assert isinstance(await carried_out(server, None), Returned)
            assert server.connections == 2

    asyncio.run(main())


def test_a_request_that_is_given_up_leaves_no_connection_to_others() -> None:
    async def main() -> None:
        async with serving(raw(FIRST[:20], then="silence"), plain(b"own")) as server:
            late = await carried_out(server, 0.1)
            assert isinstance(late, Raised)
            assert late.reason == "timeout"
            assert isinstance(await carried_out(server, None), Returned)
            assert server.connections == 2

    asyncio.run(main())


def test_what_speaks_before_it_is_encrypted_is_not_heard() -> None:
    async def main() -> Any:
        async with deaf(FIRST) as server:
            server.scheme = "https"
            return await carried_out(server, None, ca=CA)

    end = asyncio.run(main())
    assert (end.error_type, end.again) == ("HttpBroken", True)


def test_a_post_without_content_says_so() -> None:
    async def main() -> None:
        async with serving(plain()) as server:
            await carried_out(server, None, method="POST")
            await carried_out(server, None, method="GET")
            assert server.asked[0].headers["content-length"] == "0"
            assert "content-length" not in server.asked[1].headers

    asyncio.run(main())
