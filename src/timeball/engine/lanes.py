"""The jobs that may start now, in the order in which they will."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from typing import Final, Protocol

from timeball.core.rate import NS_PER_S
from timeball.core.states import State
from timeball.engine.handles import Work

_PENDING: Final = State.PENDING


class Line(Protocol):
    """One priority class: a deque, as far as it is used here."""

    def append(self, work: Work, /) -> None:
        """Put a job last."""
        ...

    def appendleft(self, work: Work, /) -> None:
        """Put a job first."""
        ...

    def popleft(self) -> Work:
        """Take the first."""
        ...

    def __getitem__(self, index: int, /) -> Work: ...
    def __len__(self) -> int: ...


class FairLine:
    """Takes one job of each key in turn; those of one key, or of none, in their order."""

    __slots__ = ("_lines", "_turns")

    def __init__(self) -> None:
        self._lines: dict[Hashable, deque[Work]] = {}
        self._turns: deque[Hashable] = deque()

    def append(self, work: Work, /) -> None:
        """Put a job behind the others of its key."""
        line = self._lines.get(work.key)
        if line is None:
            line = self._lines[work.key] = deque()
            self._turns.append(work.key)
        line.append(work)

    def appendleft(self, work: Work, /) -> None:
        """Put a job first, of its key and of all."""
        line = self._lines.get(work.key)
        if line is None:
            line = self._lines[work.key] = deque()
        else:
            self._turns.remove(work.key)
        self._turns.appendleft(work.key)
        line.appendleft(work)

    def popleft(self) -> Work:
        """Take the first; the next one of its key comes after one of every other."""
        key = self._turns.popleft()
        line = self._lines[key]
        work = line.popleft()
        if line:
            self._turns.append(key)
        else:
            del self._lines[key]
        return work

    def __getitem__(self, index: int, /) -> Work:
        assert index == 0
        return self._lines[self._turns[0]][0]

    def __len__(self) -> int:
        return len(self._turns)


class Lanes:
    """All priority classes.

    The key of a job is ``ready_ns - priority * aging_ns`` and never changes, so a job is overtaken
    only by those of a higher class that became ready within a bounded time after it. Within a
    class that is the order of arrival: a queue per class does.

    Args:
        aging_ns: What one class is worth.
        fair: Whether keys take turns within a class.
        key_limits: For some keys, how many of their jobs may run at once.
    """

    def __init__(self, *, aging_ns: int, fair: bool, key_limits: Mapping[str, int]) -> None:
        self._aging_ns = aging_ns
        self._fair = fair
        self._lines: dict[int, Line] = {}
        self._only: Line | None = None
        """The only one there is, as in most programs."""
        self._key_limits = key_limits
        self.size = 0
        """Jobs that line up here; some may have left since, which shows when it is their turn."""
        self._running: dict[str, int] = {}
        self._blocked: dict[str, deque[Work]] = {}
        """Pending jobs whose key is at its limit, in their order."""

    @property
    def blocked(self) -> bool:
        """Whether a job is ready, but for the limit of its key."""
        return any(self._blocked.values())

    def add(self, work: Work) -> None:
        """Let a job line up, at the back."""
        line = self._lines.get(work.form.priority)
        if line is None:
            line = self._lines[work.form.priority] = FairLine() if self._fair else deque()
            self._only = line if len(self._lines) == 1 else None
        line.append(work)
        self.size += 1

    def front(self) -> Line | None:
        """Return the line whose first job is to start next; None if none may."""
        line = self._only
        if line is not None:
            if line:
                ready = line[0]
                if ready.key is None and ready.state is _PENDING:
                    return line
            return None if self._first(line) is None else line
        best: Line | None = None
        best_ns = 0
        for priority, line in self._lines.items():
            work = self._first(line)
            if work is not None:
                key_ns = work.at_ready_ns - priority * self._aging_ns
                if best is None or key_ns < best_ns:
                    best, best_ns = line, key_ns
        return best

    def begin(self, key: str) -> None:
        """Note that a job of this key has begun."""
        if key in self._key_limits:
            self._running[key] = self._running.get(key, 0) + 1

    def end(self, key: str) -> None:
        """Note that a job of this key has ended; the first that waited for it comes first."""
        if key in self._key_limits:
            self._running[key] -= 1
            self._unblock(key)

    def _unblock(self, key: str) -> None:
        blocked = self._blocked.get(key)
        if not blocked or self._is_blocked(key):
            return
        while blocked:
            work = blocked.popleft()
            if work.state is _PENDING:
                self._lines[work.form.priority].appendleft(work)
                self.size += 1
                return

    def _first(self, line: Line) -> Work | None:
        while line:
            work = line[0]
            key = work.key
            if work.state is _PENDING and (key is None or not self._is_blocked(key)):
                return work
            line.popleft()
            self.size -= 1
            if key is None:
                continue
            if work.state is _PENDING:
                self._blocked.setdefault(key, deque()).append(work)
            else:  # cancelled in here: its room goes to the next one
                self._unblock(key)
        return None

    def _is_blocked(self, key: str) -> bool:
        limit = self._key_limits.get(key)
        return limit is not None and self._running.get(key, 0) >= limit


def aging_ns(seconds: float) -> int:
    """Return an aging in nanoseconds."""
    return round(seconds * NS_PER_S)
