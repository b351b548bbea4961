"""Edges that are added to jobs that wait: in both stores alike."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from tests.store.batches import batch, job
from tests.store.test_dependencies import after, finish
from tests.store.world import World, end

from timeball.core.batches import ReopenAnswer
from timeball.core.dependencies import Edge, EdgesAnswer, Rule, RuledOut
from timeball.core.states import Ending, State
from timeball.core.upkeep import DeleteAnswer
from timeball.errors import UsageError

ADDED, REFUSED = EdgesAnswer.ADDED, EdgesAnswer.REFUSED


def add(world: World, child: UUID, *parents: UUID, rule: Rule = Rule.ALL_SUCCESS) -> EdgesAnswer:
    return world.store.add_edges(child, after(*parents, rule=rule))


def test_a_job_that_waits_can_be_told_to_wait_for_more(world: World) -> None:
    first = world.submit()
    child = world.submit(after=after(first))
    later = world.submit()
    assert add(world, child, later) is ADDED
    finish(world, first)
    assert world.state(child) is State.WAITING
    finish(world, later)
    assert world.state(child) is State.PENDING
    finish(world, child)


@pytest.mark.parametrize("rule", [rule for rule in Rule if rule is not Rule.MEMBER])
@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED])
@pytest.mark.parametrize("ended_before", [True, False])
def test_an_edge_that_is_added_says_what_one_says_that_was_there(
    world: World, rule: Rule, ending: Ending, *, ended_before: bool
) -> None:
    states = []
    for late in (False, True):
        parent = world.submit()
        first = world.submit()
        if ended_before:
            worker = world.worker()
            parents, firsts = world.claim(worker)
            world.settle(worker, end(parents, ending))
        edges = after(parent, rule=rule)
        child = world.submit(after=after(first, rule=rule) + (() if late else edges))
        if late:
            assert world.store.add_edges(child, edges) is ADDED
        if not ended_before:
            worker = world.worker()
            parents, firsts = world.claim(worker)
            world.settle(worker, end(parents, ending))
        world.settle(worker, end(firsts))
        states.append(world.state(child))
        world.store.cancel(child)
    assert states[0] is states[1]


def test_who_asks_again_adds_nothing_and_no_edge_changes_its_rule(world: World) -> None:
    a, b = world.submit(), world.submit()
    child = world.submit(after=after(a))
    assert add(world, child, a, b) is add(world, child, b) is ADDED
    with pytest.raises(UsageError, match=f"job {b} has the rule all_success there already"):
        add(world, child, b, rule=Rule.ALL_DONE)
    finish(world, a)
    finish(world, b)
    assert world.state(child) is State.PENDING


def test_only_who_waits_for_parents_and_never_began_is_told_to_wait_for_more(
    world: World,
) -> None:
    parent, later = world.submit(), world.submit(delay_s=60)
    child = world.submit(after=after(parent))
    assert add(world, parent, child) is add(world, later, parent) is REFUSED
    assert world.store.add_edges(uuid4(), after(parent)) is EdgesAnswer.NOT_FOUND
    finish(world, parent)
    assert add(world, child, later) is REFUSED  # it may start
    finish(world, child)
    assert add(world, child, later) is REFUSED
    whole = batch(later)
    world.store.submit([whole])
    assert add(world, whole.uuid, later) is REFUSED


def test_a_parent_that_is_not_here_is_refused_and_nothing_is_added(world: World) -> None:
    parent, other = world.submit(), world.submit()
    child = world.submit(after=after(parent))
    with pytest.raises(UsageError, match="is not here: submit parents first"):
        add(world, child, other, uuid4())
    finish(world, parent)
    assert world.state(child) is State.PENDING


@pytest.mark.parametrize("length", [0, 1, 5])
def test_a_cycle_is_refused_whole_and_its_way_is_named(world: World, length: int) -> None:
    root, other = world.submit(), world.submit()
    chain = [world.submit(after=after(root))]
    for _ in range(length):
        chain.append(world.submit(after=after(chain[-1])))
    numbers = [world.store.get(each).id for each in chain]
    way = ", which waits for ".join(f"job {each}" for each in reversed(numbers))
    with pytest.raises(UsageError, match=f"^job {numbers[0]} would wait for {way}: a cycle; leave"):
        add(world, chain[0], other, chain[-1])
    finish(world, root)
    world.store.cancel(other)
    for each in chain:
        finish(world, each)  # and none waits for the other


def test_a_way_through_a_batch_and_what_was_spawned_is_a_cycle_too(world: World) -> None:
    root = world.submit()
    member = job(root)
    whole = batch(member)
    world.store.submit([member, whole])
    last = world.submit(after=after(whole.uuid))
    with pytest.raises(UsageError, match="a cycle"):
        add(world, member.uuid, last)
    with pytest.raises(UsageError, match="a cycle"):
        add(world, member.uuid, whole.uuid)
    finish(world, root)
    finish(world, member.uuid)
    assert world.state(last) is State.PENDING


def test_what_an_added_edge_rules_out_goes_on_to_the_next(world: World) -> None:
    parents = [world.submit() for _ in range(2)]
    child = world.submit(after=after(parents[0]))
    fails = world.submit(after=after(child), ruled_out=RuledOut.FAIL)
    alert = world.submit(after=after(fails, rule=Rule.ONE_FAILED))
    assert add(world, child, parents[1]) is ADDED
    worker = world.worker()
    _, second = world.claim(worker)
    world.settle(worker, end(second, Ending.FAILED))
    assert [world.state(each) for each in (child, fails, alert)] == [
        State.SKIPPED,
        State.FAILED,
        State.PENDING,
    ]


def test_where_one_is_enough_a_parent_that_is_added_may_be_the_one(world: World) -> None:
    parents = [world.submit() for _ in range(2)]
    child = world.submit(after=after(parents[0]))
    assert world.store.add_edges(child, [Edge(parents[1], Rule.ONE_SUCCESS)]) is ADDED
    finish(world, parents[0])
    assert world.state(child) is State.WAITING
    finish(world, parents[1])
    assert world.state(child) is State.PENDING


def test_a_parent_of_an_added_edge_is_kept_until_it_was_looked_at(world: World) -> None:
    first, second = world.submit(), world.submit()
    child = world.submit(after=after(first))
    assert add(world, child, second) is ADDED
    worker = world.worker()
    one, two = world.claim(worker)
    world.settle(worker, end(two))
    assert world.store.delete([second]) == [DeleteAnswer.DELETED]
    world.settle(worker, end(one))
    assert world.state(child) is State.PENDING


def test_of_a_batch_what_comes_after_it_may_be_in_an_earlier_batch(world: World) -> None:
    root = world.submit()
    early = job(root)
    first = batch(early)
    member = job()
    second = batch(member)
    world.store.submit([early, first, member, second])
    assert add(world, early.uuid, second.uuid) is ADDED
    worker = world.worker()
    one, two = world.claim(worker)
    world.settle(worker, end(one))
    world.settle(worker, end(two, Ending.FAILED))
    world.store.link(1_000)
    assert world.state(second.uuid) is State.FAILED
    assert world.state(early.uuid) is world.state(first.uuid) is State.SKIPPED


def test_what_was_cancelled_and_may_be_tried_again_closes_a_cycle_too(world: World) -> None:
    parent = job()
    first = job(parent.uuid)
    later = job(first.uuid, rule=Rule.ALL_DONE)
    world.store.submit([parent, first, later, batch(parent, first, later)])
    world.store.cancel(later.uuid)
    with pytest.raises(UsageError, match="job 2 would wait for job 3, which waits for job 2: a"):
        add(world, first.uuid, later.uuid, rule=Rule.ALL_DONE)
    worker = world.worker()
    world.settle(worker, *(end(turn, Ending.FAILED) for turn in world.claim(worker)))
    uuids = [each.uuid for each in (parent, first, later)]
    again = [(each.id, each.turn) for each in map(world.store.get, uuids)]
    assert world.store.reopen(again) is ReopenAnswer.DONE
    for uuid in uuids:
        finish(world, uuid)
        assert world.state(uuid) is State.SUCCEEDED
