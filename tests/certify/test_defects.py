"""Defects that are put into the schema or into worker processes: the scenarios must see them."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from timeball.certify.founding import claims, edges
from timeball.certify.runner import Order, certify
from timeball.certify.scenario import Result, Scenario, Status

FUNCTIONS = files("timeball.store.postgres") / "functions"
LANE = "PERFORM pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, v_lane);"
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
    result = played(server, tmp_path, edges.E, "settle", GRAPH)
    assert result.status is Status.VIOLATED
    assert "a parent ends while its edge is linked" in [check.name for check in result.failed]
