"""Staying alive, and what becomes of the turns of a worker that does not."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.store.world import NOON, World, end, uuids

from timeball.core.outcomes import TURN_MAX
from timeball.core.records import Delivery, Expired, JobSpec, Turn
from timeball.core.states import Ending, State
from timeball.store.memory import MemoryStore


def key(turn: Turn) -> tuple[int, int]:
    return turn.job_id, turn.turn


def pulse(world: World, worker: int) -> int | None:
    """The worker's newest beat; None where it is not on the list."""
    beats = {pulse.worker: pulse.beat for pulse in world.store.pulses()}
    return beats.get(worker)


def test_a_beat_shows_in_the_pulses(world: World) -> None:
    one, two = world.worker(), world.worker()
    before = pulse(world, one), pulse(world, two)
    assert world.store.beat([one]) == {one}
    assert pulse(world, one) != before[0]
    assert pulse(world, two) == before[1]
    assert {p.lease_s for p in world.store.pulses()} == {30.0}


def test_only_those_alive_are_told_so(world: World) -> None:
    alive, dead, gone = world.worker(), world.worker(), world.worker()
    world.store.expire(dead, beat=None, begun=None)
    world.store.retire(gone)
    assert world.store.beat([alive, dead, gone, gone + 1_000]) == {alive}
    assert [p.worker for p in world.store.pulses()] == [alive]


def test_a_worker_that_has_beaten_since_is_not_given_up(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    seen = pulse(world, worker)
    world.store.beat([worker])
    assert world.store.expire(worker, beat=seen, begun=None) is None
    assert world.state(turn) is State.RUNNING
    assert world.settle(worker, end(turn)) == ["accepted"]


def test_a_worker_that_has_not_beaten_since_is_given_up_once(world: World) -> None:
    worker = world.worker()
    world.start(worker)
    seen = pulse(world, worker)
    assert world.store.expire(worker, beat=seen, begun=None) == Expired(0, 1, 0, 0)
    assert world.store.expire(worker, beat=seen, begun=None) is None
    assert world.store.expire(worker, beat=None, begun=None) is None


def test_a_worker_that_never_was_cannot_be_given_up(world: World) -> None:
    assert world.store.expire(world.worker() + 1_000, beat=None, begun=None) is None


def test_an_idle_worker_is_given_up_without_a_trace(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn))
    assert world.store.expire(worker, beat=None, begun=None) == Expired(0, 0, 0, 0)
    assert world.state(turn) is State.SUCCEEDED


def test_what_had_begun_is_lost_and_costs_a_crash(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    assert world.store.expire(worker, beat=None, begun=[key(turn)]) == Expired(0, 1, 0, 0)
    assert (world.state(turn), world.job(turn).worker) == (State.PENDING, worker)
    (again,) = world.claim(world.worker())
    assert (again.turn, again.attempts, again.failures, again.crashes) == (2, 1, 0, 1)


def test_a_worker_of_the_same_name_is_another_one(world: World) -> None:
    """It keeps nobody alive who has died, and ends none of his turns."""
    dead = world.worker()
    turn = world.start(dead)
    seen, again = pulse(world, dead), world.worker()
    world.store.beat([again])
    assert world.settle(again, end(turn)) == ["stale"]
    assert world.store.expire(dead, beat=seen, begun=[key(turn)]) == Expired(0, 1, 0, 0)
    (second,) = world.claim(again)
    assert world.settle(dead, end(turn)) == ["stale"]
    assert world.settle(again, end(second)) == ["accepted"]
    assert world.violations() == []


def test_what_had_not_begun_costs_nothing(world: World) -> None:
    worker = world.worker()
    world.start(worker, max_crashes=1, delivery=Delivery.AT_MOST_ONCE)
    assert world.store.expire(worker, beat=None, begun=()) == Expired(1, 0, 0, 0)
    (again,) = world.claim(world.worker())
    assert (again.turn, again.attempts, again.failures, again.crashes) == (2, 0, 0, 0)


def test_where_nothing_is_known_all_had_begun(world: World) -> None:
    worker = world.worker()
    for _ in range(3):
        world.submit()
    world.claim(worker)
    assert world.store.expire(worker, beat=None, begun=None) == Expired(0, 3, 0, 0)


def test_each_open_turn_meets_its_own_fate(world: World) -> None:
    worker = world.worker()
    begun, idle, done, once, asked = (
        world.start(worker, delivery=delivery)
        for delivery in [Delivery.AT_LEAST_ONCE] * 3 + [Delivery.AT_MOST_ONCE, "at_least_once"]
    )
    world.settle(worker, end(done))
    world.store.cancel(asked.uuid)
    expired = world.store.expire(worker, beat=None, begun=[key(begun), key(once), key(done)])
    assert expired == Expired(released=1, lost=1, failed=1, cancelled=1)
    assert [world.state(turn) for turn in (begun, idle, done, once, asked)] == [
        State.PENDING,
        State.PENDING,
        State.SUCCEEDED,
        State.FAILED,
        State.CANCELLED,
    ]


def test_what_is_given_back_goes_to_the_back_by_age(world: World) -> None:
    worker = world.worker()
    one, two = world.start(worker), world.start(worker)
    other = world.submit()
    world.store.expire(worker, beat=None, begun=[key(one)])
    assert world.order(world.worker()) == [other, one.uuid, two.uuid]


def test_a_report_about_another_turn_does_not_count(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, Ending.RELEASED, began=False))
    world.claim(worker)
    assert world.store.expire(worker, beat=None, begun=[key(turn)]) == Expired(1, 0, 0, 0)


