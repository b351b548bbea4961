"""`timeball cron explain`: what an expression means, and what each transition does to it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.invoking import document, invoke, said

from timeball.core.cron import load_zone
from timeball.core.cron.days import midnight, seams

NEW_YORK = ("--tz", "America/New_York")


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timeball.chance.now", lambda: datetime(2026, 3, 7, 12, tzinfo=UTC))


def test_a_year_is_told_with_both_transitions_and_what_happens_at_each() -> None:
    assert said("cron", "explain", "30 1 * * *", *NEW_YORK, "--year", "2026") == (
        "30 1 * * *  in America/New_York: at 01:30 every day\n"
        "fields  minute        30\n"
        "        hour          1\n"
        "        day-of-month  *\n"
        "        month         *\n"
        "        day-of-week   *\n"
        "class   fixed times; gap: next_valid, overlap: first\n"
        "next    2026-01-01 01:30:00-05:00  2026-01-01T06:30:00Z\n"
        "        2026-01-02 01:30:00-05:00  2026-01-02T06:30:00Z\n"
        "        2026-01-03 01:30:00-05:00  2026-01-03T06:30:00Z\n"
        "        2026-01-04 01:30:00-05:00  2026-01-04T06:30:00Z\n"
        "        2026-01-05 01:30:00-05:00  2026-01-05T06:30:00Z\n"
        "DST     2026-03-08 02:00 becomes 2026-03-08 03:00 at 2026-03-08T07:00:00Z; "
        "2026-03-08 has 23 hours\n"
        "          nothing is due from 02:00 to 03:00: nothing changes\n"
        "            that day it runs  2026-03-08 01:30:00-05:00  2026-03-08T06:30:00Z  "
        "as on any day\n"
        "        2026-11-01 02:00 becomes 2026-11-01 01:00 at 2026-11-01T06:00:00Z; "
        "2026-11-01 has 25 hours\n"
        "          01:30 comes twice: runs once, the first time\n"
        "          * overlap=first     2026-11-01 01:30:00-04:00  2026-11-01T05:30:00Z  "
        "once, the first time\n"
        "            overlap=second    2026-11-01 01:30:00-05:00  2026-11-01T06:30:00Z  "
        "once, the second time\n"
        "            overlap=both      2026-11-01 01:30:00-04:00  2026-11-01T05:30:00Z  twice\n"
        "                              2026-11-01 01:30:00-05:00  2026-11-01T06:30:00Z\n"
    )


def transition(number: int, *words: str) -> dict[str, object]:
    found = document("cron", "explain", *words, "--year", "2026", "--json")
    return found["transitions"][number]


def policies(found: dict[str, object]) -> dict[str, tuple[str, list[str]]]:
    return {
        each["value"]: (each["outcome"], [run["at"][8:16] for run in each["first"]])
        for each in found["policies"]
    }


def test_at_a_gap_every_policy_is_told() -> None:
    found = transition(0, "30 2 * * *", *NEW_YORK, "--gap", "shift")
    assert (found["kind"], found["day"], found["day_hours"]) == ("gap", "2026-03-08", 23)
    assert found["text"] == "02:30 does not exist: runs at 03:30 instead"
    assert [each["value"] for each in found["policies"] if each["chosen"]] == ["shift"]
    assert policies(found) == {
        "next_valid": ("shifted, once", ["08T07:00"]),
        "shift": ("shifted, once", ["08T07:30"]),
        "skip": ("skipped", []),
        "prev_valid": ("shifted, once", ["08T06:59"]),
    }


def test_what_a_gap_moves_onto_an_occurrence_is_one_with_it() -> None:
    found = policies(transition(0, "0,30 2,3 * * *", *NEW_YORK))
    assert found["next_valid"] == ("one with the occurrence that is due then anyway", [])


def test_a_frequent_schedule_is_told_in_part_and_counted_in_full() -> None:
    text = said("cron", "explain", "*/10 * * * *", *NEW_YORK, "--year", "2026")
    assert "01:00, 01:10, 01:20 … (6 times) come twice: runs both times" in text
    assert "… 12 in all" in text
    assert "class   interval (all 24 hours); gap: skip, overlap: both\n" in text


def test_a_day_without_a_run_says_so() -> None:
    text = said("cron", "explain", "0 9 * * MON", *NEW_YORK, "--year", "2026")
    assert text.count("that day it does not run at all") == 2


def test_explain_begins_anywhere() -> None:
    words = ("cron", "explain", "30 2 * * *", *NEW_YORK, "--json")
    assert document(*words)["occurrences"][0]["at"] == "2026-03-08T07:00:00Z"
    found = document(*words, "--from", "2031-01-01T00:00Z")
    assert found["occurrences"][0]["at"] == "2031-01-01T07:30:00Z"
    assert [each["at"][:4] for each in found["transitions"]] == ["2031", "2031"]
    assert found["prose"] == "at 02:30 every day"
    assert found["fields"]["minute"] == "30"


def test_a_year_has_as_many_transitions_as_its_zone() -> None:
    found = document(
        "cron", "explain", "0 0 * * *", "--tz", "Pacific/Apia", "--year=2011", "--json"
    )
    assert [each["day_hours"] for each in found["transitions"]] == [25, 23, 0]
    last = document("cron", "explain", "0 0 * * *", "--tz", "UTC", "--year", "2998", "--json")
    assert last["transitions"] == []


def test_two_beginnings_are_one_too_many() -> None:
    words = ("0 0 * * *", "--year", "2026", "--from", "2026-01-01T00:00Z")
    result = invoke("cron", "explain", *words)
    assert result.exit_code == 2
    assert "leave one of them out" in result.stderr


def test_explain_warns_of_surprises_and_knows_zones_without_transitions() -> None:
    text = said("cron", "explain", "*/7 * * * *", "--tz", "UTC")
    assert "DST     UTC has no transition there: nothing changes\n" in text
    assert "warning the step of" in text
    assert "minute        */7  (0,7,14,21,28,35,42,49,56)\n" in text


ZONES = ["America/New_York", "Africa/Cairo", "Pacific/Apia", "Australia/Lord_Howe", "Asia/Beirut"]


@given(
    zone=st.sampled_from(ZONES).map(load_zone),
    day=st.dates(date(2000, 1, 1), date(2040, 1, 1)),
)
def test_days_follow_one_another_and_are_as_long_as_their_transitions_make_them(zone, day) -> None:
    begin, end = midnight(zone, day), midnight(zone, day + timedelta(days=1))
    jumps = [seam.jump_s for seam in seams(zone, begin - timedelta(days=2), end) if seam.day == day]
    assert end - begin == timedelta(days=1) - timedelta(seconds=sum(jumps))


def test_what_has_ended_is_warned_of_whatever_its_expression() -> None:
    for text in ("0 9 * * *", "@every 5h", "@calendar every 2 days at 09:00"):
        told = said("cron", "explain", text, "--tz", "UTC", "--end", "2020-01-01T00:00")
        assert "warning it never comes due again" in told
