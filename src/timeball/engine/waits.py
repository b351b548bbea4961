"""Waiting for jobs, and the one way in which that can never end: jobs that wait for each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from threading import Lock
from typing import Protocol

from timeball.core.states import TERMINAL, State
from timeball.engine.agenda import Agenda
from timeball.engine.aio import wake
from timeball.engine.handles import Attempt, Work
from timeball.engine.section import Section
from timeball.errors import DeadlockError, SchedulerClosed


class Crew(Protocol):
    """Who comes for attempts."""

    def ring(self) -> None:
        """Have somebody look at the agenda. Takes no lock."""
        ...

    def current(self) -> Attempt | None:
        """Return the attempt that the caller is part of."""
        ...

    def cancel(self, attempt: Attempt) -> None:
        """Cancel an attempt that runs on the event loop."""
        ...


class Host(Protocol):
    """What there is to wait for."""

    @property
    def agenda(self) -> Agenda:
        """The jobs."""
        ...

    @property
    def section(self) -> Section[Attempt]:
        """The lock around them."""
        ...

    @property
    def crew(self) -> Crew:
        """Who ends them."""
        ...

    @property
    def broken(self) -> bool:
        """Whether a bug of ours has ended a worker."""
        ...

    @property
    def forked(self) -> bool:
        """Whether this is a copy without anybody who would end a job."""
        ...

    def refusal(self) -> SchedulerClosed:
        """Return what is told to those whom that concerns."""
        ...


class Watch:
    """Calls once when the last of some jobs has ended.

    Args:
        agenda: Where the jobs are.
        call: Called outside the lock.
    """

    __slots__ = ("_agenda", "_call", "_left")

    def __init__(self, agenda: Agenda, call: Callable[[], None]) -> None:
        self._agenda = agenda
        self._call = call
        self._left = 0

    def attach(self, works: Iterable[Work]) -> bool:
        """Watch those that have not ended, under the lock; return whether there are any."""
        for work in works:
            if work.state not in TERMINAL:
                self._left += 1
                self._agenda.watched.setdefault(work, []).append(self._hit)
        return self._left > 0

    def detach(self, works: Iterable[Work]) -> None:
        """Watch no longer, under the lock."""
        for work in works:
            watching = self._agenda.watched.get(work, [])
            # Bound methods are made anew each time: they are equal, not the same.
            if self._hit in watching:
                watching.remove(self._hit)
                if not watching:
                    del self._agenda.watched[work]

    def _hit(self) -> None:
        self._left -= 1
        if not self._left:
            self._agenda.outbox.append(self._call)


def is_hopeless(
    agenda: Agenda, waiting: Mapping[Attempt, Sequence[Work]], attempt: Attempt
) -> bool:
    """Return whether what `attempt` waits for cannot end before the attempt itself does.

    An attempt that does not wait may end, and so may one that waits for jobs that may all end.
    A job that has not begun may end where some slot is free or may become so.

    Args:
        agenda: Where the jobs are.
        waiting: Which attempts wait without a time limit, this one included, and for what.
        attempt: Which one is asked about.
    """
    running = [each for each in agenda.on_slot if each is not None]
    hopeful = {each for each in running if each not in waiting}

    def may_end(work: Work) -> bool:
        return _may_end(work, hopeful, some_slot=bool(agenda.free or hopeful))

    found = True
    while found:
        found = False
        for each, works in waiting.items():
            if each not in hopeful and all(map(may_end, works)):
                hopeful.add(each)
                found = True
    return attempt not in hopeful


def _may_end(work: Work, hopeful: Collection[Attempt], *, some_slot: bool) -> bool:
    todo, seen = [work], set[Work]()  # no recursion: a chain may be long
    while todo:
        each = todo.pop()
        if each in seen or each.state in TERMINAL:
            continue
        seen.add(each)
        if not (each.last in hopeful if each.state is State.RUNNING else some_slot):
            return False
        if each.state is not State.RUNNING and each.more is not None:
            todo += (*each.more.after, *each.more.spawned)
    return True


class Waits:
    """Who waits for jobs of one engine."""

    def __init__(self, engine: Host) -> None:
        self._engine = engine
        self._waiting: dict[Attempt, Sequence[Work]] = {}
        """Attempts that wait for jobs without a time limit; under the lock."""

    def wait(self, works: Sequence[Work] | None, timeout_s: float | None) -> None:
        """Wait for some jobs, or for all.

        Raises:
            TimeoutError: They have not ended in time.
            DeadlockError: Asked by a job that has to end before they can.
        """
        gate = Lock()
        gate.acquire()
        watch = self._watch(works, gate.release, for_ever=timeout_s is None)
        if watch is None:
            return
        ended = False
        try:
            ended = gate.acquire(timeout=-1 if timeout_s is None else max(0.0, timeout_s))
        finally:
            self._unwatch(watch, works, gate.release, ended=ended)
        self._check_end(ended=ended, timeout_s=timeout_s)

    async def wait_async(self, works: Sequence[Work] | None, timeout_s: float | None) -> None:
        """Wait as `wait` does, on the event loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()

        def call() -> None:
            wake(loop, future)

        watch = self._watch(works, call, for_ever=timeout_s is None)
        if watch is None:
            return
        try:
            await asyncio.wait([future], timeout=timeout_s)
        finally:
            self._unwatch(watch, works, call, ended=future.done())
        self._check_end(ended=future.done(), timeout_s=timeout_s)

    def _check_end(self, *, ended: bool, timeout_s: float | None) -> None:
        assert not self._engine.broken, "a bug of ours has ended a worker: the log says which"
        if not ended:
            raise TimeoutError(f"not ended within {timeout_s:g} s")

    def _watch(
        self, works: Sequence[Work] | None, call: Callable[[], None], *, for_ever: bool
    ) -> Watch | None:
        """Have `call` called, outside the lock, once jobs have ended; None where they have."""
        engine = self._engine
        if works is not None and all(work.state in TERMINAL for work in works):
            return None
        if engine.forked:
            raise engine.refusal()
        attempt = engine.crew.current()
        watch = Watch(engine.agenda, call)
        with engine.section.visit():
            if engine.broken or (works is None and not engine.agenda.tally.open):
                return None
            if attempt is not None and for_ever:
                self._check_hope(attempt, works)
            if works is None:
                engine.agenda.when_idle.append(call)
            elif not watch.attach(works):
                return None
            return watch

    def _check_hope(self, attempt: Attempt, works: Sequence[Work] | None) -> None:
        job = attempt.work.id
        if works is None:
            raise DeadlockError(job, "waits for all jobs, so for itself: name those it needs")
        self._waiting[attempt] = works
        if is_hopeless(self._engine.agenda, self._waiting, attempt):
            del self._waiting[attempt]
            advice = "submit what needs them with after=, or raise workers"
            raise DeadlockError(job, f"waits for jobs that cannot end before it does: {advice}")

    def _unwatch(
        self, watch: Watch, works: Sequence[Work] | None, call: Callable[[], None], *, ended: bool
    ) -> None:
        attempt = self._engine.crew.current()
        if ended and attempt is None:
            return
        with self._engine.section.visit():
            if attempt is not None:
                self._waiting.pop(attempt, None)
            if works is not None:
                watch.detach(works)
            elif call in self._engine.agenda.when_idle:
                self._engine.agenda.when_idle.remove(call)
