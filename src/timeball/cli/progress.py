"""How far something is: a bar on a terminal, a line now and then everywhere else."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Final, Self

from timeball.cli.output import say

_EVERY_S: Final = 1.0


class Bar:
    """A bar on stderr, or lines. Usable as a context manager."""

    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._told_at = time.monotonic()
        self._progress: Any = None
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import Progress

            self._progress = Progress(console=Console(stderr=True))
            self._bar = self._progress.add_task(what, total=total)

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._progress is not None:
            self._progress.stop()

    def advance(self, done: int) -> None:
        """Show that so many are done."""
        if self._progress is not None:
            self._progress.update(self._bar, completed=min(done, self._total))
        elif time.monotonic() - self._told_at >= _EVERY_S:
            self._told_at = time.monotonic()
            say(f"{min(done, self._total)} of {self._total} {self._what} have ended")

    def say(self, text: str) -> None:
        """Write a line of talk above the bar."""
        if self._progress is not None:
            self._progress.console.print(text, markup=False, highlight=False)
        else:
            say(text)
