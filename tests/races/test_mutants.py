"""Every defect that is put into the engine is found, by the check that is named for it."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from timeball.certify.mutants.in_process import MUTANTS
from timeball.certify.mutants.record import Mutant
from timeball.certify.scenarios import SCENARIOS
from timeball.certify.schedules import first_failure, mixed, replay
from timeball.certify.trial import STEPPED, Scenario, engine_copies

SCHEDULES_MAX = 1000  # to find a defect
SCHEDULES_EACH = 45  # of each scenario: together more than 1,000
SCHEDULES_SHORT = 300  # of those with few switch points
SOUND = engine_copies()
PAGE = Path(__file__).parents[2] / "docs" / "concepts" / "concurrency.md"


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_a_mutant_is_killed_by_its_check(mutant: Mutant) -> None:
    copies = mutant.copies()

    def run(chooser):
        return mutant.run(copies, chooser)

    found = first_failure(islice(mixed(run), SCHEDULES_MAX))
    assert found is not None, f"{mutant.id} survived: {mutant.defect}"
    assert found.check == mutant.check, found.story()
    assert replay(run, found.schedule).text == found.text


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_engine_keeps_its_promises_under_every_schedule(scenario: Scenario) -> None:
    many = SCHEDULES_EACH if scenario.stepped is STEPPED else SCHEDULES_SHORT
    outcomes = islice(mixed(lambda chooser: scenario.run(SOUND, chooser)), many)
    found = first_failure(outcomes)
    assert found is None, found.story()


def test_the_mutants_are_the_list() -> None:
    assert [mutant.id for mutant in MUTANTS] == [f"P{n:02}" for n in range(1, 27)]
    assert len({mutant.defect for mutant in MUTANTS}) == len(MUTANTS)
    assert {mutant.scenario for mutant in MUTANTS} <= set(SCENARIOS)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.id)
def test_the_page_tells_of_every_mutant_with_its_check(mutant: Mutant) -> None:
    (row,) = (line for line in PAGE.read_text().splitlines() if line.startswith(f"| {mutant.id} "))
    assert f"`{mutant.check}`" in row
