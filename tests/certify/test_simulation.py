"""The simulator replays, meets what is rare, converges, and finds what is planted."""

from __future__ import annotations

import pytest

from timeball.certify.simulation.defects import DEFECTS
from timeball.certify.simulation.run import PROBES, simulate, simulations
from timeball.certify.simulation.world import Event

STEPS = 30_000


@pytest.mark.slow
def test_the_memory_store_keeps_its_promises_and_everything_rare_is_met() -> None:
    played, probes = simulations(1, STEPS)
    assert played[-1].check is None, played[-1].story()
    assert sorted(PROBES - set(probes)) == []
    assert sum(each.steps for each in played) >= STEPS


@pytest.mark.parametrize("seed", [3, 5056])
def test_a_seed_has_the_same_events_each_time(seed: int) -> None:
    one, two = simulate(seed, steps=300), simulate(seed, steps=300)
    same = one.events == two.events
    assert same
    assert one.probes == two.probes
    assert simulate(seed + 1, steps=300).events != one.events


@pytest.mark.slow
@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_found_by_its_check(name: str) -> None:
    store, checks = DEFECTS[name]
    played, _ = simulations(1, STEPS, store=store)
    assert played[-1].check in checks, played[-1].story()


def test_what_has_failed_fails_again_in_the_same_way() -> None:
    store, _ = DEFECTS["slots not counted"]
    played, _ = simulations(1, STEPS, store=store)
    again = simulate(played[-1].seed, store=store)
    same = (again.text, again.steps, again.events) == (
        *(played[-1].text, played[-1].steps, played[-1].events),
    )
    assert same
    assert again.story().startswith(f"seed {again.seed}, step {again.steps}: I9: 2 of key")
    assert simulate(played[-1].seed).check is None


def test_an_event_is_told_in_one_line() -> None:
    assert str(Event(7, "worker 1", "begins", "(3, 1)")).split(maxsplit=4) == [
        *("7", "worker", "1", "begins", "(3, 1)"),
    ]
