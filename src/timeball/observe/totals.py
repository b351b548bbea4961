"""Sums over processes that come and go: what a dead one has counted stays counted."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from timeball.observe.board import Board, Key, Samples


class Totals:
    """The boards of living processes, and the sums of those that are gone. For any thread."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._boards: set[Board] = set()
        self._past: dict[Key, list[int]] = {}

    def board(self, stripes: int = 0) -> Board:
        """Return a new board, which counts from now on."""
        board = Board.create(stripes)
        with self._lock:
            self._boards.add(board)
        return board

    def retire(self, board: Board) -> None:
        """Keep what a board says, and close it: nobody writes to it any more."""
        with self._lock:
            self._boards.remove(board)
            include(self._past, board.read())
            board.close()

    def read(self) -> dict[Key, list[int]]:
        """Return the sums over all boards there ever were."""
        sums: dict[Key, list[int]] = {}
        with self._lock:
            include(sums, self._past)
            for board in self._boards:
                include(sums, board.read())
        return sums

    def close(self) -> None:
        """Close the boards that are left."""
        with self._lock:
            for board in self._boards:
                board.close()
            self._boards.clear()


def include(sums: dict[Key, list[int]], samples: Samples) -> None:
    """Add `samples` to `sums`, series by series."""
    for key, numbers in samples.items():
        before = sums.get(key)
        sums[key] = list(numbers) if before is None else _added(before, numbers)


def _added(one: Sequence[int], other: Sequence[int]) -> list[int]:
    return [a + b for a, b in zip(one, other, strict=True)]
