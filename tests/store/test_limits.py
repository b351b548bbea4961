"""Limits on what is under way at once: per key and per queue, whoever claims."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from tests.store.world import World, end, uuids

from timeball.core.limits import Limit, Scope
from timeball.core.records import CancelAnswer, Turn
from timeball.core.states import Ending, State
from timeball.store.base import KEY_BUSY, NO_WORKER


def submit(world: World, count: int, **fields) -> list[UUID]:
    return [world.submit(**fields) for _ in range(count)]


def drained(world: World, worker: int, upto: int) -> list[UUID]:
    """The order in which all start, with never more than so many at once."""
    order: list[UUID] = []
    while turns := world.claim(worker):
        assert len(turns) <= upto
        order += uuids(turns)
        world.settle(worker, *map(end, turns))
    return order


# Keys


def test_of_a_key_one_job_is_under_way_at_once(world: World) -> None:
    worker = world.worker()
    jobs = submit(world, 3, key="k")
    assert drained(world, worker, upto=1) == jobs


def test_a_key_may_have_more_at_once(world: World) -> None:
    world.store.limit(Scope.KEY, "k", 3)
    worker = world.worker()
    jobs = submit(world, 7, key="k")
    first = world.claim(worker)
    assert uuids(first) == jobs[:3]
    world.settle(worker, end(first[1]))
    (next_,) = world.claim(worker)
    assert next_.uuid == jobs[3]


def test_who_waits_for_his_key_delays_no_other_key_and_nobody_without_one(world: World) -> None:
    worker = world.worker()
    busy = submit(world, 20, key="busy")
    other, plain = world.submit(key="other"), world.submit()
    assert set(uuids(world.claim(worker))) == {busy[0], other, plain}


def test_who_waits_for_his_key_says_so(world: World) -> None:
    world.worker()
    first, second = submit(world, 2, key="k")
    job = world.job(second)
    assert (job.state, job.reason, job.key) == (State.PENDING, KEY_BUSY, "k")
    assert world.job(first).reason is None


def test_the_longest_name_with_a_star_holds_where_a_key_has_no_limit_of_its_own(
    world: World,
) -> None:
    for name, at_once in (("tenant-*", 2), ("tenant-vip-*", 3), ("tenant-vip-1", 4)):
        world.store.limit(Scope.KEY, name, at_once)
    worker = world.worker()
    for key in ("tenant-1", "tenant-vip-1", "tenant-vip-2", "else"):
        submit(world, 5, key=key)
    claimed = [world.job(turn).key for turn in world.claim(worker)]
    counts = [claimed.count(key) for key in ("tenant-1", "tenant-vip-1", "tenant-vip-2", "else")]
    assert counts == [2, 4, 3, 1]
    assert world.store.limits()[0] == Limit(Scope.KEY, "tenant-*", 2, used=9)


def test_of_those_who_wait_for_a_key_the_most_urgent_goes_first(world: World) -> None:
    worker = world.worker()
    running, low = submit(world, 2, key="k", priority=2)
    high = world.submit(key="k", priority=8)
    assert drained(world, worker, upto=1) == [running, high, low]


@pytest.mark.parametrize(
    ("ending", "how"),
    [
        (Ending.FAILED, {}),
        (Ending.CANCELLED, {}),
        (Ending.RETRIED, {"delay_s": 60.0}),
        (Ending.SNOOZED, {"delay_s": 60.0}),
        (Ending.RELEASED, {"reason": NO_WORKER, "began": False}),
    ],
)
def test_a_turn_that_ends_in_whatever_way_makes_room(
    world: World, ending: Ending, how: dict
) -> None:
    worker = world.worker()
    _, second = submit(world, 2, key="k")
    (turn,) = world.claim(worker)
    world.settle(worker, end(turn, ending, **how))
    assert uuids(world.claim(worker)) == [second]


def test_a_job_that_comes_again_waits_behind_those_that_wait_for_its_key(world: World) -> None:
    worker = world.worker()
    first, second, third = submit(world, 3, key="k")
    (turn,) = world.claim(worker)
    world.travel(1)
    world.settle(worker, end(turn, Ending.RELEASED))
    assert drained(world, worker, upto=1) == [second, third, first]


def test_a_retry_that_falls_due_waits_for_its_key(world: World) -> None:
    worker = world.worker()
    first, second = submit(world, 2, key="k")
    (turn,) = world.claim(worker)
    world.settle(worker, end(turn, Ending.RETRIED, delay_s=5.0))
    (other,) = world.claim(worker)
    world.travel(10)
    assert world.store.promote(100).moved == 0
    assert world.job(first).reason == KEY_BUSY
    world.settle(worker, end(other))
    assert uuids(world.claim(worker)) == [first]
    assert other.uuid == second


def test_a_scheduled_job_takes_its_slot_when_it_falls_due(world: World) -> None:
    worker = world.worker()
    later = world.submit(key="k", run_at=world.later(60))
    now = world.submit(key="k")
    assert uuids(world.claim(worker)) == [now]
    world.travel(61)
    world.store.promote(100)
    assert world.claim(worker) == []
    assert world.job(later).reason == KEY_BUSY


def test_a_hundred_times_the_holder_is_cancelled_or_dies(world: World) -> None:
    submit(world, 101, key="k", max_crashes=1)
    for number in range(100):
        worker = world.worker()
        world.store.promote(100)
        (turn,) = world.claim(worker)
        if number % 2:
            assert world.store.cancel(turn.uuid) is CancelAnswer.REQUESTED
            world.settle(worker, end(turn, Ending.CANCELLED))
            world.store.retire(worker)
        else:
            world.store.expire(worker, beat=None, begun=None)
        held = [row for row in world.store.holdings() if row.until is None]
        assert len(held) <= 1
        assert world.store.counts().get(State.RUNNING, 0) == 0
    last = world.worker()
    world.store.promote(100)
    assert len(world.claim(last)) == 1
    assert [row.until for row in world.store.holdings()].count(None) == 1


def test_cancelling_one_that_has_room_and_was_not_claimed_gives_it_to_the_next(
    world: World,
) -> None:
    worker = world.worker()
    first, second, third = submit(world, 3, key="k")
    assert world.store.cancel(first) is CancelAnswer.CANCELLED
    assert world.store.cancel(third) is CancelAnswer.CANCELLED
    assert uuids(world.claim(worker)) == [second]


def test_a_revived_job_waits_for_its_key(world: World) -> None:
    worker = world.worker()
    failed = world.start(worker, key="k", max_retries=0)
    world.settle(worker, end(failed, Ending.FAILED))
    running = world.start(worker, key="k")
    world.store.revive([failed.uuid])
    assert (world.job(failed).state, world.job(failed).reason) == (State.PENDING, KEY_BUSY)
    assert world.store.counts() == {State.PENDING: 1, State.RUNNING: 1}
    assert world.claim(worker) == []
    world.settle(worker, end(running))
    assert uuids(world.claim(worker)) == [failed.uuid]


def test_a_job_revived_and_then_cancelled_while_it_waits_is_one_job(world: World) -> None:
    worker = world.worker()
    failed = world.start(worker, key="k", max_retries=0)
    world.settle(worker, end(failed, Ending.FAILED))
    world.start(worker, key="k")
    world.store.revive([failed.uuid])
    assert world.store.cancel(failed.uuid) is CancelAnswer.CANCELLED
    assert world.store.counts() == {State.CANCELLED: 1, State.RUNNING: 1}
    assert world.store.ended([failed.uuid]) == {failed.uuid}


def test_no_slot_is_held_by_a_job_that_nobody_could_start(world: World) -> None:
    worker = world.worker()
    nowhere = world.submit(key="k", queue="nobody-serves-it")
    here = world.submit(key="k")
    assert uuids(world.claim(worker)) == [here]
    assert world.job(nowhere).reason == KEY_BUSY


def test_a_worker_that_comes_finds_who_waited_for_one(world: World) -> None:
    job = world.submit(key="k")
    worker = world.worker()
    assert world.store.promote(100).moved == 1
    assert uuids(world.claim(worker)) == [job]


def test_a_lower_limit_lets_those_under_way_end(world: World) -> None:
    world.store.limit(Scope.KEY, "k", 3)
    worker = world.worker()
    jobs = submit(world, 6, key="k")
    first = world.claim(worker)
    world.store.limit(Scope.KEY, "k", 1)
    for turn in first[:2]:
        world.settle(worker, end(turn))
        assert world.claim(worker) == []
    world.settle(worker, end(first[2]))
    assert uuids(world.claim(worker)) == [jobs[3]]


def test_a_higher_limit_is_seen_by_the_next_promotion(world: World) -> None:
    worker = world.worker()
    submit(world, 5, key="k")
    world.store.limit(Scope.KEY, "k", 4)
    assert world.store.promote(100).moved == 3
    assert len(world.claim(worker)) == 4
    world.store.limit(Scope.KEY, "k", None)
    assert world.store.limits() == []


def test_a_deadline_that_passes_gives_the_slot_back(world: World) -> None:
    worker = world.worker()
    for key in ("met", "found"):
        submit(world, 1, key=key, expires_at=world.later(5), queue="default")
        submit(world, 1, key=key)
    world.travel(10)
    assert world.claim(worker, 1) == []  # it meets both, and skips them
    assert world.store.promote(100).moved == 2
    assert len(world.claim(worker)) == 2


def test_a_deadline_that_a_look_finds_gives_the_slot_back(world: World) -> None:
    worker = world.worker()
    submit(world, 1, key="k", expires_at=world.later(5))
    waiting, late = submit(world, 1, key="k"), submit(world, 1, key="k", expires_at=world.later(5))
    world.travel(10)
    assert world.store.lapse(100) == 2
    assert world.state(late[0]) is State.SKIPPED
    world.store.promote(100)
    assert uuids(world.claim(worker)) == waiting


# Queues


def test_of_a_queue_no_more_are_granted_than_its_limit(world: World) -> None:
    world.store.limit(Scope.QUEUE, "default", 3)
    one, two = world.worker(), world.worker()
    jobs = submit(world, 7)
    first, second = world.claim(one, 2), world.claim(two)
    assert (uuids(first), uuids(second)) == (jobs[:2], [jobs[2]])
    assert world.claim(one) == []
    world.settle(one, end(first[0]))
    assert uuids(world.claim(two)) == [jobs[3]]


def test_the_classes_of_a_queue_share_its_limit(world: World) -> None:
    world.store.limit(Scope.QUEUE, "default", 2)
    worker = world.worker()
    low, high = submit(world, 2, priority=2), submit(world, 1, priority=8)
    assert uuids(world.claim(worker)) == [*high, low[0]]


def test_a_queue_that_is_full_delays_no_other_queue(world: World) -> None:
    world.store.limit(Scope.QUEUE, "narrow", 1)
    worker = world.worker(queues=["narrow", "wide"])
    submit(world, 10, queue="narrow", priority=9)
    wide = submit(world, 3, queue="wide")
    assert uuids(world.claim(worker))[1:] == wide


def test_a_dead_worker_leaves_its_place_in_the_queue(world: World) -> None:
    world.store.limit(Scope.QUEUE, "default", 2)
    jobs = submit(world, 3)
    dead, heir = world.worker(), world.worker()
    assert len(world.claim(dead)) == 2
    assert world.claim(heir) == []
    world.store.expire(dead, beat=None, begun=None)
    assert uuids(world.claim(heir)) == [jobs[2], jobs[0]]


def test_key_and_queue_are_counted_apart(world: World) -> None:
    world.store.limit(Scope.QUEUE, "default", 2)
    world.store.limit(Scope.KEY, "k", 2)
    worker = world.worker()
    submit(world, 3, key="k"), submit(world, 1)
    turns = world.claim(worker)
    assert len(turns) == 2
    assert [limit.used for limit in world.store.limits()] == [2, 2]


def test_a_limit_that_is_lifted_is_gone(world: World) -> None:
    world.store.limit(Scope.QUEUE, "default", 1)
    worker = world.worker()
    submit(world, 5)
    assert len(world.claim(worker)) == 1
    world.store.limit(Scope.QUEUE, "default", None)
    assert len(world.claim(worker)) == 4


def test_a_turn_says_whether_its_end_makes_room(world: World) -> None:
    world.store.limit(Scope.QUEUE, "narrow", 5)
    worker = world.worker(queues=["narrow", "default"])
    world.submit(queue="narrow"), world.submit(key="k"), world.submit()

    def facts(turn: Turn) -> tuple:
        job = world.job(turn)
        return job.queue, job.key, turn.limited

    assert {facts(turn) for turn in world.claim(worker)} == {
        ("narrow", None, True),
        ("default", "k", True),
        ("default", None, False),
    }


def test_a_claim_sent_again_returns_the_same_turns_though_the_queue_is_full(world: World) -> None:
    world.store.limit(Scope.QUEUE, "default", 1)
    worker, request = world.worker(), uuid4()
    submit(world, 2)
    first = world.ask(worker, 5, request)
    assert len(first) == 1
    assert world.ask(worker, 5, request) == first
