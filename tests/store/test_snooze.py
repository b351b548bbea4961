"""Putting off: a job that has not begun starts at an instant at the earliest."""

from __future__ import annotations

from uuid import uuid4

from tests.store.world import World, end

from timeball.core.audit import violations_of
from timeball.core.dependencies import Edge
from timeball.core.limits import Scope
from timeball.core.rate import Rate
from timeball.core.records import CancelAnswer
from timeball.core.states import Ending, State
from timeball.core.upkeep import SnoozeAnswer
from timeball.store.base import NO_WORKER

SNOOZED, WAITING = SnoozeAnswer.SNOOZED, SnoozeAnswer.WAITING


def test_a_pending_job_is_put_off_and_lines_up_at_the_back(world: World) -> None:
    job, other = world.submit(), world.submit()
    assert world.store.snooze(job, world.later(60)) is SNOOZED
    found = world.job(job)
    assert (found.state, found.turn, found.run_at) == (State.SCHEDULED, 2, world.later(60))
    worker = world.worker()
    assert world.order(worker) == [other]
    late = world.submit()
    world.travel(60)
    world.store.promote(10)
    assert world.order(worker) == [late, job]
    assert world.violations() == []


def test_its_turn_ends_snoozed_without_an_attempt_and_keeps_its_counts(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker, max_retries=3)
    world.settle(worker, end(turn, Ending.RETRIED, delay_s=0.0))
    world.store.promote(10)
    world.store.snooze(turn.uuid, world.later(5))
    world.travel(5)
    world.store.promote(10)
    (again,) = world.claim(worker)
    assert (again.turn, again.attempts, again.failures, again.crashes) == (3, 1, 1, 0)
    (history,) = world.store.histories()
    told = [(row.turn, row.ending, row.began_at is None) for row in history.endings]
    assert told == [(1, Ending.RETRIED, False), (2, Ending.SNOOZED, True)]
    assert world.violations() == []


def test_a_scheduled_job_keeps_the_later_instant_and_its_turn(world: World) -> None:
    job = world.submit(run_at=world.later(60))
    for until_s, run_s in ((30, 60), (90, 90), (90, 90)):
        assert world.store.snooze(job, world.later(until_s)) is SNOOZED
        found = world.job(job)
        assert (found.state, found.turn, found.run_at) == (State.SCHEDULED, 1, world.later(run_s))


def test_the_instants_are_on_record_and_the_audit_finds_a_start_before_them(world: World) -> None:
    job, later = world.submit(), world.later(90)
    world.store.snooze(job, world.later(60))
    world.store.snooze(job, later)
    world.travel(90)
    world.store.promote(10)
    world.claim(world.worker())
    (history,) = world.store.histories()
    told = [(row.turn, row.until) for row in history.snoozes]
    assert told == [(2, world.later(-30).timestamp()), (2, later.timestamp())]
    assert violations_of(history) == []
    longer = history.snoozes[1]._replace(until=later.timestamp() + 1)
    found = violations_of(history._replace(snoozes=(longer,)))
    assert [each.invariant for each in found] == ["I12", "I12"]  # entered, and granted


def test_what_runs_has_ended_or_waits_for_others_is_left_alone(world: World) -> None:
    worker, until = world.worker(), world.later(60)
    turn = world.start(worker)
    child = world.submit(after=(Edge(turn.uuid),))
    assert world.store.snooze(turn.uuid, until) is SnoozeAnswer.RUNNING
    assert world.store.snooze(child, until) is WAITING
    assert world.settle(worker, end(turn)) == ["accepted"]
    assert world.store.snooze(turn.uuid, until) is SnoozeAnswer.FINISHED
    assert world.store.snooze(uuid4(), until) is SnoozeAnswer.NOT_FOUND
    assert [turn.uuid for turn in world.claim(worker)] == [child]


def test_the_slot_of_its_key_goes_to_the_next_and_it_waits_for_it_again(world: World) -> None:
    worker = world.worker()
    first, second = (world.submit(key="k") for _ in range(2))
    world.store.snooze(first, world.later(10))
    (turn,) = world.claim(worker)
    assert turn.uuid == second
    world.travel(10)
    world.store.promote(10)
    assert (world.job(first).reason, world.claim(worker)) == ("key", [])
    world.settle(worker, end(turn))
    assert world.order(worker) == [first]
    assert world.violations() == []


def test_one_that_waits_for_its_key_or_a_worker_or_a_rate_is_put_off_too(world: World) -> None:
    worker = world.worker()
    world.start(worker, key="k")
    orphan = world.start(worker, "b")
    world.settle(worker, end(orphan, Ending.RELEASED, began=False, reason=NO_WORKER))
    world.store.limit_starts(Scope.KIND, "c", Rate(1, per_s=3600))
    jobs = [world.submit(key="k"), orphan.uuid, world.submit("c")]
    for job in jobs:
        turn = world.job(job).turn
        assert world.store.snooze(job, world.later(10)) is SNOOZED
        found = world.job(job)
        assert (found.state, found.turn) == (State.SCHEDULED, turn + 1)
    world.travel(10)
    world.store.promote(10)
    assert {world.state(job) for job in jobs} == {State.PENDING}
    assert world.violations() == []


def test_its_deadline_stays(world: World) -> None:
    job = world.submit(expires_at=world.later(30))
    world.store.snooze(job, world.later(60))
    world.travel(30)
    assert world.store.lapse(10) == 1
    assert world.state(job) is State.SKIPPED


def test_it_can_be_cancelled_and_then_never_starts(world: World) -> None:
    job = world.submit()
    world.store.snooze(job, world.later(5))
    assert world.store.cancel(job) is CancelAnswer.CANCELLED
    world.travel(5)
    world.store.promote(10)
    assert world.claim(world.worker()) == []
    assert world.violations() == []
