"""What a program does with schedules, on every store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.client.jobs import add, once
from tests.store.conftest import STORES
from tests.store.world import NOON, World

import timeball as tb
from timeball.client.schedules import BACKFILL_MAX
from timeball.client.specs import agenda_of
from timeball.core.audit import audit_schedules
from timeball.core.records import Decision, Delivery, Standing
from timeball.core.states import State
from timeball.errors import InvalidSchedule, ScheduleNotFound, UsageError
from timeball.store.base import JobFilter
from timeball.worker.ticker import Ticker

HOUR = timedelta(hours=1)


@pytest.fixture(params=STORES)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """An empty store; whatever the test did, each occurrence was decided once."""
    world = STORES[request.param](request)
    yield world
    agendas = {each.spec.name: agenda_of(each.spec) for each in world.store.schedules()}
    histories = [(s, list(rows)) for s, rows in world.store.schedule_histories()]
    kept = [(s, rows) for s, rows in histories if s.name in agendas]
    found = audit_schedules(
        kept, lambda s: (due.at for due in agendas[s.name].occurrences(s.activated_at))
    )
    violations = [*world.violations(), *map(str, found)]
    world.close()
    assert violations == []


@pytest.fixture
def client(world: World) -> tb.Client:
    return tb.Client(world.store)


def hourly(client: tb.Client, **options) -> None:
    client.schedule("sums", add, cron="0 * * * *", tz="UTC", args={"a": 1}, **options)


def told(client: tb.Client) -> list[tuple[int, str | None]]:
    """The hours after noon that were decided, and why they did not run; earliest first."""
    found = reversed(client.occurrences("sums", limit=1_000))
    return [(int((each.nominal_at - NOON) / HOUR), each.reason) for each in found]


def jobs(client: tb.Client) -> int:
    return len(client.store.jobs(JobFilter(limit=1_000)))


def test_a_schedule_carries_all_that_was_said_of_it(client: tb.Client) -> None:
    end_at = datetime(2027, 1, 1, tzinfo=UTC)
    hourly(
        client,
        any_of=["30 6 * * *"],
        exclude=["2026-12-25"],
        end_at=end_at,
        max_runs=9,
        jitter_s=20,
        catchup="all",
        catchup_window_s=60,
        catchup_limit=5,
        grace_s=3,
        overlap_runs="skip",
        priority=2,
        source="here",
    )
    spec = client.get_schedule("sums").spec
    agenda = agenda_of(spec)
    assert (agenda.terms.max_runs, agenda.terms.jitter_s, agenda.terms.end_at) == (9, 20, end_at)
    assert agenda.terms.exclude == ("2026-12-25",)
    assert (spec.catchup, spec.catchup_window_s, spec.catchup_limit) == ("all", 60, 5)
    assert (spec.grace_s, spec.overlap_runs, spec.priority, spec.source) == (3, "skip", 2, "here")
    assert (spec.kind, spec.queue, spec.max_retries, spec.timeout_s) == (
        ("client.add", "sums", 2, 9.0)
    )


def test_what_a_kind_says_of_deaths_holds_for_its_occurrences(
    client: tb.Client, world: World
) -> None:
    client.schedule("once", once, cron="0 * * * *", tz="UTC")
    world.travel(3_600)
    Ticker(world.store).tick()
    (history,) = world.store.histories()
    assert (history.delivery, history.max_retries) == (Delivery.AT_MOST_ONCE, 0)


def test_new_terms_count_from_now_on(client: tb.Client, world: World) -> None:
    hourly(client)
    world.travel(2 * 3_600)
    hourly(client, exclude=["2026-03-02"])
    assert client.get_schedule("sums").next_at == NOON + 3 * HOUR


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"overlap_runs": "never"}, "'allow', 'skip', 'queue_one' or 'replace'"),
        ({"catchup": "some"}, "'last', 'none' or 'all'"),
        ({"catchup_limit": 0}, "a whole number from 1"),
        ({"catchup_window_s": -1}, "write seconds"),
        ({"grace_s": "1"}, "write seconds"),
        ({"jitter_s": -1}, "jitter_s"),
        ({"exclude": "2026-12-25"}, "a list of texts"),
        ({"exclude": ["someday"]}, "someday"),
        ({"end_at": datetime(1999, 1, 1, tzinfo=UTC), "start_at": NOON}, "exchange"),
        ({"end_at": datetime(1969, 1, 1, tzinfo=UTC)}, "never comes due"),
    ],
)
def test_a_wrong_option_is_told_with_what_to_write(options: dict, advice: str) -> None:
    client = tb.Client(STORES["memory"](None).store)  # type: ignore[arg-type]  # asks for nothing
    with pytest.raises(UsageError, match=advice):
        hourly(client, **options)
    assert client.schedules() == []


# Pausing


def test_what_came_during_a_pause_is_dropped_and_says_so(client: tb.Client, world: World) -> None:
    hourly(client)
    client.pause_schedule("sums")
    world.travel(3 * 3_600)
    assert Ticker(world.store).tick().jobs == 0
    client.resume_schedule("sums")
    assert told(client) == [(1, "paused"), (2, "paused"), (3, "paused")]
    world.travel(3_600)
    assert Ticker(world.store).tick().jobs == 1


def test_what_came_during_a_pause_runs_if_it_is_asked_for(client: tb.Client, world: World) -> None:
    hourly(client)
    client.pause_schedule("sums")
    world.travel(3 * 3_600)
    client.resume_schedule("sums", backfill=True)
    assert told(client) == [(1, None), (2, None), (3, None)]
    assert jobs(client) == 3


def test_a_long_pause_is_recorded_in_steps(client: tb.Client, world: World) -> None:
    client.schedule("sums", add, cron="* * * * *", tz="UTC", args={"a": 1})
    client.pause_schedule("sums")
    world.travel(2_500 * 60)
    client.resume_schedule("sums")
    world.travel(60)
    assert Ticker(world.store).tick().jobs == 1
    ((_, rows),) = world.store.schedule_histories()
    assert [row.reason for row in rows] == ["paused"] * 2_500 + [None]


def test_a_backfilled_pause_heeds_how_runs_overlap(client: tb.Client, world: World) -> None:
    hourly(client, overlap_runs="skip")
    client.pause_schedule("sums")
    world.travel(3 * 3_600)
    client.resume_schedule("sums", backfill=True)
    assert told(client) == [(1, None), (2, "overlap"), (3, "overlap")]


def test_a_schedule_in_error_goes_on_where_it_was(client: tb.Client, world: World) -> None:
    hourly(client)
    world.store.suspend(client.get_schedule("sums"), "the zone is unknown")
    world.travel(2 * 3_600)
    client.resume_schedule("sums")
    assert client.get_schedule("sums").error is None
    assert Ticker(world.store).tick().jobs == 1
    assert told(client) == [(1, "superseded"), (2, None)]


def test_resuming_what_is_active_changes_nothing(client: tb.Client) -> None:
    hourly(client)
    before = client.get_schedule("sums")
    client.resume_schedule("sums")
    assert client.get_schedule("sums") == before


# Extra and later runs


def test_an_extra_run_is_the_schedules_own_job(client: tb.Client) -> None:
    hourly(client, priority=1)
    job = client.run_schedule("sums").job()
    assert (job.kind, job.args, job.priority) == ("client.add", {"a": 1}, 1)
    assert told(client) == []


def test_a_backfill_says_beforehand_what_it_does(client: tb.Client, world: World) -> None:
    hourly(client)
    world.travel(4 * 3_600)
    Ticker(world.store).tick()
    first, last = NOON - HOUR, NOON + 4 * HOUR
    plan = client.backfill("sums", first, last, dry_run=True)
    assert jobs(client) == 1
    done = client.backfill("sums", first, last)
    assert (plan.fired, plan.already) == (done.fired, done.already)
    assert done.fired == tuple(NOON + n * HOUR for n in range(-1, 4))
    assert done.already == (last,)
    again = client.backfill("sums", first, last)
    assert (again.fired, len(again.already)) == ((), 6)
    assert jobs(client) == 6


def test_a_backfilled_job_knows_its_occurrence(client: tb.Client, world: World) -> None:
    hourly(client)
    world.travel(3_600)
    client.backfill("sums", NOON, NOON)
    (job,) = client.jobs()
    occurrence = job.args["__occurrence__"]
    assert (occurrence["nominal_at"], occurrence["catchup"]) == (NOON.isoformat(), True)


def test_a_backfill_reaches_back_to_before_there_was_a_schedule(client: tb.Client) -> None:
    client.schedule("sums", add, cron="0 0 * * *", tz="UTC", args={"a": 1})
    done = client.backfill("sums", NOON - timedelta(days=1_500), NOON)
    assert len(done.fired) == 1_500
    assert sum(client.counts().values()) == 1_500


@pytest.mark.parametrize(
    ("first", "last", "advice"),
    [
        (NOON, NOON - HOUR, "does not end before it begins"),
        (NOON, NOON + HOUR, "nor after now"),
        (NOON.replace(tzinfo=None), NOON, "need a time zone"),
    ],
)
def test_a_range_that_is_none_is_refused(
    client: tb.Client, first: datetime, last: datetime, advice: str
) -> None:
    hourly(client)
    with pytest.raises(UsageError, match=advice):
        client.backfill("sums", first, last)


def test_a_range_of_too_many_occurrences_is_refused(client: tb.Client) -> None:
    client.schedule("sums", add, cron="* * * * * *", tz="UTC", args={"a": 1})
    with pytest.raises(UsageError, match="shorter"):
        client.backfill("sums", NOON - timedelta(seconds=BACKFILL_MAX + 1), NOON)


# Names


@pytest.mark.parametrize(
    "verb",
    ["pause_schedule", "resume_schedule", "run_schedule", "remove_schedule", "get_schedule"],
)
def test_a_name_that_nobody_has_is_told(client: tb.Client, verb: str) -> None:
    with pytest.raises(ScheduleNotFound, match="no schedule is called 'ghost'"):
        getattr(client, verb)("ghost")


def test_a_removed_schedule_comes_back_anew(client: tb.Client, world: World) -> None:
    hourly(client)
    client.remove_schedule("sums")
    assert client.schedules() == []
    world.travel(2 * 3_600)
    hourly(client)
    assert client.get_schedule("sums").next_at == NOON + 3 * HOUR


def test_a_zone_that_is_unknown_is_told_when_resuming(client: tb.Client, world: World) -> None:
    hourly(client)
    spec = client.get_schedule("sums").spec
    gone = replace(spec, tz="Atlantis/Capital")
    world.store.declare(gone, Standing(NOON, NOON + HOUR))
    client.pause_schedule("sums")
    with pytest.raises(InvalidSchedule, match="Atlantis/Capital"):
        client.resume_schedule("sums")
    world.store.remove("sums")


def test_all_of_it_can_be_awaited(client: tb.Client, world: World) -> None:
    async def story() -> None:
        both = tb.AsyncClient(client)
        await both.schedule("sums", add, cron="0 * * * *", tz="UTC", args={"a": 1})
        await both.pause_schedule("sums")
        assert (await both.get_schedule("sums")).state == "paused"
        world.travel(2 * 3_600)
        await both.resume_schedule("sums", backfill=True)
        found = await both.occurrences("sums", 1)
        assert [(each.decision, each.job_state) for each in found] == [
            (Decision.FIRED, State.PENDING)
        ]
        assert (await both.backfill("sums", NOON, NOON, dry_run=True)).fired == (NOON,)
        assert (await both.run_schedule("sums")).uuid
        assert [each.spec.name for each in await both.schedules()] == ["sums"]
        await both.remove_schedule("sums")
        assert await both.withdraw("", keep=()) == []

    asyncio.run(story())
