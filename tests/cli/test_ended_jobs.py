"""`timeball jobs revive` and `delete` on a store in memory."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.cli.invoking import invoke, said
from tests.store.world import World, end

from timeball.core.states import Ending, State


def ended(world: World, ending: Ending, kind: str = "a", queue: str = "default") -> UUID:
    worker = world.worker(kind, queues=[queue])
    turn = world.start(worker, kind, queue=queue)
    world.settle(worker, end(turn, ending))
    return turn.uuid


def test_a_failed_job_is_revived(world: World) -> None:
    uuid = ended(world, Ending.FAILED)
    assert said("jobs", "revive", str(uuid)) == f"{uuid}: revived\n"
    assert world.state(uuid) is State.PENDING


def test_to_revive_what_has_succeeded_is_a_forbidden_transition(world: World) -> None:
    result = invoke("jobs", "revive", str(ended(world, Ending.SUCCEEDED)))
    assert result.exit_code == 4
    assert "nothing was changed" in result.stdout


def test_to_revive_what_is_not_there_is_not_found(world: World) -> None:
    assert invoke("jobs", "revive", "17").exit_code == 3
    uuid = ended(world, Ending.FAILED)
    assert invoke("jobs", "revive", "17", str(uuid)).exit_code == 8
    assert world.state(uuid) is State.PENDING


def test_a_filter_revives_all_that_it_lets_through(world: World) -> None:
    wanted = [ended(world, Ending.FAILED, "b", "mail") for _ in range(3)]
    others = [
        ended(world, Ending.FAILED, "a", "mail"),
        ended(world, Ending.CANCELLED, "b", "mail"),
        ended(world, Ending.FAILED, "b"),
    ]
    words = ("--state", "failed", "--queue", "mail", "--kind", "b", "--yes")
    assert said("jobs", "revive", *words) == "3 revived\n"
    assert {world.state(uuid) for uuid in wanted} == {State.PENDING}
    assert not any(world.state(uuid) is State.PENDING for uuid in others)
    assert said("jobs", "revive", *words) == "none found\n"


@pytest.mark.parametrize("word", ["y", "n"])
def test_many_are_changed_only_once_the_count_was_seen(world: World, word: str) -> None:
    uuids = [ended(world, Ending.FAILED), ended(world, Ending.CANCELLED)]
    result = invoke("jobs", "revive", "--all", given=f"{word}\n")
    assert "revive 2 jobs?" in result.stderr
    assert (result.exit_code == 0) is (word == "y")
    assert all((world.state(uuid) is State.PENDING) is (word == "y") for uuid in uuids)


def test_one_must_say_which_jobs_are_meant(world: World) -> None:
    uuid = ended(world, Ending.FAILED)
    assert invoke("jobs", "revive").exit_code == 2
    assert invoke("jobs", "revive", str(uuid), "--all").exit_code == 2
    assert world.state(uuid) is State.FAILED


def test_an_ended_job_is_deleted(world: World) -> None:
    uuid = ended(world, Ending.SUCCEEDED)
    assert said("jobs", "delete", str(uuid)) == f"{uuid}: deleted\n"
    assert invoke("jobs", "show", str(uuid)).exit_code == 3


def test_to_delete_what_has_not_ended_is_a_forbidden_transition(world: World) -> None:
    uuid = world.submit()
    result = invoke("jobs", "delete", str(uuid))
    assert result.exit_code == 4
    assert "cancel it first" in result.stdout
    assert world.state(uuid) is State.PENDING


def test_a_filter_deletes_only_what_has_ended(world: World) -> None:
    for ending in (Ending.SUCCEEDED, Ending.FAILED):
        ended(world, ending)
    pending = world.submit()
    assert said("jobs", "delete", "--state", "failed", "--yes") == "1 deleted\n"
    assert said("jobs", "delete", "--all", "--yes") == "1 deleted\n"
    assert world.store.counts() == {State.PENDING: 1}
    assert world.state(pending) is State.PENDING
