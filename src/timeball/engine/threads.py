"""Threads that carry out attempts: made when needed, kept, never more than there are slots."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Generic

from timeball.core.records import Settlement
from timeball.engine.slots import A


class Threads(Generic[A]):
    """Up to `limit` threads.

    Args:
        limit: The most threads; as many attempts may be started and not ended.
        after: Told how an attempt ended; returns the one that this thread runs next.
        broken: Called when a thread dies of a bug of ours.
    """

    def __init__(
        self,
        limit: int,
        after: Callable[[A, Settlement], A | None],
        broken: Callable[[], None],
    ) -> None:
        self._limit = limit
        self._after = after
        self._broken = broken
        self._started: SimpleQueue[A | None] = SimpleQueue()
        self._parked: list[None] = []
        self._threads: list[Thread] = []
        self._lock = Lock()

    def start(self, attempt: A) -> None:
        """Carry out an attempt in a thread that is parked, else in a new one."""
        self._started.put(attempt)
        try:
            self._parked.pop()
        except IndexError:
            self._add()

    def close(self, timeout_s: float) -> None:
        """Let the threads go; wait for those that carry out nothing any more."""
        until = time.monotonic() + timeout_s
        with self._lock:
            self._limit = 0
        for _ in self._threads:
            self._started.put(None)
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _add(self) -> None:
        with self._lock:  # started under it too: `close` must not meet a thread that has not been
            if len(self._threads) >= self._limit:
                return  # one of them is about to park, since fewer attempts run than that
            number = len(self._threads) + 1
            thread = Thread(target=self._work, name=f"timeball-slot-{number}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        sound = False
        try:
            while (attempt := self._started.get()) is not None:
                following: A | None = attempt
                while following is not None:
                    following = self._after(following, following.run())
                del attempt  # what it refers to must not live on while this thread is parked
                self._parked.append(None)
            sound = True
        finally:
            if not sound:
                self._broken()
