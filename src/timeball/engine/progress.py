"""How far a batch is, for people who wait for it: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TextIO

_BAR: Final = 30
_STEP_S: Final = 0.1
_LINE_S: Final = 5.0
_FOR_EVER: Final = float("inf")


class Progress:
    """Shows how many jobs have ended.

    Args:
        stream: Where to.
        done: Returns how many have ended, and how many there are.
    """

    def __init__(self, stream: TextIO, done: Callable[[], tuple[int, int]]) -> None:
        self._stream = stream
        self._done = done
        self._terminal = stream.isatty()
        self._shown_at = -_FOR_EVER

    def follow(self, wait: Callable[[float], None], timeout_s: float | None) -> None:
        """Wait in small steps, and show each.

        Args:
            wait: Waits at most so many seconds; raises TimeoutError if that was not enough.
            timeout_s: Seconds altogether.
        """
        until = time.monotonic() + (_FOR_EVER if timeout_s is None else timeout_s)
        while (left_s := until - time.monotonic()) > _STEP_S:
            with suppress(TimeoutError):
                wait(_STEP_S)
                self.show(last=True)
                return
            self.show()
        wait(max(0.0, left_s))
        self.show(last=True)

    async def keep_showing(self) -> None:
        """Show it until cancelled."""
        while True:
            self.show()
            await asyncio.sleep(_STEP_S)

    def show(self, *, last: bool = False) -> None:
        """Show where it is now: on a terminal always, elsewhere now and then."""
        now = time.monotonic()
        if not (last or self._terminal or now - self._shown_at >= _LINE_S):
            return
        self._shown_at = now
        done, total = self._done()
        text = f"{done:,} of {total:,} jobs"
        if self._terminal:
            marks = _BAR * done // total if total else _BAR
            end = "\n" if last else ""
            text = f"\r[{'#' * marks}{'.' * (_BAR - marks)}] {text}{end}"
        else:
            text += "\n"
        self._stream.write(text)
        self._stream.flush()
