"""The same promises by the common method: real threads, released at once, again and again.

Chance finds here what the stepper forces; but here nothing is modelled.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from threading import Barrier, Lock, Thread

import pytest

from timeball.core.records import CancelAnswer
from timeball.core.states import State
from timeball.engine.handles import Handle
from timeball.engine.scheduler import Scheduler

ROUNDS = 100
WORKERS = 4
JOBS = 24

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _switching_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(*bodies: Callable[[], object]) -> None:
    barrier = Barrier(len(bodies))

    def run(body: Callable[[], object]) -> None:
        barrier.wait()
        body()

    threads = [Thread(target=run, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Observer:
    """Counts calls per job, and how many are inside."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.calls: Counter[int] = Counter()
        self.inside = 0
        self.most = 0

    def job(self, number: int) -> int:
        with self.lock:
            self.calls[number] += 1
            self.inside += 1
            self.most = max(self.most, self.inside)
        with self.lock:
            self.inside -= 1
        return number


def submit_from_two_threads(s: Scheduler, seen: Observer) -> None:
    halves = range(0, JOBS, 2), range(1, JOBS, 2)
    at_once(*(lambda half=half: [s.submit(seen.job, n) for n in half] for half in halves))


def test_no_job_is_called_twice_and_none_is_left_out() -> None:
    for _ in range(ROUNDS):
        seen = Observer()
        with Scheduler(WORKERS) as s:
            submit_from_two_threads(s, seen)
        assert seen.calls == Counter(range(JOBS))
        assert s.counts()[State.SUCCEEDED] == JOBS
        assert s.violations() == []


def test_no_more_than_w_are_inside() -> None:
    for _ in range(ROUNDS):
        seen = Observer()
        with Scheduler(2) as s:
            submit_from_two_threads(s, seen)
        assert seen.most <= 2


def test_counts_add_up_whenever_somebody_looks() -> None:
    for _ in range(ROUNDS):
        seen, looks = Observer(), []
        with Scheduler(WORKERS) as s:
            for number in range(JOBS):
                s.submit(seen.job, number)

            def look(s: Scheduler = s, looks: list[dict[State, int]] = looks) -> None:
                looks.extend(s.counts() for _ in range(10))

            at_once(look, look)
        for counts in looks:
            assert sum(counts.values()) == JOBS
            assert min(counts.values()) >= 0
            assert counts[State.RUNNING] <= WORKERS


def submit_while_somebody_cancels(
    s: Scheduler, seen: Observer
) -> Iterator[tuple[Handle[int], CancelAnswer]]:
    handles: list[Handle[int]] = []
    answers: list[CancelAnswer] = []

    def submit() -> None:
        handles.extend(s.submit(seen.job, number) for number in range(JOBS))

    def cancel() -> None:
        while len(answers) < JOBS:
            answers.extend(s.cancel(handle) for handle in handles[len(answers) :])

    at_once(submit, cancel)
    return zip(handles, answers, strict=True)


def test_a_cancel_and_an_end_agree_on_what_happened() -> None:
    for _ in range(ROUNDS):
        seen = Observer()
        with Scheduler(WORKERS) as s:
            cancelled = submit_while_somebody_cancels(s, seen)
        for number, (handle, answer) in enumerate(cancelled):
            kept = answer is not CancelAnswer.CANCELLED
            assert seen.calls[number] == kept
            assert handle.state is (State.SUCCEEDED if kept else State.CANCELLED)
        assert s.violations() == []


def test_submits_from_everywhere_are_all_heard() -> None:
    for _ in range(ROUNDS):
        seen = Observer()
        with Scheduler(WORKERS) as s:

            def grow(number: int, s: Scheduler = s, seen: Observer = seen) -> None:
                if 2 * number + 2 < JOBS:
                    s.submit(grow, 2 * number + 1)
                    s.submit(grow, 2 * number + 2)
                seen.job(number)

            s.submit(grow, 0)
            s.wait()
        assert seen.calls == Counter(range(JOBS - 1))
