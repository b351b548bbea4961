"""Defects that are put into the schema or into worker processes: the scenarios must see them."""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from timeball.certify.founding import claims, edges, zombies
from timeball.certify.founding.tickers import Tickers
from timeball.certify.runner import Order, certify
from timeball.certify.scenario import Outcome, Result, Scenario, Status
from timeball.certify.stage import Stage

FUNCTIONS = files("timeball.store.postgres") / "functions"
LANE = "PERFORM pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, v_lane);"
FENCE = "AND lease.worker = p_worker"
READ = "AND schedule.cursor_at = asked.seen"
GRAPH = "PERFORM pg_advisory_xact_lock_shared('timeball.dependency'::regclass::oid::integer, 0);"


def played(dsn: str, out: Path, scenario: Scenario, function: str, old: str) -> Result:
    """Play a scenario on a schema that lacks a line of one function."""
    text = (FUNCTIONS / f"{function}.sql").read_text("utf-8")
    assert text.count(old) == 1, "the function has changed: mend this test"

    def change(connection: Any) -> None:
        connection.execute(text.replace(old, ""))

    (result,) = certify(Order(scenarios=(scenario,), out=out, dsn=dsn, changes=(change,)))
    return result


@pytest.mark.slow
def test_without_the_lock_of_a_lane_two_claims_meet(server: str, tmp_path: Path) -> None:
    result = played(server, tmp_path, claims.A, "claim", LANE)
    assert result.status is Status.VIOLATED
    assert "the first claim stands" in [check.name for check in result.failed]


@pytest.mark.slow
def test_without_the_lock_of_the_graph_a_trigger_is_missed(server: str, tmp_path: Path) -> None:
    result = played(server, tmp_path, replace(edges.E, deadline_s=1.0), "settle", GRAPH)
    assert result.status is Status.VIOLATED
    assert "a parent ends while its edge is linked" in [check.name for check in result.failed]


def by_hand(stage: Stage) -> Outcome:
    told, refused = zombies.by_hand(stage)
    return Outcome(
        expected=zombies.expected_by_hand(), observed=told, witness={"stale_refused": refused}
    )


def stale(stage: Stage) -> Outcome:
    tickers = Tickers(stage)
    told = tickers.stale()
    return Outcome(
        expected={"the quick one": 1, "the slow one": "refused"},
        observed=told,
        witness={"met": tickers.met},
    )


PARTS = {
    "a zombie is believed": (by_hand, "settle", FENCE, "pretends to have the new turn"),
    "an old decision is written": (stale, "fire", READ, "the slow one"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PARTS)
def test_without_its_guard_a_part_of_f_is_seen(server: str, tmp_path: Path, name: str) -> None:
    run, function, old, check = PARTS[name]
    part = Scenario(id="T", title=name, run=run, invariants=("I4",))
    result = played(server, tmp_path, part, function, old)
    assert result.status is Status.VIOLATED
    assert check in [each.name for each in result.failed]
