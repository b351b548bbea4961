"""Carries out the durable worker's attempts, in threads and on one event loop."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Generic

from timeball.core.records import Settlement
from timeball.engine.aio import EventLoop
from timeball.engine.section import Section
from timeball.engine.slots import Slots, T
from timeball.engine.threads import Threads

_CLOSE_S: Final = 1.0


class Kernel(Generic[T]):
    """Slots with the two ways to fill them.

    The one that ends an attempt carries out the next in its place: a thread another one for
    threads, the event loop another one for itself, without waking anybody.

    Args:
        slots: The most attempts that may have begun and not ended.
        ring: See `Slots`.
    """

    def __init__(self, slots: int, ring: Callable[[], None]) -> None:
        self.slots: Slots[T] = Slots(slots, ring)
        self.broken = False
        """Whether a bug of ours has cost a slot: then the process should end, and be healed."""
        self._ring = ring
        self._section: Section[T] = Section(self.slots)
        self._loop: EventLoop[T] = EventLoop(self._after, self._break)
        self._threads: Threads[T] = Threads(self._section, slots, self._loop.start, self._break)
        self._open = False

    def offer(self, attempts: Iterable[T]) -> None:
        """Let attempts line up and begin as soon as there are slots."""
        self.slots.inbox.extend(attempts)
        if not self._open:
            self._open = True
            self._threads.open()
        self._threads.ring()

    def take_ended(self) -> list[tuple[T, Settlement]]:
        """Take over those that have ended, in that order."""
        with self._section.visit():
            ended, self.slots.ended = self.slots.ended, []
        return ended

    def withdraw(self) -> list[T]:
        """Take back those that have not begun."""
        with self._section.visit():
            return self.slots.withdraw()

    def begun(self) -> list[T]:
        """Return those that run, as it is at this instant."""
        with self._section.visit():
            return list(self.slots.at_work)

    def abandon(self) -> list[T]:
        """Take those that run off the slots: whatever they still say is not heard."""
        with self._section.visit():
            running = list(self.slots.at_work)
            self.slots.at_work.clear()
        return running

    @property
    def idle(self) -> bool:
        """Whether nothing waits, runs, or has ended and not been taken."""
        with self._section.visit():
            return self.slots.idle

    @property
    def lock_wait(self) -> tuple[int, int]:
        """For how many nanoseconds its threads have waited for its lock so far, and how often."""
        return self._section.lock_wait_ns, self._section.contended

    def cancel(self, attempt: T | None = None) -> None:
        """Cancel one asynchronous attempt that runs, or all; a thread cannot be stopped."""
        self._loop.cancel(attempt)

    def ask_loop(self, back: Callable[[], None]) -> bool:
        """Have the event loop call back as soon as it turns; return False where there is none."""
        return self._loop.ask(back)

    def close(self) -> None:
        """End all threads, but for those whose attempt does not return."""
        self.slots.closed = True
        self._threads.close()
        self._threads.join(_CLOSE_S)
        self._loop.close(_CLOSE_S)

    def _after(self, attempt: T, settlement: Settlement) -> T | None:
        return self._threads.finish(attempt, settlement)

    def _break(self) -> None:
        self.broken = True
        self._ring()
