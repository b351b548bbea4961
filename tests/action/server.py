"""A server on loopback that answers as it is told, also in ways that no good server does."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
CA = (DATA / "ca.pem").read_text()


@dataclass(kw_only=True)
class Asked:
    """A request that has arrived."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[[asyncio.StreamWriter, Asked], Awaitable[None]]


def plain(body: bytes = b"", *, status: str = "200 OK", **headers: str) -> Answer:
    """A whole and correct response."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]

    async def answer(writer: asyncio.StreamWriter, _asked: Asked) -> None:
        writer.write("\r\n".join([*lines, "", ""]).encode() + body)

    return answer


def raw(*parts: bytes, then: str = "close") -> Answer:
    """These bytes, then the end of the connection, a reset of it, or nothing ever."""

    async def answer(writer: asyncio.StreamWriter, _asked: Asked) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
        if then == "reset":
            writer.transport.abort()
        elif then == "silence":
            await asyncio.Event().wait()
        else:
            writer.close()

    return answer


async def endless(writer: asyncio.StreamWriter, _asked: Asked) -> None:
    """A body of 1 GB, for as long as somebody takes it."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n")
    with suppress(ConnectionError):
        for _ in range(1_000_000_000 // 50_000):
            writer.write(b"x" * 50_000)
            await writer.drain()


@dataclass(kw_only=True)
class Server:
    """What is told and what has arrived."""

    answers: list[Answer]
    """One for each request; the last one for all that follow."""

    scheme: str = "http"
    port: int = 0
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}/"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while not writer.is_closing():
                self.asked.append(await _read(reader))
                answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
                await answer(writer, self.asked[-1])
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    method, target, _ = first.split(" ")
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method=method, target=target, headers=headers, body=body)


@asynccontextmanager
async def serving(*answers: Answer, certificate: str | None = None) -> AsyncIterator[Server]:
    """Serve while the block runs."""
    server = Server(answers=list(answers))
    context = None
    if certificate is not None:
        server.scheme = "https"
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(DATA / certificate)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await server.stop()
        await listening.wait_closed()
