"""`timeball jobs watch`: each step of a job, and each line that it logs, once."""

from __future__ import annotations

from tests.cli.invoking import invoke, said
from tests.store.world import World, end

from timeball.cli.following import followed
from timeball.client import Client
from timeball.core.notes import LINES_MAX, Line, Note
from timeball.core.states import Ending, State


def test_watch_prints_each_change_until_the_end(world: World, monkeypatch) -> None:
    uuid = world.submit()
    worker = world.worker()

    def go_on(_rest_s: float) -> None:
        match world.state(uuid):
            case State.PENDING:
                (world.turn,) = world.claim(worker)
            case State.RUNNING:
                world.settle(worker, end(world.turn, result="42"))

    monkeypatch.setattr("time.sleep", go_on)
    assert said("jobs", "watch", str(uuid), "--utc") == (
        "2026-03-01 12:00:00+00:00  pending\n"
        "2026-03-01 12:00:00+00:00  running\n"
        "2026-03-01 12:00:00+00:00  succeeded\n"
    )


def test_watch_of_a_job_that_failed_is_exit_code_1(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, Ending.FAILED, reason="permanent"))
    result = invoke("jobs", "watch", str(turn.uuid))
    assert result.exit_code == 1
    assert "failed (permanent)" in result.stdout


def test_watch_tells_each_step(world: World, monkeypatch) -> None:
    worker = world.worker()
    turn = world.start(worker)
    steps = iter(
        [
            lambda: world.store.note([Note(turn.job_id, 1, (1.0, None, None), ())]),
            lambda: world.store.note([Note(turn.job_id, 1, None, [Line(1, 0.0, "begins")])]),
            lambda: None,
            # The same words once more are news too.
            lambda: world.store.note([Note(turn.job_id, 1, None, [Line(2, 0.0, "begins")])]),
            lambda: world.settle(worker, end(turn)),
            # What is said last may arrive last.
            lambda: world.store.note([Note(turn.job_id, 1, None, [Line(3, 0.0, "ends")])]),
        ]
    )
    monkeypatch.setattr("time.sleep", lambda _rest_s: next(steps, lambda: None)())
    assert said("jobs", "watch", str(turn.uuid), "--utc").splitlines() == [
        "2026-03-01 12:00:00+00:00  running",
        "2026-03-01 12:00:00+00:00  running 1",
        "    2026-03-01 12:00:00+00:00  turn 1  begins",
        "    2026-03-01 12:00:00+00:00  turn 1  begins",
        "    2026-03-01 12:00:00+00:00  turn 1  ends",
        "2026-03-01 12:00:00+00:00  succeeded",
    ]


def test_watch_goes_on_where_the_oldest_lines_are_kept_no_longer(world: World, monkeypatch) -> None:
    worker = world.worker()
    turn = world.start(worker)

    def say(first: int, last: int) -> None:
        lines = [Line(n, 0.0, f"line {n}") for n in range(first, last + 1)]
        world.store.note([Note(turn.job_id, 1, None, lines)])

    steps = iter(
        [
            lambda: say(LINES_MAX - 1, LINES_MAX + 50),
            lambda: (say(LINES_MAX + 51, LINES_MAX + 52), world.settle(worker, end(turn))),
        ]
    )
    say(1, LINES_MAX - 2)
    monkeypatch.setattr("time.sleep", lambda _rest_s: next(steps, lambda: None)())
    news = followed(Client(world.store), world.job(turn))
    seen = [line.text for _, line in news if line is not None]
    assert seen == [f"line {n}" for n in range(1, LINES_MAX + 53)]
