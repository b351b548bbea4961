"""Policies at the seams of a zone, the ends of time, and the days of the calendar."""

from __future__ import annotations

import tracemalloc
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import product

import pytest
from tests.core.cron.oracle import GAPS, OVERLAPS, table

from timeball.core.cron import Gap, Overlap, Policy, Timetable, load_zone, parse, resolve
from timeball.errors import InvalidSchedule, UsageError

NEW_YORK = "America/New_York"


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "auto", "cron"),
    [
        ("30 2 * * *", "fixed", "fixed"),
        ("*/15 * * * *", "interval", "interval"),
        ("*/15 2 * * *", "fixed", "interval"),
        ("0 */2 * * *", "fixed", "interval"),
        ("0 0-23/2 * * *", "fixed", "fixed"),
        ("0 0-23 * * *", "interval", "fixed"),
        ("0 */1 * * *", "interval", "interval"),
        ("0 12-11 * * *", "interval", "fixed"),
        ("@hourly", "interval", "interval"),
        ("@daily", "fixed", "fixed"),
        ("* 30 2 * * *", "fixed", "fixed"),
    ],
)
def test_the_class_of_a_schedule_comes_from_its_hours_or_from_its_text(
    text: str, auto: str, cron: str
) -> None:
    kinds = {
        "fixed": Policy(Gap.NEXT_VALID, Overlap.FIRST),
        "interval": Policy(Gap.SKIP, Overlap.BOTH),
    }
    assert resolve(parse(text)) == kinds[auto]
    assert resolve(parse(text), "cron") == kinds[cron]
    assert resolve(parse(str(parse(text))), "cron") == kinds[cron]


@pytest.mark.parametrize(("gap", "overlap"), [*product(GAPS, OVERLAPS)])
def test_an_explicit_policy_overrules_the_class(gap: str, overlap: str) -> None:
    assert resolve(parse("* * * * *"), gap=gap, overlap=overlap) == Policy(
        Gap(gap), Overlap(overlap)
    )
    assert resolve(parse("* * * * *"), gap=gap).overlap is Overlap.BOTH
    assert resolve(parse("0 2 * * *"), overlap=overlap).gap is Gap.NEXT_VALID


def test_an_unknown_policy_is_refused_with_the_known_ones() -> None:
    cron = parse("* * * * *")
    with pytest.raises(InvalidSchedule, match="next_valid, shift, skip, prev_valid"):
        resolve(cron, gap="never")
    with pytest.raises(InvalidSchedule, match="auto, cron"):
        resolve(cron, "vixie")
    with pytest.raises(InvalidSchedule, match="first, second, both"):
        Timetable(cron, load_zone("UTC"), "skip", "twice")  # type: ignore[arg-type]  # the point


@pytest.mark.parametrize(
    ("gap", "at", "wall", "shifted"),
    [
        ("next_valid", "2026-03-08T07:00", "03:00:00-04:00", True),
        ("shift", "2026-03-08T07:30", "03:30:00-04:00", True),
        ("prev_valid", "2026-03-08T06:59", "01:59:00-05:00", True),
        ("skip", "2026-03-09T06:30", "02:30:00-04:00", False),
    ],
)
def test_an_occurrence_says_whether_a_gap_moved_it(
    gap: str, at: str, wall: str, *, shifted: bool
) -> None:
    timetable = table("30 2 * * *", NEW_YORK, gap)
    found = timetable.next(utc("2026-03-08T00:00"))
    assert found == utc(at)
    told = timetable.describe(found)
    assert (told.at, told.local, told.fold, told.shifted) == (
        found,
        f"{at[:10]}T{wall}",
        0,
        shifted,
    )


def test_an_occurrence_says_which_pass_it_is_in() -> None:
    timetable = table("30 1 1 11 *", NEW_YORK, overlap="both")
    passes = timetable.between(utc("2026-01-01T00:00"), utc("2026-12-31T00:00"))
    told = [timetable.describe(at) for at in passes]
    assert [each.fold for each in told] == [0, 1]
    assert [each.local[11:] for each in told] == ["01:30:00-04:00", "01:30:00-05:00"]
    assert not any(each.shifted for each in told)


def test_a_second_pass_may_begin_on_the_day_before() -> None:
    # St John's 2010: at 00:01 the clock went back to 23:01 of the day before
    timetable = table("0 0 7 11 *", "America/St_Johns", overlap="both")
    runs = [utc("2010-11-07T02:30"), utc("2010-11-07T03:30")]
    assert timetable.between(utc("2010-11-01T00:00"), utc("2010-12-01T00:00")) == runs
    assert timetable.previous(utc("2010-12-01T00:00")) == runs[1]
    assert timetable.previous(runs[1] - timedelta(seconds=1)) == runs[0]


def test_a_day_that_was_left_out_keeps_its_shifted_runs() -> None:
    # Apia went from 29 to 31 December 2011
    timetable = table("0 */6 30 12 *", "Pacific/Apia", "shift")
    runs = timetable.between(utc("2011-12-01T00:00"), utc("2012-01-15T00:00"))
    assert runs == [utc("2011-12-30T10:00") + timedelta(hours=6 * n) for n in range(4)]


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(UsageError, match=r"datetime\.now\(UTC\)"):
        table("* * * * *", "UTC").next(datetime(2026, 1, 1))  # noqa: DTZ001 - the point


