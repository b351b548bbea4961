"""HTTP jobs on the event loop against a bare httpx2 loop, on one server, in one run.

    python bench/http_jobs.py [--requests 2000] [--slots 16]

Both send the same GET to a server of our own in a process of its own, so many at a time, over
connections that stay open. The figure is the rate of the jobs by the rate of the loop, median of
five rounds that take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from statistics import median

import httpx2

import timeball as tb

ROUNDS = 5
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello"


async def serve() -> None:
    """Answer whatever asks, until stdin ends."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def bare(url: str, requests: int, slots: int) -> float:
    """Requests a second of a plain loop."""
    left = iter(range(requests))

    async def work(client: httpx2.AsyncClient) -> None:
        for _ in left:
            response = await client.get(url)
            assert response.text == "hello"

    limits = httpx2.Limits(max_connections=slots)
    async with httpx2.AsyncClient(limits=limits, trust_env=False) as client:
        began = time.perf_counter()
        await asyncio.gather(*(work(client) for _ in range(slots)))
        return requests / (time.perf_counter() - began)


async def jobs(url: str, requests: int, slots: int) -> float:
    """Jobs a second: submitted, carried out, judged and recorded."""
    call = tb.http("GET", url, allow=["127.0.0.1"])
    async with tb.AsyncScheduler(workers=slots) as scheduler:
        began = time.perf_counter()
        handles = [await scheduler.submit(call) for _ in range(requests)]
        await scheduler.wait()
        rate = requests / (time.perf_counter() - began)
        for handle in handles:
            assert (await handle)["body"] == "hello"
    return rate


async def measure(port: int, requests: int, slots: int) -> None:
    url = f"http://127.0.0.1:{port}/"
    runs: dict[str, Callable[[str, int, int], Awaitable[float]]] = {"bare": bare, "jobs": jobs}
    rates: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        await run(url, requests // 10, slots)  # warm
    for _ in range(ROUNDS):
        for name, run in runs.items():
            rates[name].append(await run(url, requests, slots))
    for name, found in rates.items():
        print(f"{name:5} {median(found):9,.0f} requests/s  ({min(found):,.0f} … {max(found):,.0f})")
    ratios = [ours / theirs for ours, theirs in zip(rates["jobs"], rates["bare"], strict=True)]
    print(f"ratio {median(ratios):9.2f}  ({min(ratios):.2f} … {max(ratios):.2f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2_000)
    parser.add_argument("--slots", type=int, default=16)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        asyncio.run(serve())
        return
    os.environ["TIMEBALL_HTTP_ALLOW"] = "127.0.0.1"
    with subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdin
        assert server.stdout
        asyncio.run(measure(int(server.stdout.readline()), given.requests, given.slots))
        server.stdin.close()


if __name__ == "__main__":
    main()
