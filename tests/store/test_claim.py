"""Claiming: a turn is granted once, to one worker, and repeated to nobody else."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from tests.store.world import World, end, uuids

from timeball.core.records import Delivery
from timeball.core.states import Ending, State
from timeball.errors import UsageError, WorkerExpired


def test_a_claimed_job_runs_in_its_first_turn(world: World) -> None:
    uuid = world.submit(args='{"n":1}', max_retries=2, timeout_s=4.5)
    worker = world.worker()
    (turn,) = world.claim(worker)
    assert (turn.uuid, turn.kind, turn.turn, turn.max_retries) == (uuid, "a", 1, 2)
    assert (turn.attempts, turn.failures, turn.crashes, turn.delay_s) == (0, 0, 0, 0.0)
    assert turn.args.replace(" ", "") == '{"n":1}'
    assert turn.timeout_s == 4.5
    assert world.state(uuid) is State.RUNNING


def test_the_instant_of_the_grant_is_on_the_stores_clock(world: World) -> None:
    world.submit()
    world.travel(3_600)
    before = world.store.now().timestamp()
    (turn,) = world.claim(world.worker())
    assert before <= turn.granted_at <= world.store.now().timestamp()


def test_a_turn_tells_from_when_on_it_might_start(world: World) -> None:
    begun = world.store.now().timestamp()
    world.submit()
    world.travel(5)
    worker = world.worker()
    (turn,) = world.claim(worker)
    assert begun <= turn.ready_at <= turn.granted_at - 5
    world.settle(worker, end(turn, Ending.RETRIED, delay_s=10))
    world.travel(60)
    world.store.promote(10)
    world.travel(3)
    (again,) = world.claim(worker)
    assert turn.granted_at + 60 <= again.ready_at <= again.granted_at - 3


def test_a_claim_gives_no_more_than_asked_for(world: World) -> None:
    jobs = [world.submit() for _ in range(5)]
    worker = world.worker()
    assert uuids(world.claim(worker, 2)) == jobs[:2]
    assert uuids(world.claim(worker, 10)) == jobs[2:]


def test_an_empty_store_grants_nothing(world: World) -> None:
    assert world.claim(world.worker()) == []


def test_two_workers_never_get_the_same_turn(world: World) -> None:
    jobs = {world.submit() for _ in range(10)}
    one, two = world.worker(), world.worker()
    turns = [*world.claim(one, 5), *world.claim(two, 5)]
    assert len(turns) == 10
    assert set(uuids(turns)) == jobs


def test_a_worker_gets_jobs_of_its_queues_only(world: World) -> None:
    mine = world.submit(queue="mine")
    world.submit(queue="other", priority=9)
    assert world.order(world.worker(queues=["mine"])) == [mine]


def test_a_worker_of_no_queue_gets_nothing(world: World) -> None:
    world.submit()
    assert world.claim(world.worker(queues=["empty"])) == []


def test_a_claim_over_several_lanes_names_the_lease_of_each_turn(world: World) -> None:
    for priority in (3, 5, 3, 9):
        world.submit(priority=priority)
    worker = world.worker()
    turns = world.claim(worker)
    assert len({turn.lane for turn in turns}) == 3
    assert world.settle(worker, *map(end, turns)) == ["accepted"] * 4


def test_a_limit_holds_over_all_lanes_together(world: World) -> None:
    for priority in (1, 5, 9):
        world.submit(priority=priority)
        world.submit(priority=priority)
    worker = world.worker()
    assert len(world.ask(worker, 3, uuid4())) <= 3
    assert world.store.counts()[State.RUNNING] <= 3


@pytest.mark.parametrize("delivery", Delivery)
def test_a_turn_says_whether_it_may_be_followed_by_another(
    world: World, delivery: Delivery
) -> None:
    turn = world.start(world.worker(), delivery=delivery)
    assert turn.at_most_once == (delivery is Delivery.AT_MOST_ONCE)


def test_leases_of_a_lane_are_numbered_upwards(world: World) -> None:
    worker = world.worker()
    turns = [world.start(worker) for _ in range(3)]
    assert len({turn.lane for turn in turns}) == 1
    assert turns[0].seq < turns[1].seq < turns[2].seq


def test_a_claim_repeated_gives_the_same_turns(world: World) -> None:
    for _ in range(3):
        world.submit()
    worker, request = world.worker(), uuid4()
    first = world.ask(worker, 2, request)
    assert world.ask(worker, 2, request) == first
    assert world.store.counts() == {State.RUNNING: 2, State.PENDING: 1}


def test_a_claim_repeated_gives_the_same_turns_even_where_some_have_ended(world: World) -> None:
    for _ in range(2):
        world.submit()
    worker, request = world.worker(), uuid4()
    first = world.ask(worker, 2, request)
    world.settle(worker, end(first[0], Ending.RETRIED))
    assert world.ask(worker, 2, request) == first


def test_a_claim_repeated_by_somebody_else_gives_him_nothing_of_it(world: World) -> None:
    world.submit()
    worker, request = world.worker(), uuid4()
    world.ask(worker, 1, request)
    assert world.ask(world.worker(), 1, request) == []


@pytest.mark.parametrize("limit", [0, -1, 1_001])
def test_a_limit_out_of_range_is_refused_and_grants_nothing(world: World, limit: int) -> None:
    uuid = world.submit()
    worker = world.worker()
    with pytest.raises(UsageError, match="1 to 1,000"):
        world.store.claim(worker, limit=limit, request=uuid4(), floors={})
    assert world.state(uuid) is State.PENDING


def test_a_worker_that_never_was_cannot_claim(world: World) -> None:
    world.submit()
    with pytest.raises(WorkerExpired):
        world.claim(world.worker() + 1_000)


def test_a_worker_given_up_cannot_claim(world: World) -> None:
    world.submit()
    worker = world.worker()
    world.store.expire(worker, beat=None, begun=None)
    with pytest.raises(WorkerExpired):
        world.claim(worker)


def test_a_worker_that_has_retired_cannot_claim(world: World) -> None:
    world.submit()
    worker = world.worker()
    world.store.retire(worker)
    with pytest.raises(WorkerExpired):
        world.claim(worker)


def test_a_worker_given_up_is_not_told_its_old_answer(world: World) -> None:
    world.submit()
    worker, request = world.worker(), uuid4()
    world.ask(worker, 1, request)
    world.store.expire(worker, beat=None, begun=())
    with pytest.raises(WorkerExpired):
        world.ask(worker, 1, request)


def test_claims_at_once_grant_each_turn_once(world: World) -> None:
    jobs = {world.submit() for _ in range(60)}
    workers = [world.worker() for _ in range(4)]

    def drain(worker: int) -> list:
        turns = []
        while more := world.store.claim(worker, limit=3, request=uuid4(), floors={}):
            turns += more
        return turns

    with ThreadPoolExecutor(4) as pool:
        turns = [turn for batch in pool.map(drain, workers) for turn in batch]
    assert len(turns) == len(jobs)
    assert set(uuids(turns)) == jobs


def test_what_was_granted_to_a_claim_that_nobody_waits_for_is_given_out_again(
    world: World,
) -> None:
    worker = world.worker()
    known = world.start(worker)
    lost = [world.submit() for _ in range(3)]
    unheard = world.store.claim(worker, limit=2, request=uuid4(), floors={})
    found = world.store.claim(
        worker, limit=5, request=uuid4(), floors={}, newest={known.lane: known.seq}
    )
    assert found == unheard
    rest = world.store.claim(
        worker, limit=5, request=uuid4(), floors={}, newest={known.lane: found[0].seq}
    )
    assert [turn.uuid for turn in (*found, *rest)] == lost


def test_a_lease_of_another_worker_is_nobody_elses_to_find(world: World) -> None:
    mine, other = world.worker(), world.worker()
    world.start(other)
    assert world.store.claim(mine, limit=5, request=uuid4(), floors={}, newest={}) == []
