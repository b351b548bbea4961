"""Schedules: runs that overlap, pauses, backfills, and what is on record of them."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from tests.store.world import World, end, schedule

from timeball.core.records import (
    CancelAnswer,
    Decision,
    Firing,
    OccurrenceDecision,
    Schedule,
    ScheduleSpec,
    Standing,
)
from timeball.core.states import Ending, State
from timeball.errors import ScheduleNotFound
from timeball.store.base import JobFilter, schedule_job

HOUR = timedelta(hours=1)


def declare(world: World, **fields) -> Schedule:
    spec: ScheduleSpec = schedule(**fields)
    now = world.store.now()
    world.store.declare(spec, Standing(now, now + HOUR))
    return world.store.schedule(spec.name)


def fire(world: World, hours: int = 1, name: str = "hourly") -> list[int] | None:
    """All that comes due in the next `hours` is to run."""
    found = world.store.schedule(name)
    world.travel(3_600 * hours)
    instants = [found.cursor + n * HOUR for n in range(1, hours + 1)]
    decisions = [OccurrenceDecision(at, Decision.FIRED, None, "{}") for at in instants]
    standing = Standing(instants[-1], instants[-1] + HOUR)
    (jobs,) = world.store.fire([Firing(found, decisions, standing)])
    return jobs


def record(world: World, name: str = "hourly") -> list[str]:
    """Why each occurrence did not run, or the state of its job; oldest first."""
    found = world.store.occurrences(name, limit=1_000)
    return [str(each.job_state or each.reason) for each in reversed(found)]


def jobs(world: World) -> list[State]:
    return [job.state for job in reversed(world.store.jobs(JobFilter(limit=1_000)))]


def finish(world: World) -> None:
    """Carry out all that is pending."""
    worker = world.worker()
    world.settle(worker, *(end(turn) for turn in world.claim(worker)))


# Runs that overlap


def test_runs_may_overlap_unless_somebody_says_otherwise(world: World) -> None:
    declare(world)
    for _ in range(3):
        fire(world)
    assert jobs(world) == [State.PENDING] * 3


def test_an_occurrence_is_skipped_while_the_run_before_goes_on(world: World) -> None:
    declare(world, overlap_runs="skip")
    fire(world)
    worker = world.worker()
    (turn,) = world.claim(worker)
    assert fire(world) == []
    world.settle(worker, end(turn))
    assert fire(world) != []
    assert record(world) == ["succeeded", "overlap", "pending"]


def test_a_run_that_waits_for_its_retry_has_not_ended(world: World) -> None:
    declare(world, overlap_runs="skip")
    fire(world)
    worker = world.worker()
    (turn,) = world.claim(worker)
    world.settle(worker, end(turn, Ending.RETRIED, delay_s=86_400.0))
    assert fire(world) == []


def test_of_several_that_are_due_at_once_the_first_runs_and_the_others_overlap(
    world: World,
) -> None:
    declare(world, overlap_runs="skip")
    fire(world, hours=3)
    assert record(world) == ["pending", "overlap", "overlap"]


def test_one_occurrence_waits_for_the_run_before_it_and_no_second(world: World) -> None:
    declare(world, overlap_runs="queue_one")
    for _ in range(3):
        fire(world)
    assert record(world) == ["pending", "pending", "overlap"]
    worker = world.worker()
    (turn,) = world.claim(worker)
    assert (world.store.admit(10), world.claim(worker)) == (0, [])
    world.settle(worker, end(turn))
    assert world.claim(worker) == []
    assert world.store.admit(10) == 1
    (turn,) = world.claim(worker)
    fire(world)
    assert world.claim(worker) == []
    world.settle(worker, end(turn))
    assert world.store.admit(10) == 1
    finish(world)
    assert record(world) == ["succeeded", "succeeded", "overlap", "succeeded"]
    assert world.store.admit(10) == 0


def test_a_run_that_waits_for_another_can_be_cancelled(world: World) -> None:
    declare(world, overlap_runs="queue_one")
    fire(world)
    fire(world)
    waiting = world.store.occurrences("hourly", limit=1)[0].job
    assert waiting is not None
    assert world.store.cancel(waiting) is CancelAnswer.CANCELLED
    finish(world)
    assert world.store.admit(10) == 0
    fire(world)
    finish(world)
    assert record(world) == ["succeeded", "cancelled", "succeeded"]


@pytest.mark.parametrize("change", ["allow", "skip", "replace", "gone"])
def test_a_run_that_waits_is_not_forgotten_when_the_schedule_changes(
    world: World, change: str
) -> None:
    declare(world, overlap_runs="queue_one")
    fire(world)
    fire(world)
    if change == "gone":
        world.store.remove("hourly")
    else:
        declare(world, overlap_runs=change)
        fire(world)
    for _ in range(3):
        finish(world)
        world.store.admit(10)
    waited = jobs(world)[1]
    assert waited is (State.CANCELLED if change == "replace" else State.SUCCEEDED)


def test_a_newer_run_replaces_the_one_before(world: World) -> None:
    declare(world, overlap_runs="replace")
    fire(world)
    fire(world)
    worker = world.worker()
    (turn,) = world.claim(worker)
    fire(world)
    assert record(world) == ["cancelled", "running", "pending"]
    history = next(h for h in world.store.histories() if h.id == turn.job_id)
    assert history.cancels_requested_at


def test_of_several_that_are_due_at_once_the_last_replaces_the_others(world: World) -> None:
    declare(world, overlap_runs="replace")
    fire(world)
    fire(world, hours=3)
    assert record(world) == ["cancelled", "overlap", "overlap", "pending"]


def test_an_extra_run_counts_as_the_run_before(world: World) -> None:
    found = declare(world, overlap_runs="skip")
    world.store.run_now(found, schedule_job(found.spec, uuid4(), "{}"))
    assert fire(world) == []
    finish(world)
    assert fire(world) != []


# Runs that are counted


def test_a_schedule_ends_after_its_last_run(world: World) -> None:
    declare(world, terms='{"max_runs":2}')
    fire(world)
    fire(world)
    found = world.store.schedule("hourly")
    assert (found.fired, found.next_at, found.due_at) == (2, None, None)
    assert world.due(10)[1] == []
    assert fire(world) == []
    assert record(world) == ["pending", "pending", "max_runs"]


def test_only_what_ran_is_counted(world: World) -> None:
    declare(world, terms='{"max_runs":2}', overlap_runs="skip")
    fire(world, hours=2)
    assert world.store.schedule("hourly").next_at is not None
    finish(world)
    fire(world, hours=2)
    assert record(world) == ["succeeded", "overlap", "pending", "overlap"]
    assert world.store.schedule("hourly").next_at is None


def test_a_schedule_that_is_made_another_counts_anew(world: World) -> None:
    declare(world, terms='{"max_runs":1}')
    fire(world)
    found = declare(world, terms='{"max_runs":2}')
    assert (found.fired, found.next_at) == (0, world.store.now() + HOUR)


def test_what_ran_last_is_told(world: World) -> None:
    found = declare(world)
    assert (found.fired, found.fired_at, found.last_job) == (0, None, None)
    fire(world)
    after = world.store.schedule("hourly")
    assert (after.fired, after.fired_at) == (1, found.cursor + HOUR)
    assert after.last_job == world.store.occurrences("hourly", limit=1)[0].job
    extra = schedule_job(after.spec, uuid4(), "{}")
    world.store.run_now(after, extra)
    assert world.store.schedule("hourly").last_job == extra.uuid


# Pausing


def test_a_paused_schedule_is_not_due_and_keeps_its_place(world: World) -> None:
    found = declare(world)
    world.store.pause("hourly")
    world.travel(3_600)
    paused = world.store.schedule("hourly")
    assert (paused.state, paused.cursor) == ("paused", found.cursor)
    assert world.due(10)[1] == []
    assert world.store.resume(paused, Standing(paused.cursor, paused.next_at))
    assert [s.spec.name for s in world.due(10)[1]] == ["hourly"]


def test_what_was_decided_before_a_pause_does_not_count(world: World) -> None:
    found = declare(world)
    world.travel(3_600)
    world.store.pause("hourly")
    at = found.cursor + HOUR
    decision = OccurrenceDecision(at, Decision.FIRED, None, "{}")
    assert world.store.fire([Firing(found, [decision], Standing(at, at + HOUR))]) == [None]
    assert jobs(world) == []


def test_pausing_twice_is_pausing_once(world: World) -> None:
    declare(world)
    world.store.pause("hourly")
    before = world.store.schedule("hourly")
    world.store.pause("hourly")
    assert world.store.schedule("hourly") == before


def test_a_schedule_that_changed_meanwhile_is_not_resumed(world: World) -> None:
    declare(world)
    world.store.pause("hourly")
    read = world.store.schedule("hourly")
    declare(world, args='{"n":1}')
    assert not world.store.resume(read, Standing(read.cursor, None))
    assert world.store.schedule("hourly").state == "paused"


def test_a_schedule_in_error_is_resumed_where_it_was(world: World) -> None:
    found = declare(world)
    world.store.suspend(found, "no such zone")
    read = world.store.schedule("hourly")
    assert world.store.resume(read, Standing(read.cursor, read.next_at))
    after = world.store.schedule("hourly")
    assert (after.state, after.error, after.cursor) == ("active", None, found.cursor)


# Extra and later runs


def test_an_extra_run_decides_no_occurrence(world: World) -> None:
    found = declare(world, args='{"n":7}', queue="q", priority=2)
    spec = schedule_job(found.spec, uuid4(), found.spec.args)
    world.store.run_now(found, spec)
    job = world.store.get(spec.uuid)
    assert (job.kind, job.args, job.queue, job.priority) == ("a", {"n": 7}, "q", 2)
    after = world.store.schedule("hourly")
    assert (after.cursor, after.next_at, after.fired) == (found.cursor, found.next_at, 0)
    assert world.store.occurrences("hourly", limit=10) == []


def test_an_extra_run_that_is_asked_for_twice_is_one(world: World) -> None:
    found = declare(world)
    spec = schedule_job(found.spec, uuid4(), "{}")
    assert world.store.run_now(found, spec) == world.store.run_now(found, spec)
    assert len(jobs(world)) == 1


def backfill(world: World, *instants: datetime, read: Schedule | None = None):
    read = read or world.store.schedule("hourly")
    decisions = [OccurrenceDecision(at, Decision.FIRED, None, "{}") for at in instants]
    return world.store.backfill(read, decisions)


def test_what_was_skipped_runs_afterwards_and_what_ran_does_not(world: World) -> None:
    found = declare(world, overlap_runs="skip")
    fire(world, hours=2)
    first, second = found.cursor + HOUR, found.cursor + 2 * HOUR
    made = backfill(world, found.cursor - HOUR, first, second)
    assert made is not None
    assert [job_id is None for job_id in made] == [False, True, False]
    assert backfill(world, found.cursor - HOUR, first, second) == [None, None, None]
    told = world.store.occurrences("hourly", limit=10)
    assert [each.nominal_at for each in told] == [second, first, found.cursor - HOUR]
    assert [each.reason for each in told] == ["backfill", None, "backfill"]
    assert world.store.schedule("hourly").fired == 1


def test_a_backfill_ahead_of_the_cursor_is_not_fired_again(world: World) -> None:
    found = declare(world)
    world.travel(3_600)
    backfill(world, found.cursor + HOUR)
    at = found.cursor + HOUR
    decision = OccurrenceDecision(at, Decision.FIRED, None, "{}")
    assert world.store.fire([Firing(found, [decision], Standing(at, at + HOUR))]) == [[]]
    assert len(jobs(world)) == 1


def test_a_backfill_of_a_schedule_that_was_edited_does_nothing(world: World) -> None:
    read = declare(world)
    declare(world, args='{"n":1}')
    assert backfill(world, read.cursor, read=read) is None
    assert jobs(world) == []


def test_the_record_is_told_in_pages_latest_first(world: World) -> None:
    found = declare(world)
    fire(world, hours=5)
    first = world.store.occurrences("hourly", limit=3)
    rest = world.store.occurrences("hourly", limit=3, before=first[-1].nominal_at)
    told = [each.nominal_at for each in [*first, *rest]]
    assert told == [found.cursor + n * HOUR for n in (5, 4, 3, 2, 1)]


@pytest.mark.parametrize("verb", ["schedule", "pause", "remove"])
def test_a_name_that_nobody_has_is_told(world: World, verb: str) -> None:
    declare(world, name="gone")
    world.store.remove("gone")
    for name in ("gone", "never"):
        with pytest.raises(ScheduleNotFound, match=name):
            getattr(world.store, verb)(name)
        with pytest.raises(ScheduleNotFound):
            world.store.occurrences(name, limit=1)


# Zone data


def test_the_zones_in_use_are_told_with_their_data(world: World) -> None:
    now = world.store.now()
    for name, tz, version in (("a", "UTC", "1"), ("b", "UTC", "1"), ("c", "UTC", "2")):
        world.store.declare(schedule(name, tz=tz), Standing(now, None, zone_version=version))
    assert world.store.zones() == [("UTC", "1"), ("UTC", "2")]
    old = world.store.zones()[0]
    assert [s.spec.name for s in world.store.in_zone(old, 10)] == ["a", "b"]
    assert [s.spec.name for s in world.store.in_zone(old, 1)] == ["a"]


@pytest.mark.parametrize("hours", [-2, 2])
def test_occurrences_that_zone_data_move_are_to_be_decided_anew(world: World, hours: int) -> None:
    declare(world)
    fire(world)
    found = world.store.schedule("hourly")
    cursor = found.cursor + hours * HOUR
    standing = Standing(cursor, cursor + HOUR, None, "2", "print", -3_600)
    assert world.store.fire([Firing(found, [], standing, moved=True)]) == [[]]
    after = world.store.schedule("hourly")
    assert (after.cursor, after.zone_version, after.fingerprint) == (cursor, "2", "print")
    assert after.offset_s == -3_600
    ((told, _),) = world.store.schedule_histories()
    assert told.activated_at == max(cursor, found.cursor)


def test_many_schedules_are_fired_in_one_call_and_each_for_itself(world: World) -> None:
    names = [f"s{n}" for n in range(5)]
    for name, policy in zip(names, ["allow", "replace", "skip", "queue_one", "allow"], strict=True):
        declare(world, name=name, overlap_runs=policy)
    world.travel(3_600)
    read = [world.store.schedule(name) for name in names]
    declare(world, name="s2", args='{"n":1}')
    firings = [
        Firing(
            each,
            [OccurrenceDecision(each.cursor + HOUR, Decision.FIRED, None, "{}")],
            Standing(each.cursor + HOUR, each.cursor + 2 * HOUR),
        )
        for each in read
    ]
    answers = world.store.fire(firings)
    assert [answer is None for answer in answers] == [False, False, True, False, False]
    ids = {job_id for answer in answers for job_id in answer or ()}
    assert ids == {job.id for job in world.store.jobs(JobFilter())}
    assert world.store.fire(firings) == [None] * 5
