"""Who comes for attempts: threads, with a loop of their own, or the caller's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import get_ident

from timeball.engine.aio import EventLoop, Strands
from timeball.engine.handles import NEVER_NS, Attempt
from timeball.engine.hands import Hands
from timeball.engine.runner import Ended
from timeball.engine.section import Section
from timeball.engine.threads import Threads

_CLOSE_S = 1.0


class ThreadCrew:
    """Threads that lead, and a loop for what is asynchronous.

    Args:
        section: The lock and the agenda.
        workers: The most threads.
        run: Carries out an attempt in a thread.
        broken: Called when a bug of ours has ended one of them.
    """

    def __init__(
        self,
        section: Section[Attempt],
        workers: int,
        run: Callable[[Attempt], Ended],
        broken: Callable[[], None],
    ) -> None:
        self._section = section
        self._loop: EventLoop[Attempt] = EventLoop(self._after, broken)
        self._threads: Threads[Attempt] = Threads(
            section, workers, self._loop.start, broken, run=run
        )
        self.ring = self._threads.ring
        self._threads.open()

    def _after(self, done: Attempt, said: Ended) -> Attempt | None:
        return self._threads.finish(done, said)

    def current(self) -> Attempt | None:
        """Return the attempt that the caller is part of."""
        attempt = self._threads.attempt_of(get_ident())
        strands = self._loop.strands
        if attempt is not None or strands is None:
            return attempt
        try:
            return strands.attempt_of(asyncio.current_task())
        except RuntimeError:  # in no event loop
            return None

    def cancel(self, attempt: Attempt) -> None:
        """Cancel an attempt that runs on the loop."""
        self._loop.cancel(attempt)

    def close(self) -> None:
        """Let all go, once they have nothing to do; does not wait."""
        self._threads.close()

    def join(self) -> None:
        """Wait for those that carry out nothing any more."""
        self._threads.join(_CLOSE_S)
        self._loop.close(_CLOSE_S)


class LoopCrew:
    """The caller's event loop, which alone enters the section; threads for what is synchronous.

    Args:
        section: The lock and the agenda.
        broken: Called when a bug of ours has cost a slot.
    """

    def __init__(self, section: Section[Attempt], broken: Callable[[], None]) -> None:
        self._section = section
        self._broken = broken
        self._hands: Hands[Attempt] = Hands(self._handed_back, broken)
        self.is_open = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._strands: Strands[Attempt] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ns = NEVER_NS
        self._ringing = False
        section.summon = self.ring

    def open(self) -> None:
        """Run on this thread's event loop from now on."""
        if not self.is_open:
            self._loop = asyncio.get_running_loop()
            self._strands = Strands(self._loop, self._after, self._broken)
            self._loop.call_soon(self._pump)
            self.is_open = True

    def ring(self) -> None:
        """Have the loop look at the agenda, from any thread; many rings count as one."""
        if not self._ringing and self._loop is not None:
            self._ringing = True
            self._loop.call_soon_threadsafe(self._pump)

    def current(self) -> Attempt | None:
        """Return the attempt that the caller is part of."""
        attempt = self._hands.current()
        if attempt is not None or self._strands is None:
            return attempt
        try:
            return self._strands.attempt_of(asyncio.current_task())
        except RuntimeError:  # in no event loop
            return None

    def cancel(self, attempt: Attempt) -> None:
        """Cancel an attempt that runs on the loop."""
        assert self._strands is not None
        self._strands.cancel(attempt)

    def close(self) -> None:
        """Let the threads go, and wait a little for those that carry out nothing any more."""
        self._hands.close(_CLOSE_S)
        if self._timer is not None:
            self._timer.cancel()

    def _pump(self) -> None:
        # Only now may it ring anew: whoever found it ringing has changed something before this.
        self._ringing = False
        section = self._section
        agenda = section.agenda
        found: list[Attempt] = []
        waited_ns = section.enter()
        try:
            while (attempt := agenda.round(None, None, section.clock_ns())) is not None:
                attempt.lock_ns = waited_ns
                found.append(attempt)
            wake_ns = agenda.wake_ns
        finally:
            section.leave()
        if wake_ns != self._timer_ns:
            self._set_timer(wake_ns)
        for attempt in found:
            self._begin(attempt)

    def _after(self, done: Attempt, said: Ended) -> Attempt | None:
        section = self._section
        attempt = section.turn(done, said)
        wake_ns = section.agenda.wake_ns  # changes in rounds only, and so on this thread only
        if wake_ns != self._timer_ns:
            self._set_timer(wake_ns)
        if attempt is None or attempt.work.form.is_async:
            return attempt
        self._hands.start(attempt)
        return None

    def _begin(self, attempt: Attempt) -> None:
        if attempt.is_async:
            assert self._strands is not None
            self._strands.begin(attempt)
        else:
            self._hands.start(attempt)

    def _handed_back(self, done: Attempt, said: Ended) -> None:
        self._section.agenda.inbox.append(lambda agenda, now_ns: agenda.finish(done, said, now_ns))
        self.ring()

    def _set_timer(self, wake_ns: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._timer_ns = None, wake_ns
        if wake_ns < NEVER_NS and self._loop is not None:
            delay_s = max(0, wake_ns - self._section.clock_ns()) / 1e9
            self._timer = self._loop.call_later(delay_s, self._ring_by_timer)

    def _ring_by_timer(self) -> None:
        self._timer, self._timer_ns = None, NEVER_NS
        self._pump()
