"""`timeball cron calendar`: a map of a month or a year."""

from __future__ import annotations

import sys
from datetime import UTC, datetime

import pytest
from tests.cli.invoking import document, invoke, said

NEW_YORK = ("--tz", "America/New_York")


@pytest.fixture(autouse=True)
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timeball.chance.now", lambda: datetime(2026, 3, 7, 12, tzinfo=UTC))


def test_a_month_shows_each_day_and_marks_the_one_on_which_the_clock_jumps() -> None:
    assert said("cron", "calendar", "30 2 * * SUN-TUE", *NEW_YORK) == (
        "March 2026  30 2 * * 0-2  in America/New_York: at 02:30, Sunday to Tuesday\n"
        " Mon       Tue       Wed       Thu       Fri       Sat       Sun\n"
        "                                                              1 x1\n"
        "  2 x1      3 x1      4 ·       5 ·       6 ·       7 ·       8 x1<\n"
        "  9 x1     10 x1     11 ·      12 ·      13 ·      14 ·      15 x1\n"
        " 16 x1     17 x1     18 ·      19 ·      20 ·      21 ·      22 x1\n"
        " 23 x1     24 x1     25 ·      26 ·      27 ·      28 ·      29 x1\n"
        " 30 x1     31 x1\n"
        "15 occurrences\n"
        "2026-03-08< has 23 hours: 02:00 becomes 03:00; "
        "02:30 does not exist: runs at 03:00 instead\n"
    )


def test_a_year_has_a_line_for_each_month_and_both_days_of_other_length() -> None:
    lines = said("cron", "calendar", "0 9 1,15 * *", *NEW_YORK, "--year", "2026").splitlines()
    assert [line[:6] for line in lines[2:14:3]] == ["Jan 1 ", "Apr 1 ", "Jul 1 ", "Oct 1 "]
    assert lines[4][4:].split()[:15] == ["1", *"······", "·<", *"······", "1"]
    assert lines[14] == "24 occurrences"
    assert [line[:11] for line in lines[15:]] == ["2026-03-08<", "2026-11-01>"]


def test_days_are_counted_as_long_as_they_are() -> None:
    words = ("cron", "calendar", "0 * * * *", *NEW_YORK, "--json")
    spring, autumn = document(*words), document(*words, "--month", "2026-11")
    assert spring["days"][7] == {"day": "2026-03-08", "hours": 23, "occurrences": 23, "more": False}
    assert autumn["days"][0]["occurrences"] == 25
    assert {each["occurrences"] for each in autumn["days"][1:]} == {24}


def test_a_day_that_a_zone_left_out_has_no_hours() -> None:
    words = ("0 * * * *", "--tz", "Pacific/Apia", "--month", "2011-12", "--json")
    days = document("cron", "calendar", *words)["days"]
    assert [(each["hours"], each["occurrences"]) for each in days[28:]] == [
        (24, 24),
        (0, 0),
        (24, 24),
    ]


@pytest.mark.slow
def test_what_comes_too_often_is_counted_to_a_bound_and_says_so() -> None:
    text = said("cron", "calendar", "* * * * * *", "--tz", "UTC")
    assert "  2 x1500+  3 x1500+" in text
    assert "46,500 or more occurrences\n" in text


def test_on_a_terminal_it_is_in_colour_unless_that_is_unwanted(monkeypatch) -> None:
    from timeball.cli import cron_calendar

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[32mx" in drawn(cron_calendar, monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[32m" not in drawn(cron_calendar, monkeypatch)


def drawn(module, monkeypatch: pytest.MonkeyPatch) -> str:
    from io import StringIO

    screen = StringIO()
    screen.isatty = lambda: True  # type: ignore[method-assign]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", screen)
        module._write_cells(iter([[("x", "some")]]))
    return screen.getvalue()


WRONG = [("--month", "March"), ("--month", "2026-13"), ("--month", "1850-01"), ("--year", "3000")]


@pytest.mark.parametrize("words", [*WRONG, ("--month", "2026-01", "--year", "2026")], ids=" ".join)
def test_what_is_no_month_or_year_is_told(words: tuple[str, ...]) -> None:
    assert invoke("cron", "calendar", "* * * * *", *words).exit_code == 2


def test_the_days_of_a_year_hold_all_of_its_occurrences() -> None:
    words = ("30 1,2 * * *", *NEW_YORK, "--any-of", "0 */6 * * SAT", "--exclude", "2026-07-04")
    days = document("cron", "calendar", *words, "--year", "2026", "--json")["days"]
    listed = document("cron", "next", *words, "--from", "2026-01-01T00:00", "-n", "1000", "--json")
    ahead = [each["local"][:10] for each in listed["occurrences"]]
    assert len(days) == 365
    counted = {each["day"]: each["occurrences"] for each in days[1:]}
    assert counted == {day: ahead.count(day) for day in counted}
