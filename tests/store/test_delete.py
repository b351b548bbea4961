"""Deleting: what has ended goes with its history, what has not stays, and nothing comes back."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest
from tests.store.world import World, end

from timeball.core.audit import audit
from timeball.core.records import (
    CancelAnswer,
    Turn,
)
from timeball.core.states import Ending, State
from timeball.core.upkeep import DeleteAnswer, Keep
from timeball.errors import JobNotFound
from timeball.store.base import JobFilter

DELETED, REFUSED, NOT_FOUND = DeleteAnswer.DELETED, DeleteAnswer.REFUSED, DeleteAnswer.NOT_FOUND
DAY_S = 86_400.0


def delete(world: World, *jobs) -> Sequence[DeleteAnswer]:
    return world.store.delete([job.uuid if isinstance(job, Turn) else job for job in jobs])


def ended(world: World, ending: Ending = Ending.SUCCEEDED) -> UUID:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, ending))
    return turn.uuid


def trim(world: World, keep: Keep, limit: int = 500) -> int:
    """Look once at everything; return how many were deleted."""
    after: tuple[int, ...] | None = ()
    deleted = 0
    while after is not None:
        trimmed = world.store.trim(keep, after=after, limit=limit)
        deleted, after = deleted + trimmed.deleted, trimmed.after
    return deleted


@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED, Ending.CANCELLED])
def test_a_job_that_has_ended_goes_with_its_history(world: World, ending: Ending) -> None:
    uuid = ended(world, ending)
    assert delete(world, uuid) == [DELETED]
    with pytest.raises(JobNotFound):
        world.store.get(uuid)
    assert list(world.store.histories()) == []
    assert world.store.counts() == {}
    assert delete(world, uuid) == [NOT_FOUND]


@pytest.mark.parametrize("state", ["pending", "scheduled", "running", "revived"])
def test_a_job_that_has_not_ended_stays(world: World, state: str) -> None:
    uuid = world.submit(run_at=world.later(60) if state == "scheduled" else None)
    if state == "running":
        world.claim(world.worker())
    if state == "revived":
        world.store.cancel(uuid)
        world.store.revive([uuid])
    before = world.job(uuid)
    assert delete(world, uuid) == [REFUSED]
    assert world.job(uuid) == before


def test_a_job_that_never_was_is_not_found(world: World) -> None:
    assert delete(world, uuid4()) == [NOT_FOUND]


def test_each_of_many_has_its_answer(world: World) -> None:
    gone, other = ended(world), ended(world)
    open_ = world.submit()
    assert delete(world, other, open_, uuid4(), gone) == [DELETED, REFUSED, NOT_FOUND, DELETED]
    assert world.order(world.worker()) == [open_]


def test_a_job_cancelled_in_its_queue_and_deleted_never_starts(world: World) -> None:
    jobs = [world.submit() for _ in range(3)]
    world.store.cancel(jobs[1])
    assert delete(world, jobs[1]) == [DELETED]
    assert world.order(world.worker()) == [jobs[0], jobs[2]]


def test_the_counts_add_up_to_what_was_accepted_and_not_deleted(world: World) -> None:
    uuids = [ended(world) for _ in range(4)]
    delete(world, *uuids[:3])
    assert world.store.deleted() == 3
    histories = list(world.store.histories())
    assert audit(histories, quiesced=True, accepted=4, deleted=3).clean
    assert not audit(histories, quiesced=True, accepted=4, deleted=2).clean


@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED, Ending.RETRIED])
def test_a_settlement_sent_again_does_not_bring_a_deleted_job_back(
    world: World, ending: Ending
) -> None:
    worker = world.worker()
    turn, other = world.start(worker), world.start(worker)
    world.settle(worker, end(turn, Ending.FAILED))
    delete(world, turn)
    assert world.settle(worker, end(turn, ending), end(other)) == ["stale", "accepted"]
    assert world.store.counts() == {State.SUCCEEDED: 1}
    assert len(list(world.store.histories())) == 1


def test_a_zombie_of_a_deleted_job_changes_nothing(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker, max_crashes=1)
    world.store.expire(worker, beat=None, begun=None)
    delete(world, turn)
    assert world.settle(worker, end(turn)) == ["stale"]
    assert world.store.counts() == {}


def test_who_dies_after_its_job_was_deleted_loses_only_the_others(world: World) -> None:
    worker = world.worker()
    for _ in range(2):
        world.submit()
    gone, open_ = world.claim(worker)
    world.settle(worker, end(gone))
    delete(world, gone)
    assert world.store.expire(worker, beat=None, begun=None) == (0, 1, 0, 0)
    assert world.order(world.worker()) == [open_.uuid]


def test_a_deleted_job_cannot_be_cancelled_or_revived(world: World) -> None:
    uuid = ended(world, Ending.FAILED)
    delete(world, uuid)
    assert world.store.cancel(uuid) is CancelAnswer.NOT_FOUND
    assert world.store.revive([uuid]) == ["not_found"]


def test_the_uuid_of_a_deleted_job_is_free(world: World) -> None:
    uuid = ended(world)
    before = world.job(uuid).id
    delete(world, uuid)
    world.submit(uuid=uuid)
    assert world.job(uuid).id > before
    assert world.order(world.worker()) == [uuid]


# Retention ----------------------------------------------------------------------------------


def test_ended_jobs_are_kept_for_a_while_and_open_ones_for_ever(world: World) -> None:
    ended(world)
    failed, pending = ended(world, Ending.FAILED), world.submit()
    scheduled = world.submit(run_at=world.later(100 * DAY_S))
    assert trim(world, Keep()) == 0
    world.travel(7 * DAY_S)
    assert trim(world, Keep()) == 1
    assert world.state(failed) is State.FAILED
    world.travel(23 * DAY_S)
    assert trim(world, Keep()) == 1
    assert {job.uuid for job in world.store.jobs(JobFilter())} == {pending, scheduled}


def test_a_look_deletes_a_few_at_a_time(world: World) -> None:
    for _ in range(5):
        ended(world)
    world.travel(8 * DAY_S)
    first = world.store.trim(Keep(), limit=2)
    assert first.deleted == 2
    assert first.after is not None
    assert world.store.trim(Keep(), after=first.after, limit=2).deleted == 2
    assert trim(world, Keep(), limit=2) == 1


def test_what_is_kept_for_ever_stays(world: World) -> None:
    uuid, _ = ended(world), ended(world, Ending.FAILED)
    world.travel(1_000 * DAY_S)
    assert trim(world, Keep(None, None)) == 0
    assert trim(world, Keep(None, 30 * DAY_S)) == 1
    assert world.state(uuid) is State.SUCCEEDED


def test_a_revived_job_is_as_old_as_its_last_ending(world: World) -> None:
    uuid = ended(world, Ending.FAILED)
    world.travel(29 * DAY_S)
    world.store.revive([uuid])
    world.travel(29 * DAY_S)
    assert trim(world, Keep()) == 0
    worker = world.worker()
    (turn,) = world.claim(worker)
    world.settle(worker, end(turn, Ending.FAILED))
    world.travel(29 * DAY_S)
    assert trim(world, Keep()) == 0
    world.travel(1 * DAY_S)
    assert trim(world, Keep()) == 1


def test_work_goes_on_after_all_was_deleted(world: World) -> None:
    for _ in range(3):
        ended(world)
    world.travel(8 * DAY_S)
    assert trim(world, Keep()) == 3
    jobs = [world.submit() for _ in range(2)]
    assert world.order(world.worker()) == jobs
