"""Worker threads that come for their attempts themselves.

Of the idle ones, one leads: it sleeps until the agenda's next instant, or until the doorbell. The
others are parked, each on a lock of its own, and woken last in first out. Whoever begins an
attempt hands on: it wakes one more, who finds something to do, leads, or parks again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from operator import methodcaller
from threading import Lock, Thread, current_thread, get_ident
from typing import Any, Final, Generic

from timeball.engine.doorbell import Doorbell
from timeball.engine.section import AT_ONCE, A, Section

_NS_PER_S: Final = 1e9


class _Worker:
    __slots__ = ("attempt", "ident", "leads", "parking", "thread")

    def __init__(self) -> None:
        self.leads = False
        self.parking = Lock()
        self.parking.acquire()
        self.thread: Thread | None = None
        self.ident = 0
        self.attempt: Any = None
        """What it carries out, if anything."""


class Threads(Generic[A]):
    """Up to `limit` threads; the first is started at once, the others when they are needed.

    Args:
        section: The lock and the agenda.
        limit: The most threads: as many as there are slots.
        on_loop: Told of an attempt for the event loop, in the thread that claimed it.
        broken: Called when a thread dies of a bug of ours.
        run: Carries out an attempt for a thread, and returns how it ended.
    """

    def __init__(
        self,
        section: Section[A],
        limit: int,
        on_loop: Callable[[A], None],
        broken: Callable[[], None],
        *,
        run: Callable[[A], Any] = methodcaller("run"),
    ) -> None:
        self._section = section
        self._limit = limit
        self._on_loop = on_loop
        self._broken = broken
        self._run = run
        self._bell = Doorbell()
        self.ring = self._bell.ring
        """Has the leader look. Takes no lock: legal from signal handlers and finalizers."""
        # Under the section's lock:
        self._workers: list[_Worker] = []
        self._parked: list[_Worker] = []
        self._leader: _Worker | None = None
        self._until_ns = 0
        self._closed = False
        self._full = False
        """Whether there are as many threads as there may be."""
        section.summon = self.summon

    def open(self) -> None:
        """Start the first thread."""
        self._spawn(self._add())

    def summon(self) -> None:
        """Have one more look at the agenda; called under the lock."""
        outbox = self._section.agenda.outbox
        if self._parked:
            outbox.append(self._parked.pop().parking.release)
        elif self._leader is not None:
            outbox.append(self.ring)
        elif not (self._full or self._closed):
            worker = self._add()
            outbox.append(lambda: self._spawn(worker))

    def finish(self, done: A, said: Any) -> A | None:
        """End an attempt of the event loop; return the next one for it, if that is the next."""
        section = self._section
        waited_ns = section.enter()
        try:
            agenda = section.agenda
            attempt = agenda.round_on_loop(done, said, section.clock_ns())
            if attempt is not None:
                attempt.lock_ns = waited_ns
            elif agenda.more or agenda.wake_ns < self._until_ns:
                self.summon()
        finally:
            section.leave()
        return attempt

    def attempt_of(self, ident: int) -> A | None:
        """Return what the thread of that identifier carries out."""
        for worker in self._workers:
            if worker.ident == ident:
                attempt: A | None = worker.attempt
                return attempt
        return None

    def close(self) -> None:
        """Let every thread end once it finds nothing to do."""
        section = self._section
        section.enter()
        self._closed = True
        parked, self._parked = self._parked, []
        section.agenda.outbox += [worker.parking.release for worker in parked]
        section.agenda.outbox.append(self.ring)
        section.leave()

    def join(self, timeout_s: float) -> None:
        """Wait for the threads, but for one that runs an attempt which does not return."""
        until = time.monotonic() + timeout_s
        for worker in self._workers:
            thread = worker.thread
            if thread is not None and thread is not current_thread():
                thread.join(max(0.0, until - time.monotonic()))

    # Threads

    def _add(self) -> _Worker:
        worker = _Worker()
        self._workers.append(worker)
        self._full = len(self._workers) == self._limit
        return worker

    def _spawn(self, worker: _Worker) -> None:
        name = f"timeball-slot-{self._workers.index(worker) + 1}"
        worker.thread = Thread(target=self._work, args=(worker,), name=name, daemon=True)
        worker.thread.start()

    def _work(self, worker: _Worker) -> None:
        sound, worker.ident = False, get_ident()
        try:
            self._serve(worker)
            sound = True
        finally:
            if not sound:
                self._broken()

    def _serve(self, worker: _Worker) -> None:
        attempt: A | None = None
        said: Any = None
        while True:
            attempt = self._step(worker, attempt, said)
            said = None  # what a job returned must not live on for as long as the next one runs
            if attempt is None:
                if self._closed:
                    return
                self._rest(worker)
            elif attempt.is_async:
                self._on_loop(attempt)
                attempt = None
            else:
                worker.attempt = attempt
                said = self._run(attempt)
                worker.attempt = None

    def _step(self, worker: _Worker, done: A | None, said: Any) -> A | None:
        section, waited_ns = self._section, 0
        agenda = section.agenda
        if section.lock.acquire(AT_ONCE):
            section.owner = worker.ident
        else:
            waited_ns = section.enter()
        try:
            if worker.leads:
                worker.leads, self._leader = False, None
            attempt = agenda.round(done, said, section.clock_ns())
            if attempt is None:
                if not self._closed:
                    self._retire(worker, agenda.wake_ns)
                return None
            if waited_ns:
                attempt.lock_ns = waited_ns
            if self._leader is not None or self._parked or not self._full:
                self._hand_on()
            return attempt
        finally:
            if agenda.outbox:
                section.leave()
            else:
                section.owner = 0
                section.lock.release()

    def _hand_on(self) -> None:
        """Have one more come, where there is one who rests; under the lock."""
        if self._leader is None or self._section.agenda.more:
            self.summon()

    def _retire(self, worker: _Worker, wake_ns: int) -> None:
        """Lead, or park; under the lock."""
        if self._leader is None:
            worker.leads, self._leader, self._until_ns = True, worker, wake_ns
            return
        self._parked.append(worker)
        if wake_ns < self._until_ns:
            # The leader does not know of this instant, and nobody else would: it has to look.
            self._until_ns = wake_ns
            self._section.agenda.outbox.append(self.ring)

    def _rest(self, worker: _Worker) -> None:
        if worker.leads:
            self._bell.wait((self._until_ns - self._section.clock_ns()) / _NS_PER_S)
        else:
            worker.parking.acquire()
