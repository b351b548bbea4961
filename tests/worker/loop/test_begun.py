"""What had begun can be read after the death of the process that it began in."""

from __future__ import annotations

import subprocess
import sys

import pytest

from timeball.store.base import CLAIM_MAX
from timeball.worker.begun import BegunTable

CHILD = """
import os, signal, sys
from timeball.worker.begun import BegunTable

table = BegunTable.attach(int(sys.argv[1]))
for turn in range(1, 4):
    table.mark(7, turn)
table.mark(2**62, 1, 1_800_000_000.25)
table.clear(7, 2)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_the_parent_reads_what_a_killed_child_was_in_the_middle_of() -> None:
    table = BegunTable.create(4)
    child = [sys.executable, "-c", CHILD, str(table.fileno())]
    assert subprocess.run(child, pass_fds=[table.fileno()], check=False).returncode == -9
    assert table.began() == {(7, 1): 0.0, (7, 3): 0.0, (2**62, 1): 1_800_000_000.25}
    table.close()


def test_rows_are_used_again() -> None:
    table = BegunTable.create(1)
    for turn in range(1, 5 * CLAIM_MAX):
        table.mark(1, turn)
        table.clear(1, turn)
    table.mark(1, 1)
    assert table.begun() == {(1, 1)}
    table.close()


def test_there_is_room_for_all_that_one_worker_may_have_open() -> None:
    """Running, claimed ahead, and claimed once more before the next settlement."""
    table = BegunTable.create(8)
    for job in range(8 + 2 * CLAIM_MAX):
        table.mark(job, 1)
    assert len(table.begun()) == 8 + 2 * CLAIM_MAX
    table.close()


def test_clearing_twice_frees_one_row() -> None:
    table = BegunTable.create(1)
    table.mark(1, 1)
    table.clear(1, 1)
    table.clear(1, 1)
    table.mark(2, 1)
    table.mark(3, 1)
    assert table.begun() == {(2, 1), (3, 1)}
    table.close()
