"""What a job of a batch spawns is in the batch too."""

from __future__ import annotations

import pytest
from tests.store.batches import BAD, GOOD, batch, finish, job, submit
from tests.store.test_spawn import awaiting, spec
from tests.store.world import World, end

from timeball.core.batches import failed_part
from timeball.core.records import Settlement, Turn
from timeball.core.states import Ending, State
from timeball.store.base import Store


def settled(world: World, worker: int, turn: Turn) -> None:
    """End the last turn of a job that has spawned, as its worker would."""
    assert turn.awaited is not None
    bad = turn.awaited.failed is not None
    how = {"reason": "spawned"} if bad else {}
    world.settle(worker, end(turn, Ending.FAILED if bad else Ending.SUCCEEDED, **how))


def spawned(world: World, worker: int, *specs: object) -> Turn:
    (turn,) = world.claim(worker, 1)
    world.store.spawn(worker, awaiting(turn, *specs))
    return turn


@pytest.mark.parametrize("nested", [False, True])
def test_what_a_member_spawns_counts_and_the_batch_waits_for_it(
    world: World, *, nested: bool
) -> None:
    member, other = job(), spec()
    inner = batch(member)
    whole = batch(inner) if nested else inner
    submit(world, member, inner, *([whole] if nested else []))
    worker = world.worker()
    parent = spawned(world, worker, one := spec(), spec(one.uuid))
    state = world.store.batch(whole.uuid)
    assert (state.jobs, state.ended, state.state) == (3, 0, State.WAITING)
    (turn,) = world.claim(worker)
    world.store.spawn(worker, awaiting(turn, other))  # and so on
    assert world.store.batch(whole.uuid).jobs == 4
    for _ in range(3):
        (turn,) = world.claim(worker)
        assert world.state(whole.uuid) is State.WAITING
        settled(world, worker, turn) if turn.awaited else world.settle(worker, end(turn))
    (last,) = world.claim(worker)
    assert (last.uuid, world.state(whole.uuid)) == (parent.uuid, State.WAITING)
    settled(world, worker, last)
    assert world.state(whole.uuid) is State.SUCCEEDED
    by_uuid = {each.uuid: each for each in world.store.batch_members(whole.uuid)}
    assert len(by_uuid[member.uuid].spawned) == 2
    assert by_uuid[one.uuid].spawned == (by_uuid[other.uuid].id,)
    assert world.violations(quiesced=True) == []


def test_one_that_fails_fails_the_batch_and_a_retry_starts_it_and_its_spawner(
    world: World,
) -> None:
    member = job()
    whole = batch(member)
    submit(world, member, whole)
    worker = world.worker()
    spawned(world, worker, one := spec())
    finish(world, BAD)
    (last,) = world.claim(worker)
    settled(world, worker, last)
    assert world.state(whole.uuid) is State.FAILED
    part = failed_part(world.store.batch_members(whole.uuid))
    assert len(part) == 2
    assert world.store.reopen(part) == "done"
    assert world.store.batch(whole.uuid).ended == 0
    again = {turn.uuid: turn for turn in world.claim(worker)}
    world.store.spawn(worker, awaiting(again[member.uuid], one))
    world.settle(worker, end(again[one.uuid]))
    finish(world, GOOD)
    assert world.state(whole.uuid) is State.SUCCEEDED
    assert world.violations(quiesced=True) == []


def test_a_cancel_of_the_batch_reaches_what_was_spawned(world: World) -> None:
    member = job()
    whole = batch(member)
    submit(world, member, whole)
    worker = world.worker()
    spawned(world, worker, one := spec(delay_s=60.0))
    left = [uuid for uuid, is_batch in world.store.batch_left(whole.uuid) if not is_batch]
    assert set(left) == {member.uuid, one.uuid}
    assert world.store.cancel_many(left) == set(left)
    world.store.link(10)
    assert world.state(whole.uuid) is State.CANCELLED


def test_what_was_there_before_is_no_member_and_who_was_revived_alone_adds_none(
    world: World,
) -> None:
    member = job()
    whole = batch(member)
    submit(world, member, whole)
    before = world.submit(delay_s=60.0)
    worker = world.worker()
    turn = spawned(world, worker, spec(uuid=before))
    assert world.store.batch(whole.uuid).jobs == 1
    world.store.cancel(turn.uuid)
    assert world.state(whole.uuid) is State.CANCELLED
    world.store.revive([turn.uuid])
    spawned(world, worker, spec())
    assert world.store.batch(whole.uuid).jobs == 1
    assert world.state(whole.uuid) is State.CANCELLED


def test_a_settlement_that_is_refused_adds_no_member(world: World) -> None:
    member = job()
    whole = batch(member)
    submit(world, member, whole)
    worker = world.worker()
    (turn,) = world.claim(worker)
    world.store.expire(worker, beat=None, begun=None)
    said: Settlement = awaiting(turn, spec())
    store: Store = world.store
    assert store.spawn(worker, said) == "stale"
    assert store.batch(whole.uuid).jobs == 1
