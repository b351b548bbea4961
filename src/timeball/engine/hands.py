"""Threads that carry out what an event loop hands them, and tell it how that ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread, get_ident
from typing import Any, Generic

from timeball.engine.section import A


class Hands(Generic[A]):
    """Up to as many threads as attempts were handed over at once; made when needed, kept.

    Args:
        after: Told, in the thread, how an attempt ended.
        broken: Called when a thread dies of a bug of ours.
    """

    def __init__(self, after: Callable[[A, Any], None], broken: Callable[[], None]) -> None:
        self._after = after
        self._broken = broken
        self._given: SimpleQueue[A | None] = SimpleQueue()
        self._parked: list[None] = []
        self._threads: list[Thread] = []
        self._running: dict[int, A] = {}

    def start(self, attempt: A) -> None:
        """Carry out an attempt in a thread that is parked, else in a new one."""
        self._given.put(attempt)
        try:
            self._parked.pop()
        except IndexError:
            name = f"timeball-hand-{len(self._threads) + 1}"
            thread = Thread(target=self._work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def current(self) -> A | None:
        """Return what this very thread carries out."""
        return self._running.get(get_ident())

    def close(self, timeout_s: float) -> None:
        """Let the threads go; wait for those that carry out nothing any more."""
        until = time.monotonic() + timeout_s
        for _ in self._threads:
            self._given.put(None)
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _work(self) -> None:
        sound, me = False, get_ident()
        try:
            while (attempt := self._given.get()) is not None:
                self._running[me] = attempt
                said = attempt.run()
                del self._running[me]
                self._parked.append(None)
                self._after(attempt, said)
                del attempt, said  # what they refer to must not live on while this one is parked
            sound = True
        finally:
            if not sound:
                self._broken()
