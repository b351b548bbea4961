"""What the in-process engine costs, by ratios to what Python brings along, and what it keeps to.

    .venv/bin/python bench/in_process.py [--rounds 9] [--strict] [--million]

Each ratio is the median over pairs of one run, each side first in turn, so that a busy machine
slows both down; the figures without a peer suffer from one. All jobs are no-ops; ours are recorded
in full: four instants, state and outcome of each.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import platform
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import timeball
from timeball import AsyncScheduler, Rate, Scheduler
from timeball.core.rate import most_in_window

JOBS, PROCESS_JOBS, WORKERS = 50_000, 2_000, 4
ENDLESS = Rate(1_000_000)
CAP, CAP_JOBS = Rate(50), 150
FAST = Rate(5_000, spread=True)
MIB = 1 << 20


def noop() -> None: ...


async def anoop() -> None: ...


class Figure(NamedTuple):
    what: str
    value: float
    target: float
    at_most: bool = False
    note: str = ""

    @property
    def met(self) -> bool:
        return self.value <= self.target if self.at_most else self.value >= self.target


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9, help="pairs of each ratio")
    parser.add_argument("--strict", action="store_true", help="exit with 1 if a target is missed")
    parser.add_argument("--million", action="store_true", help="also 1,000,000 pending jobs")
    parser.add_argument("--pending", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.pending:
        print(pending_bytes(options.pending))
        return 0
    print(f"timeball {timeball.__version__}, CPython {platform.python_version()}")
    print(f"{'figure':58} {'measured':>9} {'target':>9}  verdict")
    missed = 0
    for figure in figures(options.rounds, million=options.million):
        sign, verdict = "<=" if figure.at_most else ">=", "ok" if figure.met else "MISSED"
        missed += not figure.met
        print(f"{figure.what:58} {figure.value:9,.2f} {sign} {figure.target:6,g}  {verdict:7}"
              f"{figure.note}", flush=True)  # fmt: skip
    return 1 if missed and options.strict else 0


def figures(rounds: int, *, million: bool) -> Iterator[Figure]:
    few = min(rounds, 3)  # of what takes seconds
    yield ratio("jobs/s : ThreadPoolExecutor", 4, rounds, threads, pool)
    yield ratio("jobs/s, strict limiter on : ThreadPoolExecutor", 3, rounds, limited, pool)
    yield ratio("jobs/s, AsyncScheduler : TaskGroup + Semaphore", 1.5, rounds, on_loop, task_group)
    yield processes(rounds)
    yield utilisation(few)
    yield Figure("bytes per pending job (100,000)", in_child(100_000) / 100_000, 350, at_most=True)
    if million:
        yield Figure("MiB for 1,000,000 pending jobs", in_child(10**6) / MIB, 400, at_most=True)
    yield from capped("16 threads", few, capped_threads)
    yield from capped("asyncio", few, capped_loop)


# Speed ----------------------------------------------------------------------------------------


def ratio(
    what: str, target: float, rounds: int, ours: Callable[[], float], theirs: Callable[[], float]
) -> Figure:
    pairs = []
    for n in range(rounds):
        first, second = (ours, theirs) if n % 2 else (theirs, ours)
        one, other = quietly(first), quietly(second)
        pairs.append((one, other) if n % 2 else (other, one))
    mine, other = (statistics.median(side) for side in zip(*pairs, strict=True))
    value = statistics.median(a / b for a, b in pairs)
    return Figure(what, value, target, note=f" {mine:,.0f} to {other:,.0f}")


def quietly(measure: Callable[[], float]) -> float:
    gc.collect()
    return measure()


def per_s(jobs: int, began_s: float) -> float:
    return jobs / (time.perf_counter() - began_s)


def threads(rate: Rate | None = None) -> float:
    began_s = time.perf_counter()
    with Scheduler(WORKERS, rate=rate) as s:
        for _ in range(JOBS):
            s.submit(noop)
        s.wait()
        reached = per_s(JOBS, began_s)
    assert len(s.records()) == JOBS
    return reached


def limited() -> float:
    return threads(ENDLESS)


def pool() -> float:
    began_s = time.perf_counter()
    with ThreadPoolExecutor(WORKERS) as executor:
        return through(executor, JOBS, began_s)


def through(executor: Executor, jobs: int, began_s: float) -> float:
    futures = [executor.submit(noop) for _ in range(jobs)]
    for future in futures:
        future.result()
    return per_s(jobs, began_s)


def on_loop() -> float:
    async def run() -> float:
        began_s = time.perf_counter()
        async with AsyncScheduler(WORKERS) as s:
            for _ in range(JOBS):
                await s.submit(anoop)
            await s.wait()
            return per_s(JOBS, began_s)

    return asyncio.run(run())


def task_group() -> float:
    async def run() -> float:
        began_s, slots = time.perf_counter(), asyncio.Semaphore(WORKERS)

        async def one() -> None:
            async with slots:
                await anoop()

        async with asyncio.TaskGroup() as group:
            for _ in range(JOBS):
                group.create_task(one())
        return per_s(JOBS, began_s)

    return asyncio.run(run())


def processes(rounds: int) -> Figure:
    """Both have two children that are warm before the clock runs."""
    context = get_context("spawn")
    with (
        Scheduler(2, runner="processes") as s,
        ProcessPoolExecutor(2, mp_context=context) as executor,
    ):

        def ours() -> float:
            began_s = time.perf_counter()
            s.wait([s.submit(noop) for _ in range(PROCESS_JOBS)])
            return per_s(PROCESS_JOBS, began_s)

        def theirs() -> float:
            return through(executor, PROCESS_JOBS, time.perf_counter())

        ours(), theirs()
        return ratio("jobs/s, processes : ProcessPoolExecutor", 2, rounds, ours, theirs)


# Limits ---------------------------------------------------------------------------------------


def utilisation(rounds: int) -> Figure:
    shares = [100 * reached_per_s() / FAST.count for _ in range(rounds)]
    return Figure("% of 5,000 starts a second, spread", statistics.median(shares), 99)


def reached_per_s() -> float:
    with Scheduler(WORKERS, rate=FAST) as s:
        for _ in range(2 * FAST.count):
            s.submit(noop)
        s.wait()
        reached = s.report().starts_per_s
    assert reached is not None
    return reached


class DelayingClock:
    """Now and then somebody who reads it is held up just before, as by the operating system."""

    def __init__(self) -> None:
        self._draw = random.Random(1)

    def __call__(self) -> int:
        if self._draw.random() < 0.01:
            time.sleep(self._draw.uniform(0.0003, 0.002))
        return time.monotonic_ns()


def capped(where: str, rounds: int, run: Callable[[list[int]], Any]) -> Iterator[Figure]:
    """The most starts are those of the worst round, the total is that of the median one."""
    most, late = {"recorded": 0, "seen by the jobs": 0}, []
    for _ in range(rounds):
        seen: list[int] = []
        s = run(seen)
        recorded = [record.started_ns for record in s.records()]
        assert len(seen) == len(recorded) == CAP_JOBS
        for how, stamps in zip(most, (recorded, seen), strict=True):
            most[how] = max(most[how], most_in_window(stamps, CAP.window_ns)[0])
        late.append(100 * (s.report().makespan_ns / CAP.earliest_offset_ns(CAP_JOBS) - 1))
    for how, count in most.items():
        yield Figure(f"most starts a second of 50, {where}, {how}", count, CAP.count, at_most=True)
    total = statistics.median(late)
    yield Figure(f"% above the shortest total, {where}", total, 1, at_most=True)


def capped_threads(seen: list[int]) -> Scheduler:
    with Scheduler(16, rate=CAP, clock_ns=DelayingClock()) as s:
        for _ in range(CAP_JOBS):
            s.submit(lambda: seen.append(time.monotonic_ns()))
        s.wait()
    return s


def capped_loop(seen: list[int]) -> AsyncScheduler:
    async def see() -> None:
        seen.append(time.monotonic_ns())

    async def run() -> AsyncScheduler:
        async with AsyncScheduler(16, rate=CAP, clock_ns=DelayingClock()) as s:
            for _ in range(CAP_JOBS):
                await s.submit(see)
            await s.wait()
        return s

    return asyncio.run(run())


# Memory ---------------------------------------------------------------------------------------


def in_child(jobs: int) -> int:
    """Return what that many pending jobs cost a fresh process."""
    command = [sys.executable, __file__, "--pending", str(jobs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout)


def pending_bytes(jobs: int) -> int:
    """Return by how much this process grows for jobs that are all in line, behind a limit."""
    s = Scheduler(WORKERS, rate="1/h")
    first = s.submit(noop)
    s.wait([first])
    before = resident_bytes()
    for _ in range(jobs):
        s.submit(noop)
    drained = threading.Event()
    while sum(s.counts().values()) <= jobs:
        drained.wait(0.01)
    grown = resident_bytes() - before
    s.shutdown("cancel")
    return grown


def resident_bytes() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


if __name__ == "__main__":
    sys.exit(main())
