"""Deadlines: a job that has not begun in time never does, and one that has is left alone."""

from __future__ import annotations

from uuid import UUID

import pytest
from tests.store.world import World, end

from timeball.core.records import CancelAnswer
from timeball.core.states import Ending, State
from timeball.core.upkeep import ReviveAnswer
from timeball.store.base import NO_WORKER


def assert_skipped(world: World, job: UUID) -> None:
    found = world.job(job)
    assert (found.state, found.reason, found.attempts) == (State.SKIPPED, "expired", 0)
    assert found.ended_at == world.store.now()
    assert world.store.ended([job]) == {job}


def test_no_claim_grants_a_job_after_its_deadline(world: World) -> None:
    late, other = world.submit(expires_at=world.later(5)), world.submit()
    world.travel(5)
    assert world.order(world.worker()) == [other]
    assert_skipped(world, late)


def test_a_job_that_begins_in_time_is_left_alone(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker, expires_at=world.later(5), max_retries=1)
    world.travel(60)
    assert world.store.lapse(10) == 0
    world.settle(worker, end(turn, Ending.RETRIED))
    world.store.promote(10)
    (again,) = world.claim(worker)
    assert world.store.lapse(10) == 0
    world.settle(worker, end(again))
    assert world.state(turn) is State.SUCCEEDED


@pytest.mark.parametrize("begun", [True, False])
def test_only_what_has_begun_outlives_its_deadline(world: World, *, begun: bool) -> None:
    worker = world.worker()
    turn = world.start(worker, expires_at=world.later(5))
    world.travel(60)
    assert world.store.lapse(10) == 0
    world.settle(worker, end(turn, Ending.RELEASED, began=begun))
    assert len(world.claim(worker)) == begun
    if not begun:
        assert_skipped(world, turn.uuid)


def test_a_job_is_skipped_where_no_worker_comes_by(world: World) -> None:
    jobs = [world.submit(expires_at=world.later(after_s)) for after_s in (5, 60)]
    assert world.store.lapse(10) == 0
    world.travel(5)
    assert world.store.lapse(10) == 1
    assert_skipped(world, jobs[0])
    assert world.store.lapse(10) == 0
    assert world.order(world.worker()) == [jobs[1]]


def test_a_scheduled_job_is_skipped_when_its_deadline_has_passed(world: World) -> None:
    job = world.submit(run_at=world.later(5), expires_at=world.later(10))
    world.travel(10)
    assert world.store.lapse(10) == 1
    assert_skipped(world, job)
    assert world.store.promote(10).moved == 0


def test_a_job_that_fell_due_too_late_is_skipped(world: World) -> None:
    job = world.submit(run_at=world.later(5), expires_at=world.later(10))
    world.travel(10)
    assert world.store.promote(10).moved == 1
    assert world.claim(world.worker()) == []
    assert_skipped(world, job)


def test_a_job_of_an_unknown_kind_is_skipped_too(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker, "b", expires_at=world.later(5))
    world.settle(worker, end(turn, Ending.RELEASED, began=False, reason=NO_WORKER))
    world.travel(5)
    assert world.store.lapse(10) == 1
    assert_skipped(world, turn.uuid)


def test_what_a_dead_worker_had_not_begun_is_skipped(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker, expires_at=world.later(5))
    world.travel(5)
    assert world.store.expire(worker, beat=None, begun=[]) == (1, 0, 0, 0)
    assert world.store.lapse(10) == 1
    assert_skipped(world, turn.uuid)


def test_a_few_are_skipped_at_a_time(world: World) -> None:
    for _ in range(5):
        world.submit(expires_at=world.later(5))
    world.travel(5)
    assert [world.store.lapse(2) for _ in range(4)] == [2, 2, 1, 0]


def test_many_late_jobs_do_not_hold_up_a_claim(world: World) -> None:
    for _ in range(30):
        world.submit(expires_at=world.later(5))
    last = world.submit()
    world.travel(5)
    assert [turn.uuid for turn in world.claim(world.worker(), 1)] == [last]


def test_a_skipped_job_stays_skipped_unless_it_is_revived(world: World) -> None:
    job = world.submit(expires_at=world.later(5))
    world.travel(5)
    world.store.lapse(10)
    assert world.store.cancel(job) is CancelAnswer.FINISHED
    assert world.store.revive([job]) == [ReviveAnswer.REVIVED]
    assert world.store.lapse(10) == 0
    worker = world.worker()
    (turn,) = world.claim(worker)
    world.settle(worker, end(turn, Ending.RELEASED, began=False))
    assert world.order(worker) == [job]


def test_a_job_tells_its_deadline(world: World) -> None:
    expires_at = world.later(5)
    assert world.job(world.submit(expires_at=expires_at)).expires_at == expires_at
    assert world.job(world.submit()).expires_at is None
