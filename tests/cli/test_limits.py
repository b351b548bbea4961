"""`timeball limits` on a store in memory."""

from __future__ import annotations

import json

import pytest
from tests.cli.invoking import invoke, said
from tests.store.world import World

from timeball.core.limits import Limit, Scope


def test_limits_are_set_shown_and_taken_away(world: World) -> None:
    said("limits", "set", "--key", "tenant-*", "2")
    said("limits", "set", "--queue", "mail", "5")
    assert world.store.limits() == [Limit(Scope.KEY, "tenant-*", 2), Limit(Scope.QUEUE, "mail", 5)]
    shown = said("limits", "list")
    assert "tenant-*" in shown
    assert "mail" in shown
    said("limits", "set", "--queue", "mail", "none")
    found = json.loads(said("limits", "list", "--json"))["limits"]
    assert found == [{"scope": "key", "name": "tenant-*", "at_once": 2, "used": 0}]


def test_a_limit_is_a_number_and_about_one_thing(world: World) -> None:
    assert invoke("limits", "set", "--key", "k", "many").exit_code == 2
    assert invoke("limits", "set", "3").exit_code == 2
    assert invoke("limits", "set", "--key", "k", "--queue", "q", "3").exit_code == 2
    assert world.store.limits() == []


@pytest.mark.usefixtures("world")
def test_a_job_is_submitted_with_a_key() -> None:
    uuid = said("submit", "a", "--key", "tenant-7").strip()
    assert said("jobs", "show", uuid).count("tenant-7") == 1
    assert json.loads(said("jobs", "show", uuid, "--json"))["job"]["key"] == "tenant-7"
