"""APScheduler: fields by its own rules, options, loops, zones; nothing of it is run."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.core.cron import parse
from timeball.errors import UsageError
from timeball.importers.apscheduler import apscheduler_findings
from timeball.importers.apscheduler_fields import FIELDS, cron_fields
from timeball.importers.found import Findings, Found, KindCall, Options

HEAD = """
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.cron import CronTrigger
from apscheduler.triggers.interval import IntervalTrigger
from shop.work import sweep
import shop.mail
sched = BackgroundScheduler(timezone="Asia/Seoul")
def job(a, b=1): ...
"""


def findings(text: str, head: str = HEAD) -> Findings:
    return apscheduler_findings(head + text, source="/srv/clock.py")


def one(call: str) -> Found:
    read = findings(f"sched.add_job(job, {call})")
    (found,) = read.found
    return found


def lost(call: str) -> str:
    read = findings(f"sched.add_job(job, {call})")
    assert read.found == ()
    (needs,) = read.needs
    assert needs.line == 9
    return needs.text


# Fields -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_fields", "expression"),
    [
        ({"hour": 6, "minute": 0}, "0 6 * * *"),
        ({"hour": 6}, "0 6 * * *"),
        ({"minute": "*/5"}, "*/5 * * * *"),
        ({"day_of_week": "mon-fri"}, "0 0 * * MON-FRI"),
        ({"day": 15}, "0 0 15 * *"),
        ({"month": "1,7"}, "0 0 1 1,7 *"),
        ({"month": "jan-mar", "hour": 3}, "0 3 * JAN-MAR *"),
        ({"year": 2027}, "0 0 0 1 1 * 2027"),
        ({"second": "*/10"}, "*/10 * * * * *"),
        ({}, "* * * * * *"),
        ({"day_of_week": 0, "hour": 9}, "0 9 * * MON"),
        ({"day_of_week": "0-4"}, "0 0 * * MON-FRI"),
        ({"day_of_week": "6"}, "0 0 * * SUN"),
        ({"day_of_week": "*/2"}, "0 0 * * MON,WED,FRI,SUN"),
        ({"day_of_week": "1-5/2,sun"}, "0 0 * * TUE,THU,SAT,SUN"),
        ({"day": "last"}, "0 0 L * *"),
        ({"day": "2nd fri"}, "0 0 * * FRI#2"),
        ({"day": "1st mon,last sun", "hour": 8}, "0 8 * * MON#1,SUNL"),
    ],
)
def test_a_less_significant_field_is_its_minimum_and_a_more_significant_one_is_open(
    given_fields: dict[str, object], expression: str
) -> None:
    fields = cron_fields(given_fields)
    assert fields.expression == expression
    assert parse(expression, day_rule=fields.day_rule or "cron")
    assert fields.defaulted == set(FIELDS) - given_fields.keys()


def test_both_day_fields_must_fit() -> None:
    assert cron_fields({"day": "1-7", "day_of_week": "mon"}).day_rule == "and"
    assert cron_fields({"day": "1-7"}).day_rule is None


@settings(max_examples=15)
@given(st.sampled_from("0123456"), st.integers(0, 6), st.integers(1, 6))
def test_weekdays_count_from_monday(first: str, length: int, step: int) -> None:
    last = min(int(first) + length, 6)
    text = f"{first}-{last}/{step}"
    wanted = {(day + 1) % 7 for day in range(int(first), last + 1, step)}
    expression = cron_fields({"day_of_week": text}).expression
    assert set(parse(expression).weekday.values) == wanted


@pytest.mark.parametrize(
    ("given_fields", "why"),
    [
        ({"week": 5}, "there is no field for weeks of the year"),
        ({"year": "*/2"}, "write the years out"),
        ({"day": "2nd fri,15"}, "write two schedules"),
        ({"day": "2nd fri", "day_of_week": "mon"}, "write two schedules"),
        ({"day_of_week": "fri-mon"}, "runs backwards"),
        ({"day_of_week": "7"}, "0 (Monday) to 6"),
        ({"day_of_week": "x y"}, "is not understood"),
        ({"hour": 1.5}, "write a number or a text"),
    ],
)
def test_what_has_no_field_is_said(given_fields: dict[str, object], why: str) -> None:
    with pytest.raises(UsageError) as told:
        cron_fields(given_fields)
    assert why in str(told.value)


# Triggers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "expression", "seconds"),
    [
        ("'cron', hour=6", "0 6 * * *", None),
        ("trigger='cron', day_of_week='sun', hour=20", "0 20 * * SUN", None),
        ("CronTrigger(hour=6)", "0 6 * * *", None),
        ("CronTrigger.from_crontab('*/5 1-3 * * *')", "*/5 1-3 * * *", None),
        ("CronTrigger.from_crontab('@daily')", "@daily", None),
        ("'interval', hours=6", "@every 6h", 21_600),
        ("IntervalTrigger(1, 1)", "@every 192h", 691_200),
        ("IntervalTrigger(minutes=90)", "@every 90m", 5_400),
        ("'interval', hours=6, start_date='1970-01-01T02:00:00+00:00'", "@every 6h 2h", 21_600),
    ],
)
def test_triggers_become_expressions(call: str, expression: str, seconds: float | None) -> None:
    found = one(call)
    assert (found.expression, found.interval_s, found.tz) == (expression, seconds, "Asia/Seoul")


def test_weekdays_of_from_crontab_are_apschedulers_and_that_is_said() -> None:
    found = one("CronTrigger.from_crontab('0 9 * * 0')")
    assert found.expression == "0 9 * * MON"
    assert "counts from Monday = 0 in APScheduler 3" in found.needs[0].text


@pytest.mark.parametrize(
    ("call", "why"),
    [
        ("", "it has no trigger and runs once"),
        ("'date', run_date='2027-01-01'", "it runs once, 2027-01-01"),
        ("'date'", "it runs once, at once"),
        ("OrTrigger([CronTrigger(hour=1)])", "OrTrigger is no trigger that a schedule can have"),
        ("'cron', week=1", "weeks of the year"),
        ("'cron', hour=rush_hour()", "has a value only when"),
        ("'interval', seconds=0.5", "no whole number of seconds"),
        ("'interval', weeks=10 ** 9", "has a value only when"),
        ("'interval', hours=1, minute=5", "has no minute"),
        ("'cron', hour=1, timezone='Mars/Olympus'", "Mars/Olympus"),
        ("'cron', hour=1, jitter='x'", "no number of seconds"),
        ("'cron', hour=1, start_date='soon'", "is no date"),
        ("'cron', hour=1, misfire_grace_time=0", "no number of seconds above 0"),
        ("'cron', hour=1, max_instances='x'", "no number above 0"),
        ("pick()", "is no trigger"),
    ],
)
def test_what_cannot_be_said_needs_a_person_with_its_line(call: str, why: str) -> None:
    assert why in lost(call)


def test_bounds_are_instants_in_the_zone_of_the_trigger() -> None:
    found = one("'cron', hour=1, start_date='2027-01-01', end_date='2028-01-01T00:00:00+00:00'")
    assert found.options.start_at == datetime(2026, 12, 31, 15, tzinfo=UTC)
    assert found.options.end_at == datetime(2028, 1, 1, tzinfo=UTC)


# Options and functions ----------------------------------------------------------------------


def test_options_not_given_are_apschedulers_own() -> None:
    found = one("'interval', minutes=5")
    assert found.options == Options(overlap_runs="skip", catchup="none")
    assert found.defaulted == {"max_instances", "misfire_grace_time"}
    assert found.guard == "max_instances=1"


@pytest.mark.parametrize(
    ("given_options", "options"),
    [
        ("misfire_grace_time=10, jitter=10", {"catchup_window_s": 10.0, "jitter_s": 10}),
        ("misfire_grace_time=60, coalesce=False", {"catchup_window_s": 60.0, "catchup": "all"}),
        ("misfire_grace_time=None", {}),
        ("misfire_grace_time=5, next_run_time=None", {"catchup_window_s": 5.0, "paused": True}),
    ],
)
def test_lateness_and_jitter_are_options(given_options: str, options: dict[str, object]) -> None:
    found = one(f"'interval', minutes=5, max_instances=1, {given_options}")
    assert found.options == Options(overlap_runs="skip", **options)  # type: ignore[arg-type]  # a test's own
    assert found.needs == ()


def test_what_has_no_counterpart_is_a_need() -> None:
    found = one("'interval', minutes=5, max_instances=3, executor='processpool', tag='x'")
    assert found.options.overlap_runs is None
    assert [each.text[:20] for each in found.needs] == [
        *("max_instances=3: her", "it names an executor", "the option tag has n")
    ]


def test_defaults_of_the_scheduler_count_for_its_jobs() -> None:
    head = HEAD.replace('"Asia/Seoul"', '"UTC", job_defaults={"misfire_grace_time": 30}')
    (found,) = findings("sched.add_job(job, 'cron', hour=1)", head).found
    assert found.options.catchup_window_s == 30
    assert found.tz == "UTC"


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        ("job", "clock.job"),
        ("sweep", "shop.work.sweep"),
        ("shop.mail.send", "shop.mail.send"),
        ("'shop.mail:send'", "shop.mail.send"),
    ],
)
def test_functions_are_kinds_by_their_modules(function: str, kind: str) -> None:
    (found,) = findings(f"sched.add_job({function}, 'cron', hour=1, kwargs={{'a': 1}})").found
    assert found.runs == KindCall(kind=kind, args={"a": 1})
    assert found.name == kind


@pytest.mark.parametrize("function", ["lambda: 1", "self.tick", "thing.tick", "make()"])
def test_what_is_no_function_of_a_module_needs_a_person(function: str) -> None:
    read = findings(f"thing = make()\nsched.add_job({function}, 'cron', hour=1)")
    assert (read.found, len(read.needs)) == ((), 1)


def test_arguments_are_named_by_the_function_of_the_file_or_need_a_person() -> None:
    (found,) = findings("sched.add_job(job, 'cron', ['x'], {'b': 2}, 'nightly', hour=1)").found
    assert (found.name, found.runs) == (
        "nightly",
        KindCall(kind="clock.job", args={"a": "x", "b": 2}),
    )
    (found,) = findings("sched.add_job(sweep, 'cron', args=('x',), hour=1)").found
    assert not found.holds
    assert "args ('x',) have no names" in found.needs[0].text


def test_a_decorator_adds_its_function() -> None:
    (found,) = findings(
        "@sched.scheduled_job('interval', id='beat', seconds=30)\ndef tick(): ...\n"
    ).found
    assert (found.name, found.line, found.expression) == ("beat", 9, "@every 30s")
    assert found.runs == KindCall(kind="clock.tick")


def test_loops_over_what_is_written_out_are_followed_to_their_lines() -> None:
    read = findings(
        """
