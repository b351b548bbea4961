"""What is counted of turns that were settled."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

from timeball.core.records import Settlement, Turn, Verdict
from timeball.core.states import Ending
from timeball.observe import families
from timeball.observe.board import Board
from timeball.worker.telling import Counts


@pytest.fixture
def board() -> Iterator[Board]:
    board = Board.create()
    yield board
    board.close()


def test_a_clock_that_was_set_back_takes_nothing_from_the_waits(board: Board) -> None:
    turn = Turn(1, 1, 1, 1, uuid4(), "k", "{}", 0, 0, 0, 0.0, 3, None, 100.0, ready_at=100.0)
    early = Settlement(*turn[:4], Ending.SUCCEEDED, began_at=40.0)
    Counts(board, ["k"]).settled(1, [(turn, early, Verdict.ACCEPTED)], 0)
    total, first, *_ = board.read()[families.QUEUE_WAIT.name, ("k",)]
    assert (total, first) == (0, 1)
