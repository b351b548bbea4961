"""What attempts say is collected without waiting, bounded, and written in the end."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Event

import pytest

from timeball.action.notebook import Notebook
from timeball.core.notes import LINE_MAX, LINES_MAX, Note
from timeball.errors import StoreUnavailable

KEY = (7, 1)
PATIENCE_S = 30.0


class Desk:
    """A notebook whose writing the test lets happen, or fail."""

    def __init__(self) -> None:
        self.wrote: list[Note] = []
        self.calls = 0
        self.away = False
        self.locked: set[int] = set()
        self.book = Notebook(self.write, every_s=0.01)

    def write(self, notes: Sequence[Note]) -> set[int]:
        self.calls += 1
        if self.away:
            raise StoreUnavailable("away")
        done = [note for note in notes if note.job_id not in self.locked]
        self.wrote += done
        return {note.job_id for note in done}

    def texts(self) -> list[str]:
        return [line.text for note in self.wrote for line in note.lines]


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.book.close()


def until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_what_is_said_is_written_once_and_then_let_go(desk: Desk) -> None:
    desk.book.log(KEY, "a")
    desk.book.progress(KEY, 1, 2, "half")
    until(lambda: desk.texts() == ["a"] and any(note.progress for note in desk.wrote))
    assert [note.progress for note in desk.wrote if note.progress] == [(1.0, 2.0, "half")]
    until(lambda: not desk.book._pages)


def test_who_says_nothing_starts_no_thread_and_writes_nothing(desk: Desk) -> None:
    desk.book.flush()
    desk.book.close()
    assert (desk.book._thread, desk.calls) == (None, 0)


def test_nobody_waits_for_a_store_that_does_not_answer() -> None:
    answer, asked = Event(), Event()

    def write(notes: Sequence[Note]) -> set[int]:
        asked.set()
        assert answer.wait(PATIENCE_S)
        return {note.job_id for note in notes}

    book = Notebook(write, every_s=0.01)
    book.log(KEY, "first")
    assert asked.wait(PATIENCE_S)
    for n in range(10_000):
        book.progress(KEY, n, None, None)
        book.log(KEY, n)
    (page,) = book._pages.values()
    assert len(page.lines) == LINES_MAX
    answer.set()
    book.close()


def test_what_was_said_while_it_was_written_is_written_next(desk: Desk) -> None:
    desk.away = True
    desk.book.log(KEY, "a")
    until(lambda: desk.calls)
    desk.book.log(KEY, "b")
    desk.away = False
    until(lambda: desk.texts() == ["a", "b"])
    numbers = [line.n for note in desk.wrote for line in note.lines]
    assert numbers == sorted(set(numbers))


def test_a_job_that_somebody_has_locked_is_tried_again_alone(desk: Desk) -> None:
    desk.locked = {7}
    desk.book.log(KEY, "later")
    desk.book.log((8, 1), "now")
    until(lambda: desk.texts() == ["now"])
    desk.locked = set()
    until(lambda: desk.texts() == ["now", "later"])


@pytest.mark.parametrize("done", [math.nan, math.inf, "many", None, 10**400])
def test_what_is_no_number_is_left_out_and_harms_nobody(desk: Desk, done: object) -> None:
    desk.book.progress(KEY, done, None, None)
    desk.book.flush()
    assert desk.wrote == []


def test_whatever_is_said_can_be_stored(desk: Desk) -> None:
    desk.book.log(KEY, "a\0\ud800")
    desk.book.log(KEY, "x" * (2 * LINE_MAX))
    desk.book.progress(KEY, 1, math.nan, "\0")
    until(lambda: len(desk.texts()) == 2)
    assert desk.texts()[0] == "a\\x00\\ud800"
    assert len(desk.texts()[1]) < 2 * LINE_MAX
    assert {note.progress for note in desk.wrote} <= {None, (1.0, None, "\\x00")}


def test_what_another_has_collected_is_taken_over(desk: Desk) -> None:
    other = Notebook(lambda notes: desk.book.merge(notes) or {note.job_id for note in notes})
    other.log(KEY, "from afar")
    other.progress(KEY, 3, 4, None)
    other.close()
    until(lambda: desk.texts() == ["from afar"])
    until(lambda: any(note.progress == (3.0, 4.0, None) for note in desk.wrote))


def test_the_last_word_is_written_at_the_end(desk: Desk) -> None:
    desk.away = True
    desk.book.log(KEY, "a")
    until(lambda: desk.calls)
    desk.away = False
    desk.book.log(KEY, "b")
    desk.book.close()
    assert desk.texts() == ["a", "b"]
