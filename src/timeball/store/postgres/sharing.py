"""One answer for all who ask the same at the same moment."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock
from typing import Generic, TypeVar

_Answer = TypeVar("_Answer")


class Shared(Generic[_Answer]):
    """Asks one at a time; who comes meanwhile shares the next answer.

    No answer is older than the question: it is asked for after all who are given it had come.

    Args:
        ask: Gives the answer, or raises what all who share it are to be told.
    """

    def __init__(self, ask: Callable[[], _Answer]) -> None:
        self._ask = ask
        self._next: Future[_Answer] | None = None
        self._lock, self._turn = Lock(), Lock()

    def __call__(self) -> _Answer:
        """Return an answer that was asked for after this call."""
        with self._lock:
            mine, asks = self._next, self._next is None
            if mine is None:
                mine = self._next = Future()
        if asks:
            with self._turn:
                with self._lock:  # who comes from here on may know of more than this answer will
                    self._next = None
                try:
                    mine.set_result(self._ask())
                except BaseException as error:
                    mine.set_exception(error)  # for all who share it
                    raise
        return mine.result()
