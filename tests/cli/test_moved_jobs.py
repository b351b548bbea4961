"""`timeball jobs move` on a store in memory."""

from __future__ import annotations

from tests.cli.invoking import invoke, said
from tests.store.world import World, end


def test_a_waiting_job_is_moved(world: World) -> None:
    uuid = world.submit()
    told = said("jobs", "move", str(uuid), "--queue", "other", "--priority", "9")
    assert told == f"{uuid}: moved to queue other, priority 9\n"
    assert (world.job(uuid).queue, world.job(uuid).priority) == ("other", 9)


def test_it_is_told_that_the_queue_is_paused(world: World) -> None:
    uuid = world.submit()
    world.store.pause_queue("other", "ann")
    told = said("jobs", "move", str(uuid), "--queue", "other")
    assert told == f"{uuid}: moved to queue other, priority 5; that queue is paused\n"


def test_to_move_what_runs_or_has_ended_is_a_forbidden_transition(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    result = invoke("jobs", "move", str(turn.uuid), "--priority", "9")
    assert result.exit_code == 4
    assert "a worker has it already; nothing was changed" in result.stdout
    world.settle(worker, end(turn))
    result = invoke("jobs", "move", str(turn.uuid), "--priority", "9")
    assert result.exit_code == 4
    assert "had ended before; nothing was changed" in result.stdout


def test_to_move_what_is_not_there_is_not_found(world: World) -> None:
    assert invoke("jobs", "move", "17", "--priority", "9").exit_code == 3
    assert invoke("jobs", "move", "17", str(world.submit()), "--priority", "9").exit_code == 8


def test_where_to_must_be_said(world: World) -> None:
    result = invoke("jobs", "move", str(world.submit()))
    assert result.exit_code == 2
    assert "--queue, --priority, or both" in result.stderr
