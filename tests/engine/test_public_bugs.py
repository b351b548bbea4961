"""What went wrong in other schedulers, in public, and must not go wrong here.

Number 7, about weights, is in `test_weights.py`; 13 and 24, about ends and forks, in
`test_ends.py`; 14 and 16, about processes, in `test_runners.py`; 15, about their deaths, in
`test_process_deaths.py`; 20, about who leaves a limiter's line, in `test_rates.py`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from tests.engine.conftest import MS, PATIENCE_S, Table, eventually

from timeball import AsyncScheduler, Rate, Scheduler, SchedulerClosed
from timeball.core.rate import most_in_window
from timeball.core.states import State
from timeball.engine.gate import JobLimiter

Make = Callable[..., Scheduler]


def test_01_five_jobs_at_two_in_ten_seconds_start_at_0_0_10_10_20(
    table: Callable[..., Table],
) -> None:
    bench, starts = table(workers=4, rate=Rate(2, per_s=10)), []
    for _ in range(5):
        bench.submit()
    while len(starts) < 5:
        attempt = bench.begin()
        if attempt is None:
            bench.now_ns = bench.engine.agenda.wake_ns
            continue
        starts.append(bench.now_ns)
        bench.running.remove(attempt)
        attempt.ended_ns = bench.now_ns
        bench.engine.agenda.finish(attempt, attempt.run(), bench.now_ns)
    assert [(start - starts[0]) // (1000 * MS) for start in starts] == [0, 0, 10, 10, 20]


def test_02_ten_thousand_jobs_behind_a_limit_cost_next_to_nothing(scheduler: Make) -> None:
    s = scheduler(workers=8, rate=Rate(100, spread=True))
    for _ in range(10_000):
        s.submit(time.sleep, 0)
    s.counts()  # by then they have been taken in
    before = time.process_time()
    time.sleep(0.2)  # the time to be looked at
    assert time.process_time() - before < 0.1
    s.shutdown("cancel")


def test_03_thirty_two_threads_at_eleven_in_a_window_start_eleven(scheduler: Make) -> None:
    s = scheduler(workers=32, rate=Rate(11, 0.05))
    for _ in range(33):
        s.submit(time.sleep, 0)
    s.wait(timeout_s=PATIENCE_S)
    stamps = [record.started_ns for record in s.records()]
    assert most_in_window(stamps, 50 * MS)[0] == 11


@pytest.mark.slow
def test_04_thirty_two_threads_and_very_many_grants_come_to_an_end() -> None:
    limiter = JobLimiter(Rate(1_000_000, burst=1_000_000))

    def many() -> None:
        for _ in range(1_000):
            limiter.acquire()

    threads = [threading.Thread(target=many) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert not any(thread.is_alive() for thread in threads)
    assert limiter.waiting == 0


def test_05_a_key_that_waits_does_not_hold_up_another(scheduler: Make) -> None:
    s, gate = scheduler(workers=4, key_limits={"a": 1}), threading.Event()
    s.submit(gate.wait, key="a")
    s.submit(pow, 2, 2, key="a")
    other = s.submit(pow, 2, 2, key="b")
    other.result(PATIENCE_S)
    assert s.counts()[State.PENDING] == 1
    gate.set()


def test_06_a_grant_exactly_at_the_end_of_the_window_takes_one_wake_up(
    table: Callable[..., Table],
) -> None:
    bench = table(workers=2, rate=Rate(1, 1))
    bench.submit()
    bench.submit()
    bench.begin()
    assert bench.begin() is None
    bench.now_ns = bench.engine.agenda.wake_ns
    assert bench.begin() is not None
    bench.end()
    bench.end()


def test_08_cancelled_submitters_of_a_full_queue_take_nobodys_room() -> None:
    running = peak = 0

    async def job() -> None:
        nonlocal running, peak
        running += 1
        peak = max(peak, running)
        await asyncio.sleep(0.001)
        running -= 1

    async def main() -> None:
        async with AsyncScheduler(workers=10, max_pending=5) as s:
            submitters = [asyncio.create_task(s.submit(job)) for _ in range(200)]
            await asyncio.sleep(0)
            for each in submitters[::2]:
                each.cancel()
            done = await asyncio.gather(*submitters, return_exceptions=True)
            handles = [each for each in done if not isinstance(each, BaseException)]
            await asyncio.wait_for(s.wait(), PATIENCE_S)
            assert len(handles) >= 100
            assert {handle.state for handle in handles} == {State.SUCCEEDED}
            assert len(s._engine.room._free) == 5  # type: ignore[union-attr]
            assert s.violations() == []

    asyncio.run(main())
    assert peak == 10


def test_09_nothing_starts_after_a_shutdown_that_met_blocked_submitters() -> None:
    started: list[int] = []

    async def main() -> None:
        gate = asyncio.Event()
        s = AsyncScheduler(workers=1, max_pending=1)
        await s.submit(gate.wait)
        await s.submit(gate.wait)

        async def job() -> None:
            started.append(1)

        blocked = [asyncio.create_task(s.submit(job)) for _ in range(5)]
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.01, gate.set)
        await s.shutdown("cancel")
        told = await asyncio.gather(*blocked, return_exceptions=True)
        assert all(isinstance(each, SchedulerClosed) for each in told)

    asyncio.run(main())
    assert started == []


def test_10_a_waiter_that_is_cancelled_between_grant_and_wake_passes_the_turn_on() -> None:
    async def main() -> None:
        limiter = JobLimiter(Rate(1, 0.01))
        await limiter.acquire_async()
        waiting = [asyncio.create_task(limiter.acquire_async()) for _ in range(3)]
        await asyncio.sleep(0)
        limiter._line[1].turn()  # it has been told that it is the first, and has not run since
        waiting[1].cancel()
        waiting[0].cancel()
        await asyncio.wait_for(waiting[2], PATIENCE_S)

    asyncio.run(main())


def test_11_a_wait_that_is_cancelled_as_the_job_ends_loses_no_slot() -> None:
    async def job() -> int:
        await asyncio.sleep(0)
        return 1

    async def main() -> None:
        async with AsyncScheduler(workers=1) as s:
            for n in range(50):
                handle = await s.submit(job)
                waiting = asyncio.create_task(handle.result(PATIENCE_S))
                for _ in range(n % 6):
                    await asyncio.sleep(0)
                waiting.cancel()
                (answer,) = await asyncio.gather(waiting, return_exceptions=True)
                assert answer == 1 or isinstance(answer, asyncio.CancelledError)
            assert await (await s.submit(job)) == 1
            assert s._engine.agenda.watched == {}
            assert s.violations() == []

    asyncio.run(main())


def test_12_a_signal_handler_that_shuts_down_during_a_submit_returns(scheduler: Make) -> None:
    s = scheduler(workers=2)
    told = []

    def handler(*_: object) -> None:
        s.shutdown("cancel")
        told.append("returned")

    before = signal.signal(signal.SIGTERM, handler)
    timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    try:
        with pytest.raises(SchedulerClosed):
            endlessly(s)
    finally:
        signal.signal(signal.SIGTERM, before)
        timer.join()
    assert told == ["returned"]


def endlessly(s: Scheduler) -> None:
    while True:
        s.submit(pow, 2, 2)


def test_17_a_shutdown_from_a_job_drains(scheduler: Make) -> None:
    s = scheduler(workers=1)
    s.submit(s.shutdown)
    handles = [s.submit(pow, 2, n) for n in range(3)]
    s.wait(timeout_s=PATIENCE_S)
    assert [handle.result() for handle in handles] == [1, 2, 4]


def test_18_the_next_of_twenty_starts_right_after_a_slot_is_free(scheduler: Make) -> None:
    s, ended = scheduler(workers=1), []
    for _ in range(20):
        s.submit(lambda: ended.append(time.monotonic_ns()))
    s.wait(timeout_s=PATIENCE_S)
    gaps = sorted(b.started_ns - a.finished_ns for a, b in pairwise(s.records()))
    assert gaps[len(gaps) // 2] < 5 * MS  # the machine may take one or two away


def test_19_a_cancelled_thread_job_keeps_its_slot_until_it_returns(scheduler: Make) -> None:
    s, gate = scheduler(workers=1), threading.Event()
    running = s.submit(gate.wait)
    other = s.submit(pow, 2, 2)
    eventually(lambda: running.state is State.RUNNING)
    running.cancel()
    time.sleep(0.02)  # for something that must not happen
    assert other.state is State.PENDING
    gate.set()
    assert other.result(PATIENCE_S) == 4


@pytest.mark.slow
def test_21_cancel_and_finish_at_the_same_time_agree(scheduler: Make) -> None:
    s, ran = scheduler(workers=2), []
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for n in range(1_000):
            handle = s.submit(ran.append, n)
            answer = handle.cancel()
            s.wait([handle], PATIENCE_S)
            assert (answer == "cancelled") is (handle.state is State.CANCELLED)
            assert (n in ran[-1:]) is (handle.state is State.SUCCEEDED)
    finally:
        sys.setswitchinterval(before)


def test_22_a_scheduler_in_a_job_of_a_scheduler_does_not_deadlock(scheduler: Make) -> None:
    outer = scheduler(workers=1)

    def job(depth: int) -> int:
        with Scheduler(workers=1) as inner:
            return inner.submit(job, depth - 1).result() + 1 if depth else 0

    assert outer.submit(job, 3).result(PATIENCE_S) == 3


def test_23_an_earlier_job_that_comes_while_the_leader_sleeps_is_on_time(scheduler: Make) -> None:
    s = scheduler(workers=2)
    late = s.submit(pow, 2, 2, delay_s=60)
    threads = s._crew._threads
    eventually(lambda: threads._leader is not None and threads._until_ns < 1 << 62)
    soon = s.submit(pow, 2, 3, delay_s=0.01)
    assert soon.result(PATIENCE_S) == 8
    late.cancel()


def test_a_retry_that_only_a_parked_worker_knows_of_starts(scheduler: Make) -> None:
    """Whoever parks with news of an earlier instant rings the leader, who sleeps until later."""
    from timeball import Retry

    s, gate, tries = scheduler(workers=2), threading.Event(), []

    def flaky() -> None:
        tries.append(0)
        if len(tries) == 1:
            gate.wait(PATIENCE_S)
            raise OSError

    s.submit(time.sleep, 0).result(PATIENCE_S)
    handle = s.submit(flaky, retry=Retry(1, base_s=0.01, jitter="none"))
    threads = s._crew._threads
    # The other worker leads, with nothing to wake up for, when the first one fails.
    eventually(lambda: len(tries) == 1 and threads._leader is not None)
    gate.set()
    handle.result(PATIENCE_S)
