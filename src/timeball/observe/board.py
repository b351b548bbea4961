"""Numbers in shared memory: one process counts, its parent reads, also after its death.

The memory is a table of rows. A row is one series: its numbers, then its name and the values
of its labels as JSON, which make it valid once they are there. Rows are never changed into
others and never go away, so a reader needs no lock, and can keep nobody waiting who counts.

Behind the rows comes one counter in stripes, for what many threads count at once: each adds to
a stripe that is its own for the moment.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Lock
from typing import Final, Self

import msgspec

from timeball.observe.families import STARTS, Family
from timeball.observe.memory import memory_file

Key = tuple[str, tuple[str, ...]]
"""The name of a family and the values of its labels, in their order."""

Samples = Mapping[Key, Sequence[int]]

OTHER: Final = "other"
"""The value of every label once a family has as many series as it may have."""

SERIES_MAX: Final = 200
"""Of one family, apart from the one for all others."""

_LABEL_MAX: Final = 80
_ROW: Final = 512
_CELLS: Final = 16
_TEXT: Final = 8 * _CELLS
_ROWS: Final = 2_048
_KEY: Final = msgspec.json.Decoder(Key)


class Board:
    """A table of series.

    `at` and `add` may be called from any thread. Who adds to `cells` directly must be the only
    one who does so for that series, or hold a lock of their own.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._memory = mmap.mmap(fd, os.fstat(fd).st_size)
        self.cells = memoryview(self._memory).cast("q")
        self.starts = self.cells[_ROWS * _ROW // 8 :]
        """The stripes of `STARTS`."""
        self._lock = Lock()
        self._at: dict[tuple[str, ...], int] = {}
        self._series: Counter[str] = Counter()

    @classmethod
    def create(cls, stripes: int = 0) -> Self:
        """Return an empty board. Pages of it that nobody writes to take no memory."""
        return cls(memory_file("timeball-board", _ROWS * _ROW + 8 * stripes))

    @classmethod
    def attach(cls, fd: int) -> Self:
        """Return the board behind a descriptor that was inherited; it must be empty."""
        return cls(fd)

    def fileno(self) -> int:
        """The descriptor to hand to the child."""
        return self._fd

    def at(self, family: Family, *labels: str) -> int:
        """Return where the numbers of a series begin in `cells`; it is made if it is new."""
        found = self._at.get((family.name, *labels))
        return self._make(family, labels) if found is None else found

    def add(self, family: Family, *labels: str, by: int = 1) -> None:
        """Add to a counter."""
        at = self.at(family, *labels)
        with self._lock:
            self.cells[at] += by

    def observe(self, family: Family, value: int, *labels: str) -> None:
        """Note one value in a histogram. Not for two threads at a time."""
        at, cells = self.at(family, *labels), self.cells
        cells[at] += value
        cells[at + 1 + bisect_left(family.bounds, value)] += 1

    def read(self) -> dict[Key, list[int]]:
        """Return the numbers of every series, as they are now."""
        samples: dict[Key, list[int]] = {(STARTS.name, ()): [sum(self.starts.tolist())]}
        for begin in range(0, _ROWS * _ROW, _ROW):
            text = self._memory[begin + _TEXT : begin + _ROW].rstrip(b"\0")
            if not text:
                break
            with suppress(msgspec.DecodeError):  # it is being written, by another process
                samples[_KEY.decode(text)] = self.cells[begin // 8 : begin // 8 + _CELLS].tolist()
        return samples

    def close(self) -> None:
        """Give memory and descriptor back."""
        self.starts.release()
        self.cells.release()
        self._memory.close()
        os.close(self._fd)

    def _make(self, family: Family, labels: tuple[str, ...]) -> int:
        assert len(labels) == len(family.labels)
        assert family.cells <= _CELLS
        name, values = family.name, tuple(value[:_LABEL_MAX] for value in labels)
        others = (OTHER,) * len(labels)
        with self._lock:
            at = self._at.get((name, *values))
            full = self._series[name] >= SERIES_MAX
            if at is None and (full or len(_encoded(name, values)) > _ROW - _TEXT):
                values = others
                at = self._at.get((name, *values))
            if at is None:
                self._series[name] += 1
                at = self._at[name, *values] = self._new_row(_encoded(name, values))
            if len(self._at) < _ROWS:  # else it is looked up the long way each time
                self._at[name, *labels] = at
            return at

    def _new_row(self, text: bytes) -> int:
        begin = (sum(self._series.values()) - 1) * _ROW
        assert begin < _ROWS * _ROW
        self._memory[begin + _TEXT + 1 : begin + _TEXT + len(text)] = text[1:]
        self._memory[begin + _TEXT] = text[0]  # last: a row is valid once this is there
        return begin // 8


def _encoded(name: str, labels: tuple[str, ...]) -> bytes:
    return msgspec.json.encode((name, labels))