def test_the_zone_of_the_question_makes_no_difference() -> None:
    timetable = table("30 2 * * *", NEW_YORK)
    asked = utc("2026-06-01T00:00")
    elsewhere = asked.astimezone(timezone(timedelta(hours=9, minutes=30)))
    assert timetable.next(asked) == timetable.next(elsewhere)
    assert timetable.previous(asked) == timetable.previous(elsewhere)


def test_fractions_of_a_second_are_neither_lost_nor_early() -> None:
    timetable = table("* * * * * *", "UTC")
    half = utc("2026-01-01T00:00:00.500")
    assert timetable.next(half) == utc("2026-01-01T00:00:01")
    assert timetable.previous(half) == utc("2026-01-01T00:00:00")
    before_1970 = utc("1969-12-31T23:59:58.500")
    assert timetable.next(before_1970) == utc("1969-12-31T23:59:59")


def test_time_ends_quietly_on_both_sides() -> None:
    timetable = table("0 0 1 1 *", "UTC")
    assert timetable.next(utc("2998-06-01T00:00")) == utc("2999-01-01T00:00")
    assert timetable.next(utc("2999-01-01T00:00")) is None
    assert timetable.next(utc("9999-12-31T23:59")) is None
    assert timetable.previous(utc("9999-12-31T23:59")) == utc("2999-01-01T00:00")
    assert timetable.next(utc("0001-01-02T00:00")) == utc("1900-01-01T00:00")
    assert timetable.previous(utc("1899-12-31T00:00")) is None
    years = table("0 0 0 1 1 * 2020-2022", NEW_YORK)
    assert years.next(utc("2023-01-01T00:00")) is None
    assert years.previous(utc("2019-01-01T00:00")) is None
    assert len(list(years.following(utc("2000-01-01T00:00")))) == 3


def test_between_takes_no_more_than_its_limit() -> None:
    timetable = table("* * * * *", "UTC")
    begin, end = utc("2026-01-01T00:00"), utc("2026-01-02T00:00")
    assert len(timetable.between(begin, end)) == 1440
    assert timetable.between(begin, end, 2) == [begin + timedelta(minutes=n) for n in (1, 2)]
    assert timetable.between(begin, end, 0) == []
    assert timetable.between(end, begin) == []


DAYS = [
    ("L * *", lambda day: (day + timedelta(days=1)).day == 1),
    ("L-3 * *", lambda day: (day + timedelta(days=4)).day == 1),
    ("L-30 * *", lambda day: day.day == 1 and (day + timedelta(days=30)).month == day.month),
    ("* * 5#3", lambda day: day.isoweekday() == 5 and 15 <= day.day <= 21),
    ("* * 0#5", lambda day: day.isoweekday() == 7 and day.day >= 29),
    ("* * 5L", lambda day: day.isoweekday() == 5 and (day + timedelta(days=7)).day <= 7),
    ("13 * 5", lambda day: day.day == 13 or day.isoweekday() == 5),
    ("*/2 * 1", lambda day: day.day % 2 == 1 and day.isoweekday() == 1),
    ("1 * */2", lambda day: day.day == 1 and day.isoweekday() % 7 in (0, 2, 4, 6)),
    ("*,10 * 2", lambda day: day.isoweekday() == 2),
    ("10,* * 2", lambda _: True),
    (
        "L * 1#1",
        lambda day: (day + timedelta(days=1)).day == 1 or (day.isoweekday() == 1 >= day.day - 6),
    ),
    ("31 2 1", lambda day: day.month == 2 and day.isoweekday() == 1),
    ("29 2 *", lambda day: (day.month, day.day) == (2, 29)),
    ("LW * *", lambda day: day == nearest_working_day(day, last_day(day))),
    ("1W * *", lambda day: day == nearest_working_day(day, 1)),
    ("15W 3-5 *", lambda day: day.month in (3, 4, 5) and day == nearest_working_day(day, 15)),
    ("31W * *", lambda day: last_day(day) == 31 and day == nearest_working_day(day, 31)),
]


def last_day(day: date) -> int:
    return ((day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)).day


def nearest_working_day(day: date, number: int) -> date:
    month = [day.replace(day=n) for n in range(1, last_day(day) + 1)]
    working = [each for each in month if each.isoweekday() <= 5]
    return min(working, key=lambda each: abs(each.day - number))


@pytest.mark.parametrize(("fields", "fits"), DAYS, ids=[case[0] for case in DAYS])
def test_a_day_field_names_the_days_that_counting_finds(fields: str, fits: object) -> None:
    begin = utc("2095-12-31T23:59")  # 2100 is no leap year
    runs = table(f"0 0 {fields}", "UTC").between(begin, utc("2109-01-01T00:00"))
    days = [date(2096, 1, 1) + timedelta(days=n) for n in range(13 * 365 + 4)]
    assert [at.date() for at in runs] == [day for day in days if fits(day)]


def test_schedules_of_the_same_times_of_day_share_them() -> None:
    crons = [parse(f"* * {day} {month} *") for day in range(1, 29) for month in range(1, 13)]
    zone = load_zone("UTC")
    tracemalloc.start()
    try:
        tables = [Timetable(cron, zone) for cron in crons]
        assert tracemalloc.get_traced_memory()[0] < len(tables) * 4_000  # alone one takes 50,000
    finally:
        tracemalloc.stop()