@pytest.mark.parametrize("max_crashes", [1, 2, 3])
def test_a_job_that_kills_its_workers_is_quarantined(world: World, max_crashes: int) -> None:
    uuid = world.submit(max_crashes=max_crashes)
    for crash in range(1, max_crashes + 1):
        assert world.state(uuid) is State.PENDING
        worker = world.worker()
        (turn,) = world.claim(worker)
        assert turn.crashes == crash - 1
        world.store.expire(worker, beat=None, begun=None)
    job = world.job(uuid)
    assert (job.state, job.reason, job.worker) == (State.FAILED, "quarantined", worker)
    assert (job.attempts, job.crashes, job.failures) == (max_crashes, max_crashes, 0)
    assert world.claim(world.worker()) == []


def test_crashes_and_failures_are_counted_apart(world: World) -> None:
    uuid = world.submit(max_crashes=2)
    for ending in (Ending.RETRIED, None, Ending.RETRIED):
        worker = world.worker()
        world.store.promote(10)
        (turn,) = world.claim(worker)
        if ending is None:
            world.store.expire(worker, beat=None, begun=None)
        else:
            world.settle(worker, end(turn, ending))
    job = world.job(uuid)
    assert (job.state, job.attempts, job.failures, job.crashes) == (State.SCHEDULED, 3, 2, 1)


def test_what_may_run_once_at_most_is_never_started_again(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker, delivery=Delivery.AT_MOST_ONCE)
    assert world.store.expire(worker, beat=None, begun=[key(turn)]) == Expired(0, 0, 1, 0)
    job = world.job(turn)
    assert (job.state, job.reason, job.attempts, job.crashes) == (State.FAILED, "lost", 1, 1)
    world.travel(3_600)
    assert world.claim(world.worker()) == []


def test_other_workers_keep_what_they_have(world: World) -> None:
    dead, alive = world.worker(), world.worker()
    world.start(dead)
    turn = world.start(alive)
    world.store.expire(dead, beat=None, begun=None)
    assert world.settle(alive, end(turn)) == ["accepted"]


def test_turns_of_every_lane_come_back(world: World) -> None:
    worker = world.worker(queues=["x", "y"])
    jobs = {
        world.submit(queue=queue, priority=priority) for queue in "xy" for priority in (1, 5, 9)
    }
    world.claim(worker)
    world.store.expire(worker, beat=None, begun=None)
    assert set(uuids(world.claim(world.worker(queues=["x", "y"])))) == jobs


def test_turns_of_a_kept_floor_are_given_back_and_those_below_are_not_looked_at(
    world: World,
) -> None:
    worker = world.worker()
    below, above = world.start(worker), world.start(worker)
    world.submit()
    (newest,) = world.store.claim(
        worker, limit=1, request=world.submit(), floors={above.lane: above.seq}
    )
    assert world.store.expire(worker, beat=None, begun=None) == Expired(0, 2, 0, 0)
    assert [world.state(turn) for turn in (below, above, newest)] == [
        State.RUNNING,
        State.PENDING,
        State.PENDING,
    ]
    # Who states a floor says that nothing below it is open: here that was a lie.
    assert world.settle(worker, end(below)) == ["accepted"]


# Leaving ------------------------------------------------------------------------------------


def test_a_worker_that_retires_leaves_the_list(world: World) -> None:
    worker = world.worker()
    world.store.retire(worker)
    world.store.retire(worker)
    assert pulse(world, worker) is None
    assert world.store.expire(worker, beat=None, begun=None) is None


def test_what_a_retiring_worker_left_open_costs_nothing(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.store.retire(worker)
    assert world.settle(worker, end(turn)) == ["stale"]
    (again,) = world.claim(world.worker())
    assert (again.turn, again.attempts, again.crashes) == (2, 0, 0)


def test_retiring_who_never_was_does_nothing(world: World) -> None:
    world.submit()
    world.store.retire(world.worker() + 1_000)
    assert world.store.counts() == {State.PENDING: 1}


@pytest.mark.parametrize("begun", [None, ()])
def test_the_memory_store_counts_no_more_turns_than_the_other_one(begun: tuple | None) -> None:
    store = MemoryStore(lambda: NOON)
    worker = store.register("w", kinds=["a"], queues=["default"], lease_s=30.0)
    spec = JobSpec(uuid=uuid4(), kind="a")
    (added,) = store.submit([spec])
    store._rows[added.id].turn = TURN_MAX
    store.claim(worker, limit=1, request=uuid4(), floors={})
    assert store.expire(worker, beat=None, begun=begun) == Expired(0, 0, 1, 0)
    assert (store.get(spec.uuid).state, store.get(spec.uuid).reason) == (State.FAILED, "turns")
