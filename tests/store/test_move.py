"""Moving: a job that has not begun waits in another lane, at its back."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from tests.store.world import World, end

from timeball.core.limits import Scope
from timeball.core.rate import Rate
from timeball.core.records import CancelAnswer, Turn
from timeball.core.states import Ending, State
from timeball.core.upkeep import MoveAnswer, ReviveAnswer
from timeball.store.base import NO_WORKER, JobFilter
from timeball.store.limiting import RATE_SPENT

MOVED, RUNNING = MoveAnswer.MOVED, MoveAnswer.RUNNING


def move(
    world: World, job: UUID | Turn, queue: str | None = None, priority: int | None = None
) -> MoveAnswer:
    uuid = job if isinstance(job, UUID) else job.uuid
    return world.store.move(uuid, queue=queue, priority=priority)


def place(world: World, job: UUID | Turn) -> tuple[str, int]:
    found = world.job(job)
    return found.queue, found.priority


def rated(world: World, queue: str, worker: int | None = None) -> list[Turn]:
    """Claim as a worker does that has a permit for the queue."""
    worker = worker or world.worker(queues=[queue])
    return world.store.claim(worker, limit=9, request=uuid4(), floors={}, permits={queue: 1})


def depths(world: World) -> dict[str, tuple[int, int, int]]:
    """How many jobs of each queue are pending, held and running; all three where any is."""
    found = {q.name: (q.pending, q.held, q.running) for q in world.store.queues()}
    return {name: counts for name, counts in found.items() if any(counts)}


def test_a_pending_job_goes_to_the_back_of_its_new_lane(world: World) -> None:
    job, there = world.submit(), world.submit(queue="other")
    assert move(world, job, "other") is MOVED
    assert (place(world, job), world.job(job).turn) == (("other", 5), 2)
    assert world.order(world.worker()) == []
    assert world.order(world.worker(queues=["other"])) == [there, job]
    assert world.violations() == []


def test_its_turn_ends_moved_and_the_next_one_is_granted_once(world: World) -> None:
    job = world.submit()
    move(world, job, priority=9)
    (turn,) = world.claim(world.worker())
    assert (turn.uuid, turn.turn, turn.attempts) == (job, 2, 0)
    (history,) = world.store.histories()
    assert [(row.turn, row.ending) for row in history.endings] == [(1, Ending.MOVED)]
    assert [entry.turn for entry in history.entries] == [1, 2]
    assert [grant.turn for grant in history.grants] == [2]
    assert world.violations() == []


def test_a_queue_or_a_class_that_is_not_named_stays(world: World) -> None:
    job = world.submit(queue="x", priority=7)
    move(world, job, "y")
    assert place(world, job) == ("y", 7)
    move(world, job, priority=2)
    assert place(world, job) == ("y", 2)


def test_to_move_a_job_to_where_it_is_changes_nothing(world: World) -> None:
    first, _ = world.submit(), world.submit()
    assert move(world, first, "default", 5) is MOVED
    assert world.job(first).turn == 1
    assert world.order(world.worker())[0] == first


def test_a_scheduled_job_keeps_its_instant_and_its_turn(world: World) -> None:
    job = world.submit(run_at=world.later(60))
    assert move(world, job, "other", 9) is MOVED
    found = world.job(job)
    assert (found.state, found.turn, place(world, job)) == (State.SCHEDULED, 1, ("other", 9))
    assert depths(world) == {"other": (0, 1, 0)}
    world.travel(60)
    world.store.promote(10)
    assert world.order(world.worker(queues=["other"])) == [job]
    assert world.violations() == []


def test_a_job_that_waits_for_a_worker_comes_back_where_it_was_moved(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker, "b")
    world.settle(worker, end(turn, Ending.RELEASED, began=False, reason=NO_WORKER))
    move(world, turn, "other")
    assert world.order(world.worker("b", queues=["other"])) == [turn.uuid]


def test_retries_follow_it(world: World) -> None:
    job = world.submit(max_retries=3)
    move(world, job, "other", 2)
    worker = world.worker(queues=["other"])
    for failures in (1, 2):
        (turn,) = world.claim(worker)
        world.settle(worker, end(turn, Ending.RETRIED, delay_s=0.0))
        world.store.promote(10)
        assert (place(world, job), world.job(job).failures) == (("other", 2), failures)


def test_a_retry_that_was_moved_while_it_was_due_later_keeps_its_counts(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker, max_retries=3)
    world.settle(worker, end(turn, Ending.RETRIED, delay_s=10.0))
    move(world, turn, "other")
    world.travel(10)
    world.store.promote(10)
    (again,) = world.claim(world.worker(queues=["other"]))
    assert (again.turn, again.failures, again.attempts, again.delay_s) == (2, 1, 1, 10.0)


@pytest.mark.parametrize("early", [True, False])
def test_a_revived_job_lines_up_where_it_was_last(world: World, *, early: bool) -> None:
    job = world.submit(run_at=world.later(60) if early else None)
    move(world, job, "other")
    world.store.cancel(job)
    assert place(world, job) == ("other", 5)
    assert world.store.counts("other") == {State.CANCELLED: 1}
    assert world.store.revive([job]) == [ReviveAnswer.REVIVED]
    assert world.order(world.worker(queues=["other"])) == [job]
    assert world.violations() == []


def test_lists_and_counts_go_by_where_it_is_now(world: World) -> None:
    job = world.submit()
    move(world, job, "other")
    assert [j.uuid for j in world.store.jobs(JobFilter(queue="other"))] == [job]
    assert world.store.jobs(JobFilter(queue="default")) == []
    assert (world.store.counts("other"), world.store.counts("default")) == ({State.PENDING: 1}, {})
    assert depths(world) == {"other": (1, 0, 0)}


def test_what_runs_or_has_ended_stays_where_it_is(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    assert move(world, turn, "other") is RUNNING
    world.settle(worker, end(turn))
    assert move(world, turn, "other") is MoveAnswer.FINISHED
    assert move(world, uuid4(), "other") is MoveAnswer.NOT_FOUND
    assert (place(world, turn), world.job(turn).turn) == (("default", 5), 1)


def test_a_moved_job_can_be_cancelled_and_never_starts(world: World) -> None:
    job = world.submit()
    move(world, job, "other")
    assert world.store.cancel(job) is CancelAnswer.CANCELLED
    assert world.order(world.worker(queues=["default", "other"])) == []
    assert world.violations() == []


def test_it_takes_the_slot_of_its_key_along(world: World) -> None:
    world.worker(queues=["default", "other"])
    first, second = world.submit(key="k"), world.submit(key="k")
    world.store.promote(10)
    move(world, first, "other")
    world.store.promote(10)
    other = world.worker(queues=["other"])
    (turn,) = world.claim(other)
    assert (turn.uuid, turn.limited) == (first, True)
    assert world.order(world.worker()) == []
    world.settle(other, end(turn))
    assert world.order(world.worker()) == [second]
    assert world.violations() == []


def test_one_that_waits_for_its_key_is_let_in_where_it_was_moved(world: World) -> None:
    worker = world.worker(queues=["default", "other"])
    first, second = world.submit(key="k"), world.submit(key="k")
    move(world, second, "other")
    (turn,) = world.claim(worker)
    assert turn.uuid == first
    world.settle(worker, end(turn))
    assert world.order(world.worker(queues=["other"])) == [second]


def test_it_counts_against_the_limit_of_its_new_queue(world: World) -> None:
    world.store.limit(Scope.QUEUE, "other", 1)
    jobs = [world.submit(), world.submit()]
    for job in jobs:
        move(world, job, "other")
    worker = world.worker(queues=["other"])
    (turn,) = world.claim(worker)
    world.settle(worker, end(turn))
    assert world.order(worker) == jobs[1:]
    assert world.violations() == []


def test_a_paused_and_full_queue_takes_what_an_operator_moves(world: World) -> None:
    world.submit(queue="other")
    world.store.bound_queue("other", 1)
    world.store.pause_queue("other", "ann")
    job = world.submit()
    assert move(world, job, "other") is MOVED
    assert world.job(job).reason == "paused"
    worker = world.worker(queues=["other"])
    assert world.order(worker) == []
    world.store.resume_queue("other")
    assert len(world.order(worker)) == 2


def test_a_job_moved_out_of_a_paused_queue_starts(world: World) -> None:
    job = world.submit()
    world.store.pause_queue("default", "ann")
    move(world, job, "other")
    assert world.order(world.worker(queues=["default", "other"])) == [job]


def test_its_deadline_goes_along(world: World) -> None:
    job = world.submit(expires_at=world.later(60))
    move(world, job, "other")
    world.travel(60)
    assert world.order(world.worker(queues=["other"])) == []
    world.store.lapse(10)
    assert world.state(job) is State.SKIPPED
    assert world.violations() == []


def test_a_moved_job_is_deleted_with_all_that_is_known_of_it(world: World) -> None:
    job = world.submit()
    move(world, job, "other")
    worker = world.worker(queues=["default", "other"])
    (turn,) = world.claim(worker)
    world.settle(worker, end(turn))
    world.store.delete([job])
    again = world.submit(uuid=job)
    assert place(world, again) == ("default", 5)
    assert world.order(worker) == [again]


def test_the_rates_of_the_queue_that_it_is_in_are_those_that_it_needs(world: World) -> None:
    for queue in ("default", "other"):
        world.store.limit_starts(Scope.QUEUE, queue, Rate(5))
    job = world.submit()
    move(world, job, "other")
    (turn,) = rated(world, "other")
    assert list(turn.rates) == ["queue:other"]


@pytest.mark.parametrize(("queue", "names"), [("other", ["queue:other"]), ("free", [])])
def test_one_that_waits_for_a_rate_waits_for_that_of_its_new_queue_or_for_none(
    world: World, queue: str, names: list[str]
) -> None:
    for name in ("default", "other"):
        world.store.limit_starts(Scope.QUEUE, name, Rate(5))
    first = world.worker()
    job = world.submit()
    (turn,) = rated(world, "default", first)
    world.settle(first, end(turn, Ending.RELEASED, began=False, reason=RATE_SPENT))
    assert world.job(job).reason == RATE_SPENT
    move(world, job, queue)
    (again,) = rated(world, queue)
    assert (again.turn, list(again.rates), again.waited) == (2, names, True)
    assert world.violations() == []
