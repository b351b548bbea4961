"""Barrier and repeat: many rounds with threads that switch as often as they can."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import pytest
from tests.engine.conftest import PATIENCE_S, balance

from timeball import Rate, Retry, Scheduler, SchedulerClosed
from timeball.core.states import State

ROUNDS = 100


@pytest.fixture(autouse=True)
def _hectic() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


class Tracker:
    """Counts how often each job runs, and how many at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.runs: dict[int, int] = {}
        self.inside = self.most = 0

    def run(self, n: int) -> None:
        with self.lock:
            self.runs[n] = self.runs.get(n, 0) + 1
            self.inside += 1
            self.most = max(self.most, self.inside)
        with self.lock:
            self.inside -= 1


def together(actions: list[Callable[[], object]]) -> None:
    """Run all at the same instant, in a thread each."""
    barrier = threading.Barrier(len(actions))

    def act(action: Callable[[], object]) -> None:
        barrier.wait(PATIENCE_S)
        action()

    threads = [threading.Thread(target=act, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)


def submit_some(s: Scheduler, tracker: Tracker, start: int, end: int) -> None:
    for n in range(start, end):
        s.submit(tracker.run, n)


@pytest.mark.slow
def test_no_job_runs_twice_and_no_slot_too_many() -> None:
    for _ in range(ROUNDS):
        tracker = Tracker()
        with Scheduler(workers=3) as s:
            together([partial(submit_some, s, tracker, at, at + 5) for at in range(0, 20, 5)])
            s.wait(timeout_s=PATIENCE_S)
        assert tracker.runs == dict.fromkeys(range(20), 1)
        assert tracker.most <= 3
        assert s.violations() == []
        balance(s)


@pytest.mark.slow
def test_cancelling_while_all_start_agrees_with_what_ran() -> None:
    for seed in range(ROUNDS):
        chance, ran = random.Random(seed), []
        with Scheduler(workers=3, key_limits={"a": 1}) as s:
            handles = [s.submit(ran.append, n, key=chance.choice("ab")) for n in range(12)]
            chosen = chance.sample(handles, 6)
            together([handle.cancel for handle in chosen])
            s.wait(timeout_s=PATIENCE_S)
            assert len(ran) == s.counts()[State.SUCCEEDED] == len(set(ran))
        assert {handle.state for handle in handles} <= {State.SUCCEEDED, State.CANCELLED}
        assert s.violations() == []


@pytest.mark.slow
def test_retries_under_a_limit_lose_nothing() -> None:
    for _ in range(ROUNDS // 4):
        tries: dict[int, int] = {}

        def flaky(n: int, tries: dict[int, int] = tries) -> None:
            tries[n] = tries.get(n, 0) + 1
            if tries[n] < 3:
                raise OSError

        with Scheduler(workers=4, rate=Rate(20, 0.01), retry=Retry(2, base_s=0.001)) as s:
            for n in range(10):
                s.submit(flaky, n)
            s.wait(timeout_s=PATIENCE_S)
        assert set(tries.values()) == {3}
        assert s.counts()[State.SUCCEEDED] == 10
        assert s.violations() == []


@pytest.mark.slow
def test_shutdown_against_submit_leaves_every_job_in_a_terminal_state() -> None:
    for seed in range(ROUNDS):
        s = Scheduler(workers=2)
        handles = []

        def submits(s: Scheduler = s, handles: list[object] = handles) -> None:
            with suppress(SchedulerClosed):
                while len(handles) < ROUNDS:
                    handles.append(s.submit(pow, 2, 2))

        mode = ("drain", "cancel", "abort")[seed % 3]
        together([submits, submits, partial(s.shutdown, mode)])
        s.shutdown()
        assert all(handle.done for handle in handles)  # type: ignore[attr-defined]
        assert s.violations() == []
        assert sum(s.counts().values()) == len(handles)


@pytest.mark.slow
def test_snapshots_add_up_at_every_instant() -> None:
    with Scheduler(workers=4) as s:
        handles = [s.submit(pow, 2, n) for n in range(500)]
        while not all(handle.done for handle in handles):
            assert sum(s.counts().values()) == 500
            sets = s.sets(split=True)
            assert sum(map(len, sets.values())) == 500
            assert len(sets["running"]) <= 4
        balance(s)
