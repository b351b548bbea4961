"""What terms add to expressions: unions, exclusions, bounds and jitter, as plain sets have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice, pairwise, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.core.cron import (
    Agenda,
    Due,
    Gap,
    OnExcluded,
    Overlap,
    Policy,
    Terms,
    agenda,
    load_zone,
)
from timeball.errors import InvalidSchedule

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
DAY, HOUR, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)
MONTH = 40 * DAY
DAILY = Terms(expression="0 9 * * *")


def table(terms: Terms, zone: str = "UTC", policy: Policy | None = None, **more: object) -> Agenda:
    return agenda(terms, load_zone(zone, "package"), policy, name="tides", **more)  # type: ignore[arg-type]  # calendars


def all_of(found: Agenda, begin: datetime = BEGIN, reach: timedelta = MONTH) -> list[Due]:
    return list(takewhile(lambda due: due.at <= begin + reach, found.occurrences(begin)))


def days(found: Agenda, reason: str | None = None) -> list[str]:
    return [f"{due.at:%m-%d}" for due in all_of(found) if due.reason == reason]


# Exclusions


def test_an_excluded_occurrence_is_told_and_does_not_run() -> None:
    found = table(replace(DAILY, exclude=("2026-01-05", "2026-01-10/2026-01-12")))
    assert days(found, "excluded") == ["01-05", "01-10", "01-11", "01-12"]
    assert {due.at for due in all_of(found) if due.reason is None} == set(
        found.between(BEGIN, BEGIN + MONTH)
    )
    assert found.next(BEGIN + 9 * DAY) == BEGIN + 12 * DAY + 9 * HOUR
    assert found.previous(BEGIN + 12 * DAY) == BEGIN + 8 * DAY + 9 * HOUR


def test_an_expression_excludes_the_wall_times_that_it_names() -> None:
    hours = Terms(expression="0,30 * * * *", exclude=("0-29 2 * * *", "* 4 * * 6,0"))
    found = [due for due in all_of(table(hours), reach=5 * DAY) if due.reason]
    shown = [f"{due.at:%a %H:%M}" for due in found if due.at.hour == 4]
    assert shown == ["Sat 04:00", "Sat 04:30", "Sun 04:00", "Sun 04:30"]
    assert {f"{due.at:%H:%M}" for due in found if due.at.hour != 4} == {"02:00"}


def test_exclusions_go_by_the_zone_of_the_schedule() -> None:
    late = Terms(expression="0 23 * * *", exclude=("2026-01-05",))
    (out,) = [due.at for due in all_of(table(late, "America/New_York")) if due.reason]
    assert out == datetime(2026, 1, 6, 4, tzinfo=UTC)
    every = Terms(expression="@every 1h", exclude=("2026-01-05",))
    gone = [due.at for due in all_of(table(every, "America/New_York")) if due.reason]
    assert (len(gone), gone[0]) == (24, datetime(2026, 1, 5, 5, tzinfo=UTC))


@pytest.mark.slow  # the package is large
def test_holidays_are_those_of_the_place() -> None:
    spring = datetime(2026, 4, 1, tzinfo=UTC)
    for place, expected in (("DE-BY", [3, 6]), ("US", []), ("XNYS", [3])):
        found = table(replace(DAILY, exclude=(f"holidays:{place}",)))
        closed = [due.at.day for due in all_of(found, spring, 20 * DAY) if due.reason]
        assert closed == expected, place


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("holidays:", "names no place"),
        ("holidays:de-by", "names no place"),
        ("holidays:XX", "XX"),
        ("holidays:DE-XX", "XX"),
        ("holidays:../../etc", "names no place"),
        ("company", "no date, cron expression or calendar"),
        ("2026-02-30", "does not exist"),
        ("2026-01-01/2026-02-30", "does not exist"),
        ("2026-01-02/2026-01-01", "exchange the dates"),
        ("25.12.2026", "no date, cron expression or calendar"),
        ("0 0 30 2 *", "never comes due"),
        ("@every 5m", "nickname"),
        ("", "no date, cron expression or calendar"),
    ],
)
def test_what_excludes_nothing_is_refused(what: str, why: str) -> None:
    with pytest.raises(InvalidSchedule, match=why):
        table(replace(DAILY, exclude=(what,)))


def test_a_calendar_of_ones_own_has_a_name() -> None:
    closed = replace(DAILY, exclude=("company",))
    found = table(closed, calendars={"company": {date(2026, 1, 7)}.__contains__})
    assert days(found, "excluded") == ["01-07"]
    with pytest.raises(InvalidSchedule, match="known here: other"):
        table(closed, calendars={"other": lambda _: True})


@pytest.mark.slow
def test_what_excludes_everything_says_so_and_searches_no_thousand_years() -> None:
    for text in ("* * * * *", "0 9 * * *"):
        with pytest.raises(InvalidSchedule, match="exclude less"):
            table(replace(DAILY, exclude=(text,))).next(BEGIN)
    minutely = Terms(expression="* * * * * *", exclude=("2026-01-01/2026-03-31",))
    assert table(minutely).next(BEGIN) == datetime(2026, 4, 1, tzinfo=UTC)


def test_a_moved_occurrence_keeps_its_time_of_day() -> None:
    closed = ("2026-01-03/2026-01-05", "* * 10 1 *")
    later = table(Terms(expression="0 9 3,10 * *", exclude=closed, on_excluded=OnExcluded.NEXT))
    assert days(later) == ["01-06", "01-11", "02-03"]
    before = table(Terms(expression="0 9 5,10 * *", exclude=closed, on_excluded=OnExcluded.PREV))
    assert days(before) == ["01-02", "01-09", "02-05"]
    assert days(later, "excluded") == days(before, "excluded") == []


def test_a_moved_occurrence_is_resolved_where_it_lands() -> None:
    terms = Terms(expression="30 2 7 3 *", exclude=("2026-03-07",), on_excluded=OnExcluded.NEXT)
    found = table(terms, "America/New_York")
    (due,) = all_of(found, datetime(2026, 3, 1, tzinfo=UTC))
    assert due.at == datetime(2026, 3, 8, 7, tzinfo=UTC)
    assert found.describe(due.at).shifted


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"exclude": ("* 2 * * *",)}, "parts of days"),
        ({"any_of": ("@every 5m",), "exclude": ("2026-01-01",)}, "no time of day"),
    ],
)
def test_what_cannot_be_moved_is_refused(terms: dict, why: str) -> None:
    with pytest.raises(InvalidSchedule, match=why):
        table(replace(DAILY, on_excluded=OnExcluded.NEXT, **terms))


def test_a_year_without_an_open_day_is_no_place_to_move_to() -> None:
    closed = replace(DAILY, exclude=("2026-01-02/2028-01-02",), on_excluded=OnExcluded.NEXT)
    with pytest.raises(InvalidSchedule, match="exclude less"):
        list(islice(table(closed).occurrences(BEGIN), 3))


sets_of_days = st.frozensets(st.integers(0, 40), max_size=12)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.frozensets(st.integers(1, 31), min_size=1, max_size=8),
    st.frozensets(st.sampled_from([0, 9, 23]), min_size=1),
    sets_of_days,
    st.sampled_from(["next", "prev"]),
    st.integers(-1, 45 * 24),
)
def test_moving_is_what_moving_each_of_them_gives(
    on: frozenset[int], hours: frozenset[int], closed: frozenset[int], move: str, start: int
) -> None:
    def text(values: frozenset[int]) -> str:
        return ",".join(map(str, sorted(values)))

    shut = {(BEGIN + n * DAY).date() for n in closed}
    terms = Terms(
        expression=f"0 {text(hours)} {text(on)} * *",
        exclude=tuple(map(str, shut)),
        on_excluded=OnExcluded(move),
    )
    wanted = set()
    for n in range(-60, 120):
        day = BEGIN + n * DAY
        if day.day in on:
            while day.date() in shut:
                day += DAY if move == "next" else -DAY
            wanted |= {day + hour * HOUR for hour in hours}
    after = BEGIN + start * HOUR
    until = BEGIN + 60 * DAY
    found = table(terms)
    expected = sorted(at for at in wanted if after < at <= until)
    assert found.between(after, until) == expected
    assert [due.at for due in all_of(found, after, until - after)] == expected
    assert backwards(found, after, until) == expected[::-1]


def backwards(found: Agenda, after: datetime, until: datetime) -> list[datetime]:
    seen, at = [], found.previous(until)
    while at is not None and at > after:
        seen.append(at)
        at = found.previous(at - SECOND)
    return seen


# Unions, bounds


@pytest.mark.slow
@given(
    st.lists(
        st.sampled_from(
            ["0 9 * * *", "*/30 1-3 * * *", "@every 7h", "30 2 * * 0", "5 2 8 3 *", "@hourly"]
        ),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(list(Gap)),
    st.sampled_from(list(Overlap)),
    st.sampled_from([datetime(2026, 3, 7, tzinfo=UTC), datetime(2026, 10, 31, tzinfo=UTC)]),
    st.integers(0, 72),
    st.integers(0, 72),
)
def test_a_union_within_bounds_is_what_sets_have(
    expressions: list[str], gap: Gap, overlap: Overlap, begin: datetime, start: int, length: int
) -> None:
    policy, zone = Policy(gap, overlap), "America/New_York"
    start_at, end_at = begin + start * HOUR, begin + (start + length) * HOUR
    single = [table(Terms(expression=text), zone, policy) for text in expressions]
    wanted = set().union(*(each.between(begin, begin + 4 * DAY) for each in single))
    first, *rest = expressions
    found = table(
        Terms(expression=first, any_of=tuple(rest), start_at=start_at, end_at=end_at), zone, policy
    )
    expected = sorted(at for at in wanted if start_at <= at <= end_at)
    assert found.between(begin, begin + 4 * DAY) == expected
    assert backwards(found, begin, begin + 4 * DAY) == expected[::-1]
    told = all_of(found, begin, 4 * DAY)
    assert [due.at for due in told if due.reason is None] == expected
    assert all(start_at <= due.at <= end_at for due in told)
    assert found.next(end_at) is None


def test_fractions_of_a_bound_let_nothing_through() -> None:
    nine = BEGIN + 9 * HOUR
    late = table(replace(DAILY, start_at=nine + timedelta(milliseconds=1)))
    assert late.next(BEGIN) == nine + DAY
    early = table(replace(DAILY, end_at=nine - timedelta(milliseconds=1)))
    assert early.next(BEGIN) is None
    assert table(replace(DAILY, start_at=nine, end_at=nine)).between(BEGIN, BEGIN + MONTH) == [nine]


def test_an_occurrence_of_two_expressions_is_as_plain_as_the_plainer_of_them() -> None:
    both = Terms(expression="30 2 * * *", any_of=("0 3 * * *",))
    found = table(both, "America/New_York")
    seven = datetime(2026, 3, 8, 7, tzinfo=UTC)
    assert [due.at for due in all_of(found, seven - HOUR, HOUR)] == [seven]
    assert not found.describe(seven).shifted


# Gaps


def skipping(text: str, zone: str) -> Agenda:
    return table(Terms(expression=text), zone, Policy(Gap.SKIP, Overlap.BOTH))


def test_a_wall_time_that_a_gap_leaves_out_is_told_once() -> None:
    found = skipping("15,45 2 * * *", "America/New_York")
    begin = datetime(2026, 3, 8, tzinfo=UTC)
    shown = [(f"{due.at:%d %H:%M}", due.reason) for due in all_of(found, begin, 36 * HOUR)]
    assert shown == [
        ("08 07:15", "gap"),
        ("08 07:45", "gap"),
        ("09 06:15", None),
        ("09 06:45", None),
    ]
    assert found.describe(begin + timedelta(hours=7, minutes=15)).shifted


@pytest.mark.parametrize("text", ["0 * * * *", "*/15 * * * *", "* * * * *", "@every 10m"])
def test_an_unbroken_rhythm_leaves_nothing_out(text: str) -> None:
    begin = datetime(2026, 3, 8, tzinfo=UTC)
    told = all_of(skipping(text, "America/New_York"), begin, DAY)
    assert {due.reason for due in told} == {None}
    assert len({later.at - due.at for due, later in pairwise(told)}) == 1


@pytest.mark.slow
@given(
    st.sampled_from(["30 2 * * *", "0 0 * * *", "0,20 0-3 * * *", "0 * * * *"]),
    st.sampled_from(["America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo"]),
    st.integers(0, 16_000),
)
def test_those_told_as_gaps_are_what_shifting_would_add(text: str, zone: str, day: int) -> None:
    begin = datetime(1985, 1, 1, tzinfo=UTC) + day * DAY
    both = [
        set(
            table(Terms(expression=text), zone, Policy(gap, Overlap.BOTH)).between(
                begin, begin + 3 * DAY
            )
        )
        for gap in (Gap.SKIP, Gap.SHIFT)
    ]
    told = all_of(skipping(text, zone), begin, 3 * DAY)
    assert {due.at for due in told if due.reason == "gap"} == both[1] - both[0]
    assert {due.at for due in told if due.reason is None} == both[0]


# Jitter


@pytest.mark.slow
@given(
    st.text(max_size=20),
    st.integers(0, 86_400),
    st.sampled_from(["0 9 * * *", "* * * * *", "@every 90s", "0,1 2 * * *", "* * * * * *"]),
)
def test_jitter_is_below_the_distance_and_the_same_for_everybody(
    name: str, jitter_s: int, text: str
) -> None:
    def made() -> Iterator[Due]:
        terms = Terms(expression=text, jitter_s=jitter_s, exclude=("* * * * 3",))
        return agenda(terms, load_zone("America/New_York"), name=name).occurrences(BEGIN)

    seen = list(islice(made(), 50))
    assert seen == list(islice(made(), 50))
    for due, later in pairwise(seen):
        assert timedelta(0) <= due.due_at - due.at <= timedelta(seconds=jitter_s)
        assert due.due_at < later.at <= later.due_at


def test_the_delay_of_one_occurrence_is_that_of_the_row() -> None:
    found = table(replace(DAILY, jitter_s=3600, any_of=("0 10 * * 1",)))
    for due in all_of(found):
        assert found.delay(due.at) == due.due_at - due.at
    assert len({due.due_at - due.at for due in all_of(found)}) > 30
    assert table(DAILY).delay(BEGIN + 9 * HOUR) == timedelta(0)
    last = table(replace(DAILY, jitter_s=3600, end_at=BEGIN + 9 * HOUR))
    due = last.next_due(BEGIN)
    assert due is not None
    assert timedelta(0) <= due.due_at - due.at <= HOUR
    assert last.next_due(due.at) is None


def test_two_names_do_not_run_at_one_moment() -> None:
    terms = replace(DAILY, jitter_s=3600)
    zone = load_zone("UTC")
    delays = {agenda(terms, zone, name=f"job {n}").delay(BEGIN + 9 * HOUR) for n in range(100)}
    assert len(delays) > 80


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3000), st.integers(0, 3000))
def test_no_occurrence_depends_on_where_the_asking_starts(early: int, later: int) -> None:
    terms = Terms(
        expression="H H(0-3) * * *",
        any_of=("@every 5h", "@calendar every 3 days at 02:30"),
        exclude=("* * * * 2", "2026-03-08"),
        jitter_s=600,
    )
    found = table(terms, "America/New_York", Policy(Gap.SKIP, Overlap.BOTH))
    begins = sorted(datetime(2026, 3, 5, tzinfo=UTC) + timedelta(minutes=m) for m in (early, later))
    end = begins[1] + 4 * DAY
    wide, narrow = (all_of(found, begin, end - begin) for begin in begins)
    assert narrow == [due for due in wide if due.at > begins[1]]
    running = takewhile(lambda due: due.at <= end, found.runs(begins[1]))
    assert list(running) == [due for due in narrow if due.reason is None]
