"""Callbacks: one call ends one, once; late, repeated and other calls change nothing."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from tests.store.batches import BAD, batch, finish, job, submit
from tests.store.world import World, end

from timeball.core.batches import failed_part
from timeball.core.callbacks import CALL, CALLBACK, CallAnswer
from timeball.core.dependencies import Edge, EdgesAnswer, Rule
from timeball.core.payload import decode_value
from timeball.core.records import CancelAnswer, JobSpec
from timeball.core.states import Ending, State
from timeball.core.uniqueness import OnClash, Unique
from timeball.core.upkeep import DeleteAnswer, ReviveAnswer, SnoozeAnswer


def callback(world: World, within_s: float = 60) -> JobSpec:
    return JobSpec(uuid=uuid4(), kind=CALLBACK, expires_at=world.later(within_s))


def waiting(world: World, *rules: Rule) -> tuple[UUID, list[UUID]]:
    """A callback, and a child of it by each of some rules."""
    asked = callback(world)
    children = [job(asked.uuid, rule=rule) for rule in rules or (Rule.ALL_SUCCESS,)]
    submit(world, asked, *children)
    return asked.uuid, [child.uuid for child in children]


def test_a_child_waits_until_the_call_comes_and_reads_what_it_said(world: World) -> None:
    asked, (child,) = waiting(world)
    found = world.job(asked)
    assert (found.state, found.reason, found.attempts) == (State.WAITING, CALL, 0)
    worker = world.worker()
    assert world.claim(worker) == []
    assert world.store.call_back(asked, '{"paid": [1, 2.5, null]}') is CallAnswer.ACCEPTED
    found = world.job(asked)
    assert (found.state, found.reason, found.attempts) == (State.SUCCEEDED, CALL, 0)
    assert found.result == {"paid": [1, 2.5, None]}
    (turn,) = world.claim(worker)
    assert turn.uuid == child
    (parent,) = world.store.parents(turn.job_id)
    assert (parent.state, decode_value(parent.result)) == (State.SUCCEEDED, found.result)
    world.settle(worker, end(turn))


def test_the_same_call_again_is_answered_the_same_and_changes_nothing(world: World) -> None:
    asked, _ = waiting(world)
    for said in ('{"n": 1, "m": 2}', '{"m":2,"n":1}', '{"n": 1, "m": 2}'):
        assert world.store.call_back(asked, said) is CallAnswer.ACCEPTED
    before = world.job(asked)
    for other in ("{}", None, '{"n": 1}', '"x"'):
        assert world.store.call_back(asked, other) is CallAnswer.OTHERWISE
    assert world.job(asked) == before
    world.travel(3600)
    world.store.lapse(10)
    assert world.store.call_back(asked, '{"n": 1, "m": 2}') is CallAnswer.ACCEPTED
    assert world.job(asked) == before


def test_a_call_of_nothing_is_a_call(world: World) -> None:
    asked, _ = waiting(world)
    assert world.store.call_back(asked, None) is CallAnswer.ACCEPTED
    assert world.store.call_back(asked, None) is CallAnswer.ACCEPTED
    assert world.store.call_back(asked, "[]") is CallAnswer.OTHERWISE


@pytest.mark.parametrize(
    ("said", "again", "answer"),
    [
        ("[1, 0]", "[true, 0]", CallAnswer.OTHERWISE),
        ("[1, 0]", "[1, false]", CallAnswer.OTHERWISE),
        ('{"paid": true}', '{"paid": 1}', CallAnswer.OTHERWISE),
        ('{"paid": {"of": [1, 2]}}', '{"paid": {"of": [1, 2, 3]}}', CallAnswer.OTHERWISE),
        ("[1, 2.5]", "[1.0, 25e-1]", CallAnswer.ACCEPTED),
        ("[true, false, null]", "[true,false,null]", CallAnswer.ACCEPTED),
    ],
)
def test_true_is_not_one_when_a_call_comes_again(
    world: World, said: str, again: str, answer: CallAnswer
) -> None:
    asked, _ = waiting(world)
    assert world.store.call_back(asked, said) is CallAnswer.ACCEPTED
    assert world.store.call_back(asked, again) is answer


@pytest.mark.parametrize("looked", [True, False])
def test_a_call_after_the_deadline_changes_nothing(world: World, *, looked: bool) -> None:
    asked, (child, told) = waiting(world, Rule.ALL_SUCCESS, Rule.ALL_DONE)
    world.travel(60)
    if looked:
        assert world.store.lapse(10) == 1
    assert world.store.call_back(asked, "{}") is CallAnswer.EXPIRED
    world.store.lapse(10)
    while world.store.link(10):
        pass
    found = world.job(asked)
    assert (found.state, found.reason, found.result) == (State.SKIPPED, "expired", None)
    assert (world.state(child), world.state(told)) == (State.SKIPPED, State.PENDING)
    assert world.store.call_back(asked, "{}") is CallAnswer.EXPIRED


def test_a_call_after_a_cancel_or_a_deletion_changes_nothing(world: World) -> None:
    asked, (child,) = waiting(world)
    assert world.store.cancel(asked) is CancelAnswer.CANCELLED
    assert world.store.call_back(asked, "{}") is CallAnswer.CANCELLED
    assert world.state(child) is State.SKIPPED
    assert world.store.delete([child, asked]) == [DeleteAnswer.DELETED] * 2
    assert world.store.call_back(asked, "{}") is CallAnswer.NOT_FOUND


def test_a_call_ends_no_other_job(world: World) -> None:
    plain, first = world.submit(), job()
    whole, later = batch(first), job(first.uuid)
    submit(world, first, whole, later)
    for uuid in (plain, whole.uuid, later.uuid, uuid4()):
        assert world.store.call_back(uuid, "{}") is CallAnswer.NOT_FOUND
    assert world.state(plain) is State.PENDING
    assert world.state(later.uuid) is State.WAITING


def test_what_was_called_or_is_not_waited_for_any_more_does_not_start_again(world: World) -> None:
    called, cancelled = callback(world), callback(world)
    submit(world, called, cancelled)
    world.store.call_back(called.uuid, "1")
    world.store.cancel(cancelled.uuid)
    uuids = [called.uuid, cancelled.uuid]
    assert world.store.revive(uuids) == [ReviveAnswer.REFUSED] * 2
    assert [world.state(uuid) for uuid in uuids] == [State.SUCCEEDED, State.CANCELLED]


def test_no_operator_makes_a_job_of_a_callback(world: World) -> None:
    asked, _ = waiting(world)
    world.store.move(asked, queue=None, priority=7)
    edges = [Edge(world.submit("other"), Rule.ALL_DONE)]
    assert world.store.add_edges(asked, edges) is EdgesAnswer.REFUSED
    assert world.store.snooze(asked, world.later(9)) is SnoozeAnswer.WAITING
    world.store.promote(10)
    world.worker(CALLBACK)
    assert asked not in world.order(world.worker(CALLBACK))
    assert world.store.call_back(asked, "{}") is CallAnswer.ACCEPTED


def test_a_batch_waits_for_the_calls_in_it_and_a_retry_does_not_ask_again(world: World) -> None:
    good, bad, first = callback(world), callback(world), job()
    child = job(bad.uuid)
    whole = batch(good, bad, first, child)
    submit(world, good, bad, first, child, whole)
    finish(world, BAD)
    assert world.store.call_back(good.uuid, "{}") is CallAnswer.ACCEPTED
    assert world.state(whole.uuid) is State.WAITING
    world.store.cancel(bad.uuid)
    assert world.state(whole.uuid) is State.FAILED
    again = failed_part(world.store.batch_members(whole.uuid))
    assert [id_ for id_, _ in again] == [world.job(first.uuid).id]
    world.store.reopen(again)
    assert world.state(whole.uuid) is State.WAITING
    finish(world, Ending.SUCCEEDED)
    assert world.state(whole.uuid) is State.CANCELLED


def test_a_job_waits_for_a_call_that_it_spawned(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    asked = callback(world)
    world.store.spawn(worker, end(turn, Ending.AWAITED)._replace(spawned=(asked,)))
    assert world.state(turn) is State.WAITING
    assert world.claim(worker) == []
    world.store.call_back(asked.uuid, '"yes"')
    (again,) = world.claim(worker)
    assert (again.uuid, again.turn) == (turn.uuid, 2)
    world.settle(worker, end(again))


def test_a_callback_holds_its_unique_key_until_it_has_ended(world: World) -> None:
    unique = Unique(key="order 7", on_clash=OnClash.IGNORE)
    first, second = (replace(callback(world), unique=unique) for _ in range(2))
    assert submit(world, first) == submit(world, second) == [first.uuid]
    assert world.store.call_back(second.uuid, "1") is CallAnswer.NOT_FOUND
    assert world.store.call_back(first.uuid, "1") is CallAnswer.ACCEPTED
    assert submit(world, second) == [second.uuid]
