"""Boards: numbers that a parent reads, and that outlive the process that counted them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.observe import board as board_module
from timeball.observe import families
from timeball.observe.board import OTHER, SERIES_MAX, Board, Key
from timeball.observe.totals import Totals, include

# Counts 3 starts and 2 snoozes on a board that it has inherited, says so, and waits to be killed.
CHILD = """
import sys, time
from timeball.observe import families
from timeball.observe.board import Board
board = Board.attach(int(sys.argv[1]))
board.add(families.SNOOZES, "k", by=2)
for stripe in (0, 1, 1):
    board.starts[stripe] += 1
print("counted", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def board() -> Iterator[Board]:
    board = Board.create(stripes=4)
    yield board
    board.close()


def test_what_is_counted_is_read(board: Board) -> None:
    board.add(families.RETRIES, "k", "ValueError")
    board.add(families.RETRIES, "k", "ValueError", by=4)
    board.add(families.RETRIES, "k", "")
    samples = board.read()
    assert samples[families.RETRIES.name, ("k", "ValueError")][0] == 5
    assert samples[families.RETRIES.name, ("k", "")][0] == 1


def test_a_value_is_in_the_first_bucket_whose_bound_it_does_not_pass(board: Board) -> None:
    low, high = families.RUN.bounds[:2]
    for value in (low, low + 1, high, families.RUN.bounds[-1] + 1):
        board.observe(families.RUN, value, "k")
    total, *buckets = board.read()[families.RUN.name, ("k",)][: families.RUN.cells]
    assert total == 2 * low + 1 + high + families.RUN.bounds[-1] + 1
    assert (buckets[0], buckets[1], buckets[-1], sum(buckets)) == (1, 2, 1, 4)


def test_what_a_killed_process_has_counted_is_there() -> None:
    totals = Totals()
    board = totals.board(stripes=2)
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(board.fileno())],
        pass_fds=[board.fileno()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"counted\n"
        living = totals.read()
        os.kill(process.pid, signal.SIGKILL)
    totals.retire(board)
    assert totals.read() == living
    assert living[families.SNOOZES.name, ("k",)][0] == 2
    assert living[families.STARTS.name, ()] == [3]
    totals.close()


def test_a_row_whose_writer_was_killed_hides_no_other(board: Board) -> None:
    board.add(families.SNOOZES, "whole")
    row = board.at(families.SNOOZES, "half") * 8
    first = board._memory[row + board_module._TEXT]
    board._memory[row + board_module._TEXT] = 0  # it is written last
    board.add(families.SNOOZES, "later")
    found = {labels for name, labels in board.read() if name == families.SNOOZES.name}
    assert found == {("whole",), ("later",)}
    board._memory[row + board_module._TEXT] = first
    assert (families.SNOOZES.name, ("half",)) in board.read()


def test_labels_that_never_end_end_in_other(board: Board) -> None:
    for number in range(3 * SERIES_MAX):
        board.add(families.RETRIES, "k", f"Error{number}")
    series = [labels for name, labels in board.read() if name == families.RETRIES.name]
    assert len(series) == SERIES_MAX + 1
    counted = sum(board.read()[families.RETRIES.name, labels][0] for labels in series)
    assert counted == 3 * SERIES_MAX
    assert board.read()[families.RETRIES.name, (OTHER, OTHER)][0] == 2 * SERIES_MAX


@given(st.lists(st.tuples(st.text(), st.text(), st.text()), max_size=20))
def test_whatever_the_labels_are_nothing_is_lost(labels: list[tuple[str, str, str]]) -> None:
    board = Board.create()
    for each in labels:
        board.add(families.FINISHED, *each)
    finished = [row for (name, _), row in board.read().items() if name == families.FINISHED.name]
    board.close()
    assert sum(row[0] for row in finished) == len(labels)


def test_threads_that_add_at_once_lose_nothing(board: Board) -> None:
    def count() -> None:
        for _ in range(500):
            board.add(families.SNOOZES, "k")

    threads = [Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert board.read()[families.SNOOZES.name, ("k",)][0] == 2_000


def test_sums_are_made_series_by_series() -> None:
    sums: dict[Key, list[int]] = {("a", ()): [1, 2]}
    include(sums, {("a", ()): [10, 20], ("b", ("x",)): [5]})
    assert sums == {("a", ()): [11, 22], ("b", ("x",)): [5]}


def test_every_family_fits_into_a_row(board: Board) -> None:
    for family in families.FAMILIES:
        board.at(family, *("x" for _ in family.labels))
    assert {name for name, _ in board.read()} == {family.name for family in families.FAMILIES}
