"""Cancelling: what has not started never does; what runs gets no further attempt."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.store.world import World, end

from timeball.core.records import CancelAnswer, Delivery
from timeball.core.states import Ending, State
from timeball.store.base import NO_WORKER

CANCELLED, REQUESTED = CancelAnswer.CANCELLED, CancelAnswer.REQUESTED
FINISHED, NOT_FOUND = CancelAnswer.FINISHED, CancelAnswer.NOT_FOUND


def assert_never_starts(world: World, job) -> None:
    """However long one waits, and whoever comes."""
    world.travel(3_600)
    world.store.promote(10)
    assert world.claim(world.worker("a", "b")) == []
    assert world.state(job) is State.CANCELLED


def test_a_pending_job_that_was_cancelled_never_starts(world: World) -> None:
    uuid = world.submit()
    assert world.store.cancel(uuid) is CANCELLED
    job = world.job(uuid)
    assert (job.attempts, job.worker, job.began_at, job.reason) == (0, None, None, "requested")
    assert job.ended_at is not None
    assert_never_starts(world, uuid)


def test_a_scheduled_job_that_was_cancelled_never_starts(world: World) -> None:
    uuid = world.submit(run_at=world.later(60))
    assert world.store.cancel(uuid) is CANCELLED
    assert world.job(uuid).run_at is None
    assert_never_starts(world, uuid)


def test_a_retry_that_was_cancelled_never_starts(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, Ending.RETRIED, delay_s=60.0))
    assert world.store.cancel(turn.uuid) is CANCELLED
    assert_never_starts(world, turn)


def test_a_job_given_back_that_was_cancelled_never_starts(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, Ending.RELEASED))
    assert world.store.cancel(turn.uuid) is CANCELLED
    assert_never_starts(world, turn)


def test_a_job_of_an_unknown_kind_that_was_cancelled_never_starts(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker, "b")
    world.settle(worker, end(turn, Ending.RELEASED, began=False, reason=NO_WORKER))
    assert world.store.cancel(turn.uuid) is CANCELLED
    assert_never_starts(world, turn)


def test_a_cancel_takes_out_one_job_and_keeps_the_order_of_the_others(world: World) -> None:
    jobs = [world.submit() for _ in range(5)]
    world.store.cancel(jobs[0])
    world.store.cancel(jobs[3])
    assert world.order(world.worker()) == [jobs[1], jobs[2], jobs[4]]


def test_a_claim_is_not_held_up_by_many_cancelled_jobs(world: World) -> None:
    for job in [world.submit() for _ in range(30)]:
        world.store.cancel(job)
    last = world.submit()
    assert [turn.uuid for turn in world.claim(world.worker(), 1)] == [last]


@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED, Ending.CANCELLED])
def test_a_job_that_has_ended_stays_as_it_is(world: World, ending: Ending) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, ending))
    state = world.state(turn)
    assert world.store.cancel(turn.uuid) is FINISHED
    assert world.state(turn) is state


def test_a_cancelled_job_cannot_be_cancelled_again(world: World) -> None:
    uuid = world.submit()
    world.store.cancel(uuid)
    assert world.store.cancel(uuid) is FINISHED


def test_a_job_that_never_was_is_not_found(world: World) -> None:
    assert world.store.cancel(uuid4()) is NOT_FOUND


# While it runs ------------------------------------------------------------------------------


def requested(world: World, **fields) -> tuple:
    worker = world.worker()
    turn = world.start(worker, **fields)
    assert world.store.cancel(turn.uuid) is REQUESTED
    return worker, turn


def test_a_running_job_is_asked_to_stop_and_goes_on(world: World) -> None:
    _, turn = requested(world)
    assert world.store.cancel(turn.uuid) is REQUESTED
    assert world.state(turn) is State.RUNNING


@pytest.mark.parametrize(
    ("ending", "state"),
    [
        (Ending.SUCCEEDED, State.SUCCEEDED),
        (Ending.FAILED, State.FAILED),
        (Ending.CANCELLED, State.CANCELLED),
    ],
)
def test_a_job_asked_to_stop_may_end_as_it_likes(
    world: World, ending: Ending, state: State
) -> None:
    worker, turn = requested(world)
    assert world.settle(worker, end(turn, ending)) == ["accepted"]
    assert (world.state(turn), world.job(turn).turn) == (state, 1)
    assert world.store.cancel(turn.uuid) is FINISHED


@pytest.mark.parametrize("ending", [Ending.RETRIED, Ending.SNOOZED, Ending.RELEASED])
@pytest.mark.parametrize("delay_s", [0.0, 60.0])
def test_what_would_have_been_another_turn_ends_cancelled(
    world: World, ending: Ending, delay_s: float
) -> None:
    worker, turn = requested(world)
    assert world.settle(worker, end(turn, ending, delay_s=delay_s)) == ["accepted"]
    job = world.job(turn)
    assert (job.state, job.turn, job.attempts) == (State.CANCELLED, 2, 1)
    assert world.settle(worker, end(turn, ending, delay_s=delay_s)) == ["already"]
    assert_never_starts(world, turn)


def test_a_kind_that_nobody_knows_does_not_keep_a_cancelled_job(world: World) -> None:
    worker, turn = requested(world, kind="b")
    world.settle(worker, end(turn, Ending.RELEASED, began=False, reason=NO_WORKER))
    assert_never_starts(world, turn)


@pytest.mark.parametrize("begun", [True, False])
def test_a_job_asked_to_stop_ends_cancelled_when_its_worker_dies(
    world: World, *, begun: bool
) -> None:
    worker, turn = requested(world)
    expired = world.store.expire(worker, beat=None, begun=[turn[2:4]] if begun else [])
    assert expired == (0, 0, 0, 1)
    assert (world.state(turn), world.job(turn).turn) == (State.CANCELLED, 2)
    assert_never_starts(world, turn)


@pytest.mark.parametrize("fields", [{"max_crashes": 1}, {"delivery": Delivery.AT_MOST_ONCE}])
def test_a_crash_that_fails_a_job_says_more_than_the_cancel_that_was_asked_for(
    world: World, fields: dict
) -> None:
    worker, turn = requested(world, **fields)
    assert world.store.expire(worker, beat=None, begun=None) == (0, 0, 1, 0)
    assert (world.state(turn), world.job(turn).turn) == (State.FAILED, 1)


def test_a_request_is_for_one_job_only(world: World) -> None:
    worker, turn = requested(world)
    other = world.start(worker)
    world.settle(worker, end(turn, Ending.RELEASED), end(other, Ending.RELEASED))
    assert [t.uuid for t in world.claim(worker)] == [other.uuid]


def test_the_request_can_be_read_while_that_turn_runs_and_no_longer(world: World) -> None:
    worker, turn = requested(world)
    other = world.start(worker)
    running = {turn[2:4], other[2:4]}
    assert world.store.cancels(running) == {turn[2:4]}
    assert world.store.cancels({(turn.job_id, turn.turn + 1)}) == set()
    assert world.store.cancels(set()) == set()
