"""`@every`, `@calendar`, `@rrule` and `H`: what they mean, and texts that mean nothing."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from dateutil.rrule import rrulestr
from hypothesis import given
from hypothesis import strategies as st
from tests.core.cron.oracle import EPOCH

from timeball.core.cron import Agenda, Cron, Terms, agenda, load_zone, read
from timeball.core.cron.cycle import Cycle
from timeball.core.cron.every import Every
from timeball.errors import InvalidSchedule

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)
DAY, HOUR, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)
WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


def table(text: str, zone: str = "UTC", name: str = "tides") -> Agenda:
    return agenda(Terms(expression=text), load_zone(zone), name=name)


def runs(text: str, days: int = 30, zone: str = "UTC") -> list[datetime]:
    return table(text, zone).between(NEW_YEAR - SECOND, NEW_YEAR + days * DAY)


SAME = [
    ("@every 90m", "@every 1h30m"),
    ("@EVERY 5400s", "@every 1h30m"),
    ("@every  1d12h 90s", "@every 1d12h 1m30s"),
    ("@every 7d", "@every 1w"),
    ("@every 1h 0s", "@every 1h"),
    ("@calendar every day at 9:00", "@calendar every day at 09:00 from 1970-01-05"),
    ("@calendar every 1 weeks at 0:00", "@calendar every week on mon at 00:00 from 1970-01-05"),
    (
        "@calendar every 2 weeks on thu,Mon,thu at 17:30,09:00 from 2026-01-07",
        "@calendar every 2 weeks on mon,thu at 09:00,17:30 from 2026-01-07",
    ),
    (
        "@calendar every week at 09:00:30 from 2026-01-07",
        "@calendar every week on wed at 09:00:30 from 2026-01-07",
    ),
    (
        "@rrule 2026-01-05t09:00 rrule:freq=monthly;byday=2mo;",
        "@rrule 2026-01-05T09:00:00 FREQ=MONTHLY;BYDAY=2MO",
    ),
    ("h/15 h(1-3) * * h", "H/15 H(1-3) * * H"),
    ("H(MON-FRI) * * * *", None),
    ("0 0 * * H(MON-FRI)", "0 0 * * H(1-5)"),
]


@pytest.mark.parametrize(("text", "plain"), SAME, ids=lambda value: str(value)[:30])
def test_spelling_makes_no_difference(text: str, plain: str | None) -> None:
    if plain is None:
        with pytest.raises(InvalidSchedule, match="minute"):
            read(text, name="tides")
        return
    assert read(text, name="tides").canonical() == plain
    assert read(plain, name="tides") == read(text, name="tides")


REFUSED = [
    ("@every", "1h30m"),
    ("@every 0s", "from 1s"),
    ("@every -5m", "no interval"),
    ("@every 1.5h", "no interval"),
    ("@every 90", "no interval"),
    ("@every 1m1h", "no interval"),
    ("@every 11000d", "ten years"),
    ("@every 9999999999s", "no interval"),
    ("@every 1h 1h", "shorter"),
    ("@every 1h 5m 5m", "no interval"),
    ("@calendar", "not understood"),
    ("@calendar every 0 days at 09:00", "1 to 3660"),
    ("@calendar every 9999 days at 09:00", "1 to 3660"),
    ("@calendar every 2 weeks on mon", "not understood"),
    ("@calendar every 2 weeks on monday at 09:00", "weekday other than mon"),
    ("@calendar every 2 weeks on mon, at 09:00", "weekday other than mon"),
    ("@calendar every 2 days on mon at 09:00", "weekdays in a cycle of days"),
    ("@calendar every 2 days at 24:00", "no clock shows"),
    ("@calendar every 2 days at 09:00,", "no clock shows"),
    ("@calendar every 2 days at 09:00 from 2026-02-30", "does not exist"),
    ("@calendar every 2 days at 09:00 from 3000-01-01", "1900 to 2999"),
    ("@rrule FREQ=DAILY", "not understood"),
    ("@rrule 2026-02-30T09:00 FREQ=DAILY", "does not exist"),
    ("@rrule 1969-01-01T09:00 FREQ=DAILY", "before 1970"),
    ("@rrule 2026-01-05T09:00 FREQ=SECONDLY", "FREQ other than"),
    ("@rrule 2026-01-05T09:00 BYDAY=MO", "FREQ other than"),
    ("@rrule 2026-01-05T09:00 FREQ=DAILY;INTERVAL=0", "INTERVAL outside 1"),
    ("@rrule 2026-01-05T09:00 FREQ=DAILY;INTERVAL=1001", "INTERVAL outside 1"),
    ("@rrule 2026-01-05T09:00 FREQ=DAILY;COUNT=0", "COUNT outside 1"),
    ("@rrule 2026-01-05T09:00 FREQ=DAILY;COUNT=2;UNTIL=20270101", "both COUNT and UNTIL"),
    ("@rrule 2026-01-05T09:00 FREQ=DAILY;UNTIL=20270101T000000Z", "by the wall clock"),
    ("@rrule 2026-01-05T09:00 FREQ=DAILY;UNTIL=20260101", "never comes due"),
    ("@rrule 2026-01-05T09:00 FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "never comes due"),
    ("@rrule 2026-01-05T09:00 FREQ=DAILY;BYMONTHDAY=30;BYMONTH=2", "never comes due"),
    ("@rrule 2026-01-05T09:00 FREQ=DAILY;FOO=1", "refused"),
    ("@rrule 2026-01-05T09:00 FREQ=DAILY;BYHOUR=1,2,3,4,5;BYMINUTE=1,2,3,4,5", "24 times of day"),
    ("H * * *", "4 fields"),
    ("H(3-1) * * * *", "runs backwards"),
    ("H/61 * * * *", "steps further"),
    ("H/0 * * * *", "steps further"),
    ("H(0-70) * * * *", "out of range"),
    ("H(((((1-2) * * * *", "not understood"),
    ("HH * * * *", "not understood"),
    ("0 0 0 * * * H", "not understood"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=[case[0][:40] for case in REFUSED])
def test_a_refusal_says_why(text: str, why: str) -> None:
    with pytest.raises(InvalidSchedule, match=why):
        read(text, name="tides")


def test_h_without_a_name_is_refused() -> None:
    with pytest.raises(InvalidSchedule, match="schedule's name"):
        read("H 3 * * *")


# @every


def test_every_is_elapsed_time_and_knows_no_clock_change() -> None:
    found = table("@every 90m", "America/New_York").between(
        datetime(2026, 3, 8, 5, tzinfo=UTC), datetime(2026, 3, 8, 9, tzinfo=UTC)
    )
    assert {later - at for at, later in pairwise(found)} == {timedelta(minutes=90)}
    assert not any(table("@every 90m", "America/New_York").describe(at).shifted for at in found)
    elsewhere = table("@every 90m", "Asia/Kathmandu")
    assert elsewhere.between(found[0], found[-1]) == found[1:]


@pytest.mark.slow
@given(st.integers(1, 10**7), st.integers(0, 10**7), st.integers(-(10**9), 10**10))
def test_every_is_counted_from_the_epoch(interval: int, phase: int, at: int) -> None:
    rule = Every(interval, phase % interval)
    found = rule.first(at)
    assert found is not None
    assert at <= found < at + interval
    assert (found - rule.phase_s) % interval == 0
    assert rule.last(found) == found
    assert rule.last(found + interval - 1) == found
    assert read(rule.canonical()) == rule


# @calendar


def test_two_weeks_are_counted_from_a_date_and_begin_on_monday() -> None:
    found = runs("@calendar every 2 weeks on mon,thu at 09:00 from 2026-01-08", 36)
    assert [f"{at:%a %d}" for at in found] == ["Thu 08", "Mon 19", "Thu 22", "Mon 02", "Thu 05"]


def test_ten_days_go_on_over_the_ends_of_months() -> None:
    found = runs("@calendar every 10 days at 06:00,18:00 from 2026-01-25", 30)
    assert [f"{at:%m-%d %H}" for at in found] == ["01-25 06", "01-25 18"]
    assert runs("@calendar every 10 days at 06:00 from 2026-01-25", 60)[-1].date() == (
        datetime(2026, 2, 24, tzinfo=UTC).date()
    )


def test_a_calendar_rule_is_held_by_the_policies_of_the_wall_clock() -> None:
    spring = table("@calendar every 2 days at 02:30 from 2026-03-08", "America/New_York")
    assert spring.next(NEW_YEAR) == datetime(2026, 3, 8, 7, tzinfo=UTC)
    assert spring.describe(datetime(2026, 3, 8, 7, tzinfo=UTC)).shifted


@pytest.mark.slow
@given(
    st.integers(1, 30),
    st.sets(st.integers(0, 6)),
    st.sets(st.integers(0, 86_399), min_size=1, max_size=4),
    st.integers(-1000, 40_000),
    st.integers(-1000, 1000),
)
def test_a_calendar_rule_is_what_counting_days_finds(
    period: int, weekdays: set[int], times: set[int], begins: int, near: int
) -> None:
    rule = Cycle(period, tuple(sorted(weekdays)), tuple(sorted(times)), begins)
    monday = begins - (begins + 3) % 7

    def on(day: int) -> bool:
        if day < begins:
            return False
        if not weekdays:
            return (day - begins) % period == 0
        return (day - monday) // 7 % period == 0 and (day + 3) % 7 in weekdays

    start = begins + near
    days = range(start, max(start, begins) + 8 * period + 8)
    wanted = [day * 86_400 + time for day in days if on(day) for time in sorted(times)]
    assert rule.first(start * 86_400) == wanted[0]
    assert rule.first(wanted[0] + 1) == (wanted[1] if len(times) > 1 else rule.first(wanted[0] + 1))
    before = [
        day * 86_400 + time
        for day in range(start - 7 * period - 7, start)
        if on(day)
        for time in sorted(times)
    ]
    assert rule.last(start * 86_400 - 1) == (before[-1] if before else None)
    assert read(rule.canonical()) == rule


# @rrule


@pytest.mark.parametrize(
    "rule",
    [
        "FREQ=MONTHLY;BYDAY=2MO",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        "FREQ=YEARLY;INTERVAL=2;BYMONTH=1;BYDAY=SU;BYHOUR=8,9;BYMINUTE=30",
        "FREQ=WEEKLY;INTERVAL=2;WKST=SU;BYDAY=TU,SU;COUNT=9",
        "FREQ=DAILY;INTERVAL=10;UNTIL=20270101T000000",
        "FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
    ],
)
def test_a_recurrence_is_what_dateutil_says_of_wall_times(rule: str) -> None:
    begin = datetime.fromisoformat("2026-01-05T09:00:00")
    expected = [
        at.replace(tzinfo=UTC)
        for at in rrulestr(rule, dtstart=begin).between(begin, begin + 1500 * DAY, inc=True)
    ]
    assert runs(f"@rrule 2026-01-05T09:00 {rule}", 1504) == expected
    backwards = table(f"@rrule 2026-01-05T09:00 {rule}")
    assert backwards.previous(expected[-1] + SECOND) == expected[-1]
    assert backwards.previous(begin.replace(tzinfo=UTC) - SECOND) is None


def test_a_recurrence_goes_by_the_wall_clock() -> None:
    found = runs("@rrule 2026-03-01T02:30 FREQ=WEEKLY;BYDAY=SU", 80, "America/New_York")
    assert [f"{at:%d %H:%M}" for at in found[:3]] == ["01 07:30", "08 07:00", "15 06:30"]


def test_an_end_that_is_a_date_includes_its_day() -> None:
    assert len(runs("@rrule 2026-01-05T09:00 FREQ=DAILY;UNTIL=20260107")) == 3


@pytest.mark.parametrize(
    ("module", "terms", "extra"),
    [
        (
            "timeball.core.cron.dateutil_rule",
            {"expression": "@rrule 2026-01-05T09:00 FREQ=DAILY"},
            "rrule",
        ),
        ("holidays", {"expression": "@daily", "exclude": ("holidays:FR",)}, "holidays"),
    ],
)
def test_what_is_not_installed_names_the_extra(
    module: str, terms: dict, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InvalidSchedule, match=rf"pip install 'timeball\[{extra}\]'"):
        agenda(Terms(**terms), load_zone("UTC"), name="tides")


# H


@pytest.mark.slow
@given(st.text(min_size=1, max_size=30))
def test_h_picks_what_the_name_says_within_its_bounds(name: str) -> None:
    cron = read("H H(2-5) H * H", name=name)
    assert isinstance(cron, Cron)
    assert [len(each.values) for each in (cron.minute, cron.hour, cron.day, cron.weekday)] == [
        1
    ] * 4
    assert cron.hour.values[0] in range(2, 6)
    assert cron.day.values[0] in range(1, 29)
    assert cron.weekday.values[0] in range(7)
    assert read(cron.canonical(), name=name) == cron


def test_h_with_a_step_keeps_its_distance() -> None:
    cron = read("H/20 * * * *", name="tides")
    assert isinstance(cron, Cron)
    first = cron.minute.values[0]
    assert cron.minute.values == (first, first + 20, first + 40)
    assert first < 20


def test_h_spreads_many_schedules_over_the_hour() -> None:
    minutes = {read("H * * * *", name=f"job {n}").minute.values[0] for n in range(600)}
    assert len(minutes) > 55
    texts = {read("H H * * *", name=f"job {n}").canonical() for n in range(10)}
    assert texts == {"H H * * *"}  # what was written


def test_the_fields_of_one_name_do_not_pick_alike() -> None:
    pairs = [read("H H * * *", name=f"job {n}") for n in range(200)]
    same = [pair for pair in pairs if pair.minute.values == pair.hour.values]
    assert len(same) < 30


def test_the_epoch_is_one_of_every_interval() -> None:
    assert table("@every 17m").next(EPOCH - SECOND) == EPOCH
