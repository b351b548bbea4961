"""`timeball jobs add-parents` on a store in memory."""

from __future__ import annotations

from tests.cli.invoking import document, invoke, said
from tests.store.test_dependencies import after
from tests.store.world import World


def test_a_job_that_waits_is_told_to_wait_for_more(world: World) -> None:
    one, two = world.submit(), world.submit()
    child = world.submit(after=after(one))
    told = said("jobs", "add-parents", str(child), str(two), "--rule", "all_done")
    assert told == f"{child}: waits for {two} too\n"
    rules = [
        each["rule"] for each in document("jobs", "show", str(child), "--json")["job"]["after"]
    ]
    assert rules == ["all_success", "all_done"]


def test_what_may_start_is_not_held_up(world: World) -> None:
    one, two = world.submit(), world.submit()
    result = invoke("jobs", "add-parents", str(one), str(two))
    assert result.exit_code == 4
    assert "waits for no parent" in result.stdout


def test_a_cycle_is_a_wrong_use_and_told_in_words(world: World) -> None:
    one = world.submit()
    child = world.submit(after=after(one))
    last = world.submit(after=after(child))
    result = invoke("jobs", "add-parents", str(child), str(last))
    assert result.exit_code == 2
    assert "job 2 would wait for job 3, which waits for job 2: a cycle" in result.stderr


def test_what_is_not_there_is_named(world: World) -> None:
    child = world.submit(after=after(world.submit()))
    assert invoke("jobs", "add-parents", "17", str(child)).exit_code == 3
    result = invoke("jobs", "add-parents", str(child), "17")
    assert result.exit_code == 3
    assert result.stdout == "17: not found; nothing was changed\n"
