"""A memory store that can be watched and made to fail, and workers on it in threads."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

from timeball.action.registry import Registry
from timeball.core.audit import Report, audit
from timeball.core.records import Job, JobSpec
from timeball.core.states import TERMINAL, State
from timeball.errors import StoreUnavailable
from timeball.store.base import JobFilter
from timeball.store.memory import MemoryStore
from timeball.worker.begun import BegunTable
from timeball.worker.config import WorkerConfig
from timeball.worker.loop import Worker

PATIENCE_S = 30.0
VERBS = ("register", "claim", "settle", "promote", "retire")


class Watched:
    """A store whose verbs fail when told to, before or after they were carried out.

    `faults` holds per verb what the next calls do: "before", "after" or "".
    """

    def __init__(self) -> None:
        self.inner = MemoryStore(lambda: datetime.now(UTC))
        self.calls: Counter[str] = Counter()
        self.faults: dict[str, list[str]] = {}
        self.before: dict[str, Callable[..., None]] = {}
        self.after: dict[str, Callable[[], None]] = {}
        """Called once, when the verb is done and its answer has not arrived."""
        self.changed = threading.Condition()

    def __getattr__(self, verb: str) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            if verb in self.before:
                self.before[verb](*args, **options)
            faults = self.faults.get(verb)
            fault = faults.pop(0) if faults else ""
            if fault == "before":
                self._note(verb)
                raise StoreUnavailable(f"{verb}: not sent")
            answer = getattr(self.inner, verb)(*args, **options)
            self._note(verb)
            self.after.pop(verb, lambda: None)()
            if fault == "after":
                raise StoreUnavailable(f"{verb}: the answer was lost")
            return answer

        return call

    def until(self, holds: Callable[[], bool]) -> None:
        """Return once something is so; it is looked at after every call."""
        deadline = time.monotonic() + PATIENCE_S
        with self.changed:
            while not holds():
                left = deadline - time.monotonic()
                assert left > 0, f"not in time; calls so far: {self.calls}"
                self.changed.wait(min(left, 0.1))

    def _note(self, verb: str) -> None:
        with self.changed:
            self.calls[verb] += 1
            self.changed.notify_all()


class Workshop:
    """One store, one registry, and the workers that a test starts."""

    def __init__(self) -> None:
        self.store = Watched()
        self.registry = Registry()
        self.job = self.registry.job
        self.submitted = 0
        self.ids: list[int] = []
        """Of the workers, as they register."""

    def submit(self, kind: str, args: str = "{}", **options: Any) -> UUID:
        kinds_own = self.registry.get(kind)
        if kinds_own is not None:
            options.setdefault("max_retries", kinds_own.retry.max_retries)
            options.setdefault("delivery", kinds_own.delivery)
        spec = JobSpec(uuid=uuid4(), kind=kind, args=args, **options)
        self.store.submit([spec])
        self.submitted += 1
        return spec.uuid

    def get(self, uuid: UUID) -> Job:
        return self.store.inner.get(uuid)

    def count(self, state: State) -> int:
        return self.store.inner.counts().get(state, 0)

    def all_ended(self) -> bool:
        counts = self.store.inner.counts()
        ended = sum(counts.get(state, 0) for state in TERMINAL)
        return ended == sum(counts.values()) and ended >= self.submitted

    def build(
        self, *, registry: Registry | None = None, begun: BegunTable | None = None, **config: Any
    ) -> Worker:
        settings: dict[str, Any] = {"name": "w", "poll_s": 0.02, **config}
        return Worker(
            self.store,  # type: ignore[arg-type]  # by delegation
            registry if registry is not None else self.registry,
            WorkerConfig(**settings),
            draw=lambda: 0.0,
            begun=begun,
            on_registered=self.ids.append,
        )

    @contextmanager
    def at_work(self, worker: Worker | None = None, **config: Any) -> Iterator[Worker]:
        """A worker in a thread; stopped at the end. What `work` raises is raised here."""
        worker = worker or self.build(**config)
        errors: list[BaseException] = []

        def run() -> None:
            try:
                worker.work()
            except StoreUnavailable as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield worker
        finally:
            worker.stop()
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        if errors:
            raise errors[0]

    def run(self, **config: Any) -> None:
        """Let a worker work until all jobs have ended, then stop it."""
        with self.at_work(**config):
            self.store.until(self.all_ended)

    def report(self, *, quiesced: bool = True) -> Report:
        """Return the audit of everything that ever happened here."""
        histories = self.store.inner.histories()
        return audit(histories, quiesced=quiesced, accepted=self.submitted)

    def assert_clean(self) -> None:
        report = self.report()
        assert report.clean, report.violations[:5]
        assert self.store.inner.pulses() == []

    def page(self) -> list[Job]:
        return self.store.inner.jobs(JobFilter(limit=10_000))
