"""Each rule of the lint: where it speaks, and where it is silent."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from timeball.importers.crontab_found import crontab_findings
from timeball.importers.found import (
    Findings,
    Found,
    KindCall,
    Needs,
    Options,
    Origin,
    every,
)
from timeball.importers.lint import RULES, lint
from timeball.importers.lint_finding import Finding, Severity

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
NEW_YORK = "America/New_York"


def crontab(*lines: str, tz: str = "UTC") -> list[Finding]:
    text = "\n".join(lines) + "\n"
    return lint(crontab_findings(text, source="x.cron", form="user"), after=NOW, tz=tz)


def one(expression: str, *, options: Options | None = None, **words) -> Found:
    return Found(
        name=words.pop("name", "report"),
        expression=expression,
        runs=words.pop("runs", KindCall(kind="report")),
        options=options or Options(),
        line=words.pop("line", 7),
        guard=words.pop("guard", "max_instances=1"),
        **words,
    )


def said(origin: Origin, *found: Found, tz: str = "UTC") -> list[Finding]:
    return lint(Findings(origin=origin, source="x.py", found=found), after=NOW, tz=tz)


def rules(found: list[Finding]) -> list[str]:
    return [each.rule for each in found]


def celery(expression: str, **words) -> list[Finding]:
    return said(Origin.CELERY, one(expression, **words))


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (Options(exclude=("2026-13-01",)), "a date that does not exist"),
        pytest.param(
            Options(exclude=("2026-01-01/2990-01-01",)),
            "in a row are excluded",
            marks=pytest.mark.slow,
        ),
        (Options(any_of=("@every 5h",)), "any_of mixes @every"),
        (Options(any_of=("61 * * * *",)), "out of range"),
        (Options(overlap_runs="never"), "overlap_runs is 'never'"),
        (Options(start_at=NOW, end_at=NOW.replace(year=2025)), "end_at is before start_at"),
    ],
)
def test_what_up_would_refuse_is_an_error_and_stops_no_other(options: Options, why: str) -> None:
    bad, good = one("0 9 * * *", options=options), one("*/7 * * * *", name="good", line=9)
    found = said(Origin.TOML, bad, good)
    assert [(each.rule, each.severity, each.line) for each in found] == [
        ("needs-you", Severity.ERROR, 7),
        ("uneven-step", Severity.WARNING, 9),
    ]
    assert re.search(why, found[0].says)


# A field that was left out ------------------------------------------------------------------


def test_a_minute_that_is_left_out_is_every_minute() -> None:
    (found,) = celery("* */4 * * *", defaulted=frozenset({"minute", "day_of_week"}))
    assert (found.rule, found.severity, found.line) == ("missing-minute", Severity.ERROR, 7)
    assert found.says.startswith("fires 360 times a day, not 6: the minute is left out")
    assert found.instead.startswith("write minute=0")


def test_a_day_without_a_time_is_every_minute_of_it() -> None:
    defaulted = frozenset({"minute", "hour"})
    (found,) = celery("* * * * 1", defaulted=defaulted)
    assert found.says.startswith("fires 1,440 times a day")
    assert celery("* * * * *", defaulted=defaulted) == []


def test_a_minute_that_is_a_star_beside_an_hour_is_a_warning() -> None:
    found = crontab("* 3 * * * flock -n /x ./run")
    assert [(each.rule, each.severity) for each in found] == [("missing-minute", Severity.WARNING)]
    assert found[0].instead == "write 0 3 * * *"


@pytest.mark.parametrize("line", ["0 */4 * * * ./run", "* * * * * flock -n /x ./run"])
def test_a_minute_that_is_written_is_meant(line: str) -> None:
    assert crontab(line) == []


# Days of the week ---------------------------------------------------------------------------


def test_another_day_than_the_comment_says_is_an_error() -> None:
    (found,) = celery("0 9 * * 6", comment="weekly report on Sunday at 9:00 AM UTC")
    assert (found.rule, found.severity) == ("weekday-numbering", Severity.ERROR)
    assert "fires on Saturday, and what is said of it is Sunday" in found.says
    assert "Celery counts from Sunday = 0" in found.says
    assert found.instead == "write the day by its name: sun"


@pytest.mark.parametrize("comment", ["every Saturday", "Saturday or Sunday", "m h dom mon dow cmd"])
def test_the_day_that_the_comment_says_is_none(comment: str) -> None:
    assert celery("0 9 * * 6", comment=comment) == []


def test_the_name_of_a_schedule_counts_as_what_is_said() -> None:
    assert rules(celery("0 9 * * 1", name="sunday-report")) == ["weekday-numbering"]


def test_a_number_is_another_day_in_apscheduler() -> None:
    written = one("0 9 * * 1", text="CronTrigger(day_of_week=0, hour=9)")
    (found,) = said(Origin.APSCHEDULER, written)
    assert found.says.startswith("day_of_week=0 fires on Monday: APScheduler counts from Monday")
    named = one("0 9 * * 1", text='CronTrigger(day_of_week="mon", hour=9)')
    assert said(Origin.APSCHEDULER, named) == []


def test_a_number_beside_the_question_mark_of_quartz_is_a_warning() -> None:
    (found,) = said(Origin.TOML, one("0 0 9 ? * 2"))
    assert "fires on Tuesday: the ? is Quartz's, and Quartz counts from Sunday = 1" in found.says
    assert said(Origin.TOML, one("0 0 9 ? * MON")) == []


# Days of the month --------------------------------------------------------------------------


def test_two_day_fields_mean_either() -> None:
    (found,) = crontab("0 0 13 * fri ./run")
    assert found.rule == "day-or-weekday"
    assert found.says.startswith("fires on 63 days a year, not on the 2 days that fit both")


def test_a_special_day_is_not_guessed_at() -> None:
    (found,) = said(Origin.TOML, one("0 0 L * FRI"))
    assert found.says.startswith("fires on 63 days a year: day-of-month")


@pytest.mark.parametrize("line", ["0 0 13 * * ./run", "0 0 * * fri ./run", "0 0 */2 * 1 ./run"])
def test_one_day_field_or_a_star_in_one_is_no_surprise(line: str) -> None:
    assert "day-or-weekday" not in rules(crontab(line))


def test_a_day_rule_that_is_given_is_meant() -> None:
    both = one("0 0 13 * FRI", options=Options(day_rule="and"))
    assert said(Origin.TOML, both) == []


def test_a_day_that_months_lack_is_counted() -> None:
    (found,) = crontab("0 0 31 * * ./run")
    assert found.rule == "short-months"
    assert found.says == "day 31 comes in 7 months a year: the other 5 are skipped"


@pytest.mark.parametrize("days", ["28 *", "31 1,3,12", "28-31 *", "*/10 *"])
def test_a_day_that_every_month_has_is_none(days: str) -> None:
    assert "short-months" not in rules(crontab(f"0 0 {days} * ./run"))


def test_a_date_that_no_year_has_never_fires() -> None:
    (found,) = crontab("0 0 30 feb * ./run")
    assert (found.rule, found.severity, found.line) == ("never-fires", Severity.ERROR, 1)
    assert found.instead == "write a day that the month has, or L for its last day"


def test_years_that_have_passed_never_come_again() -> None:
    assert rules(said(Origin.TOML, one("0 0 0 1 1 * 2020"))) == ["never-fires"]
    assert said(Origin.TOML, one("0 0 0 1 1 * 2099")) == []


def test_what_is_no_schedule_is_told_as_its_reader_told_it() -> None:
    (found,) = crontab("@reboot ./warm")
    assert (found.rule, found.severity) == ("needs-you", Severity.WARNING)
    assert "@reboot' names no time" in found.says
    needs = Findings(origin=Origin.CELERY, source="x", needs=(Needs(line=3, name="a", text="odd"),))
    (found,) = lint(needs, after=NOW, tz="UTC")
    assert (found.line, found.name, found.says, found.instead) == (3, "a", "odd", "")


def test_a_line_that_cron_refuses_is_an_error() -> None:
    (found,) = crontab("61 * * * * ./run")
    assert (found.rule, found.severity) == ("needs-you", Severity.ERROR)


def test_an_expression_that_cannot_be_read_is_told() -> None:
    (found,) = said(Origin.TOML, one("61 * * * *"))
    assert (found.rule, found.line) == ("needs-you", 7)
    assert "61" in found.says


# Steps --------------------------------------------------------------------------------------


def test_a_step_that_does_not_divide_is_told_with_its_seam() -> None:
    (found,) = crontab("*/7 * * * * flock -n /x ./run")
    assert found.rule == "uneven-step"
    assert found.says == (
        "*/7 is not every 7 minutes: after minute 56 it starts again 4 minutes later"
    )
    assert found.instead == "write */6, which divides 60, or an interval: @every 7m in Timeball"


@pytest.mark.parametrize(
    ("line", "words"), [("0 */5", "4 hours later"), ("0 0 */2", "1 day later")]
)
def test_hours_and_days_have_seams_too(line: str, words: str) -> None:
    stars = " *" * (5 - len(line.split()))
    (found,) = crontab(f"{line}{stars} ./run")
    assert words in found.says


@pytest.mark.parametrize("minutes", ["*/15", "10-40/7", "*", "5"])
def test_a_step_that_divides_or_stays_within_a_range_is_none(minutes: str) -> None:
    assert crontab(f"{minutes} * * * * flock -n /x ./run") == []


# Zones --------------------------------------------------------------------------------------


def test_a_time_inside_a_gap_is_told_with_the_next_date() -> None:
    (found,) = crontab("30 2 * * * ./run", tz=NEW_YORK)
    assert found.rule == "dst-gap"
    assert "on 2027-03-14 in America/New_York 02:30 does not exist" in found.says
    assert "Timeball runs at 03:00 instead" in found.says
    assert found.instead.startswith("write a time before 02:00 or from 03:00 on")


def test_a_time_inside_a_fold_is_told_with_the_next_date() -> None:
    (found,) = crontab("CRON_TZ=America/New_York", "30 1 * * * ./run")
    assert (found.rule, found.line) == ("dst-fold", 2)
    assert "on 2027-11-07 in America/New_York 01:30 comes twice" in found.says


def test_what_others_do_there_is_told_for_those_that_were_tried() -> None:
    gap = one("30 2 * * *", tz=NEW_YORK)
    fold = one("30 1 * * *", tz=NEW_YORK)
    assert "Kubernetes skips it that day" in said(Origin.KUBERNETES, gap)[0].says
    assert "APScheduler runs it twice" in said(Origin.APSCHEDULER, fold)[0].says
    assert "does not exist; Timeball" in celery("30 2 * * *", tz=NEW_YORK)[0].says


@pytest.mark.parametrize(
    ("line", "tz"),
    [
        ("30 3 * * *", NEW_YORK),
        ("30 2 * * *", "UTC"),
        ("30 * * * *", NEW_YORK),
        ("0 0 * * *", "Asia/Tokyo"),
    ],
)
def test_times_that_every_day_has_once_are_none(line: str, tz: str) -> None:
    assert crontab(f"{line} flock -n /x ./run", tz=tz) == []


def test_a_policy_that_is_given_is_what_is_told() -> None:
    skipped = one("30 2 * * *", tz=NEW_YORK, options=Options(gap="skip"))
    assert "Timeball has it skipped" in said(Origin.TOML, skipped)[0].says


def test_a_utc_time_whose_comment_means_a_place_is_told_in_winter_and_in_summer() -> None:
    (found,) = celery("0 17 * * *", comment="Daily analysis at 5:00 PM UTC (12:00 PM EST)")
    assert found.rule == "zone-in-comment"
    assert "17:00 UTC is 12:00 in America/New_York in winter and 13:00 in summer" in found.says
    assert found.instead.startswith("set the zone of this schedule to America/New_York")


@pytest.mark.parametrize(
    ("comment", "tz"),
    [
        ("at 5 PM UTC", "UTC"),
        ("12:00 EST", NEW_YORK),
        ("at 9:00 JST", "UTC"),
        ("has met 12 guests, est. 5", "UTC"),
        ("see Europe/Nowhere", "UTC"),
    ],
)
def test_a_comment_that_means_the_same_clock_is_none(comment: str, tz: str) -> None:
    assert celery("0 17 * * *", comment=comment, tz=tz) == []


def test_a_comment_may_name_a_place_in_full() -> None:
    assert rules(celery("0 17 * * *", comment="noon in Europe/Paris")) == ["zone-in-comment"]


# What runs ----------------------------------------------------------------------------------


def interval(seconds: float, **words) -> list[Finding]:
    expression = every(seconds)
    assert expression
    return celery(expression, interval_s=seconds, **words)


def test_an_interval_of_days_has_no_time_of_day() -> None:
    (found,) = interval(86_400)
    assert found.rule == "day-long-interval"
    assert found.says.startswith("runs every 86,400 s (1 day) from whenever its scheduler started")


def test_a_shorter_interval_is_one() -> None:
    assert interval(6 * 3_600) == []


def test_runs_that_follow_closely_need_a_guard() -> None:
    (found,) = crontab("*/10 * * * * ./run")
    assert (found.rule, found.severity) == ("no-overlap-guard", Severity.HINT)
    assert found.says.startswith("starts again after 10 minutes")
    assert found.instead.startswith("write flock")
    (found,) = interval(30, guard=None)
    assert found.says.startswith("starts again after 30 seconds")


@pytest.mark.parametrize("line", ["*/10 * * * * flock -n /x ./run", "0 * * * * ./run"])
def test_guarded_and_rare_runs_are_none(line: str) -> None:
    assert crontab(line) == []


def test_a_rule_for_runs_that_overlap_is_a_guard() -> None:
    guarded = one("* * * * *", guard=None, options=Options(overlap_runs="skip"))
    assert said(Origin.TOML, guarded) == []


def test_a_secret_is_told_and_not_shown() -> None:
    (found,) = crontab("0 3 * * * curl -u ops:hunter2secret https://example.org/")
    assert (found.rule, found.severity) == ("secret-on-command-line", Severity.ERROR)
    assert "hunter2secret" not in repr(found)
    assert "curl -u ops:…" in found.says


def test_a_variable_in_place_of_a_secret_is_none() -> None:
    assert crontab('0 3 * * * curl -u "ops:$PASSWORD" https://example.org/') == []


def test_more_than_five_at_once_are_told_at_the_first_of_them() -> None:
    lines = [f"0 2 * * * ./job{number}" for number in range(6)]
    (found,) = crontab("# all of them", *lines)
    assert (found.rule, found.severity, found.line) == ("crowded-minute", Severity.HINT, 2)
    assert found.says.startswith("6 schedules start in the minute of 2026-12-01 02:00 (UTC): ")
    assert found.says.endswith(" and 3 more")
    assert crontab(*lines[:5]) == []
    assert crontab(*lines[:5], "1 2 * * * ./job6") == []


# All of them --------------------------------------------------------------------------------


def test_findings_come_in_the_order_of_lines() -> None:
    found = crontab("*/7 * * * * ./a", "0 0 30 2 * ./b", "0 0 31 * * ./c", "*/10 * * * * ./d")
    assert [each.line for each in found] == [1, 1, 2, 3, 4]


def test_a_plain_nightly_file_is_silent() -> None:
    lines = [
        f"{15 + number} 6 * * * cd /srv/app{number} && ./nightly.sh &>> /var/log/a.log"
        for number in range(3)
    ]
    for tz in ("UTC", NEW_YORK, "Europe/Paris"):
        assert crontab("SHELL=/bin/bash", "# m h dom mon dow cmd", *lines, tz=tz) == []


def test_every_remark_says_what_happens_and_what_to_write() -> None:
    found = [
        *crontab("*/7 * 13 * 5 ./a", "30 2 31 * * ./b --password=hunter2hunter2", tz=NEW_YORK),
        *crontab("* 3 * * * ./c", "30 1 * * * ./d", tz=NEW_YORK),
        *interval(86_400, guard=None),
    ]
    assert len({each.rule for each in found}) >= len(RULES) - 4
    assert all(each.says and each.instead and each.name for each in found)
