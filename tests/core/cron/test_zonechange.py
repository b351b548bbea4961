"""New zone data loses no time of day and runs none twice."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise, takewhile
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from timeball.core.cron import Agenda, Policy, Terms, Zone, agenda, fingerprint, recompute
from timeball.core.cron.policy import Gap, Overlap
from timeball.core.cron.zone import BEGINNING

FACTS = json.loads((Path(__file__).parents[2] / "data" / "vancouver.json").read_text())
OLD, NEW = "2025b", "2026f"
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
CHANGE = datetime(2026, 11, 1, 9, tzinfo=UTC)  # by the old data only


def vancouver(version: str) -> Zone:
    changes = [(int(datetime.fromisoformat(at).timestamp()), to) for at, to in FACTS[version]]
    starts, offsets = zip((BEGINNING, -25200), *changes, strict=True)
    return Zone("America/Vancouver", starts, offsets, None, version)


def table(text: str, version: str, policy: Policy | None = None) -> Agenda:
    return agenda(Terms(expression=text), vancouver(version), policy, name="mail")


def test_the_fingerprint_changes_with_what_is_ahead_and_not_with_what_is_past() -> None:
    old, new = vancouver(OLD), vancouver(NEW)
    before = CHANGE - 30 * DAY
    assert fingerprint(old, before) != fingerprint(new, before)
    assert fingerprint(old, before, years=0) == fingerprint(new, before, years=0)
    assert fingerprint(old, datetime(2020, 1, 1, tzinfo=UTC), 5) == fingerprint(
        new, datetime(2020, 1, 1, tzinfo=UTC), 5
    )
    assert fingerprint(new, before) == fingerprint(new, before + 300 * DAY)


def walls_run(text: str, first: str, then: str, at: datetime, policy: Policy) -> list[datetime]:
    """What the wall showed at each run, where new data arrives at an instant."""
    begin, end = CHANGE - 9 * DAY, CHANGE + 9 * DAY
    before, after = table(text, first, policy), table(text, then, policy)
    ran = [each.at for each in takewhile(lambda due: due.at <= at, before.occurrences(begin))]
    cursor = recompute(after, ran[-1], before.wall(ran[-1]))
    later = [each.at for each in takewhile(lambda due: due.at <= end, after.occurrences(cursor))]
    return [*map(before.wall, ran), *map(after.wall, later)]


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), [(OLD, NEW), (NEW, OLD)])
@given(st.integers(0, 1439), st.timedeltas(-3 * DAY, 3 * DAY), st.sampled_from(Overlap))
@example(
    540, DAY + timedelta(hours=7, minutes=30), Overlap.FIRST
)  # 09:00 of 2 November, between both
@example(540, DAY + timedelta(hours=7, minutes=30), Overlap.BOTH)
@example(90, timedelta(minutes=-10), Overlap.SECOND)
@example(90, timedelta(minutes=-10), Overlap.BOTH)
def test_every_day_has_its_run_and_none_has_two(
    first: str, then: str, minute: int, around: timedelta, overlap: Overlap
) -> None:
    policy = Policy(Gap.NEXT_VALID, overlap)
    text = f"{minute % 60} {minute // 60} * * *"
    walls = walls_run(text, first, then, CHANGE + around, policy)
    apart = [later - wall for wall, later in pairwise(walls)]
    assert set(apart) <= {DAY, timedelta(0)}
    repeated = overlap is Overlap.BOTH and minute // 60 == 1
    assert apart.count(timedelta(0)) <= repeated
    assert len(walls) >= 17


@pytest.mark.slow
@pytest.mark.parametrize(("first", "then"), [(OLD, NEW), (NEW, OLD)])
@given(st.timedeltas(-3 * DAY, 3 * DAY))
def test_several_times_a_day_each_run_once(first: str, then: str, around: timedelta) -> None:
    policy = Policy(Gap.NEXT_VALID, Overlap.FIRST)
    walls = walls_run("15 5,6,7,8,9 * * *", first, then, CHANGE + around, policy)
    assert sorted(set(walls)) == walls
    assert {later - wall for wall, later in pairwise(walls)} == {HOUR, 20 * HOUR}


def test_counted_from_now_a_run_would_be_lost_and_from_the_cursor_one_would_come_twice() -> None:
    before, after = table("0 9 * * *", OLD), table("0 9 * * *", NEW)
    at = CHANGE + DAY + timedelta(hours=7, minutes=30)  # 08:30 by the old data, 09:30 by the new
    cursor = before.previous(at)
    assert cursor is not None
    assert after.next(at).date() != after.next(recompute(after, cursor, before.wall(cursor))).date()
    # The other way round the same 09:00 comes again an hour later
    cursor = after.previous(at)
    assert before.next(cursor) - cursor == HOUR
    assert before.next(recompute(before, cursor, after.wall(cursor))) - cursor == 25 * HOUR


@pytest.mark.parametrize("text", ["@every 7h", "*/15 * * * *"])
def test_what_goes_by_elapsed_time_goes_on_from_where_it_was(text: str) -> None:
    cursor = CHANGE + HOUR
    after = table(text, NEW)
    assert recompute(after, cursor, table(text, OLD).wall(cursor)) == cursor


@pytest.mark.parametrize("overlap", ["first", "second"])
def test_without_a_change_the_cursor_keeps_its_place(overlap: str) -> None:
    same = table("*/20 1-22 * * *", OLD, Policy(Gap.NEXT_VALID, Overlap(overlap)))
    for due in takewhile(lambda due: due.at < CHANGE + DAY, same.occurrences(CHANGE - DAY)):
        carried = recompute(same, due.at, same.wall(due.at))
        assert same.next(carried) == same.next(due.at)


def test_a_wall_time_that_new_data_leave_out_is_followed_by_the_end_of_the_gap() -> None:
    # The old data knew no gap there: the cursor's wall time, 02:10, does not exist any more
    spring = datetime(2026, 3, 8, 10, tzinfo=UTC)
    after = table("10,40 2 * * *", NEW, Policy(Gap.NEXT_VALID, Overlap.FIRST))
    shown = datetime.fromisoformat("2026-03-08T02:10")
    carried = recompute(after, spring + timedelta(minutes=10), shown)
    assert after.next(carried) == spring
