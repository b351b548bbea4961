"""Disasters: with a defect put in, their checks fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.certify.test_founding import twice
from tests.certify.test_runner import scenario

from timeball.certify.boot import Boot
from timeball.certify.databases import Change
from timeball.certify.disasters import clocks, ended, rolling, unique
from timeball.certify.mutants.defects import InFunction
from timeball.certify.mutants.process_defects import PROCESSES
from timeball.certify.runner import Order, certify
from timeball.certify.scenario import Outcome, Result, Status
from timeball.certify.stage import Stage

PLANTED = "timeball.certify.mutants.planted:patched"
UNSIGNALLED = next(mutant for mutant in PROCESSES if mutant.id == "M49").patches[0].boot
UNTOLD = Boot(
    call=PLANTED,
    options={
        "module": "timeball.worker.supervisor",
        "function": "Supervisor._fail",
        "old": "self.failure, self._code = why, code",
        "new": "self.failure, self._code = why, 1",
    },
)
UNORDERED = InFunction("take_keys", "ORDER BY key, n", "ORDER BY n")


def unordered(connection: Any) -> None:
    connection.execute(UNORDERED.changed())


def leg(name: str, run: Callable[[Stage], Any], expected: Any) -> Callable[[Stage], Outcome]:
    return lambda stage: Outcome(
        expected={name: expected}, observed={name: run(stage)}, witness={"played": 1}
    )


LEGS: dict[str, tuple[Callable[[Stage], Outcome], Boot | Change]] = {
    "told twice": (
        leg("told", lambda stage: ended.Ends(stage).twice(), ended.EXPECTED["told twice"]),
        UNSIGNALLED,
    ),
    "too new": (
        leg(
            "new",
            lambda stage: rolling.Deploy(stage).too_new(),
            rolling.EXPECTED["new worker, old schema"],
        ),
        UNTOLD,
    ),
    "clocks": (
        leg(
            "clock",
            lambda stage: clocks.Clocks(stage).of_the_database(),
            clocks.EXPECTED["the database's clock"],
        ),
        twice,
    ),
    "unique": (unique.run, unordered),
}


def played(dsn: str, out: Path, run: Callable[[Stage], Outcome], defect: Boot | Change) -> Result:
    boots, changes = ((defect,), ()) if isinstance(defect, Boot) else ((), (defect,))
    order = Order(scenarios=(scenario(run),), out=out, dsn=dsn, boots=boots, changes=changes)
    (result,) = certify(order)
    return result


@pytest.mark.slow
@pytest.mark.parametrize("name", LEGS)
def test_a_defect_is_seen_by_the_disaster_that_is_about_it(
    server: str, tmp_path: Path, name: str
) -> None:
    result = played(server, tmp_path, *LEGS[name])
    assert result.status is Status.VIOLATED, (result.reason, result.outcome.observed)
    known = {*result.outcome.expected}
    assert known & {check.name.partition(" of ")[0] for check in result.failed}
