"""Which turns have begun, in memory that outlives the process that writes it.

A worker child marks each turn as its attempt begins. When the child dies, however
abruptly, its parent reads from the same memory what had begun: only those turns may
have done something, and only those cost their job a crash.
"""

from __future__ import annotations

import mmap
import os
from typing import Final, Self

from timeball.observe.memory import memory_file
from timeball.store.base import CLAIM_MAX

_ROW: Final = 24
"""Bytes: the job's id, when its attempt began in microseconds of the store's clock, and the turn,
64 bits each. A row whose turn is 0 is free."""

_BEHIND: Final = 2
_END, _PULSE, _CONFIRMED, _HEARD, _EXCLUSIVE = -3 * _BEHIND, -4, -3, -2, -1
"""Cells behind the rows, two rows of them: what the worker has counted to, and what its event loop
has confirmed of that; the latest instant at which the worker is known to have had a beat, in
nanoseconds of the monotonic clock; and how many exclusive attempts run."""


def rows(slots: int) -> int:
    """Return how many turns a worker with so many slots may have begun and not settled."""
    # Turns ready, claimed and not yet settled: the loop settles before it claims again.
    return 2 * slots + 2 * CLAIM_MAX


class BegunTable:
    """A table of (job, turn) in shared memory.

    It has room for every turn that one worker may have begun and not settled. The child writes,
    from any of its threads; the parent reads once the child is dead.
    """

    def __init__(self, fd: int, starts: memoryview | None = None) -> None:
        self._fd = fd
        self._starts = starts
        size = os.fstat(fd).st_size
        self._memory = mmap.mmap(fd, size)
        self._cells = memoryview(self._memory).cast("q")
        self._free = list(range(size // _ROW - _BEHIND))
        self._rows: dict[tuple[int, int], int] = {}

    @classmethod
    def create(cls, slots: int) -> Self:
        """Return an empty table for a worker with so many slots."""
        return cls(memory_file("timeball-begun", (rows(slots) + _BEHIND) * _ROW))

    @classmethod
    def attach(cls, fd: int, starts: memoryview | None = None) -> Self:
        """Return the table behind a descriptor that was inherited; it must be empty to write to.

        Args:
            fd: Of the table.
            starts: Where to count what begins, a stripe for each row; None: nowhere.
        """
        return cls(fd, starts)

    def fileno(self) -> int:
        """The descriptor to hand to the child."""
        return self._fd

    def mark(self, job_id: int, turn: int, began_at: float = 0.0) -> None:
        """Note that the attempt of this turn begins, and when by the store's clock."""
        row = self._rows.get((job_id, turn))  # there where a failover has lost an earlier grant
        if row is None:
            row = self._free.pop()
        self._rows[job_id, turn] = row
        # The turn comes last: a row is valid once it is there, whenever the process dies.
        self._cells[3 * row] = job_id
        self._cells[3 * row + 1] = round(began_at * 1e6)
        self._cells[3 * row + 2] = turn
        if self._starts is not None:
            self._starts[row] += 1  # nobody else has this row before it is cleared

    def clear(self, job_id: int, turn: int) -> None:
        """Note that the death of this process would cost this turn nothing any more."""
        row = self._rows.pop((job_id, turn), None)
        if row is not None:
            self._cells[3 * row + 2] = 0
            self._free.append(row)

    def begun(self) -> set[tuple[int, int]]:
        """Return the (job, turn) pairs that are marked."""
        return set(self.began())

    def began(self) -> dict[tuple[int, int], float]:
        """Return when the attempts of those began that are marked, by the store's clock."""
        cells = self._cells.tolist()[:_END]
        rows_ = zip(cells[::3], cells[1::3], cells[2::3], strict=True)
        return {(job_id, turn): began_us / 1e6 for job_id, began_us, turn in rows_ if turn}

    @property
    def heard_ns(self) -> int:
        """When the worker is known to have had a beat, by the monotonic clock."""
        return self._cells[_HEARD]

    def hear(self, asked_ns: int) -> None:
        """Note a beat that was asked for at that instant and answered; by parent and child."""
        self._cells[_HEARD] = max(self._cells[_HEARD], asked_ns)

    @property
    def pulse(self) -> int:
        """What the worker has counted to, as a sign that its interpreter turns; 0: it does not."""
        return self._cells[_PULSE]

    @pulse.setter
    def pulse(self, count: int) -> None:
        self._cells[_PULSE] = count

    @property
    def confirmed(self) -> int:
        """The last of these counts that its event loop has confirmed."""
        return self._cells[_CONFIRMED]

    @confirmed.setter
    def confirmed(self, count: int) -> None:
        self._cells[_CONFIRMED] = count

    @property
    def exclusive(self) -> int:
        """How many exclusive attempts run."""
        return self._cells[_EXCLUSIVE]

    @exclusive.setter
    def exclusive(self, count: int) -> None:
        self._cells[_EXCLUSIVE] = count

    def close(self) -> None:
        """Give memory and descriptor back."""
        self._cells.release()
        self._memory.close()
        os.close(self._fd)
