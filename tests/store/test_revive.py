"""Reviving: what has ended without success starts again, and nothing is forgotten."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.store.world import World, end

from timeball.core.audit import audit
from timeball.core.records import (
    CancelAnswer,
    Delivery,
    Turn,
)
from timeball.core.states import Ending, State
from timeball.core.upkeep import ReviveAnswer
from timeball.store.base import NO_WORKER

REVIVED, REFUSED, NOT_FOUND = ReviveAnswer.REVIVED, ReviveAnswer.REFUSED, ReviveAnswer.NOT_FOUND


def revive(world: World, *jobs) -> list[ReviveAnswer]:
    return world.store.revive([job.uuid if isinstance(job, Turn) else job for job in jobs])


def failed(world: World, worker: int, **fields) -> Turn:
    turn = world.start(worker, **fields)
    world.settle(worker, end(turn, Ending.FAILED, reason="permanent", error="no such user"))
    return turn


@pytest.mark.parametrize("ending", [Ending.FAILED, Ending.CANCELLED])
def test_a_job_that_ended_without_success_starts_again(world: World, ending: Ending) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, ending))
    assert revive(world, turn) == [REVIVED]
    assert world.state(turn) is State.PENDING
    (again,) = world.claim(worker)
    assert (again.uuid, again.turn, again.attempts) == (turn.uuid, 2, 1)
    assert world.settle(worker, end(again)) == ["accepted"]
    assert world.state(turn) is State.SUCCEEDED


def test_a_job_cancelled_in_its_queue_starts_again(world: World) -> None:
    uuid = world.submit()
    world.store.cancel(uuid)
    assert revive(world, uuid) == [REVIVED]
    (turn,) = world.claim(world.worker())
    assert (turn.uuid, turn.turn, turn.attempts) == (uuid, 2, 0)


def test_a_job_cancelled_before_its_time_starts_at_once(world: World) -> None:
    uuid = world.submit(run_at=world.later(3_600))
    world.store.cancel(uuid)
    assert revive(world, uuid) == [REVIVED]
    assert world.order(world.worker()) == [uuid]


def test_a_revived_job_goes_to_the_back(world: World) -> None:
    worker = world.worker()
    turn = failed(world, worker)
    other = world.submit()
    revive(world, turn)
    assert world.order(worker) == [other, turn.uuid]


@pytest.mark.parametrize("state", ["pending", "scheduled", "running", "succeeded"])
def test_only_what_ended_without_success_is_revived(world: World, state: str) -> None:
    uuid = world.submit(run_at=world.later(60) if state == "scheduled" else None)
    if state in {"running", "succeeded"}:
        worker = world.worker()
        (turn,) = world.claim(worker)
        if state == "succeeded":
            world.settle(worker, end(turn))
    assert revive(world, uuid) == [REFUSED]
    assert world.state(uuid) == state


def test_a_job_that_never_was_is_not_found(world: World) -> None:
    assert revive(world, uuid4()) == [NOT_FOUND]


def test_many_are_revived_in_the_order_of_their_ids(world: World) -> None:
    jobs = [world.submit() for _ in range(4)]
    for job in jobs[:3]:
        world.store.cancel(job)
    asked = [jobs[2], uuid4(), jobs[3], jobs[0], jobs[1]]
    assert revive(world, *asked) == [REVIVED, NOT_FOUND, REFUSED, REVIVED, REVIVED]
    assert world.order(world.worker()) == [jobs[3], *jobs[:3]]


def test_a_job_is_revived_once_however_often_it_is_asked_for(world: World) -> None:
    uuid = world.submit()
    world.store.cancel(uuid)
    assert revive(world, uuid) == [REVIVED]
    assert revive(world, uuid) == [REFUSED]
    assert len(world.claim(world.worker())) == 1


def test_the_retries_of_a_revived_job_are_whole_again_and_its_history_stays(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker, max_retries=1)
    for ending in (Ending.RETRIED, Ending.FAILED) * 2:
        assert turn.failures == (0 if ending is Ending.RETRIED else 1)
        world.settle(worker, end(turn, ending, reason="exhausted" if ending == "failed" else None))
        if ending is Ending.FAILED and turn.turn == 2:
            assert revive(world, turn) == [REVIVED]
        world.store.promote(10)
        turn = next(iter(world.claim(worker)), turn)
    job = world.job(turn)
    assert (job.state, job.turn, job.attempts, job.failures) == (State.FAILED, 4, 4, 4)
    (history,) = world.store.histories()
    assert [row.turn for row in history.revivals] == [2]
    assert audit([history], quiesced=True).twice == 0


def test_the_crashes_of_a_revived_job_are_forgiven(world: World) -> None:
    uuid = world.submit(max_crashes=2)
    for answer in [(0, 1, 0, 0), (0, 0, 1, 0)] * 2:
        worker = world.worker()
        world.claim(worker)
        assert world.store.expire(worker, beat=None, begun=None) == answer
        if answer[2]:
            assert world.job(uuid).reason == "quarantined"
            revive(world, uuid)
    assert world.job(uuid).crashes == 4


def test_a_job_that_runs_at_most_once_runs_again_at_an_operators_word(world: World) -> None:
    worker = world.worker()
    turn = failed(world, worker, delivery=Delivery.AT_MOST_ONCE)
    assert revive(world, turn) == [REVIVED]
    assert len(world.claim(worker)) == 1


def test_a_request_to_stop_does_not_outlive_its_job(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.store.cancel(turn.uuid)
    world.settle(worker, end(turn, Ending.CANCELLED))
    revive(world, turn)
    (again,) = world.claim(worker)
    world.settle(worker, end(again, Ending.RELEASED))
    assert world.state(turn) is State.PENDING
    assert world.store.cancel(turn.uuid) is CancelAnswer.CANCELLED
    assert [len(history.cancels_requested_at) for history in world.store.histories()] == [1]


def test_a_revived_job_has_not_ended(world: World) -> None:
    worker = world.worker()
    turn = failed(world, worker)
    assert world.store.ended([turn.uuid]) == {turn.uuid}
    revive(world, turn)
    for begun in (False, True):
        if begun:
            assert len(world.claim(worker)) == 1
        assert world.store.ended([turn.uuid]) == set()
        state = State.RUNNING if begun else State.PENDING
        assert (world.job(turn).ended_at, world.store.counts()) == (None, {state: 1})


def test_a_zombie_of_an_earlier_life_changes_nothing(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker, max_crashes=1)
    world.store.expire(worker, beat=None, begun=None)
    revive(world, turn)
    assert world.settle(worker, end(turn)) == ["stale"]
    assert world.state(turn) is State.PENDING


def test_a_revived_job_of_an_unknown_kind_waits_for_who_knows_it(world: World) -> None:
    uuid = world.submit("b")
    world.store.cancel(uuid)
    revive(world, uuid)
    worker = world.worker()
    (turn,) = world.claim(worker)
    world.settle(worker, end(turn, Ending.RELEASED, began=False, reason=NO_WORKER))
    assert world.order(world.worker("b")) == [uuid]
