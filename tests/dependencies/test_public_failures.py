"""What job queues are known to get wrong about parents and children, case by case, in each store.

Whatever becomes of a parent, its child is where it should be with the very call that did it; where
that had been done before the child was submitted, with the submission.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID, uuid4

import pytest
from tests.store.world import World, end

import timeball as tb
from timeball.client import Client
from timeball.core.dependencies import Edge, Rule
from timeball.core.records import Delivery, JobSpec
from timeball.core.states import Ending, State
from timeball.core.upkeep import DeleteAnswer, Keep, ReviveAnswer
from timeball.errors import UsageError

DONE = {Rule.ALL_DONE, Rule.ALWAYS}


class Parent:
    """One parent, and a worker of its own."""

    def __init__(self, world: World) -> None:
        self.world, self.worker = world, world.worker()
        self.uuid = world.submit(max_retries=0, delivery=Delivery.AT_MOST_ONCE)

    def ends(self, ending: Ending) -> None:
        (turn,) = self.world.claim(self.worker, 1)
        assert turn.uuid == self.uuid
        self.world.settle(self.worker, end(turn, ending))


def succeeds(parent: Parent) -> None:
    parent.ends(Ending.SUCCEEDED)


def fails(parent: Parent) -> None:
    parent.ends(Ending.FAILED)


def is_cancelled(parent: Parent) -> None:
    assert parent.world.store.cancel(parent.uuid) == "cancelled"


def is_lost(parent: Parent) -> None:
    """Its worker dies with it, and it is not to run twice."""
    assert parent.world.claim(parent.worker, 1)
    parent.world.store.expire(parent.worker, beat=None, begun=None)


def is_cancelled_while_it_runs(parent: Parent) -> None:
    (turn,) = parent.world.claim(parent.worker, 1)
    assert parent.world.store.cancel(parent.uuid) == "requested"
    parent.world.settle(parent.worker, end(turn, Ending.CANCELLED))


FATES = [succeeds, fails, is_cancelled, is_lost, is_cancelled_while_it_runs]
WRITTEN = sorted(rule for rule in Rule if rule is not Rule.MEMBER)


def wanted(rule: Rule, *, succeeded: bool) -> State:
    met = rule in DONE or (succeeded if rule is not Rule.ONE_FAILED else not succeeded)
    return State.PENDING if met else State.SKIPPED


@pytest.mark.parametrize("fate", FATES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("added", ["before", "after", "later"])
def test_a_child_is_where_it_should_be_with_what_becomes_of_its_parent(
    world: World, fate: Callable[[Parent], None], added: str
) -> None:
    parent, other = Parent(world), world.submit(delay_s=60.0)
    if added == "after":
        fate(parent)
    children: dict[Rule, UUID] = {}
    for rule in WRITTEN:
        edges = (Edge(parent.uuid, rule),)
        if added == "later":
            children[rule] = world.submit(after=(Edge(other, Rule.ALL_DONE),))
        else:
            children[rule] = world.submit(after=edges)
    if added == "later":  # to one that waits for another already
        for rule, child in children.items():
            assert world.store.add_edges(child, [Edge(parent.uuid, rule)]) == "added"
        world.store.cancel(other)
        assert {world.state(child) for child in children.values()} == {State.WAITING}
    if added != "after":
        fate(parent)
    for rule, child in children.items():
        assert world.state(child) is wanted(rule, succeeded=fate is succeeds), rule


@pytest.mark.parametrize("gone_by", ["retention", "an operator"])
@pytest.mark.parametrize("fate", [succeeds, fails], ids=lambda each: each.__name__)
def test_a_parent_that_is_gone_has_said_what_it_had_to_say(
    world: World, fate: Callable[[Parent], None], gone_by: str
) -> None:
    parent, other = Parent(world), world.submit()
    child = world.submit(after=(Edge(parent.uuid, Rule.ALL_DONE), Edge(other)))
    fate(parent)
    if gone_by == "retention":
        world.travel(99)
        assert world.store.trim(Keep(1.0, 1.0)).deleted == 1
    else:
        assert world.store.delete([parent.uuid]) == [DeleteAnswer.DELETED]
    assert [each.state for each in world.store.parents(world.job(child).id)] == [
        None,
        State.PENDING,
    ]
    (turn,) = world.claim(parent.worker)
    world.settle(parent.worker, end(turn))
    assert world.state(child) is State.PENDING
    with pytest.raises(UsageError, match="which is not here: submit parents first"):
        world.submit(after=(Edge(parent.uuid),))


def test_a_parent_that_is_revived_decides_nothing_a_second_time(world: World) -> None:
    parent = Parent(world)
    child = world.submit(after=(Edge(parent.uuid, Rule.ONE_FAILED),))
    skipped = world.submit(after=(Edge(parent.uuid),))
    fails(parent)
    assert world.store.revive([parent.uuid]) == [ReviveAnswer.REVIVED]
    later = world.submit(after=(Edge(parent.uuid),))
    assert world.state(later) is State.WAITING  # for the new end of it
    turns = {turn.uuid: turn for turn in world.claim(parent.worker)}
    world.settle(parent.worker, *map(end, turns.values()))
    states = [world.state(each) for each in (child, skipped, later)]
    assert states == [State.SUCCEEDED, State.SKIPPED, State.PENDING]


def test_whatever_groups_are_empty_what_follows_them_starts(world: World) -> None:
    client = Client(world.store)
    nothing = tb.group()
    flow = tb.chain(
        tb.group(tb.draft("a"), nothing, tb.chain(nothing, nothing)),
        tb.chord([nothing, tb.chord([], nothing)], nothing),
        tb.group(tb.chord([tb.draft("a")], tb.draft("a")), nothing),
        tb.draft("a"),
    )
    first, one, join, last = client.submit_all(flow)
    assert [handle.job().state for handle in client.submit_all(tb.chord([], tb.draft("a")))] == [
        State.PENDING
    ]
    assert client.submit_all(nothing) == []
    worker = world.worker()
    for handle in (first, one, join, last):
        assert handle.job().state is State.PENDING
        turn = next(turn for turn in world.claim(worker) if turn.uuid == handle.uuid)
        world.settle(worker, end(turn))
        assert handle.job().state is State.SUCCEEDED


def test_a_batch_of_nothing_between_two_keeps_nobody_waiting(world: World) -> None:
    client = Client(world.store)
    with client.batch("outer") as outer:
        first = outer.submit("a")
        with outer.batch("empty", after=[first]):
            pass
        with outer.batch("one", after=[first]) as one:
            one.submit("a")
    last = client.submit("a", after=[outer])
    worker = world.worker()
    for _ in range(3):
        (turn,) = world.claim(worker)
        world.settle(worker, end(turn))
    assert client.get(last).state is State.SUCCEEDED
    assert outer.state().state is State.SUCCEEDED


def test_a_parent_that_nobody_knows_is_refused_and_nothing_is_there(world: World) -> None:
    child = JobSpec(uuid=uuid4(), kind="a", after=(Edge(uuid4()),))
    with pytest.raises(UsageError, match="submit parents first"):
        world.store.submit([child])
    assert world.store.counts() == {}
