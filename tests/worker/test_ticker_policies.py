"""What a schedule says of its occurrences is what a ticker does about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.store.conftest import STORES
from tests.store.world import NOON, World, end, schedule
from tests.worker.recount import decided

from timeball.client.specs import agenda_of
from timeball.core.audit import audit_schedules
from timeball.core.standing import standing
from timeball.observe.families import CRON_DECISIONS
from timeball.worker.ticker import Ticker

MINUTE = timedelta(minutes=1)
COUNTED: Counter[tuple[str, ...]] = Counter()


def count(schedule: str, decision: str, count: int) -> None:
    COUNTED[CRON_DECISIONS.name, schedule, decision] += count


@pytest.fixture(params=STORES)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """An empty store, in which every occurrence is decided once, and counted once."""
    world = STORES[request.param](request)
    COUNTED.clear()
    yield world
    assert decided(world.store.schedule_histories()) == COUNTED
    specs = {each.spec.name: each.spec for each in world.store.schedules()}
    found = audit_schedules(
        world.store.schedule_histories(),
        lambda s: (due.at for due in agenda_of(specs[s.name]).occurrences(s.activated_at)),
    )
    violations = [*world.violations(), *map(str, found)]
    world.close()
    assert violations == []


def declare(world: World, **fields) -> None:
    spec = schedule("minute", **{"expression": "* * * * *", **fields})
    world.store.declare(spec, standing(agenda_of(spec), world.store.now()))


def tick(world: World) -> int:
    ticker, jobs = Ticker(world.store, told=count), 0
    while True:
        made = ticker.tick()
        jobs += made.jobs
        if made.rest_s:
            return jobs


def told(world: World) -> list[str | None]:
    return [each.reason for each in reversed(world.store.occurrences("minute", limit=1_000))]


@pytest.mark.parametrize(
    ("policy", "jobs", "reasons"),
    [
        ("allow", [1, 1, 1, 1], [None, None, None, None]),
        ("skip", [1, 0, 0, 1], [None, "overlap", "overlap", None]),
        ("queue_one", [1, 1, 0, 1], [None, None, "overlap", None]),
        ("replace", [1, 1, 1, 1], [None, None, None, None]),
    ],
)
def test_a_job_that_takes_longer_than_its_interval(
    world: World, policy: str, jobs: list[int], reasons: list[str | None]
) -> None:
    """The job of 12:01 ends shortly before 12:04."""
    declare(world, overlap_runs=policy)
    worker, added = world.worker(), []
    world.travel(60)
    added.append(tick(world))
    (turn,) = world.claim(worker)
    for _ in range(2):
        world.travel(60)
        added.append(tick(world))
    world.travel(59)
    world.settle(worker, end(turn))
    world.travel(1)
    added.append(tick(world))
    assert (added, told(world)) == (jobs, reasons)


def test_a_queued_run_starts_with_the_tick_after_the_run_before_it_ended(world: World) -> None:
    declare(world, overlap_runs="queue_one")
    worker = world.worker()
    world.travel(60)
    tick(world)
    (first,) = world.claim(worker)
    world.travel(60)
    tick(world)
    assert world.claim(worker) == []
    world.settle(worker, end(first))
    tick(world)
    (second,) = world.claim(worker)
    assert world.job(second).args["__occurrence__"]["nominal_at"] == (
        (NOON + 2 * MINUTE).isoformat()
    )


def test_a_loop_that_stalls_for_two_seconds_loses_nothing(world: World) -> None:
    declare(world, expression="* * * * * *", catchup="all")
    world.travel(2)
    assert tick(world) == 2
    world.travel(3)
    assert tick(world) == 3


@pytest.mark.parametrize(
    ("fields", "reasons"),
    [
        ({"catchup": "last"}, ["superseded"] * 4 + [None]),
        ({"catchup": "all"}, [None] * 5),
        ({"catchup": "all", "catchup_limit": 2}, ["limit"] * 3 + [None] * 2),
        ({"catchup": "all", "catchup_window_s": 130.0}, ["window"] * 2 + [None] * 3),
        ({"catchup": "none"}, ["missed"] * 3 + [None] * 2),
        ({"catchup": "none", "grace_s": 0.0}, ["missed"] * 4 + [None]),
    ],
)
def test_what_was_missed_is_caught_up_as_the_schedule_says(
    world: World, fields: dict, reasons: list[str | None]
) -> None:
    declare(world, **fields)
    world.travel(300)
    tick(world)
    assert told(world) == reasons


def test_jitter_delays_an_occurrence_and_does_not_move_it(world: World) -> None:
    declare(world, terms='{"jitter_s":50}')
    due_at = world.store.schedule("minute").due_at
    assert due_at is not None
    delay_s = (due_at - NOON - MINUTE).total_seconds()
    assert 0 < delay_s < 60
    world.travel(60 + delay_s - 1)
    assert tick(world) == 0
    world.travel(1)
    assert tick(world) == 1
    (one,) = world.store.occurrences("minute", limit=10)
    assert (one.nominal_at, one.decided_at) == (NOON + MINUTE, due_at)


def test_an_excluded_occurrence_is_on_record_with_its_reason(world: World) -> None:
    declare(world, terms='{"exclude":["2 * * * *"]}')
    for _ in range(3):
        world.travel(60)
        tick(world)
    assert told(world) == [None, "excluded", None]


def test_the_next_occurrence_that_is_told_is_one_that_runs(world: World) -> None:
    declare(world, terms='{"exclude":["1 * * * *"]}')
    held = world.store.schedule("minute")
    assert (held.next_at, held.due_at) == (NOON + 2 * MINUTE, NOON + MINUTE)


def test_a_schedule_ends_after_the_runs_it_was_given(world: World) -> None:
    declare(world, terms='{"max_runs":2}', catchup="all", overlap_runs="skip")
    added = []
    for _ in range(4):
        world.travel(60)
        added.append(tick(world))
        worker = world.worker()
        world.settle(worker, *(end(turn) for turn in world.claim(worker)))
    assert added == [1, 1, 0, 0]
    assert world.store.schedule("minute").next_at is None


def test_a_schedule_ends_when_its_time_is_over(world: World) -> None:
    declare(world, terms='{"end_at":"2026-03-01T12:02:00+00:00"}')
    for _ in range(4):
        world.travel(60)
        tick(world)
    assert told(world) == [None, None]
    assert world.store.schedule("minute").next_at is None


@pytest.mark.slow
def test_many_old_schedules_are_caught_up_a_bounded_number_at_a_time(world: World) -> None:
    for n in range(4):
        spec = schedule(f"old-{n}", expression="* * * * *")
        world.store.declare(spec, standing(agenda_of(spec), world.store.now()))
    world.travel(3_000 * 60)
    ticker = Ticker(world.store, told=count)
    assert ticker.tick().rest_s == 0
    rows = [list(rows) for _, rows in world.store.schedule_histories()]
    assert sorted(map(len, rows)) == [0, 0, 1_000, 1_000]
    while ticker.tick().rest_s == 0:
        pass
    rows = [list(rows) for _, rows in world.store.schedule_histories()]
    assert [len(each) for each in rows] == [3_000] * 4
