"""`timeball limits` on a store in memory."""

from __future__ import annotations

import json

import pytest
from tests.cli.invoking import invoke, said
from tests.store.world import World, end

from timeball.core.limits import Limit, Scope
from timeball.core.permits import SETTLING_S
from timeball.core.rate import Rate


def test_limits_are_set_shown_and_taken_away(world: World) -> None:
    said("limits", "set", "--key", "tenant-*", "2")
    said("limits", "set", "--queue", "mail", "5")
    assert world.store.limits() == [Limit(Scope.KEY, "tenant-*", 2), Limit(Scope.QUEUE, "mail", 5)]
    shown = said("limits", "list")
    assert "tenant-*" in shown
    assert "mail" in shown
    said("limits", "set", "--queue", "mail", "none")
    found = json.loads(said("limits", "list", "--json"))["limits"]
    assert found == [{"scope": "key", "name": "tenant-*", "at_once": 2, "used": 0, "rate": None}]


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


def test_rates_are_set_shown_and_taken_away(world: World) -> None:
    said("limits", "set", "--kind", "mail.send", "--rate", "9/s burst 3")
    said("limits", "set", "--queue", "mail", "--rate", "5/m", "4")
    mail = Limit(Scope.QUEUE, "mail", 4, rate=Rate(5, per_s=60))
    kind = Limit(Scope.KIND, "mail.send", None, rate=Rate(9, burst=3))
    assert world.store.limits() == [kind, mail]
    assert "9/s burst 3" in said("limits", "list")
    said("limits", "set", "--kind", "mail.send", "--rate", "none")
    (shown,) = json.loads(said("limits", "list", "--json"))["limits"]
    assert (shown["name"], shown["at_once"], shown["rate"]) == ("mail", 4, "5/m")
    assert invoke("limits", "set", "--queue", "mail").exit_code == 2
    assert invoke("limits", "set", "--kind", "a", "3").exit_code == 2
    assert invoke("limits", "set", "--queue", "mail", "--rate", "often").exit_code == 2


def test_the_record_proves_that_a_rate_was_kept_or_not(world: World) -> None:
    said("limits", "set", "--kind", "a", "--rate", "2/s")
    assert "no start on record" in said("limits", "prove")
    worker = world.worker()
    world.travel(SETTLING_S)
    world.settle(worker, *[end(world.start(worker, key=f"k-{n}")) for n in range(2)])
    line = "kind a: at most 2 starts in any 1 s, 2 allowed by 2/s, in 2 starts on record: kept"
    assert said("limits", "prove", "--kind", "a").strip() == line
    assert "no start on record" in said("limits", "prove", "--queue", "default")
    world.settle(worker, end(world.start(worker, key="k")))
    result = invoke("limits", "prove")
    assert (result.exit_code, "1 too early" in result.output) == (7, True)
    (rate,) = json.loads(invoke("limits", "prove", "--json").output)["rates"]
    assert (rate["most"], rate["allowed"], rate["early"]) == (3, 2, 1)
    audit = invoke("audit")
    assert (audit.exit_code, "I8 kind a" in audit.output) == (7, True)
    said("limits", "set", "--kind", "a", "--rate", "none")
