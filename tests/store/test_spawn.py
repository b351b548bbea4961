"""Jobs that spawn others: added with the end of the turn, waited for, and never in a cycle."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from tests.store.batches import batch
from tests.store.world import World, end

from timeball.core.dependencies import Awaited, Edge, Rule, RuledOut
from timeball.core.records import CancelAnswer, JobSpec, Settlement, Turn, Verdict
from timeball.core.states import Ending, State
from timeball.core.uniqueness import OnClash, Unique
from timeball.errors import QueueFull, UniqueClash, UsageError


def spec(*after: UUID, uuid: UUID | None = None, **fields: object) -> JobSpec:
    edges = tuple(Edge(parent) for parent in after)
    return JobSpec(uuid=uuid or uuid4(), kind="a", after=edges, **fields)


def awaiting(turn: Turn, *spawned: JobSpec, result: str | None = None) -> Settlement:
    return end(turn, Ending.AWAITED, result=result, spawned=spawned)


def total(world: World) -> int:
    return sum(world.store.counts().values())


def test_a_job_is_over_once_all_that_it_spawned_are(world: World) -> None:
    worker = world.worker()
    parent = world.start(worker)
    child = world.submit(after=(Edge(parent.uuid),))
    one, two = spec(), spec()
    assert world.store.spawn(worker, awaiting(parent, one, two, result="7")) is Verdict.ACCEPTED
    assert [world.state(each) for each in (parent.uuid, child)] == [State.WAITING] * 2
    assert world.job(parent).reason == "spawned"
    turns = world.claim(worker)
    assert [turn.uuid for turn in turns] == [one.uuid, two.uuid]
    world.settle(worker, end(turns[0]))
    assert world.state(parent) is State.WAITING
    world.settle(worker, end(turns[1]))
    assert world.state(parent) is State.PENDING
    assert world.state(child) is State.WAITING
    (last,) = world.claim(worker)
    assert (last.uuid, last.turn, last.attempts) == (parent.uuid, 2, 1)
    assert last.awaited == Awaited("7", None)
    world.settle(worker, end(last, result="7"))
    assert world.state(child) is State.PENDING
    assert world.violations() == []


@pytest.mark.parametrize("ending", [Ending.FAILED, Ending.CANCELLED])
def test_one_that_fails_is_named_and_the_job_is_not_run_again(world: World, ending: Ending) -> None:
    worker = world.worker()
    parent = world.start(worker)
    world.store.spawn(worker, awaiting(parent, one := spec(), spec()))
    bad, good = world.claim(worker)
    world.settle(worker, end(bad, ending), end(good))
    (last,) = world.claim(worker)
    assert last.awaited == Awaited(None, str(one.uuid))
    world.settle(worker, end(last, Ending.FAILED, reason="spawned"))
    # Who is revived begins anew, and what it names again counts again.
    world.store.revive([parent.uuid, one.uuid])
    again = {turn.uuid: turn for turn in world.claim(worker)}
    assert again[parent.uuid].awaited is None
    world.store.spawn(worker, awaiting(again[parent.uuid], one))
    assert world.state(parent) is State.WAITING
    world.settle(worker, end(again[one.uuid]))
    (last,) = world.claim(worker)
    assert last.awaited == Awaited(None, None)
    world.settle(worker, end(last))
    assert world.violations(quiesced=True) == []


def test_a_turn_that_is_given_back_or_lost_afterwards_still_has_waited(world: World) -> None:
    worker = world.worker()
    parent = world.start(worker)
    world.store.spawn(worker, awaiting(parent, spec(), result="1"))
    (child,) = world.claim(worker)
    world.settle(worker, end(child))
    for ending in (Ending.RELEASED, Ending.LOST):
        (last,) = world.claim(worker)
        assert last.awaited == Awaited("1", None)
        world.settle(worker, end(last, ending, began=ending is Ending.LOST))
    (last,) = world.claim(worker)
    assert last.awaited == Awaited("1", None)
    assert world.violations() == []


def test_a_zombie_spawns_nothing(world: World) -> None:
    worker, other = world.worker(), world.worker()
    parent = world.start(worker)
    world.store.expire(worker, beat=None, begun=None)
    assert world.store.spawn(worker, awaiting(parent, spec())) is Verdict.STALE
    assert world.store.spawn(other, awaiting(parent, spec())) is Verdict.STALE
    assert total(world) == 1
    assert world.stale() == 2
    assert world.violations() == []


def test_saying_it_again_adds_nothing(world: World) -> None:
    worker = world.worker()
    parent = world.start(worker)
    said = awaiting(parent, spec(), spec())
    assert world.store.spawn(worker, said) is Verdict.ACCEPTED
    assert world.store.spawn(worker, said) is Verdict.ALREADY
    assert total(world) == 3
    for turn in world.claim(worker):
        world.settle(worker, end(turn))
    assert world.store.spawn(worker, said) is Verdict.ALREADY
    (last,) = world.claim(worker)
    world.settle(worker, end(last))
    assert world.violations(quiesced=True) == []


def test_where_a_cancel_was_requested_nothing_is_spawned_and_the_job_is_cancelled(
    world: World,
) -> None:
    worker = world.worker()
    parent = world.start(worker)
    child = world.submit(after=(Edge(parent.uuid),))
    assert world.store.cancel(parent.uuid) is CancelAnswer.REQUESTED
    assert world.store.spawn(worker, awaiting(parent, spec())) is Verdict.ACCEPTED
    assert world.state(parent) is State.CANCELLED
    assert world.state(child) is State.SKIPPED
    assert total(world) == 2
    assert world.violations(quiesced=True) == []


def test_a_job_that_waits_for_what_it_spawned_can_be_cancelled(world: World) -> None:
    worker = world.worker()
    parent = world.start(worker)
    child = world.submit(after=(Edge(parent.uuid),))
    world.store.spawn(worker, awaiting(parent, spec()))
    assert world.store.cancel(parent.uuid) is CancelAnswer.CANCELLED
    assert world.state(child) is State.SKIPPED
    for turn in world.claim(worker):
        world.settle(worker, end(turn))
    assert world.state(parent) is State.CANCELLED
    assert world.violations(quiesced=True) == []


def test_what_is_spawned_may_wait_for_others_and_is_told_of_them(world: World) -> None:
    worker = world.worker()
    there, parent = world.submit(), world.submit()
    turns = {turn.uuid: turn for turn in world.claim(worker)}
    first = spec(there)
    last = spec(first.uuid)
    world.store.spawn(worker, awaiting(turns[parent], first, last))
    assert [world.state(each.uuid) for each in (first, last)] == [State.WAITING] * 2
    world.settle(worker, end(turns[there]))
    for each in (first.uuid, last.uuid, parent):
        (turn,) = world.claim(worker)
        assert turn.uuid == each
        if each == last.uuid:
            assert [p.uuid for p in world.store.parents(turn.job_id)] == [first.uuid]
        if each == parent:
            assert world.store.parents(turn.job_id) == []
        world.settle(worker, end(turn))
    assert world.violations(quiesced=True) == []


def test_a_cycle_is_refused_whole_and_its_way_is_told(world: World) -> None:
    worker = world.worker()
    parent = world.start(worker)
    child = world.submit(after=(Edge(parent.uuid),), ruled_out=RuledOut.RUN)
    further = world.submit(after=(Edge(child, Rule.ALL_DONE),))
    numbers = [world.job(each).id for each in (further, child, parent.uuid)]
    way = ", which waits for ".join(f"job {number}" for number in numbers)
    with pytest.raises(UsageError, match=f"job {parent.job_id} spawns what waits for {way}: a cyc"):
        world.store.spawn(worker, awaiting(parent, spec(), spec(further)))
    with pytest.raises(UsageError, match="cycle"):
        world.store.spawn(worker, awaiting(parent, spec(parent.uuid)))
    assert total(world) == 3
    assert world.state(parent) is State.RUNNING
    assert world.store.spawn(worker, awaiting(parent, spec())) is Verdict.ACCEPTED
    assert world.violations() == []


def test_two_that_spawn_what_waits_for_the_other_are_a_cycle(world: World) -> None:
    worker = world.worker()
    one, two = world.start(worker), world.start(worker)
    assert world.store.spawn(worker, awaiting(one, spec(two.uuid))) is Verdict.ACCEPTED
    with pytest.raises(UsageError, match="cycle"):
        world.store.spawn(worker, awaiting(two, spec(one.uuid)))
    world.settle(worker, end(two))
    for _ in range(2):
        (turn,) = world.claim(worker)
        world.settle(worker, end(turn))
    assert world.violations(quiesced=True) == []


def test_what_has_ended_or_was_cancelled_closes_no_cycle(world: World) -> None:
    worker = world.worker()
    parent = world.start(worker)
    child = world.submit(after=(Edge(parent.uuid),))
    world.store.cancel(child)
    follower = JobSpec(uuid=uuid4(), kind="a", after=(Edge(child, Rule.ALL_DONE),))
    assert world.store.spawn(worker, awaiting(parent, follower)) is Verdict.ACCEPTED
    assert world.state(follower.uuid) is State.PENDING


def test_one_that_was_there_before_is_waited_for_too(world: World) -> None:
    worker = world.worker()
    parent, held = world.start(worker), world.submit(unique=Unique(key="u"))
    done = world.submit(uuid=uuid4())
    turns = {turn.uuid: turn for turn in world.claim(worker)}
    world.settle(worker, end(turns[done]))
    said = awaiting(parent, spec(unique=Unique(key="u")), spec(uuid=done))
    assert world.store.spawn(worker, said) is Verdict.ACCEPTED
    assert total(world) == 3
    assert world.state(parent) is State.WAITING
    world.settle(worker, end(turns[held]))
    assert world.state(parent) is State.PENDING
    assert world.violations() == []


def test_what_cannot_be_added_leaves_everything_as_it_was(world: World) -> None:
    worker = world.worker()
    parent = world.start(worker)
    world.submit(unique=Unique(key="u"))
    world.store.bound_queue("default", 3)
    clash = spec(unique=Unique(key="u", on_clash=OnClash.REJECT))
    for error, *bad in (
        (UsageError, spec(uuid4())),
        (UniqueClash, clash),
        (QueueFull, spec(), spec()),
    ):
        with pytest.raises(error):
            world.store.spawn(worker, awaiting(parent, spec(), *bad))
    assert total(world) == 2
    assert world.state(parent) is State.RUNNING
    assert world.settle(worker, end(parent)) == [Verdict.ACCEPTED]
    assert world.violations() == []


def test_what_was_retried_before_keeps_its_counts(world: World) -> None:
    worker = world.worker()
    parent = world.start(worker)
    world.settle(worker, end(parent, Ending.RETRIED, delay_s=0.0))
    world.store.promote(10)
    (again,) = world.claim(worker)
    world.store.spawn(worker, awaiting(again, spec()))
    (child,) = world.claim(worker)
    world.settle(worker, end(child))
    (last,) = world.claim(worker)
    assert (last.turn, last.attempts, last.failures) == (3, 2, 1)
    world.settle(worker, end(last))
    job = world.job(parent)
    assert (job.attempts, job.failures, job.state) == (3, 1, State.SUCCEEDED)
    assert world.violations(quiesced=True) == []


def test_its_slot_of_a_key_is_free_while_it_waits(world: World) -> None:
    worker = world.worker()
    parent = world.start(worker, key="k")
    other = world.submit(key="k")
    assert world.claim(worker) == []
    world.store.spawn(worker, awaiting(parent, one := spec()))
    turns = {turn.uuid: turn for turn in world.claim(worker)}
    assert turns.keys() == {other, one.uuid}
    world.settle(worker, *(end(turn) for turn in turns.values()))
    (last,) = world.claim(worker)
    world.settle(worker, end(last))
    assert world.violations(quiesced=True) == []


@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED])
def test_what_it_waited_for_before_it_was_revived_counts_no_more(
    world: World, ending: Ending
) -> None:
    worker = world.worker()
    before = world.start(worker)
    job = world.submit(after=(Edge(before.uuid),))
    world.store.cancel(job)
    world.store.revive([job])
    (turn,) = world.claim(worker)
    world.store.spawn(worker, awaiting(turn, spec()))
    (spawned,) = world.claim(worker)
    world.settle(worker, end(before, ending))
    assert world.state(job) is State.WAITING
    world.settle(worker, end(spawned))
    assert world.state(job) is State.PENDING
    assert world.violations() == []


def test_what_it_spawned_before_it_was_cancelled_does_not_free_it(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.store.spawn(worker, awaiting(turn, spec()))
    world.store.cancel(turn.uuid)
    (first,) = world.claim(worker)
    world.store.revive([turn.uuid])
    (again,) = world.claim(worker)
    world.store.spawn(worker, awaiting(again, spec()))
    (second,) = world.claim(worker)
    world.settle(worker, end(first))
    assert world.state(turn) is State.WAITING
    world.settle(worker, end(second))
    assert world.state(turn) is State.PENDING
    assert world.violations() == []


def test_a_batch_of_nothing_that_is_spawned_is_not_waited_for(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.store.spawn(worker, awaiting(turn, batch()))
    world.store.link(10)
    assert world.state(turn) is State.PENDING
    assert world.violations() == []


def test_who_ran_before_its_time_and_has_spawned_does_not_wait_for_it_again(world: World) -> None:
    worker = world.worker()
    job = world.submit(run_at=world.later(1_000))
    world.store.cancel(job)
    world.store.revive([job])
    (turn,) = world.claim(worker)
    world.store.spawn(worker, awaiting(turn, spec()))
    (child,) = world.claim(worker)
    world.settle(worker, end(child))
    assert world.state(job) is State.PENDING
    (last,) = world.claim(worker)
    world.settle(worker, end(last))
    assert world.state(job) is State.SUCCEEDED


def test_what_an_earlier_life_spawned_and_has_failed_is_not_held_against_the_next(
    world: World,
) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.store.spawn(worker, awaiting(turn, spec()))
    (bad,) = world.claim(worker)
    world.settle(worker, end(bad, Ending.FAILED))
    (last,) = world.claim(worker)
    world.settle(worker, end(last, Ending.FAILED, reason="spawned"))
    world.store.revive([turn.uuid])
    (again,) = world.claim(worker)
    world.store.spawn(worker, awaiting(again, spec()))
    (good,) = world.claim(worker)
    world.settle(worker, end(good))
    (last,) = world.claim(worker)
    assert last.awaited == Awaited(None, None)