for trigger, name in [
    (CronTrigger(hour=6, timezone="UTC"), "early"),
    (IntervalTrigger(hours=2), "often"),
]:
    sched.add_job(job, trigger, id=name, replace_existing=True)
TIMES = {"a": {"hour": 1}, "b": {"hour": 2, "minute": 5}}
for name, when in TIMES.items():
    sched.add_job(job, "cron", id=name, hour=when["hour"])
for name, when in TIMES.items():
    sched.add_job(job, "cron", id=name + "2", **when)
for hour in range(3):
    sched.add_job(job, "cron", hour=hour)
"""
    )
    assert [(each.name, each.expression, each.line) for each in read.found] == [
        ("early", "0 6 * * *", 11),
        ("often", "@every 2h", 12),
        ("a", "0 1 * * *", 17),
        ("b", "0 2 * * *", 17),
        ("a2", "0 1 * * *", 19),
        ("b2", "5 2 * * *", 19),
    ]
    (needs,) = read.needs
    assert needs.line == 21
    assert "`hour` has a value only when the program runs" in needs.text


def test_a_trigger_made_without_a_zone_has_another_one_than_its_scheduler_and_that_is_said() -> (
    None
):
    text = "sched.add_job(job, CronTrigger(hour=1))\nsched.add_job(sweep, CronTrigger(hour=2))"
    (needs,) = findings(text).needs
    assert (needs.line, "not in the Asia/Seoul of its scheduler" in needs.text) == (9, True)
    assert findings("sched.add_job(job, CronTrigger(hour=1, timezone='UTC'))").needs == ()


def test_several_zones_are_not_guessed() -> None:
    read = findings(
        "other = BackgroundScheduler(timezone='UTC')\nsched.add_job(job, 'cron', hour=1)"
    )
    assert (read.default_tz, read.found[0].tz) == (None, None)
    assert "several zones (Asia/Seoul, UTC)" in read.needs[0].text


def test_without_a_zone_it_is_the_machines() -> None:
    head = HEAD.replace('timezone="Asia/Seoul"', "timezone=get_localzone()")
    read = findings("sched.add_job(job, 'cron', hour=1)", head)
    assert (read.default_tz, read.found[0].tz) == (None, None)


def test_nothing_is_imported_or_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    read = findings(
        f"open({str(trace)!r}, 'w')\nsched.add_job(job, 'cron', hour=open({str(trace)!r}, 'w'))"
    )
    assert (read.found, len(read.needs), trace.exists()) == ((), 1, False)


def test_the_weekdays_of_real_dates_are_what_apscheduler_would_pick() -> None:
    """Monday 2027-01-04 is APScheduler's 0 and cron's 1."""
    days = parse(cron_fields({"day_of_week": "0,3"}).expression).weekday.values
    monday = date(2027, 1, 4)
    assert [(monday + timedelta(days=n)).isoweekday() % 7 in days for n in range(7)] == [
        *(True, False, False, True, False, False, False)
    ]
