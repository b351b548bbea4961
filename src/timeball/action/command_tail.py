"""The newest lines of a command's output, told while it runs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

from timeball.action.command_output import readable
from timeball.core.notes import BYTES_MAX, LINES_MAX

FIRST_S: Final = 2.0
"""Of a command that ends before, nothing is told: its end tells all."""

EVERY_S: Final = 1.0


class Tail:
    """Tells whole lines, now and then, in memory and at a cost that do not grow with a flood.

    A line is told as a whole or not at all: where one was cut, a part of a secret might be left.

    Args:
        say: Called with one line.
        first_s: Seconds until the first of them is told.
    """

    def __init__(self, say: Callable[[str], None], *, first_s: float = FIRST_S) -> None:
        self._say = say
        self._pending = bytearray()
        self._cut = self._told = False
        self._next_at = time.monotonic() + first_s

    def add(self, chunk: bytes) -> None:
        """Take in what was written."""
        self._pending += chunk
        if len(self._pending) > 2 * BYTES_MAX:
            del self._pending[:-BYTES_MAX]
            self._cut = True

    def due_at(self) -> float:
        """When `tell` is to be called, in seconds of the monotonic clock; infinity: not yet."""
        return self._next_at if self._pending else math.inf

    def tell(self, *, ended: bool = False) -> None:
        """Tell the lines that are whole, if it is time; at the end, those that are left."""
        now = time.monotonic()
        if (ended and not self._told) or (not ended and now < self._next_at):
            return
        self._next_at, self._told = now + EVERY_S, True
        whole, end, rest = self._pending.rpartition(b"\n")
        if ended:
            whole, rest = self._pending, bytearray()
        if self._cut and (end or ended):
            whole = whole.partition(b"\n")[2]
            self._cut = False
        self._pending = rest
        for line in readable(bytes(whole)).split("\n")[-LINES_MAX:]:
            # Of a line that overwrites itself, what a terminal would show last.
            shown = line.rstrip("\r").rpartition("\r")[2]
            if shown.strip():
                self._say(shown)
