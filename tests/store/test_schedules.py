"""Schedules: an occurrence is decided once, by whoever read the schedule as it still is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta, timezone

import pytest
from tests.store.world import NOON as NOMINAL
from tests.store.world import World, schedule

from timeball.core.records import (
    Decision,
    Firing,
    OccurrenceDecision,
    Schedule,
    ScheduleSpec,
    Standing,
)
from timeball.core.states import State
from timeball.store.base import JobFilter, occurrence_job

HOUR = timedelta(hours=1)


def declare(world: World, spec: ScheduleSpec | None = None, *, hours: int = 1) -> Schedule:
    """A schedule whose next occurrence is `hours` from now."""
    spec = spec or schedule()
    now = world.store.now().replace(microsecond=0)
    world.store.declare(spec, Standing(now, now + hours * HOUR))
    return read(world, spec.name)


def read(world: World, name: str = "hourly") -> Schedule:
    (found,) = (s for s in world.store.schedules() if s.spec.name == name)
    return found


def fired(schedule: Schedule, hours: int = 1, args: str = "{}") -> OccurrenceDecision:
    return OccurrenceDecision(schedule.cursor + hours * HOUR, Decision.FIRED, None, args)


def fire(
    world: World, schedule: Schedule, decisions: Sequence[OccurrenceDecision], *, hours: int = 1
) -> list[int] | None:
    cursor = schedule.cursor + hours * HOUR
    (jobs,) = world.store.fire([Firing(schedule, decisions, Standing(cursor, cursor + HOUR))])
    return jobs


def due(world: World, limit: int = 10) -> list[str]:
    return [schedule.spec.name for schedule in world.due(limit)[1]]


def jobs(world: World) -> list:
    return world.store.jobs(JobFilter(limit=1_000))


def test_a_new_schedule_is_read_as_it_was_declared(world: World) -> None:
    spec = schedule(tz="Europe/Berlin", queue="q", priority=8, timeout_s=9.0, args='{"n":1}')
    found = declare(world, spec)
    assert (found.spec.tz, found.spec.queue, found.spec.priority) == ("Europe/Berlin", "q", 8)
    assert (found.spec.timeout_s, found.spec.source, found.spec.catchup) == (9.0, "app", "last")
    assert found.spec.args.replace(" ", "") == '{"n":1}'
    assert found.next_at == found.cursor + HOUR
    assert (found.state, found.error) == ("active", None)


def test_a_schedule_is_due_once_its_next_occurrence_has_come(world: World) -> None:
    declare(world)
    assert due(world) == []
    world.travel(3_600)
    now, found = world.due(10)
    assert found == [read(world)]
    assert found[0].next_at is not None
    assert found[0].next_at <= now


def test_a_schedule_without_another_occurrence_is_never_due(world: World) -> None:
    now = world.store.now()
    world.store.declare(schedule(), Standing(now, None))
    world.travel(10_000)
    assert due(world) == []


def test_the_longest_due_comes_first_and_the_limit_holds(world: World) -> None:
    for name, hours in (("c", 2), ("a", 3), ("b", 1)):
        declare(world, schedule(name), hours=hours)
    world.travel(4 * 3_600)
    assert due(world) == ["b", "c", "a"]
    assert due(world, 2) == ["b", "c"]


def test_schedules_are_listed_by_name(world: World) -> None:
    for name in ("c", "a", "b"):
        declare(world, schedule(name))
    assert [s.spec.name for s in world.store.schedules()] == ["a", "b", "c"]


# Firing -------------------------------------------------------------------------------------


def test_firing_adds_the_job_that_the_schedule_describes(world: World) -> None:
    found = declare(world, schedule(queue="q", priority=7, max_retries=1, timeout_s=5.0))
    world.travel(3_600)
    ids = fire(world, found, [fired(found, args='{"n":2}')])
    (job,) = jobs(world)
    assert ids == [job.id]
    assert (job.kind, job.queue, job.priority, job.args) == ("a", "q", 7, {"n": 2})
    assert (job.state, job.max_retries) == (State.PENDING, 1)
    (turn,) = world.claim(world.worker(queues=["q"]))
    assert turn.timeout_s == 5.0


def test_firing_moves_the_cursor(world: World) -> None:
    found = declare(world)
    world.travel(3_600)
    fire(world, found, [fired(found)])
    after = read(world)
    assert (after.cursor, after.next_at) == (found.cursor + HOUR, found.cursor + 2 * HOUR)
    assert due(world) == []


def test_deciding_nothing_moves_the_cursor(world: World) -> None:
    found = declare(world)
    assert fire(world, found, [], hours=5) == []
    assert read(world).cursor == found.cursor + 5 * HOUR
    assert jobs(world) == []


def test_a_skipped_occurrence_is_recorded_and_adds_no_job(world: World) -> None:
    found = declare(world)
    world.travel(2 * 3_600)
    skipped = OccurrenceDecision(found.cursor + HOUR, Decision.SKIPPED, "missed", "{}")
    ids = fire(world, found, [skipped, fired(found, 2)], hours=2)
    assert ids == [job.id for job in jobs(world)]
    ((_, decided),) = world.store.schedule_histories()
    assert [(row.decision, row.reason, row.job_id) for row in decided] == [
        (Decision.SKIPPED, "missed", None),
        (Decision.FIRED, None, ids[0] if ids else None),
    ]


def test_several_occurrences_are_several_jobs_in_their_order(world: World) -> None:
    found = declare(world)
    world.travel(3 * 3_600)
    decisions = [fired(found, n, f'{{"n":{n}}}') for n in (1, 2, 3)]
    ids = fire(world, found, decisions, hours=3)
    turns = world.claim(world.worker())
    assert [turn.job_id for turn in turns] == ids
    assert [world.job(turn).args for turn in turns] == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_of_two_nodes_that_fire_at_once_one_fires(world: World) -> None:
    found = declare(world)
    world.travel(3_600)
    assert fire(world, found, [fired(found)]) is not None
    assert fire(world, found, [fired(found)]) is None
    assert len(jobs(world)) == 1


def test_of_two_nodes_one_skips_or_one_fires(world: World) -> None:
    found = declare(world)
    world.travel(3_600)
    skipped = OccurrenceDecision(found.cursor + HOUR, Decision.SKIPPED, "overlap", "{}")
    assert fire(world, found, [skipped]) == []
    assert fire(world, found, [fired(found)]) is None
    assert jobs(world) == []


def test_what_was_decided_before_an_edit_does_not_count(world: World) -> None:
    found = declare(world)
    world.travel(3_600)
    declare(world, schedule(args='{"n":1}'))
    assert fire(world, found, [fired(found)]) is None
    assert jobs(world) == []


def test_a_withdrawn_schedule_does_not_fire(world: World) -> None:
    found = declare(world)
    world.travel(3_600)
    world.store.withdraw("app", keep=())
    assert fire(world, found, [fired(found)]) is None
    assert jobs(world) == []


@pytest.mark.parametrize("decision", Decision)
def test_an_occurrence_is_decided_once_wherever_the_cursor_stands(
    world: World, decision: Decision
) -> None:
    found = declare(world)
    world.travel(3_600)
    reason = "missed" if decision is Decision.SKIPPED else None
    fire(world, found, [fired(found)._replace(decision=decision, reason=reason)])
    before = len(jobs(world))
    edited = schedule(expression="0 */1 * * *")
    world.store.declare(edited, Standing(found.cursor, found.next_at))
    again = read(world)
    assert again.cursor == found.cursor
    assert fire(world, again, [fired(again)]) is not None
    assert len(jobs(world)) == before
    ((_, decided),) = world.store.schedule_histories()
    assert [row.decision for row in decided] == [decision]


def test_the_same_occurrence_is_the_same_job_and_no_other_is() -> None:
    found = Schedule(1, schedule(), 1, NOMINAL, None, "active", None)
    one, two = fired(found), fired(found, 2)
    assert occurrence_job(found.spec, one).uuid == occurrence_job(found.spec, one).uuid
    others = {
        occurrence_job(found.spec, one).uuid,
        occurrence_job(found.spec, two).uuid,
        occurrence_job(schedule("other"), one).uuid,
    }
    assert len(others) == 3


def test_an_occurrence_is_the_same_in_every_zone() -> None:
    berlin = NOMINAL.astimezone(timezone(timedelta(hours=1)))
    jobs = {
        occurrence_job(schedule(), OccurrenceDecision(at, Decision.FIRED, None, "{}")).uuid
        for at in (NOMINAL, berlin)
    }
    assert len(jobs) == 1


# Declaring again ----------------------------------------------------------------------------


def test_declaring_the_same_again_changes_nothing(world: World) -> None:
    found = declare(world)
    world.travel(3_600)
    assert declare(world) == found
    assert fire(world, found, [fired(found)]) is not None


@pytest.mark.parametrize(
    "change", [{"args": '{"n":1}'}, {"kind": "b"}, {"queue": "q"}, {"catchup": "all"}]
)
def test_a_change_that_leaves_the_instants_alone_keeps_the_cursor(
    world: World, change: dict
) -> None:
    found = declare(world)
    world.travel(3_600)
    after = declare(world, schedule(**change))
    assert (after.id, after.cursor, after.next_at) == (found.id, found.cursor, found.next_at)
    assert after.revision > found.revision


@pytest.mark.parametrize(
    "change",
    [{"expression": "30 * * * *"}, {"tz": "Asia/Tokyo"}, {"gap": "skip"}, {"overlap": "both"}],
)
def test_a_change_of_the_instants_moves_the_cursor(world: World, change: dict) -> None:
    found = declare(world)
    world.travel(2 * 3_600)
    after = declare(world, schedule(**change))
    assert after.id == found.id
    assert after.cursor >= found.cursor + 2 * HOUR
    assert after.next_at == after.cursor + HOUR
    assert after.revision > found.revision


# Withdrawing --------------------------------------------------------------------------------


def test_withdrawing_takes_back_what_a_source_no_longer_declares(world: World) -> None:
    for name, source in (("kept", "app"), ("gone", "app"), ("others", "file")):
        declare(world, schedule(name, source=source))
    assert world.store.withdraw("app", keep=["kept"]) == ["gone"]
    assert [s.spec.name for s in world.store.schedules()] == ["kept", "others"]
    assert world.store.withdraw("app", keep=["kept"]) == []


def test_a_withdrawn_schedule_is_not_due(world: World) -> None:
    declare(world)
    world.store.withdraw("app", keep=())
    world.travel(10_000)
    assert due(world) == []


def test_a_schedule_declared_again_after_its_withdrawal_starts_anew(world: World) -> None:
    found = declare(world)
    world.store.withdraw("app", keep=())
    world.travel(10 * 3_600)
    again = declare(world)
    assert (again.id, again.state) == (found.id, "active")
    assert again.cursor >= found.cursor + 10 * HOUR
    assert fire(world, found, [fired(found)]) is None


# Errors -------------------------------------------------------------------------------------


def test_a_schedule_that_cannot_be_computed_is_shown_and_left_alone(world: World) -> None:
    found = declare(world)
    declare(world, schedule("fine"))
    world.travel(3_600)
    world.store.suspend(found, "no such zone")
    after = read(world)
    assert (after.state, after.error) == ("error", "no such zone")
    assert due(world) == ["fine"]
    assert fire(world, found, [fired(found)]) is None
    assert fire(world, after, [fired(after)]) is None


def test_what_was_mended_meanwhile_is_not_suspended(world: World) -> None:
    found = declare(world)
    declare(world, schedule(tz="Asia/Tokyo"))
    world.store.suspend(found, "no such zone")
    assert read(world).state == "active"


def test_a_suspended_schedule_declared_again_goes_on_where_it_was(world: World) -> None:
    found = declare(world)
    world.store.suspend(found, "no such zone")
    world.travel(2 * 3_600)
    again = declare(world)
    assert (again.state, again.error, again.cursor) == ("active", None, found.cursor)
    assert due(world) == ["hourly"]
