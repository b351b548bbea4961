"""What running jobs say of themselves: the latest of it, and no more than that."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.store.world import World, end

from timeball.core.notes import BYTES_MAX, LINES_MAX, Line, Note
from timeball.core.payload import storable
from timeball.core.records import Turn
from timeball.core.states import Ending
from timeball.core.upkeep import DeleteAnswer
from timeball.errors import JobNotFound


def lines(*texts: str, first: int = 1) -> list[Line]:
    return [Line(first + n, 0.0, text) for n, text in enumerate(texts)]


def said(world: World, turn: Turn) -> list[tuple[int, str]]:
    return [(line.turn, line.text) for line in world.store.logs(turn.uuid)]


def test_of_progress_the_latest_is_kept(world: World) -> None:
    turn = world.start(world.worker())
    assert world.job(turn).progress is None
    for done in (1.0, 2.5):
        note = Note(turn.job_id, turn.turn, (done, 10.0, f"at {done}"), ())
        assert world.store.note([note]) == {turn.job_id}
    progress = world.job(turn).progress
    assert progress
    assert progress[:4] == (2.5, 10.0, "at 2.5", 1)
    assert progress.at == world.store.now()


def test_an_earlier_attempt_takes_nothing_back_from_a_later_one(world: World) -> None:
    turn = world.start(world.worker())
    later = Note(turn.job_id, 2, (1.0, None, None), lines("new"))
    earlier = Note(turn.job_id, 1, (9.0, None, None), lines("old"))
    world.store.note([later])
    world.store.note([earlier])
    progress = world.job(turn).progress
    assert progress
    assert (progress.done, progress.turn) == (1.0, 2)
    assert said(world, turn) == [(1, "old"), (2, "new")]


def test_what_is_sent_again_is_kept_once(world: World) -> None:
    turn = world.start(world.worker())
    note = Note(turn.job_id, 1, None, lines("a", "b"))
    world.store.note([note])
    world.store.note([note, Note(turn.job_id, 1, None, lines("c", first=3))])
    assert said(world, turn) == [(1, "a"), (1, "b"), (1, "c")]


def test_a_line_has_the_instant_at_which_it_was_said(world: World) -> None:
    turn = world.start(world.worker())
    world.store.note([Note(turn.job_id, 1, None, [Line(1, 2.5, "a while ago")])])
    (line,) = world.store.logs(turn.uuid)
    assert (world.store.now() - line.at).total_seconds() == 2.5


def test_the_newest_lines_are_kept(world: World) -> None:
    turn = world.start(world.worker())
    for start in (1, LINES_MAX):
        texts = [str(n) for n in range(start, start + LINES_MAX)]
        world.store.note([Note(turn.job_id, 1, None, lines(*texts, first=start))])
    kept = [text for _, text in said(world, turn)]
    assert kept == [str(n) for n in range(LINES_MAX, 2 * LINES_MAX)]


def test_no_more_bytes_are_kept_than_may_be(world: World) -> None:
    turn = world.start(world.worker())
    text = "ü" * 2_000
    world.store.note([Note(turn.job_id, 1, None, lines(*[text] * 50))])
    assert len(said(world, turn)) == BYTES_MAX // len(text.encode())


def test_what_a_database_cannot_hold_is_spelt_out_before(world: World) -> None:
    turn = world.start(world.worker())
    text = storable("a\0b\ud800")
    world.store.note([Note(turn.job_id, 1, (1.0, None, text), lines(text))])
    assert said(world, turn) == [(1, "a\\x00b\\ud800")]


def test_it_goes_with_its_job_and_nothing_is_kept_of_one_that_is_gone(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    note = Note(turn.job_id, 1, (1.0, None, None), lines("a"))
    world.store.note([note])
    world.settle(worker, end(turn, Ending.SUCCEEDED))
    assert world.store.delete([turn.uuid]) == [DeleteAnswer.DELETED]
    assert world.store.note([note]) == {turn.job_id}
    with pytest.raises(JobNotFound):
        world.store.logs(turn.uuid)


def test_a_job_that_says_nothing_has_no_lines(world: World) -> None:
    turn = world.start(world.worker())
    assert world.store.logs(turn.uuid) == []
    assert world.store.note([]) == set()
    with pytest.raises(JobNotFound):
        world.store.logs(uuid4())
