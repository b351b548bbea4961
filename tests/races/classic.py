"""A small scheduler with the classic defects of one, each beside its repair: what the lab is for.

Nothing in here is used by the product. `docs/concepts/concurrency.md` tells the schedules that
the stepper prints for it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Buggy:
    """Four sets of jobs, two locks, some workers, and a defect in every method."""

    def __init__(self) -> None:
        self.pending: dict[str, None] = {}
        self.running: set[str] = set()
        self.completed: list[str] = []
        self.finished = 0
        self.starts: list[str] = []
        self.state_lock = threading.Lock()
        self.metrics_lock = threading.Lock()
        self.arrived = threading.Condition()
        self.slots = 2

    def take(self) -> str:
        job = next(iter(self.pending))
        del self.pending[job]
        return job

    def claim(self) -> str | None:
        """Check, then act: between the two lines the job may be claimed by somebody else."""
        if not self.pending:
            return None
        job = next(iter(self.pending))
        self.pending.pop(job, None)
        self.running.add(job)
        self.starts.append(job)
        return job

    def count(self) -> None:
        """Read, add, write: three steps."""
        self.finished += 1

    def finish(self, job: str) -> None:
        """The state, then the metrics."""
        with self.state_lock:
            self.running.discard(job)
            with self.metrics_lock:
                self.finished += 1

    def report(self) -> tuple[int, int]:
        """The metrics, then the state."""
        with self.metrics_lock:
            finished = self.finished
            with self.state_lock:
                return finished, len(self.running)

    def take_slot(self) -> bool:
        """Whether there is a slot, and then its taking."""
        if len(self.running) < self.slots:
            self.running.add(threading.current_thread().name)
            return True
        return False

    def run_locked(self, call: Callable[[], None]) -> None:
        """The callable, under the lock."""
        with self.state_lock:
            call()
            self.finished += 1

    def get(self) -> str:
        """Looks, and sleeps if it saw nothing: a job that comes in between wakes nobody."""
        if not self.pending:
            with self.arrived:
                self.arrived.wait()
        return self.take()

    def put(self, job: str) -> None:
        self.pending[job] = None
        with self.arrived:
            self.arrived.notify()

    def get_unlooped(self) -> str:
        """Under the lock, but without looking again after the wait."""
        with self.arrived:
            if not self.pending:
                self.arrived.wait()
            return self.take()

    def put_for_all(self, job: str) -> None:
        with self.arrived:
            self.pending[job] = None
            self.arrived.notify_all()


class Mended(Buggy):
    """The same, mended."""

    def claim(self) -> str | None:
        with self.state_lock:
            if not self.pending:
                return None
            job = self.take()
            self.running.add(job)
            self.starts.append(job)
            return job

    def count(self) -> None:
        with self.state_lock:
            self.finished += 1

    def finish(self, job: str) -> None:
        with self.state_lock:
            self.running.discard(job)
            self.finished += 1

    def report(self) -> tuple[int, int]:
        with self.state_lock:
            return self.finished, len(self.running)

    def take_slot(self) -> bool:
        with self.state_lock:
            return super().take_slot()

    def run_locked(self, call: Callable[[], None]) -> None:
        call()
        self.count()

    def get(self) -> str:
        with self.arrived:
            while not self.pending:
                self.arrived.wait()
            return self.take()

    get_unlooped = get

    def put(self, job: str) -> None:
        with self.arrived:
            self.pending[job] = None
            self.arrived.notify()
