"""What is judged, and how it is told: by records alone, without a database."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from tests.certify.conforming import faults, schema

from timeball.certify.junit import junit
from timeball.certify.promises import ELSEWHERE, NAMES
from timeball.certify.registry import SCENARIOS
from timeball.certify.report import report
from timeball.certify.results import FOUNDING, Exit, Run, document, to_replay, verdict
from timeball.certify.scenario import Check, Outcome, Profile, Result, Scenario, Status, judged
from timeball.cli.certify import command as certify

FINE = Outcome(expected={"n": 1}, observed={"n": 1}, witness={"seen": 2})
NASTY = "<b>&\x00\"'"


def result(status: Status, outcome: Outcome = FINE, *, id: str = "A", seed: int = 1) -> Result:  # noqa: A002
    scenario = Scenario(
        id=id, title=f"{NASTY} of {id}", run=lambda _: FINE, invariants=("I3", "I6'"),
        founding="sc_A" if id == "A" else None,
    )  # fmt: skip
    _, checks = judged(outcome)
    return Result(
        scenario=scenario, seed=seed, status=status, outcome=outcome, checks=checks, reason=NASTY
    )


def written(*results: Result, profile: Profile = Profile.QUICK) -> dict:
    at = "2026-11-30T00:00:00Z"
    found = document(Run(results=results, profile=profile, seed=1, at=at))
    return json.loads(json.dumps(found))


# Judging


def test_what_is_seen_as_expected_has_passed() -> None:
    assert judged(FINE)[0] is Status.PASSED


@pytest.mark.parametrize("seen", [{}, {"n": 2}, {"n": 1, "m": 1}, {"n": None}])
def test_anything_else_is_a_violation(seen: dict) -> None:
    outcome = Outcome(expected={"n": 1}, observed=seen, witness={"seen": 1})
    status, checks = judged(outcome)
    assert status is Status.VIOLATED
    assert not all(check.holds for check in checks)


@pytest.mark.parametrize("witness", [{}, {"seen": 0}, {"seen": 1, "met": 0}])
def test_a_fault_that_was_never_met_proves_nothing(witness: dict) -> None:
    assert judged(Outcome(expected={}, observed={}, witness=witness))[0] is Status.VACUOUS


def test_a_violation_without_a_witness_is_a_violation() -> None:
    outcome = Outcome(expected={"n": 1}, observed={"n": 2}, witness={"seen": 0})
    assert judged(outcome)[0] is Status.VIOLATED


def test_what_the_harness_finds_counts_like_what_the_scenario_saw() -> None:
    assert judged(FINE, (Check("leaks", holds=False, text="one"),))[0] is Status.VIOLATED


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ([], Exit.VACUOUS),
        ([Status.SKIPPED], Exit.VACUOUS),
        ([Status.PASSED, Status.SKIPPED], Exit.PASSED),
        ([Status.PASSED, Status.VACUOUS], Exit.VACUOUS),
        ([Status.PASSED, Status.VACUOUS, Status.BROKEN], Exit.BROKEN),
        (list(Status), Exit.VIOLATED),
    ],
)
def test_a_run_is_as_good_as_its_worst(statuses: list[Status], code: Exit) -> None:
    assert verdict([result(status) for status in statuses]) == code


# Telling


def test_the_document_obeys_its_schema() -> None:
    seeds = [result(Status.VIOLATED), result(Status.SKIPPED, seed=2), result(Status.BROKEN, id="X")]
    assert faults(written(*seeds), schema(), schema()) == []
    assert faults(written(), schema(), schema()) == []


def test_the_schema_refuses_what_is_not_in_it() -> None:
    found = written(result(Status.PASSED))
    found["scenarios"]["A"]["status"] = "fine"
    found["more"] = 1
    del found["seed"]
    assert len(faults(found, schema(), schema())) == 3


def test_the_schema_knows_the_names_of_the_founding_exercise() -> None:
    assert set(schema()["properties"]["founding"]["properties"]) == set(FOUNDING)


def test_the_founding_names_have_what_was_expected_and_seen() -> None:
    found = written(result(Status.PASSED), result(Status.PASSED, id="X"))
    assert found["founding"] == {
        "sc_A": {"scenario": "A", "status": "passed", "expected": {"n": 1}, "observed": {"n": 1}}
    }


def test_what_did_not_pass_is_what_is_played_again() -> None:
    found = written(result(Status.PASSED), result(Status.VIOLATED, id="E", seed=7))
    assert to_replay(found) == (["E"], 7, Profile.QUICK)
    assert to_replay(written(result(Status.PASSED))) == (["A"], 1, Profile.QUICK)


def test_of_a_soak_one_seed_is_played_again() -> None:
    found = written(result(Status.VIOLATED, seed=7), profile=Profile.SOAK)
    assert to_replay(found) == (["A"], 7, Profile.FULL)


def test_every_invariant_is_named_with_its_verdict_or_why_there_is_none() -> None:
    found = written(result(Status.VIOLATED), result(Status.PASSED, id="X"))["invariants"]
    assert tuple(found) == NAMES == tuple(schema()["properties"]["invariants"]["required"])
    assert found["I3"] == {
        "verdict": "violated", "events": 4, "scenarios": ["A", "X"], "reason": ""
    }  # fmt: skip
    assert found["I24"]["reason"] == "not attacked in this run: write --scenario D"
    assert all((each["verdict"] == "unplayed") == bool(each["reason"]) for each in found.values())


def test_an_invariant_is_attacked_by_a_scenario_or_it_is_told_what_does_it_instead() -> None:
    known = {name for each in SCENARIOS for name in each.invariants}
    assert known.isdisjoint(ELSEWHERE)
    assert known | set(ELSEWHERE) == set(NAMES)


@pytest.mark.parametrize("profile", Profile)
def test_the_command_that_plays_a_scenario_again_is_whole(profile: Profile) -> None:
    found = written(result(Status.VIOLATED, seed=7), profile=profile)["scenarios"]["A#7"]
    program, name, *words = found["replay"].split()
    given = certify.make_context(name, words).params
    assert (program, name) == ("timeball", "certify")
    assert (given["scenario"], given["seed"], given["out"]) == ("A", 7, Path("again"))
    assert given["profile"] == ("quick" if profile is Profile.QUICK else "full")


def test_the_report_of_a_build_server_counts_what_went_wrong() -> None:
    suite = ET.fromstring(junit([result(status, id=status) for status in Status]))
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "5", "failures": "2", "errors": "1", "skipped": "1"}
    assert suite[0].get("name") == "passed (seed 1): <b>& \"' of passed"


def test_the_page_runs_and_loads_nothing_and_shows_text_as_text() -> None:
    found: list[tuple[str, dict]] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list) -> None:
            found.append((tag, dict(attrs)))

    page = report(written(result(Status.VIOLATED)))
    Tags().feed(page)
    tags = {tag for tag, _ in found}
    assert not tags & {"script", "link", "img", "iframe", "b"}
    assert not any(name in attrs for _, attrs in found for name in ("src", "href", "onclick"))
    assert "url(" not in page
    assert "&lt;b&gt;" in page
