"""The critical section: one short lock around an agenda, and how others come to look at it.

Whoever enters does one round: end the attempt it has carried out, take in what has come, begin
the next. Nothing foreign is called in here; what the round wants called goes to the outbox, and
is called once the lock is released.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import Context
from threading import Lock, get_ident
from typing import Any, Final, Generic, Protocol, TypeVar

from timeball.engine.locks import take
from timeball.errors import DeadlockError


class Attempt(Protocol):
    """What a slot carries out. Neither form ever raises."""

    lock_ns: int
    """How long its worker waited for the lock before it was granted."""

    @property
    def is_async(self) -> bool:
        """Whether it runs on the event loop, by `run_async`, or in a thread, by `run`."""
        ...

    @property
    def variables(self) -> Context | None:
        """A context of its own to start with on the event loop; None: an empty one."""
        ...

    def run(self) -> Any:
        """Carry it out in this thread, and return how it ended."""
        ...

    def run_async(self) -> Coroutine[Any, Any, Any]:
        """Return what carries it out on this event loop, and returns how it ended."""
        ...


A = TypeVar("A", bound=Attempt)

AT_ONCE: Final = False
"""Take the lock, or learn that it is taken. By position, which halves what it costs."""


class Agenda(Protocol[A]):
    """Who decides what is carried out. Called under the lock only, but for `inbox`."""

    inbox: deque[Any]
    outbox: list[Callable[[], Any]]
    wake_ns: int
    """When to be asked again, unless something happens before."""

    @property
    def more(self) -> bool:
        """Whether somebody else could begin an attempt now."""
        ...

    def round(self, done: A | None, said: Any, now_ns: int) -> A | None:
        """End `done`, take in what has come, and return the next attempt to begin."""
        ...

    def round_on_loop(self, done: A | None, said: Any, now_ns: int) -> A | None:
        """Do the same, but return an attempt only if it runs on the event loop."""
        ...

    def drain(self, now_ns: int) -> None:
        """Take in all that has come."""
        ...


class Section(Generic[A]):
    """The lock around an agenda.

    Args:
        agenda: Who decides.
        clock_ns: A monotonic clock.
    """

    def __init__(self, agenda: Agenda[A], clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.agenda = agenda
        self.clock_ns = clock_ns
        self.lock_wait_ns = 0
        """How long all have waited for the lock together; only contended entries are timed."""
        self.contended = 0
        self.summon: Callable[[], None] = lambda: None
        """Has somebody look at the agenda soon; called under the lock."""
        self.lock = Lock()
        self.owner = 0
        """The thread that has the lock."""

    def enter(self) -> int:
        """Take the lock, and return for how many nanoseconds that had to wait."""
        waited_ns = 0
        if not self.lock.acquire(AT_ONCE):
            before_ns = self.clock_ns()
            take(self.lock)
            waited_ns = self.clock_ns() - before_ns
            self.lock_wait_ns += waited_ns
            self.contended += 1
        self.owner = get_ident()
        return waited_ns

    def leave(self) -> None:
        """Release the lock, then call what was put in the outbox under it."""
        calls: list[Callable[[], Any]] | None = None
        if self.agenda.outbox:
            calls, self.agenda.outbox = self.agenda.outbox, []
        self.owner = 0
        self.lock.release()
        for call in calls or ():  # never the agenda's own list: others fill that from here on
            call()

    def turn(self, done: A | None, said: Any) -> A | None:
        """Be inside for one round of the agenda, and return the attempt that begins."""
        agenda, waited_ns = self.agenda, 0
        if self.lock.acquire(AT_ONCE):
            self.owner = get_ident()
        else:
            waited_ns = self.enter()
        try:
            attempt = agenda.round(done, said, self.clock_ns())
            if attempt is not None and waited_ns:
                attempt.lock_ns = waited_ns
            if agenda.more:
                self.summon()
        finally:
            if agenda.outbox:
                self.leave()
            else:
                self.owner = 0
                self.lock.release()
        return attempt

    @property
    def mine(self) -> bool:
        """Whether this very thread is inside: then this is a signal handler, or a finalizer."""
        return self.owner == get_ident()

    @contextmanager
    def visit(self) -> Iterator[int]:
        """Be inside for a moment, with all that has come taken in; gives the clock's reading.

        Raises:
            DeadlockError: This thread is inside already.
        """
        if self.mine:
            raise DeadlockError(
                "-",
                "asked from a signal handler or a finalizer that interrupted the scheduler "
                "itself: there, only submit and shutdown may be called",
            )
        self.enter()
        try:
            now_ns = self.clock_ns()
            if self.agenda.inbox:
                self.agenda.drain(now_ns)
            yield now_ns
            if self.agenda.more:
                self.summon()
        finally:
            self.leave()
