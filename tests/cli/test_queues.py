"""`timeball queues` on a store in memory."""

from __future__ import annotations

import pytest
from tests.cli.invoking import document, invoke, said
from tests.store.world import World

from timeball.cli import worker


def test_a_queue_is_paused_shown_and_resumed(world: World) -> None:
    uuid = said("submit", "a", "--queue", "mail").strip()
    assert "paused" in said("queues", "pause", "mail", "--by", "ann")
    assert "was paused before" in said("queues", "pause", "mail", "--by", "bob")
    assert "ann" in said("queues", "list")
    (queue,) = document("queues", "list", "--json")["queues"]
    assert (queue["name"], queue["pending"], queue["paused_by"]) == ("mail", 1, "ann")
    assert queue["paused_at"] is not None
    assert "paused" in said("jobs", "show", uuid)
    assert world.claim(world.worker(queues=["mail"])) == []
    assert "resumed" in said("queues", "resume", "mail")
    assert "was not paused" in said("queues", "resume", "mail")
    assert "paused" not in said("jobs", "show", uuid)


@pytest.mark.usefixtures("world")
def test_who_pauses_is_noted_where_nobody_says_it() -> None:
    said("queues", "pause", "mail")
    (queue,) = document("queues", "list", "--json")["queues"]
    assert "@" in queue["paused_by"]


def test_a_queue_is_limited_and_refuses_with_a_code_of_its_own(world: World) -> None:
    said("queues", "set", "mail", "--max-depth", "1", "--at-once", "5")
    (queue,) = world.store.queues()
    assert (queue.max_depth, queue.at_once) == (1, 5)
    said("submit", "a", "--queue", "mail")
    refused = invoke("submit", "a", "--queue", "mail")
    assert refused.exit_code == 75
    assert "timeball queues set mail --max-depth" in refused.stderr
    said("queues", "set", "mail", "--max-depth", "none", "--at-once", "none")
    said("submit", "a", "--queue", "mail")


@pytest.mark.usefixtures("world")
def test_a_limit_of_a_queue_is_a_number_or_none() -> None:
    assert invoke("queues", "set", "mail", "--max-depth", "many").exit_code == 2
    assert invoke("queues", "set", "mail", "--max-depth", "0").exit_code == 2
    assert invoke("queues", "set", "mail").exit_code == 2


@pytest.mark.usefixtures("world")
def test_a_queue_needs_a_name() -> None:
    assert invoke("queues", "pause").exit_code == 2
    assert invoke("queues", "pause", "").exit_code == 2


def test_a_worker_is_told_what_a_class_is_worth() -> None:
    context = worker.command.make_context("worker", ["-a", "app", "--aging", "1h"])
    assert worker._worker(context, context.params).aging_s == 3_600
