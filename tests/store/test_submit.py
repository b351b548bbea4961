"""Submitting: what was accepted is there once, and starts neither early nor out of turn."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.store.world import World, end, uuids

from timeball.core.records import JobSpec
from timeball.core.states import Ending, State
from timeball.store.base import NO_WORKER


def test_ids_come_in_the_order_of_the_specs_and_rise(world: World) -> None:
    specs = [JobSpec(uuid=uuid4(), kind="a") for _ in range(5)]
    added = world.store.submit(specs)
    ids = [world.job(spec.uuid).id for spec in specs]
    assert added == [(id_, spec.uuid) for id_, spec in zip(ids, specs, strict=True)]
    assert ids == sorted(set(ids))


def test_submitting_twice_gives_one_job(world: World) -> None:
    spec = JobSpec(uuid=uuid4(), kind="a", args='{"n":1}')
    first = world.store.submit([spec])
    assert world.store.submit([spec]) == first
    assert world.store.counts() == {State.PENDING: 1}


def test_the_same_spec_twice_in_one_call_is_one_job(world: World) -> None:
    spec, other = (JobSpec(uuid=uuid4(), kind="a") for _ in range(2))
    ids = world.store.submit([spec, other, spec])
    assert ids[0] == ids[2] != ids[1]
    assert world.store.counts() == {State.PENDING: 2}


def test_a_second_submit_changes_nothing_of_the_first(world: World) -> None:
    uuid = world.submit("a", args='{"n":1}', priority=7)
    world.submit("b", args='{"n":2}', priority=2, uuid=uuid)
    job = world.job(uuid)
    assert (job.kind, job.priority, job.args) == ("a", 7, {"n": 1})


def test_submitting_nothing_gives_nothing(world: World) -> None:
    assert world.store.submit([]) == []


def test_jobs_start_in_the_order_of_their_submission(world: World) -> None:
    jobs = [world.submit() for _ in range(5)]
    assert world.order(world.worker()) == jobs


def test_higher_classes_start_first(world: World) -> None:
    jobs = {priority: world.submit(priority=priority) for priority in (0, 5, 9, 7)}
    assert world.order(world.worker()) == [jobs[priority] for priority in (9, 7, 5, 0)]


def test_a_job_of_the_past_is_pending_at_once(world: World) -> None:
    uuid = world.submit(run_at=world.later(-1))
    assert world.state(uuid) is State.PENDING
    assert world.job(uuid).run_at is None


def test_a_job_of_the_future_does_not_start_early(world: World) -> None:
    uuid = world.submit(run_at=world.later(60))
    worker = world.worker()
    assert world.job(uuid).run_at is not None
    world.travel(59)
    assert world.store.promote(10).moved == 0
    assert world.state(uuid) is State.SCHEDULED
    assert world.claim(worker) == []


def test_a_job_of_the_future_starts_when_its_time_has_come(world: World) -> None:
    uuid = world.submit(run_at=world.later(60))
    world.travel(60)
    assert world.store.promote(10)[:2] == (1, None)
    assert world.order(world.worker()) == [uuid]


def test_a_delay_counts_on_the_stores_clock_from_the_submit(world: World) -> None:
    uuid = world.submit(delay_s=60.0)
    run_at = world.job(uuid).run_at
    assert run_at is not None
    assert (run_at - world.job(uuid).created_at).total_seconds() == pytest.approx(60, abs=1)
    world.travel(59)
    assert world.store.promote(10).moved == 0
    world.travel(1)
    assert world.store.promote(10).moved == 1


@pytest.mark.parametrize("delay_s", [0.0, -5.0])
def test_no_delay_is_no_delay(world: World, delay_s: float) -> None:
    assert world.state(world.submit(delay_s=delay_s)) is State.PENDING


def test_what_falls_due_goes_to_the_back(world: World) -> None:
    early = world.submit(run_at=world.later(60))
    world.travel(60)
    late = world.submit()
    world.store.promote(10)
    assert world.order(world.worker()) == [late, early]


def test_promote_keeps_to_its_limit_and_takes_the_earliest(world: World) -> None:
    jobs = [world.submit(run_at=world.later(seconds)) for seconds in (30, 10, 20)]
    world.travel(40)
    assert world.store.promote(2).moved == 2
    assert [world.state(job) for job in jobs] == [
        State.SCHEDULED,
        State.PENDING,
        State.PENDING,
    ]


def test_promote_tells_how_long_to_rest(world: World) -> None:
    world.submit(run_at=world.later(60))
    world.submit(run_at=world.later(90))
    world.travel(70)
    promoted = world.store.promote(10)
    assert promoted.moved == 1
    assert promoted.next_due_s == pytest.approx(20, abs=2)


def test_promote_does_not_rest_while_something_is_due(world: World) -> None:
    for _ in range(2):
        world.submit(run_at=world.later(10))
    world.travel(20)
    promoted = world.store.promote(1)
    assert promoted.moved == 1
    assert promoted.next_due_s is not None
    assert promoted.next_due_s <= 0


def test_promoting_nothing_says_so(world: World) -> None:
    world.submit()
    assert world.store.promote(10)[:2] == (0, None)


# Kinds that nobody knows ---------------------------------------------------------------------


def unknown(world: World, kind: str = "b") -> tuple[int, list]:
    """A worker that has given back a turn of a kind it does not know."""
    worker = world.worker("a")
    turn = world.start(worker, kind)
    world.settle(worker, end(turn, Ending.RELEASED, began=False, reason=NO_WORKER))
    return worker, [turn.uuid]


def test_a_kind_that_nobody_knows_waits_and_says_why(world: World) -> None:
    worker, (uuid,) = unknown(world)
    world.travel(60)
    assert world.store.promote(10)[:2] == (0, None)
    assert world.claim(worker) == []
    assert (world.state(uuid), world.job(uuid).reason) == (State.PENDING, NO_WORKER)


def test_register_brings_waiting_kinds_back(world: World) -> None:
    worker, jobs = unknown(world)
    world.worker("c")
    assert world.claim(worker) == []
    knows = world.worker("b")
    turns = world.claim(knows)
    assert uuids(turns) == jobs
    assert (turns[0].turn, turns[0].attempts) == (2, 0)


def test_register_brings_back_what_it_knows_and_no_other(world: World) -> None:
    world.worker("b")
    unknown(world)
    world.worker("c")
    assert world.store.counts() == {State.PENDING: 1}
    assert world.claim(world.worker("a", "c")) == []


def test_promote_brings_a_kind_back_that_somebody_knows(world: World) -> None:
    knows = world.worker("b")
    _, jobs = unknown(world)
    world.travel(2)
    assert world.store.promote(10).moved == 1
    assert world.order(knows) == jobs


def test_a_turn_just_given_back_rests_a_moment(world: World) -> None:
    world.worker("b")
    unknown(world)
    assert world.store.promote(10)[:2] == (0, None)


def test_a_worker_that_has_gone_knows_nothing(world: World) -> None:
    gone = world.worker("b")
    unknown(world)
    world.store.retire(gone)
    world.travel(60)
    assert world.store.promote(10).moved == 0
