"""The demo's verdict: what it says where something is not as it should be."""

from __future__ import annotations

import pytest
from tests.store.world import World, end, memory_world

from timeball.cli import demonstration
from timeball.cli.demo_jobs import QUEUE, send, troubled
from timeball.cli.demonstration import Demonstration
from timeball.core.states import Ending

JOBS = 31
UNLUCKY = 7


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(demonstration, "JOBS", JOBS)
    return memory_world()


def carried_out(world: World, *, troubles: int = 2, unlucky: int = UNLUCKY, left: int = 0):
    """A demo whose jobs have run, and all but `left` of them have ended."""
    demo = Demonstration(world.store)
    numbers = range(1, JOBS + 1)
    demo._handles = demo._client.submit_many(send, [{"number": number} for number in numbers])
    demo._killed = 1
    worker = world.worker("demo.send", queues=(QUEUE,))
    for _ in range(troubles):
        for turn in world.claim(worker):
            number = world.job(turn).args["number"]
            if number <= left:
                continue
            ending = Ending.FAILED if number == unlucky else Ending.SUCCEEDED
            again = troubled(number) and turn.failures < troubles
            world.settle(worker, end(turn, Ending.RETRIED if again else ending))
        world.store.promote(10)
    for turn in world.claim(worker):
        world.settle(worker, end(turn))
    return demo


def table(text: str) -> dict[str, str]:
    return {line[:16].strip(): line[16:].split()[0] for line in text.splitlines()[1:10]}


def test_as_planned_it_is_good(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert carried_out(world).verdict() == 0
    written = capsys.readouterr()
    assert table(written.out) == {
        "submitted": "31",
        "occurrences": "0",
        "succeeded": "30",
        "failed": "1",
        "retried": "2",
        "workers killed": "1",
        "cut off": "0",
        "lost": "0",
        "twice": "0",
    }
    assert written.err == "the audit is clean\n"


WRONG = [{"troubles": 1}, {"unlucky": 0}]


@pytest.mark.parametrize("how", WRONG, ids=str)
def test_figures_that_are_not_as_planned_are_told(world: World, capsys, how) -> None:
    assert carried_out(world, **how).verdict() == 1
    assert "the figures are not right" in capsys.readouterr().err


def test_a_lost_job_is_a_violation(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert carried_out(world, left=1).verdict() == 7
    text = capsys.readouterr().out
    assert table(text)["lost"] == "1"
    assert "I6 job 1: " in text


def test_jobs_of_others_are_not_counted(world: World, capsys) -> None:
    world.submit("others")
    demo = carried_out(world)
    world.submit("others")
    assert demo.verdict() == 0
    assert table(capsys.readouterr().out)["submitted"] == "31"
