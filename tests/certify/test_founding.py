"""The founding scenarios: what they are made of, and that a seed replays what they saw."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.certify.conforming import faults, schema
from tests.certify.test_runner import scenario

from timeball.certify.founding.contention import NEXT_CLAIM_MS
from timeball.certify.founding.fires import F
from timeball.certify.founding.lanes import Lane
from timeball.certify.founding.oracle import Wanted, fires
from timeball.certify.founding.zones import C2, cases
from timeball.certify.mutants.defects import InFunction
from timeball.certify.registry import SCENARIOS
from timeball.certify.results import FOUNDING
from timeball.certify.runner import Order, certify
from timeball.certify.scenario import Outcome, Scenario, Status
from timeball.certify.stage import Stage
from timeball.cli.commands import timeball

CASES = Path(__file__).parents[1] / "data" / "cron_cases.json"


def run(dsn: str, out: Path, *words: str) -> dict[str, Any]:
    """What `timeball certify` writes, and what it exits with as `code`."""
    done = CliRunner().invoke(timeball, ["certify", "--dsn", dsn, "--out", str(out), *words])
    found: dict[str, Any] = json.loads((out / "results.json").read_text("utf-8"))
    return {**found, "code": done.exit_code}


def seen(document: Mapping[str, Any]) -> dict[str, Any]:
    """What must be the same for the same seed."""
    names = ("status", "expected", "observed", "seed")
    records = document["scenarios"].items()
    return {key: {name: record[name] for name in names} for key, record in records}


def twice(connection: Any) -> None:
    """Put a defect in: whatever fires makes two jobs, of which the record tells one."""
    connection.execute("""
        CREATE FUNCTION timeball.twice() RETURNS trigger LANGUAGE plpgsql AS $function$
        BEGIN
            PERFORM timeball.submit(jsonb_build_array(
                jsonb_build_object('uuid', gen_random_uuid(), 'kind', 'a')));
            RETURN NULL;
        END $function$;
        CREATE TRIGGER twice AFTER INSERT ON timeball.occurrence FOR EACH ROW
            WHEN (NEW.decision = 'fired') EXECUTE FUNCTION timeball.twice()""")


def test_every_name_of_the_founding_exercise_has_one_scenario() -> None:
    names = [each.founding for each in SCENARIOS if each.founding is not None]
    assert sorted(names) == sorted(FOUNDING)


@pytest.mark.slow
def test_the_same_seed_sees_the_same(server: str, tmp_path: Path) -> None:
    first = run(server, tmp_path, "--scenario", "C2,D", "--seed", "7")
    again = run(server, tmp_path, "--replay", str(tmp_path / "results.json"))
    assert seen(first) == seen(again)
    assert [first.pop("code"), again.pop("code")] == [0, 0]
    assert faults(first, schema(), schema()) == []
    assert list(first["founding"]) == ["sc_C2", "sc_D"]
    assert {path.name for path in tmp_path.iterdir()} == {
        *("results.json", "report.html", "junit.xml", "history.jsonl")
    }


@pytest.mark.slow
@pytest.mark.parametrize("attack", [C2, F], ids=lambda attack: attack.id)
def test_a_job_too_many_for_an_occurrence_is_seen(
    server: str, tmp_path: Path, attack: Scenario
) -> None:
    order = Order(scenarios=(attack,), out=tmp_path, dsn=server, changes=(twice,))
    (result,) = certify(order)
    assert [check.name.partition(" of ")[0] for check in result.failed] == ["jobs"]


@pytest.mark.slow
def test_a_lane_that_is_held_while_nobody_reads_is_seen(server: str, tmp_path: Path) -> None:
    held = InFunction(
        "lease_turns",
        "FROM timeball.lease CROSS JOIN LATERAL unnest",
        "FROM (SELECT pg_advisory_xact_lock('timeball.lane'::regclass::oid::integer, p_lane)) "
        "AS lock CROSS JOIN timeball.lease CROSS JOIN LATERAL unnest",
    )

    def holds(connection: Any) -> None:
        connection.execute(held.changed())

    def run(stage: Stage) -> Outcome:
        holds, took_ms, unread = Lane(stage).unread_turns()
        return Outcome(
            expected={"lanes": 1, "waited": True},
            observed={**holds, "waited": took_ms > NEXT_CLAIM_MS},
            witness={"unread": unread},
        )

    order = Order(scenarios=(scenario(run),), out=tmp_path, dsn=server, changes=(holds,))
    (result,) = certify(order)
    assert (result.status, result.failed) == (Status.PASSED, ())


def test_an_unknown_scenario_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    words = ["certify", "--scenario", "Q", "--out", str(tmp_path)]
    done = CliRunner().invoke(timeball, words)
    assert done.exit_code == 2
    assert "no scenario Q" in done.output


@pytest.mark.parametrize("name", ["sc_B", "sc_B2"])
def test_the_frozen_table_is_the_one_that_the_engine_is_tested_with(name: str) -> None:
    rows = {row[0]: row for row in json.loads(CASES.read_text("utf-8"))["cases"]}
    for key, case in cases(name).items():
        _, cron, tz, begin, _, gap, overlap, instants, end, _ = rows[key]
        assert case.wanted == Wanted(cron, tz, gap, overlap)
        assert (case.begin, case.end) == tuple(map(datetime.fromisoformat, (begin, end)))
        assert list(case.fires) == [datetime.fromisoformat(at) for at in instants]


def test_the_oracle_knows_nothing_of_the_engine() -> None:
    names = set(vars(__import__(fires.__module__, fromlist=["fires"])))
    assert not {name for name in names if name in {"load_zone", "agenda_of", "Zone", "Agenda"}}


def test_the_oracle_moves_and_repeats_as_the_words_say() -> None:
    begin = datetime.fromisoformat("2026-03-08T00:00:00Z")
    end = datetime.fromisoformat("2026-03-08T12:00:00Z")
    words = {"next_valid": "07:00", "shift": "07:30", "prev_valid": "06:59", "skip": None}
    for gap, at in words.items():
        found = fires(Wanted("30 2 * * *", "America/New_York", gap, "first"), begin, end)
        assert [each.strftime("%H:%M") for each in found] == ([at] if at else [])
    begin, end = (each.replace(month=11, day=1) for each in (begin, end))
    both = fires(Wanted("30 1 * * *", "America/New_York", "skip", "both"), begin, end)
    assert [each.strftime("%H:%M") for each in both] == ["05:30", "06:30"]
