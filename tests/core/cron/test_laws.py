"""Laws of the cron engine over all zones, and its equality with brute force."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise

import pytest
import whenever
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.core.cron.oracle import (
    GAPS,
    NAMES,
    OVERLAPS,
    SETTLED,
    Plan,
    instants,
    plans,
    reference_zone,
    scan,
    seams,
    table,
)

from timeball.core.cron import load_zone

SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
pytestmark = pytest.mark.slow
TEXTS = plans().map(lambda plan: plan.text) | st.sampled_from(
    ["0 0 L * *", "0 0 29 2 *", "30 1 * * 0#1", "*/7 * * * *", "15 30 2 * * *", "*/20 59 1,2 * * *"]
)
POLICIES = st.tuples(st.sampled_from(GAPS), st.sampled_from(OVERLAPS))


@settings(max_examples=200, deadline=None)
@given(plans(), seams(), POLICIES)
def test_the_engine_equals_a_scan_of_every_minute(
    plan: Plan, seam: tuple[str, datetime], policy: tuple[str, str]
) -> None:
    name, begin = seam
    end = begin + DAY
    found = table(plan.text, name, *policy).between(begin, end)
    assert found == scan(plan, name, begin, end, policy)


@given(st.integers(0, 23), st.integers(0, 59), seams(SETTLED), st.sampled_from(["first", "second"]))
def test_shift_is_what_whenever_calls_compatible(
    hour: int, minute: int, seam: tuple[str, datetime], overlap: str
) -> None:
    name, at = seam
    found = table(f"{minute} {hour} * * *", name, "shift", overlap).between(at, at + 2 * DAY)
    rule = {"first": "compatible", "second": "later"}[overlap]
    zone, expected = reference_zone(name), set()
    for days in range(-2, 5):
        day = (at.astimezone(zone) + days * DAY).date()
        wall = whenever.PlainDateTime(day.year, day.month, day.day, hour, minute)
        # "later" of a gap is the same as "compatible": the offset before it
        expected.add(wall.assume_tz(name, disambiguation=rule).to_instant().to_stdlib())
    assert found == sorted(each for each in expected if at < each <= at + 2 * DAY)


@given(TEXTS, seams(), POLICIES)
def test_time_goes_forward_and_previous_undoes_next(
    text: str, seam: tuple[str, datetime], policy: tuple[str, str]
) -> None:
    timetable = table(text, seam[0], *policy)
    at = seam[1]
    for _ in range(5):
        later = timetable.next(at)
        assert later is not None
        assert later > at
        assert timetable.previous(later) == later
        before = timetable.previous(later - SECOND)
        assert before is None or before <= at
        assert before is None or timetable.next(before) == later
        at = later


@given(TEXTS, seams(), POLICIES, st.integers(0, 86_400))
def test_what_comes_due_does_not_depend_on_where_the_asking_starts(
    text: str, seam: tuple[str, datetime], policy: tuple[str, str], back_s: int
) -> None:
    name, begin = seam
    timetable = table(text, name, *policy)
    wide = timetable.between(begin - timedelta(seconds=back_s), begin + DAY)
    assert timetable.between(begin, begin + DAY) == [at for at in wide if at > begin]


@given(plans(), seams(), POLICIES)
def test_what_no_gap_moved_matches_the_wall_clock(
    plan: Plan, seam: tuple[str, datetime], policy: tuple[str, str]
) -> None:
    name, begin = seam
    timetable = table(plan.text, name, *policy)
    for at in timetable.between(begin, begin + DAY, 200):
        wall = at.astimezone(reference_zone(name))
        told = timetable.describe(at)
        assert told.shifted == (not plan.names(wall) or wall.second != 0)
        assert told.local == wall.isoformat()
        assert told.fold == wall.fold


@given(TEXTS, seams(), st.sampled_from(GAPS))
def test_first_and_second_together_are_both(
    text: str, seam: tuple[str, datetime], gap: str
) -> None:
    name, begin = seam
    runs = {
        overlap: set(table(text, name, gap, overlap).between(begin, begin + DAY))
        for overlap in OVERLAPS
    }
    assert runs["first"] | runs["second"] == runs["both"]


@given(TEXTS, seams(), st.sampled_from(OVERLAPS))
def test_every_policy_for_gaps_only_adds_to_skip(
    text: str, seam: tuple[str, datetime], overlap: str
) -> None:
    name, begin = seam
    runs = [set(table(text, name, gap, overlap).between(begin, begin + DAY)) for gap in GAPS]
    skip = set(table(text, name, "skip", overlap).between(begin, begin + DAY))
    assert all(skip <= each for each in runs)


@given(TEXTS, st.sampled_from(NAMES), instants())
def test_policies_agree_away_from_transitions(text: str, name: str, at: datetime) -> None:
    zone = load_zone(name, "package")
    seconds = int(at.timestamp())
    if zone.index(seconds - 2 * 86_400) == zone.index(seconds + 3 * 86_400):
        runs = {
            tuple(table(text, name, gap, overlap).between(at, at + DAY))
            for gap in GAPS
            for overlap in OVERLAPS
        }
        assert len(runs) == 1


@given(st.integers(0, 1439), st.integers(0, 1439), seams())
def test_next_valid_never_puts_one_job_before_another(
    one: int, other: int, seam: tuple[str, datetime]
) -> None:
    name, begin = seam
    early, late = sorted((one, other))
    runs = [
        table(f"{time % 60} {time // 60} * * *", name, "next_valid", "first")
        for time in (early, late)
    ]
    # from one midnight (or what stands for it) on, the earlier time is never the later run
    midnight = table("0 0 * * *", name, "next_valid", "first").next(begin)
    assert midnight is not None
    first, second = (each.next(midnight - SECOND) for each in runs)
    assert first is not None
    assert second is not None
    assert first <= second


@given(st.integers(0, 59), seams())
def test_a_schedule_of_every_hour_keeps_its_cadence(
    minute: int, seam: tuple[str, datetime]
) -> None:
    name, begin = seam
    zone = load_zone(name, "package")
    near = range(zone.index(int(begin.timestamp())), zone.index(int((begin + DAY).timestamp())) + 2)
    offsets = {zone.offsets[i] for i in near if i < len(zone.offsets)}
    if len({offset % 3600 for offset in offsets}) == 1:  # jumps of whole hours
        runs = table(f"{minute} * * * *", name).between(begin, begin + DAY)
        assert len(runs) == 24
        assert {b - a for a, b in pairwise(runs)} == {HOUR}


@given(st.integers(0, 1439), seams())
def test_a_single_time_comes_due_once_for_each_local_day(
    minute: int, seam: tuple[str, datetime]
) -> None:
    name, at = seam
    zone, ends = load_zone(name, "package"), (at - 20 * DAY, at + 20 * DAY)
    seconds = [int(each.timestamp()) for each in ends]
    for each in seconds:
        assume(zone.index(each - 2 * 86_400) == zone.index(each + 2 * 86_400))
    offsets = zone.offsets[zone.index(seconds[0]) : zone.index(seconds[1]) + 1]
    assume(max(offsets) - min(offsets) < 86_400)  # no day is left out whole
    first, last = ((each + zone.offset(each) - minute * 60) // 86_400 for each in seconds)
    runs = table(f"{minute % 60} {minute // 60} * * *", name).between(*ends)
    assert len(runs) == last - first


@given(TEXTS, st.sampled_from([n for n in NAMES if load_zone(n, "package").alias_of]), instants())
def test_an_alias_means_its_target(text: str, alias: str, at: datetime) -> None:
    target = load_zone(alias, "package").alias_of
    assert target is not None
    assert table(text, alias).between(at, at + DAY, 20) == table(text, target).between(
        at, at + DAY, 20
    )
