"""What running attempts say, on its way to the store; nobody who says something waits for that."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from itertools import count
from threading import Event, Lock, Thread
from typing import Any, Final

from timeball.core.notes import LINE_MAX, LINES_MAX, REMARK_MAX, Line, Note
from timeball.errors import TimeballError
from timeball.observe.concealment import without_secrets

_EVERY_S: Final = 1.0
_log = logging.getLogger(__name__)

Write = Callable[[Sequence[Note]], Collection[int]]
"""Writes notes and returns the jobs that are done with; those of others are tried again."""

Key = tuple[int, int]
"""The job and the turn."""


Word = tuple[float, float | None, str | None]
"""How far a job is: what is done, what there is to do, and a few words."""


def spoken(job: int | str, done: Any, total: Any, note: Any) -> Word | None:
    """Return what a job says of how far it is, as it is kept; None, and a warning, if no number."""
    number = _number(done)
    if number is None:
        _log.warning("progress(%r) of job %s is no number, and left out", done, job)
        return None
    remark = None if note is None else without_secrets(str(note), REMARK_MAX)
    return number, _number(total), remark


class _Page:
    """What one attempt has said and has not been written."""

    def __init__(self) -> None:
        self.progress: Word | None = None
        self.lines: deque[tuple[int, float, str]] = deque(maxlen=LINES_MAX)


class Notebook:
    """Collects what attempts say, from any thread, and has it written now and then.

    A thread of its own writes, and is started by the first word. Of progress only the latest is
    kept, of lines the newest; where the store is away, they wait.

    Args:
        write: Called with what is new, at most once in `every_s` seconds.
        every_s: That.
    """

    def __init__(self, write: Write, *, every_s: float = _EVERY_S) -> None:
        self._write = write
        self._every_s = every_s
        self._lock = Lock()
        self._writing = Lock()
        self._pages: dict[Key, _Page] = {}
        self._numbers = count(1)
        self._news, self._closed = Event(), Event()
        self._thread: Thread | None = None

    def progress(self, key: Key, done: Any, total: Any, note: Any) -> None:
        """Note how far an attempt is. What is no number counts as not said."""
        word = spoken(key[0], done, total, note)
        if word is not None:
            with self._lock:
                self._page(key).progress = word

    def log(self, key: Key, text: object, *, age_s: float = 0.0) -> None:
        """Note a line."""
        line = without_secrets(str(text), LINE_MAX)
        with self._lock:
            said_s = time.monotonic() - age_s
            self._page(key).lines.append((next(self._numbers), said_s, line))

    def merge(self, notes: Sequence[Note]) -> None:
        """Take over what another notebook has collected."""
        for note in notes:
            key = note.job_id, note.turn
            for line in note.lines:
                self.log(key, line.text, age_s=line.age_s)
            if note.progress is not None:
                self.progress(key, *note.progress)

    def flush(self) -> None:
        """Write what there is now, if it can be written."""
        with self._writing:
            notes = self._open()
            if not notes:
                return
            try:
                done = self._write(notes)
            except TimeballError as error:
                _log.warning("what jobs say waits for the store: %s", error)
                return
            self._close(notes, done)

    def close(self) -> None:
        """Write what there is, once, and nothing more."""
        self._closed.set()
        self._news.set()
        if self._thread is not None:
            self.flush()

    def _page(self, key: Key) -> _Page:
        if self._thread is None and not self._closed.is_set():
            self._thread = Thread(target=self._run, name="timeball-notes", daemon=True)
            self._thread.start()
        self._news.set()
        return self._pages.setdefault(key, _Page())

    def _run(self) -> None:
        while not self._closed.is_set():
            self._news.wait()
            self._news.clear()
            self.flush()
            self._closed.wait(self._every_s)
            if self._pages:
                self._news.set()

    def _open(self) -> list[Note]:
        with self._lock:
            now_s = time.monotonic()
            return [
                Note(
                    *key,
                    page.progress,
                    [Line(n, max(0.0, now_s - said_s), text) for n, said_s, text in page.lines],
                )
                for key, page in self._pages.items()
            ]

    def _close(self, notes: Sequence[Note], done: Collection[int]) -> None:
        with self._lock:
            for note in notes:
                if note.job_id not in done:
                    continue
                page = self._pages[note.job_id, note.turn]
                if page.progress is note.progress:
                    page.progress = None
                last = note.lines[-1].n if note.lines else 0
                while page.lines and page.lines[0][0] <= last:
                    page.lines.popleft()
                if page.progress is None and not page.lines:
                    del self._pages[note.job_id, note.turn]


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
