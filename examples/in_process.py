"""Ten thousand calls in this process: 8 at a time, 500 starts a second, one in ten fails twice.

Takes 24 seconds by nature, since 12,000 starts are due, and proves itself at the end::

    python examples/in_process.py
    python examples/in_process.py --async
"""

from __future__ import annotations

import argparse
import asyncio
import sys

import timeball as tb

RETRY = tb.Retry(2, base_s=0.01, on=(ConnectionError,))
ENOUGH = 0.97


@tb.job(retry=RETRY)
def fetch(n: int, ctx: tb.Context) -> int:
    """Return the square of a number; one in ten is not to be had before the third attempt."""
    if n % 10 == 0 and ctx.attempt <= RETRY.max_retries:
        raise ConnectionError(n)
    return n * n


@tb.job(retry=RETRY)
async def fetch_async(n: int, ctx: tb.Context) -> int:
    """Return the same, on the event loop."""
    return fetch(n, ctx)


def in_threads(jobs: int) -> tb.Scheduler:
    """Return a scheduler that has done its work."""
    with tb.Scheduler(workers=8, rate="500/s") as s:
        s.submit_many(fetch, ({"n": n} for n in range(jobs)))
        s.wait(progress=True)
    return s


async def on_the_loop(jobs: int) -> tb.AsyncScheduler:
    """Return the same scheduler for coroutines."""
    async with tb.AsyncScheduler(workers=8, rate="500/s") as s:
        await s.submit_many(fetch_async, ({"n": n} for n in range(jobs)))
        await s.wait(progress=True)
    return s


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--async", dest="is_async", action="store_true")
    asked = parser.parse_args()
    done = asyncio.run(on_the_loop(asked.jobs)) if asked.is_async else in_threads(asked.jobs)
    print(done.report())
    print("violations", found := done.violations())
    sys.exit(0 if done.report().efficiency >= ENOUGH and found == [] else 1)
