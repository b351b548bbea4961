"""2,000 schedules at random against two engines that share nothing with ours.

One asks `zoneinfo` what becomes of each wall time by PEP 495's rule for folds, the other asks
`whenever`, which has its own reader of zone data. Neither knows stretches or cursors.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from zoneinfo import ZoneInfo

import pytest
import whenever
from tests.core.cron.oracle import (
    ENDS,
    EPOCH,
    GAPS,
    MODERN,
    NAMES,
    OVERLAPS,
    SETTLED,
    Plan,
    reference_zone,
    table,
)

from timeball.core.cron import load_zone

SEEDS, CASES_OF_SEED = 20, 100
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
REACH = 2 * DAY
ZERO = timedelta(0)
pytestmark = pytest.mark.slow


def plan_of(draw: random.Random) -> Plan:
    minutes = draw.choice([range(60), range(0, 60, 15), draw.sample(range(60), 2), [30], [0]])
    hours = draw.choice([range(24), range(4), draw.sample(range(24), 3), [2], [1], [0], [23]])
    weekdays = draw.choice([range(7), range(1, 6), draw.sample(range(7), 3)])
    texts = (",".join(map(str, sorted(values))) for values in (minutes, hours, weekdays))
    minute, hour, weekday = texts
    kept = frozenset(weekdays)
    text = f"{minute} {hour} * * {weekday}"
    return Plan(text, frozenset(minutes), frozenset(hours), lambda d: d.isoweekday() % 7 in kept)


def case_of(draw: random.Random, ends: int = ENDS) -> tuple[Plan, str, datetime]:
    name = draw.choice(NAMES)
    seams = [at for at in load_zone(name, "package").starts if MODERN < at < ends]
    near_one = seams and draw.random() < 0.8  # where nothing jumps there is little to differ in
    at = draw.choice(seams) if near_one else draw.randrange(MODERN, ends)
    begin = EPOCH + timedelta(seconds=at + draw.randrange(-100_000, 60_000))
    return plan_of(draw), name, begin


def walls(plan: Plan, begin: datetime) -> Iterator[datetime]:
    """Yield the wall times that a plan names in the days around an instant, without a zone."""
    midnight = begin.replace(hour=0, minute=0, second=0, microsecond=0, tzinfo=None)
    for days in range(-2, 5):
        day = midnight + days * DAY
        if plan.days(day.date()):
            for hour, minute in product(sorted(plan.hours), sorted(plan.minutes)):
                yield day + timedelta(hours=hour, minutes=minute)


def by_folds(wall: datetime, zone: ZoneInfo, gap: str, overlap: str) -> set[datetime]:
    early, late = (wall.replace(tzinfo=zone, fold=fold).astimezone(UTC) for fold in (0, 1))
    if early <= late:
        return set({"first": [early], "second": [late]}.get(overlap, [early, late]))
    if gap in ("skip", "shift"):
        return {early} if gap == "shift" else set()
    # A wall time in a gap reads as two instants, one on either side of it: halve the way between
    low, high = late, early
    before = low.astimezone(zone).utcoffset()
    while high - low > SECOND:
        middle = low + (high - low) // SECOND // 2 * SECOND
        low, high = (
            (middle, high) if middle.astimezone(zone).utcoffset() == before else (low, middle)
        )
    if gap == "next_valid":
        return {high}
    last = low.astimezone(zone)
    return {low - timedelta(seconds=last.second)}


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_schedule_at_random_comes_due_as_folds_say(seed: int) -> None:
    draw = random.Random(f"folds {seed}")
    for _ in range(CASES_OF_SEED):
        plan, name, begin = case_of(draw)
        policy = draw.choice(GAPS), draw.choice(OVERLAPS)
        zone = reference_zone(name)
        expected = set().union(*(by_folds(wall, zone, *policy) for wall in walls(plan, begin)))
        wanted = sorted(at for at in expected if begin < at <= begin + REACH)
        found = table(plan.text, name, *policy).between(begin, begin + REACH)
        assert set(found) ^ set(wanted) == set(), (plan.text, name, begin, policy)
        assert found == wanted, (plan.text, name, begin, policy)


def by_whenever(wall: datetime, name: str, gap: str, overlap: str) -> set[datetime]:
    plain = whenever.PlainDateTime(wall.year, wall.month, wall.day, wall.hour, wall.minute)

    def at(rule: str) -> datetime:
        return plain.assume_tz(name, disambiguation=rule).to_instant().to_stdlib()

    try:
        return {at("raise")}
    except whenever.SkippedTime:
        return {at("compatible")} if gap == "shift" else set()
    except whenever.RepeatedTime:
        return {
            at(rule)
            for rule in {"first": ["earlier"], "second": ["later"]}.get(
                overlap, ["earlier", "later"]
            )
        }


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_schedule_at_random_comes_due_as_whenever_says(seed: int) -> None:
    draw = random.Random(f"whenever {seed}")
    for _ in range(CASES_OF_SEED):
        plan, name, begin = case_of(draw, SETTLED)
        policy = draw.choice(["skip", "shift"]), draw.choice(OVERLAPS)
        expected = set().union(*(by_whenever(wall, name, *policy) for wall in walls(plan, begin)))
        wanted = sorted(at for at in expected if begin < at <= begin + REACH)
        found = table(plan.text, name, *policy).between(begin, begin + REACH)
        assert set(found) ^ set(wanted) == set(), (plan.text, name, begin, policy)
        assert found == wanted, (plan.text, name, begin, policy)
