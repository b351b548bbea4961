"""Start rates: as recorded, and as the callable's own clock sees them."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from tests.engine.conftest import MS, PATIENCE_S, Table, eventually

from timeball import AsyncScheduler, Rate, Retry, Scheduler
from timeball.core.rate import most_in_window, violations
from timeball.engine.engine import GUARD_NS, LATE_NS

Make = Callable[..., Scheduler]
S = 1_000 * MS


@contextmanager
def hectic() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def offsets(bench: Table, jobs: int) -> list[int]:
    """Start jobs of no length as early as the limit allows; return when, in ns from the first."""
    for _ in range(jobs):
        bench.submit()
    starts: list[int] = []
    while len(starts) < jobs:
        attempt = bench.begin()
        if attempt is None:
            bench.now_ns = bench.engine.agenda.wake_ns
        else:
            starts.append(bench.now_ns)
            bench.running.remove(attempt)
            attempt.ended_ns = bench.now_ns
            bench.engine.agenda.finish(attempt, attempt.run(), bench.now_ns)
    return [start - starts[0] for start in starts]


@pytest.mark.parametrize(
    ("rate", "expected"),
    [
        (Rate(3, 1), [0, 0, 0, S, S, S, 2 * S]),
        (Rate(2, 10), [0, 0, 10 * S, 10 * S, 20 * S]),
        (Rate(3, 1, burst=2), [0, 0, 333333334, 666666667, S]),
        (Rate(1, 2), [0, 2 * S, 4 * S]),
        (Rate(0.5), [0, 2 * S, 4 * S]),
    ],
    ids=str,
)
def test_starts_come_as_early_as_the_limit_allows(
    table: Callable[..., Table], rate: Rate, expected: list[int]
) -> None:
    assert offsets(table(workers=4, rate=rate), len(expected)) == expected


def test_a_retry_pays_the_rate_again(table: Callable[..., Table]) -> None:
    bench = table(workers=4, rate=Rate(1, 1), retry=Retry(1, base_s=0.0))

    def fails() -> None:
        raise OSError

    job = bench.submit(fails)
    bench.begin()
    assert bench.end() is None
    assert bench.engine.agenda.wake_ns == job.attempts[0].started_ns + S
    bench.now_ns = bench.engine.agenda.wake_ns
    assert bench.begin() is not None
    bench.end()
    assert job.done


def test_no_permit_is_taken_without_a_slot_or_a_job(table: Callable[..., Table]) -> None:
    bench = table(workers=1, rate=Rate(2, 1))
    for _ in range(5):
        assert bench.begin() is None
    bench.submit()
    bench.submit()
    first = bench.begin()
    for _ in range(5):
        assert bench.begin() is None  # no slot
    assert bench.end(first) is not None  # the second permit is still there
    bench.end()


def test_a_late_call_moves_its_stamp(scheduler: Make) -> None:
    """The first call is held up between its permit and its call: its record says when it began."""
    s = scheduler(workers=2, rate=Rate(1, 0.05))
    on_time, freed_ns = s._engine.carry_out, 0

    def held_up(attempt: Any) -> Any:
        nonlocal freed_ns
        if attempt.work.id == 1 and not freed_ns:
            time.sleep(0.03)
            freed_ns = time.monotonic_ns()
        return on_time(attempt)

    s._crew._threads._run = held_up
    for _ in range(3):
        s.submit(lambda: None)
    s.wait(timeout_s=PATIENCE_S)
    starts = [record.started_ns for record in s.records()]
    assert starts[0] >= freed_ns - LATE_NS
    assert violations(starts, Rate(1, 0.05)) == []


def test_recorded_starts_are_left_alone_where_told_so(scheduler: Make) -> None:
    s = scheduler(workers=2, rate=Rate(1, 0.01), strict="recorded")
    s.submit(lambda: None)
    s.wait(timeout_s=PATIENCE_S)
    (attempt,) = s.get(1).attempts
    assert attempt.started_ns == attempt.granted_ns


CAP, STARTS, CAP_S = 50, 150, 0.5
"""As 50 a second and 150 starts, in half the time."""


def check(s: Scheduler | AsyncScheduler, seen: dict[int, int]) -> list[int]:
    """Check the cap as recorded and as seen; return how late each job saw its own start.

    The stamps keep a guard beyond the window, so the jobs see the cap kept while none of them
    loses the processor for longer than that between its stamp and its first reading. What a busy
    machine makes of it beyond that narrows the window in which they see it, by so much exactly.
    """
    window = Rate(CAP, CAP_S).window_ns
    recorded = {record.job: record.started_ns for record in s.records()}
    assert len(seen) == len(recorded) == STARTS
    assert most_in_window(list(recorded.values()), window)[0] <= CAP
    late = [seen[job] - recorded[job] for job in seen]
    excess = max(0, max(late) - GUARD_NS)
    assert most_in_window(list(seen.values()), window - excess)[0] <= CAP
    assert s.report().makespan_ns >= 2 * window
    return late


@pytest.mark.slow
def test_sixteen_threads_keep_to_the_cap_as_seen_by_the_jobs(scheduler: Make) -> None:
    seen: dict[int, int] = {}
    s = scheduler(workers=16, rate=Rate(CAP, CAP_S))
    with hectic():
        for n in range(1, STARTS + 1):
            s.submit(lambda n=n: seen.update({n: time.monotonic_ns()}))
        s.wait(timeout_s=PATIENCE_S)
    check(s, seen)


@pytest.mark.slow
def test_threads_keep_to_the_cap_under_injected_delays(scheduler: Make) -> None:
    """Every seventh call is held up after its permit, by up to 5 ms: its stamp moves along."""
    seen: dict[int, int] = {}
    freed: dict[int, int] = {}
    s = scheduler(workers=16, rate=Rate(CAP, CAP_S))
    on_time = s._engine.carry_out

    def held_up(attempt: Any) -> Any:
        number = attempt.work.id
        if number % 7 == 0 and number not in freed:
            time.sleep(0.001 * (number % 5 + 1))
            freed[number] = time.monotonic_ns()
        return on_time(attempt)

    s._crew._threads._run = held_up
    for n in range(1, STARTS + 1):
        s.submit(lambda n=n: seen.update({n: time.monotonic_ns()}))
    s.wait(timeout_s=PATIENCE_S)
    check(s, seen)
    started = {record.job: record.started_ns for record in s.records()}
    assert len(freed) == STARTS // 7
    assert all(started[number] >= free - LATE_NS for number, free in freed.items())


@pytest.mark.slow
def test_a_loop_keeps_to_the_cap_though_it_is_blocked_now_and_then() -> None:
    seen: dict[int, int] = {}

    async def job(n: int) -> None:
        seen[n] = time.monotonic_ns()
        if n % 10 == 0:
            time.sleep(0.002)  # what nobody should do on a loop

    async def main() -> None:
        async with AsyncScheduler(workers=16, rate=Rate(CAP, CAP_S)) as s:
            for n in range(1, STARTS + 1):
                await s.submit(job, n)
            await s.wait(timeout_s=PATIENCE_S)
        late = check(s, seen)
        # Were the stamps not moved, all those behind a blocking one would be late.
        assert sum(each > GUARD_NS for each in late) < STARTS / 2
        assert s.violations() == []

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize(("count", "per_s"), [(11, 0.1), (100, 0.1)])
def test_thirty_two_threads_never_exceed_the_window(
    scheduler: Make, count: int, per_s: float
) -> None:
    s = scheduler(workers=32, rate=Rate(count, per_s))
    for _ in range(5 * count):
        s.submit(time.sleep, 0)
    s.wait(timeout_s=PATIENCE_S)
    stamps = [record.started_ns for record in s.records()]
    assert most_in_window(stamps, Rate(count, per_s).window_ns)[0] <= count


@pytest.mark.parametrize("per_s", [50, 250, 1000])
def test_even_spacing_uses_the_rate_up(table: Callable[..., Table], per_s: int) -> None:
    """On a machine that is always on time; what a real one adds is shown by the bench."""
    last = offsets(table(workers=8, rate=Rate(per_s, spread=True)), 2 * per_s + 1)[-1]
    assert 2 * S * 0.98 <= last <= 2 * S / 0.99


# In jobs


def test_a_limiter_lets_first_come_first_pass_with_one_timer(scheduler: Make) -> None:
    s = scheduler(workers=8)
    limiter = s.limiter("api", Rate(1, 0.01))
    assert s.limiter("api") is limiter
    passed: list[int] = []
    lined_up: list[int] = []
    turns = [threading.Event() for _ in range(6)]

    def body(n: int) -> None:
        turns[n].wait(PATIENCE_S)
        lined_up.append(n)
        with limiter:
            passed.append(n)

    for n in range(6):
        s.submit(body, n)
    for n in range(6):
        turns[n].set()
        eventually(lambda n=n: n in passed or limiter.waiting + len(passed) > n)  # type: ignore[misc]
    s.wait(timeout_s=PATIENCE_S)
    assert passed == lined_up == list(range(6))


def test_a_limiter_counts_weights_and_refuses_impossible_ones(scheduler: Make) -> None:
    limiter = scheduler().limiter("api", "3 per 10s")
    limiter.acquire(2)
    with pytest.raises(TimeoutError):
        limiter.acquire(2, timeout_s=0)
    limiter.acquire(1, timeout_s=0)  # a free permit is had without waiting
    with pytest.raises(ValueError, match="smaller weight"):
        limiter.acquire(4)
    assert limiter.waiting == 0


def test_limiters_are_told_apart_by_name(scheduler: Make) -> None:
    s = scheduler()
    with pytest.raises(ValueError, match="no limiter"):
        s.limiter("api")
    s.limiter("api", Rate(3))
    with pytest.raises(ValueError, match="another name"):
        s.limiter("api", Rate(4))


def test_one_timer_for_ten_thousand_who_wait() -> None:
    from timeball.engine.gate import JobLimiter

    limiter, passed = JobLimiter(Rate(100, spread=True)), []

    async def one(n: int) -> None:
        async with limiter:
            passed.append(n)

    async def main() -> float:
        running = [asyncio.create_task(one(n)) for n in range(10_000)]
        await asyncio.sleep(0.05)
        before = time.process_time()
        timers = len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]
        await asyncio.sleep(0.2)
        spent = time.process_time() - before
        for each in reversed(running):  # the first of them at last
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        assert timers <= 2  # that one, and this sleep
        return spent

    assert asyncio.run(main()) < 0.1
    assert passed == list(range(len(passed)))
    assert limiter.waiting == 0


def test_who_leaves_the_line_keeps_nobody_waiting() -> None:
    from timeball.engine.gate import JobLimiter

    async def main(order: list[int]) -> int:
        limiter = JobLimiter(Rate(1, 0.05))
        await limiter.acquire_async()
        before = time.monotonic_ns()
        waiting = [asyncio.create_task(limiter.acquire_async()) for _ in range(6)]
        await asyncio.sleep(0)
        for n in order:
            waiting[n].cancel()
        await waiting[5]
        assert limiter.waiting == 0
        return time.monotonic_ns() - before

    for order in ([0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4, 1, 3]):
        assert asyncio.run(main(order)) < 200 * MS  # one window of 50, and not six
