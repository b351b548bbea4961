"""`timeball jobs snooze` on a store in memory."""

from __future__ import annotations

import pytest
from tests.cli.invoking import invoke, said
from tests.store.world import World, end

from timeball.cli.output import shown
from timeball.core.states import State


def test_a_job_that_waits_is_put_off(world: World) -> None:
    uuid, at = world.submit(), world.later(3_600)
    told = said("jobs", "snooze", str(uuid), "--until", at.isoformat(), "--utc")
    assert told == f"{uuid}: starts at {shown(at, utc=True)} at the earliest\n"
    assert (world.state(uuid), world.job(uuid).run_at) == (State.SCHEDULED, at)
    said("jobs", "snooze", str(uuid), "--for", "2h")
    assert world.job(uuid).run_at == world.later(7_200)


def test_what_runs_or_has_ended_is_a_forbidden_transition(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    result = invoke("jobs", "snooze", str(turn.uuid), "--for", "2h")
    assert (result.exit_code, "nothing was changed" in result.stdout) == (4, True)
    world.settle(worker, end(turn))
    result = invoke("jobs", "snooze", str(turn.uuid), "--for", "2h")
    assert (result.exit_code, "had ended before" in result.stdout) == (4, True)
    assert invoke("jobs", "snooze", "17", "--for", "2h").exit_code == 3
    assert invoke("jobs", "snooze", "17", str(world.submit()), "--for", "2h").exit_code == 8


@pytest.mark.parametrize("words", [[], ["--for", "2h", "--until", "2026-12-24T09:00Z"]])
def test_until_when_must_be_said_once(world: World, words: list[str]) -> None:
    result = invoke("jobs", "snooze", str(world.submit()), *words)
    assert (result.exit_code, "--until INSTANT or --for DURATION" in result.stderr) == (2, True)
