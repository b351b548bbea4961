"""`timeball cron`: when schedules run, and why then."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.cli.invoking import document, invoke, said

SPRING = ("30 2 * * *", "--tz", "America/New_York")
FROM = ("--from", "2026-03-07T12:00Z")


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timeball.chance.now", lambda: datetime(2026, 3, 7, 12, tzinfo=UTC))


def instants(*words: str) -> list[str]:
    return [each["at"] for each in document("cron", "next", *words, "--json")["occurrences"]]


def test_a_time_that_the_clock_skips_runs_right_after_the_gap() -> None:
    found = document("cron", "next", *SPRING, *FROM, "-n", "3", "--json")
    assert found == {
        "expression": "30 2 * * *",
        "tz": "America/New_York",
        "zone_data": found["zone_data"],
        "gap": "next_valid",
        "overlap": "first",
        "terms": {},
        "from": "2026-03-07T12:00:00Z",
        "left_out": [],
        "occurrences": [
            {
                "at": "2026-03-08T07:00:00Z",
                "local": "2026-03-08T03:00:00-04:00",
                "fold": 0,
                "shifted": True,
                "due_at": "2026-03-08T07:00:00Z",
            },
            {
                "at": "2026-03-09T06:30:00Z",
                "local": "2026-03-09T02:30:00-04:00",
                "fold": 0,
                "shifted": False,
                "due_at": "2026-03-09T06:30:00Z",
            },
            {
                "at": "2026-03-10T06:30:00Z",
                "local": "2026-03-10T02:30:00-04:00",
                "fold": 0,
                "shifted": False,
                "due_at": "2026-03-10T06:30:00Z",
            },
        ],
    }


def test_people_get_a_table() -> None:
    assert said("cron", "next", *SPRING, *FROM, "-n", "2") == (
        "LOCAL                      UTC                   NOTE\n"
        "2026-03-08 03:00:00-04:00  2026-03-08T07:00:00Z  moved by a gap\n"
        "2026-03-09 02:30:00-04:00  2026-03-09T06:30:00Z\n"
    )


def test_without_a_start_it_counts_from_now() -> None:
    assert instants(*SPRING, "-n", "1") == ["2026-03-08T07:00:00Z"]


def test_a_start_without_a_zone_is_in_the_schedules_own() -> None:
    start = ("--from", "2026-03-09T02:29")
    assert instants(*SPRING, *start, "-n", "1") == ["2026-03-09T06:30:00Z"]


POLICIES = {
    ("--gap", "skip"): "2026-03-09T06:30:00Z",
    ("--gap", "shift"): "2026-03-08T07:30:00Z",
    ("--gap", "prev_valid"): "2026-03-08T06:59:00Z",
    ("--dst", "cron"): "2026-03-08T07:00:00Z",
}


@pytest.mark.parametrize(("words", "first"), POLICIES.items(), ids=str)
def test_the_policy_can_be_chosen(words: tuple[str, ...], first: str) -> None:
    assert instants(*SPRING, *FROM, "-n", "1", *words) == [first]


def test_the_pass_of_a_repeated_time_can_be_chosen() -> None:
    words = ("30 1 * * *", "--tz", "America/New_York", "--from", "2026-11-01T00:00", "-n", "2")
    assert instants(*words, "--overlap", "both") == ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]
    assert instants(*words, "--overlap", "second")[0] == "2026-11-01T06:30:00Z"


def test_a_schedule_that_ends_gives_fewer() -> None:
    assert instants("0 0 0 1 1 * 2027", "--tz", "UTC") == ["2027-01-01T00:00:00Z"]


WRONG = [
    ("61 * * * *", "--tz", "UTC"),
    ("* * * * *", "--tz", "EST"),
    ("* * * * *", "--tz", "UTC", "--from", "soon"),
    ("* * * * *", "--tz", "UTC", "-n", "0"),
]


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_what_is_wrong_is_told_with_exit_code_2(words: tuple[str, ...]) -> None:
    result = invoke("cron", "next", *words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr


# Terms --------------------------------------------------------------------------------------

DAILY = ("0 9 * * *", "--tz", "UTC", "--from", "2026-03-07T12:00Z")


def test_several_expressions_are_one_row() -> None:
    assert instants(*DAILY, "--any-of", "0 12 * * *", "-n", "3") == [
        "2026-03-08T09:00:00Z",
        "2026-03-08T12:00:00Z",
        "2026-03-09T09:00:00Z",
    ]


def test_what_is_excluded_is_shown_and_does_not_count() -> None:
    text = said("cron", "next", *DAILY, "--exclude", "2026-03-08/2026-03-09", "-n", "1")
    assert text.splitlines()[1:] == [
        "2026-03-08 09:00:00+00:00  2026-03-08T09:00:00Z  does not run: excluded",
        "2026-03-09 09:00:00+00:00  2026-03-09T09:00:00Z  does not run: excluded",
        "2026-03-10 09:00:00+00:00  2026-03-10T09:00:00Z",
    ]
    found = document("cron", "next", *DAILY, "--exclude", "2026-03-08", "-n", "1", "--json")
    assert found["left_out"] == [{"at": "2026-03-08T09:00:00Z", "reason": "excluded"}]
    assert found["terms"] == {"exclude": ["2026-03-08"]}


def test_an_excluded_day_may_move_its_occurrence() -> None:
    words = ("0 9 * * MON", "--tz", "UTC", "--exclude", "2026-03-09", "--on-excluded", "next")
    assert instants(*words, "-n", "1") == ["2026-03-10T09:00:00Z"]


def test_nothing_comes_before_the_start_or_after_the_end() -> None:
    bounds = ("--start", "2026-04-01T00:00", "--end", "2026-04-02T12:00")
    assert instants(*DAILY, *bounds) == ["2026-04-01T09:00:00Z", "2026-04-02T09:00:00Z"]


def test_both_days_may_have_to_fit() -> None:
    words = ("0 0 13 * FRI", "--tz", "UTC", "--day-rule", "and", "-n", "2")
    assert instants(*words) == ["2026-03-13T00:00:00Z", "2026-11-13T00:00:00Z"]


def test_jitter_and_h_go_by_the_name() -> None:
    words = ("H 9 * * *", "--tz", "UTC", "--name", "report", "--jitter", "10m", "-n", "1")
    (found,) = document("cron", "next", *words, "--json")["occurrences"]
    assert found["at"] < found["due_at"] <= found["at"].replace("T09", "T10")
    assert document("cron", "next", *words, "--json")["occurrences"] == [found]
    assert "jitter: starts at" in said("cron", "next", *words)


@pytest.mark.parametrize("words", [("H 9 * * *",), (*DAILY, "--jitter", "10m")], ids=" ".join)
def test_what_goes_by_a_name_needs_one(words: tuple[str, ...]) -> None:
    result = invoke("cron", "next", *words)
    assert result.exit_code == 2
    assert "write --name too" in result.stderr


def test_elapsed_time_knows_no_clock() -> None:
    words = ("@every 90m", *SPRING[1:], "--from", "2026-03-08T05:59Z", "-n", "2")
    assert instants(*words) == ["2026-03-08T06:00:00Z", "2026-03-08T07:30:00Z"]
    text = said("cron", "explain", "@every 90m", *SPRING[1:])
    assert "class   elapsed time: it knows no wall clock\n" in text
    assert text.count("nothing changes") == 2


def test_other_rules_follow_the_wall_clock_and_are_told_at_its_transitions() -> None:
    text = said("cron", "explain", "@calendar every 1 weeks on sun at 02:30", *SPRING[1:])
    assert "          1 of its times is missing\n" in text
    assert "          * gap=next_valid    2026-03-08 03:00:00-04:00  2026-03-08T07:00:00Z" in text
