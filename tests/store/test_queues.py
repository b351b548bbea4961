"""Queues as a whole: pausing them, what is told of them, and the order of their lanes."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.store.world import NOON, World, end, schedule, uuids

from timeball.core.queues import COUNT_MAX, QUEUE_PAUSED, Queue
from timeball.core.records import JobSpec, Standing
from timeball.core.states import Ending, State
from timeball.errors import QueueFull
from timeball.store.base import JobFilter, schedule_job

# Pausing


def test_of_a_paused_queue_nothing_is_granted_until_it_is_resumed(world: World) -> None:
    worker = world.worker()
    jobs = [world.submit(), world.submit()]
    assert world.store.pause_queue("default", "ann")
    jobs.append(world.submit())
    assert world.claim(worker) == []
    assert world.store.resume_queue("default")
    assert world.order(worker) == jobs


def test_a_pause_holds_for_priorities_that_come_later_too(world: World) -> None:
    worker = world.worker()
    world.store.pause_queue("default", "ann")
    job = world.submit(priority=9)
    assert world.claim(worker) == []
    world.store.resume_queue("default")
    assert world.order(worker) == [job]


def test_other_queues_go_on_whatever_waits_in_a_paused_one(world: World) -> None:
    worker = world.worker(queues=("default", "other"))
    world.submit(priority=9)
    world.store.pause_queue("default", "ann")
    other = world.submit(queue="other", priority=0)
    assert world.order(worker) == [other]


def test_what_was_granted_before_a_pause_goes_on_and_what_follows_waits(world: World) -> None:
    worker = world.worker()
    turns = [world.start(worker) for _ in range(3)]
    world.store.pause_queue("default", "ann")
    words = (end(turns[0]), end(turns[1], Ending.RETRIED), end(turns[2], Ending.RELEASED))
    assert world.settle(worker, *words) == ["accepted"] * 3
    world.store.promote(10)
    states = [world.state(turn) for turn in turns]
    assert states == [State.SUCCEEDED, State.PENDING, State.PENDING]
    assert world.claim(worker) == []
    world.store.resume_queue("default")
    assert {turn.uuid for turn in world.claim(worker)} == {turn.uuid for turn in turns[1:]}


def test_a_claim_sent_again_gives_its_batch_although_the_queue_was_paused(world: World) -> None:
    worker, request = world.worker(), uuid4()
    world.submit()
    turns = world.ask(worker, 10, request)
    world.store.pause_queue("default", "ann")
    assert world.ask(worker, 10, request) == turns != []


def test_a_batch_whose_answer_was_lost_is_given_out_although_the_queue_was_paused(
    world: World,
) -> None:
    worker = world.worker()
    world.submit()
    turns = world.ask(worker, 10, uuid4())
    world.store.pause_queue("default", "ann")
    again = world.store.claim(worker, limit=10, request=uuid4(), floors={}, newest={})
    assert again == turns != []


def test_a_job_of_a_paused_queue_does_not_take_the_slot_of_its_key(world: World) -> None:
    worker = world.worker(queues=("default", "other"))
    world.store.pause_queue("default", "ann")
    world.submit(key="k")
    other = world.submit(key="k", queue="other")
    assert uuids(world.claim(worker)) == [other]


def test_a_key_is_looked_at_again_once_its_queue_is_resumed(world: World) -> None:
    worker = world.worker()
    world.store.pause_queue("default", "ann")
    job = world.submit(key="k")
    world.store.resume_queue("default")
    world.store.promote(10)
    assert uuids(world.claim(worker)) == [job]


def test_pausing_twice_keeps_who_was_first_and_resuming_twice_says_so(world: World) -> None:
    assert world.store.pause_queue("default", "ann")
    world.travel(5)
    assert not world.store.pause_queue("default", "bob")
    (queue,) = world.store.queues()
    assert (queue.paused_by, queue.paused_at) == ("ann", NOON)
    assert world.store.resume_queue("default")
    assert not world.store.resume_queue("default")
    assert not world.store.resume_queue("never-heard-of")


def test_a_job_of_a_paused_queue_can_be_cancelled_and_lapses(world: World) -> None:
    first, second = world.submit(), world.submit(expires_at=world.later(1))
    world.store.pause_queue("default", "ann")
    assert world.store.cancel(first) == "cancelled"
    world.travel(2)
    assert world.store.lapse(10) == 1
    assert world.state(second) is State.SKIPPED


def test_a_pending_job_of_a_paused_queue_says_why_it_waits_and_others_do_not(world: World) -> None:
    worker = world.worker()
    running = world.start(worker)
    later, pending = world.submit(delay_s=60), world.submit()
    world.store.pause_queue("default", "ann")
    assert [world.job(job).reason for job in (running, later, pending)] == [
        *(None, None, QUEUE_PAUSED)
    ]
    world.store.resume_queue("default")
    assert world.job(pending).reason is None


# What is told of queues


def test_queues_tell_what_waits_what_runs_and_since_when(world: World) -> None:
    worker = world.worker()
    for _ in range(3):
        world.start(worker)
    (done,) = [world.start(worker)]
    world.settle(worker, end(done))
    world.submit(priority=2)
    world.travel(7)
    cancelled = world.submit()
    world.submit(delay_s=60)
    world.submit(queue="mail", priority=9)
    world.store.cancel(cancelled)
    world.store.pause_queue("nobody's", "ann")
    assert [queue._replace(counted_to=COUNT_MAX) for queue in world.store.queues()] == [
        Queue("default", pending=1, held=1, running=3, oldest_s=7.0),
        Queue("mail", pending=1, held=0, running=0, oldest_s=0.0),
        Queue("nobody's", 0, 0, 0, None, world.store.now(), "ann"),
    ]


# Depth


def test_a_queue_takes_so_many_and_refuses_more_with_all_of_a_submission(world: World) -> None:
    world.store.bound_queue("mail", 3)
    kept = [world.submit(queue="mail"), world.submit(queue="mail", delay_s=60)]
    specs = [JobSpec(uuid=uuid4(), kind="a", queue=queue) for queue in ("mail", "mail", "other")]
    with pytest.raises(QueueFull, match=r"mail is full: 2 jobs wait in it, 2 more .* limit of 3"):
        world.store.submit(specs)
    assert {job.uuid for job in world.store.jobs(JobFilter())} == set(kept)
    world.store.submit(specs[1:])
    with pytest.raises(QueueFull, match="--max-depth"):
        world.submit(queue="mail")
    assert world.store.queues()[0].max_depth == 3


def test_a_queue_has_room_again_for_what_has_started_or_was_cancelled(world: World) -> None:
    world.store.bound_queue("default", 2)
    worker = world.worker()
    first, second = world.submit(), world.submit(delay_s=60)
    world.store.cancel(second)
    world.submit()
    assert len(world.claim(worker, 1)) == 1
    world.submit()
    with pytest.raises(QueueFull):
        world.submit()
    assert world.state(first) is State.RUNNING
    world.store.bound_queue("default", None)
    world.submit()


def test_a_job_submitted_again_is_answered_although_its_queue_is_full(world: World) -> None:
    world.store.bound_queue("default", 1)
    spec = JobSpec(uuid=uuid4(), kind="a")
    assert world.store.submit([spec]) == world.store.submit([spec, spec])[:1]


def test_schedules_retries_and_revivals_come_in_whatever_the_depth(world: World) -> None:
    worker = world.worker()
    failed, retried = world.start(worker), world.start(worker)
    world.store.bound_queue("default", 1)
    world.submit()
    world.settle(worker, end(failed, Ending.FAILED), end(retried, Ending.RETRIED))
    assert world.store.revive([failed.uuid]) == ["revived"]
    standing = Standing(NOON, world.later(60))
    world.store.declare(schedule(), standing)
    found = world.store.schedule("hourly")
    world.store.run_now(found, schedule_job(found.spec, uuid4(), "{}"))
    (queue,) = world.store.queues()
    assert queue.pending + queue.held == 4
    with pytest.raises(QueueFull):
        world.submit()


# Ageing


def test_of_equal_age_the_higher_class_goes_first(world: World) -> None:
    low, high = world.submit(priority=2), world.submit(priority=8)
    assert world.order(world.worker()) == [high, low]


@pytest.mark.parametrize(("waited_s", "first"), [(29, "high"), (31, "low")])
def test_a_class_is_worth_ten_seconds_of_waiting(world: World, waited_s: int, first: str) -> None:
    low = world.submit(priority=2)
    world.travel(waited_s)
    high = world.submit(priority=5)
    order = [high, low] if first == "high" else [low, high]
    assert world.order(world.worker()) == order


def test_lanes_of_all_queues_of_a_worker_age_alike(world: World) -> None:
    old = world.submit(queue="other", priority=4)
    world.travel(11)
    new = world.submit(priority=5)
    assert world.order(world.worker(queues=("default", "other"))) == [old, new]


def test_endless_urgent_jobs_do_not_starve_one_of_the_lowest_class(world: World) -> None:
    worker = world.worker()
    low = world.submit(priority=0)
    granted = []
    for _ in range(100):  # as many a second as can be started
        world.submit(priority=9)
        (turn,) = world.claim(worker, 1)
        world.settle(worker, end(turn))
        granted.append(turn.uuid)
        world.travel(1)
    assert granted.index(low) in {90, 91}  # nine classes, ten seconds each


def test_a_job_is_overtaken_only_by_what_became_ready_within_the_worth_of_its_class(
    world: World,
) -> None:
    low = world.submit(priority=4)
    early, late = [], []
    for second in range(20):
        (early if second <= 10 else late).append(world.submit(priority=5))
        world.travel(1)
    worker = world.worker()
    order: list = []
    while len(order) < 21:
        order += uuids(world.claim(worker, 1))
    assert order == [*early, low, *late]


def test_a_worker_may_let_priority_count_for_ever_or_for_nothing(world: World) -> None:
    worker = world.worker()
    low = world.submit(priority=4)
    world.travel(50)
    high = world.submit(priority=5)

    def first(aging_s: float) -> object:
        (turn,) = world.store.claim(worker, limit=1, request=uuid4(), floors={}, aging_s=aging_s)
        return turn.uuid

    assert first(1e9) == high
    world.submit(priority=9)
    assert first(0.0) == low
