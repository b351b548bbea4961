"""Batches: they end with the last of their jobs, once, and children may come after them."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from tests.store.batches import BAD, GOOD, OFF, batch, finish, job, submit
from tests.store.world import World, end

from timeball.core.batches import BATCH
from timeball.core.dependencies import Edge, Rule
from timeball.core.records import JobSpec
from timeball.core.states import Ending, State
from timeball.core.upkeep import DeleteAnswer, ReviveAnswer
from timeball.errors import UsageError


@pytest.mark.parametrize(
    ("endings", "state"),
    [
        ([GOOD], State.SUCCEEDED),
        ([GOOD, GOOD, GOOD], State.SUCCEEDED),
        ([GOOD, BAD, GOOD], State.FAILED),
        ([BAD, OFF], State.FAILED),
        ([OFF, GOOD], State.CANCELLED),
        ([OFF], State.CANCELLED),
    ],
)
def test_a_batch_ends_with_the_last_of_its_jobs(
    world: World, endings: list[Ending], state: State
) -> None:
    members = [job() for _ in endings]
    *_, whole = submit(world, *members, batch(*members))
    for ending in endings:
        assert world.state(whole) is State.WAITING
        finish(world, ending)
    found = world.job(whole)
    assert (found.state, found.reason) == (state, "members")
    assert (found.attempts, found.failures, found.crashes) == (0, 0, 0)
    assert found.ended_at is not None


def test_all_that_ends_in_one_settlement_counts(world: World) -> None:
    members = [job() for _ in range(5)]
    *_, whole = submit(world, *members, batch(*members))
    worker = world.worker()
    world.settle(worker, *(end(turn) for turn in world.claim(worker)))
    assert world.state(whole) is State.SUCCEEDED


def test_a_batch_is_never_granted_to_a_worker(world: World) -> None:
    member = job()
    *_, whole, empty = submit(world, member, batch(member), batch(is_open=True))
    worker = world.worker("a", BATCH)
    assert [turn.uuid for turn in world.claim(worker)] == [member.uuid]
    assert (world.state(whole), world.state(empty)) == (State.WAITING, State.WAITING)


def test_an_empty_batch_has_ended(world: World) -> None:
    (whole,) = submit(world, batch())
    assert world.state(whole) is State.SUCCEEDED
    child = job(whole)
    submit(world, child)
    assert world.state(child.uuid) is State.PENDING


def test_an_empty_batch_in_the_middle_of_a_submission_lets_its_children_go(world: World) -> None:
    empty = batch()
    child, outer = job(empty.uuid), batch(empty)
    submit(world, empty, child, outer)
    assert world.state(child.uuid) is State.PENDING
    assert world.state(outer.uuid) is State.SUCCEEDED


@pytest.mark.parametrize(
    ("rule", "ending", "state"),
    [
        (Rule.ALL_SUCCESS, GOOD, State.SUCCEEDED),
        (Rule.ALL_SUCCESS, BAD, State.SKIPPED),
        (Rule.ALL_DONE, BAD, State.SUCCEEDED),
        (Rule.ONE_FAILED, GOOD, State.SKIPPED),
    ],
)
def test_an_empty_batch_comes_after_its_parents(
    world: World, rule: Rule, ending: Ending, state: State
) -> None:
    first, empty = job(), batch(after=())
    empty = batch(after=(Edge(first.uuid, rule),))
    child = job(empty.uuid, rule=Rule.ALL_DONE)
    submit(world, first, empty, child)
    assert (world.state(empty.uuid), world.state(child.uuid)) == (State.WAITING,) * 2
    finish(world, ending)
    assert (world.state(empty.uuid), world.state(child.uuid)) == (state, State.PENDING)


def test_a_member_that_another_member_rules_out_does_no_harm_by_itself(world: World) -> None:
    first = job()
    alert = job(first.uuid, rule=Rule.ONE_FAILED)
    whole = batch(first, alert)
    submit(world, first, alert, whole)
    finish(world, GOOD)
    assert world.state(alert.uuid) is State.SKIPPED
    assert world.state(whole.uuid) is State.SUCCEEDED


def test_a_batch_of_which_all_were_skipped_is_skipped(world: World) -> None:
    outside = job()
    members = [job(outside.uuid) for _ in range(2)]
    whole = batch(*members)
    submit(world, outside, *members, whole)
    finish(world, BAD)
    assert world.state(whole.uuid) is State.SKIPPED


def test_a_member_that_fails_takes_those_after_it_along_in_one_commit(world: World) -> None:
    chain = [job()]
    for _ in range(6):
        chain.append(job(chain[-1].uuid))
    whole = batch(*chain)
    after = job(whole.uuid, rule=Rule.ONE_FAILED)
    submit(world, *chain, whole, after)
    finish(world, BAD)
    assert {world.state(each.uuid) for each in chain[1:]} == {State.SKIPPED}
    assert (world.state(whole.uuid), world.state(after.uuid)) == (State.FAILED, State.PENDING)


@pytest.mark.parametrize("ending", [GOOD, BAD])
def test_a_batch_of_batches_ends_with_the_last_of_all(world: World, ending: Ending) -> None:
    members = [job() for _ in range(4)]
    inner = [batch(*members[:2]), batch(*members[2:])]
    outer = batch(*inner)
    done, good = job(outer.uuid, rule=Rule.ALL_DONE), job(outer.uuid)
    submit(world, *members, *inner, outer, done, good)
    finish(world, GOOD, GOOD, GOOD)
    assert world.state(inner[0].uuid) is State.SUCCEEDED
    assert world.state(outer.uuid) is State.WAITING
    finish(world, ending)
    assert world.state(outer.uuid).value == ending.value
    assert world.state(done.uuid) is State.PENDING
    assert world.state(good.uuid) is (State.PENDING if ending is GOOD else State.SKIPPED)


def test_many_batches_that_end_in_one_settlement_end_each_by_its_own(world: World) -> None:
    specs: list[JobSpec] = []
    wanted: dict[UUID, State] = {}
    for ending in (GOOD, BAD, GOOD, OFF, GOOD):
        # Each with what ends by it, before the next: found late, and due first.
        member = job()
        inner = batch(member)
        around = batch(inner)
        no = job(around.uuid, rule=Rule.ONE_FAILED if ending is GOOD else Rule.ALL_SUCCESS)
        of_it = batch(no)
        specs += [member, inner, around, no, of_it]
        state = State(ending.value)
        wanted |= {each.uuid: state for each in (member, inner, around)}
        wanted |= {each.uuid: State.SKIPPED for each in (no, of_it)}
    specs.append(batch(*(each for each in specs if each.kind == BATCH)))
    wanted[specs[-1].uuid] = State.FAILED
    submit(world, *specs)
    worker = world.worker()
    turns = world.claim(worker)
    endings = [Ending(wanted[turn.uuid].value) for turn in turns]
    world.settle(worker, *(end(turn, how) for turn, how in zip(turns, endings, strict=True)))
    assert {uuid: world.state(uuid) for uuid in wanted} == wanted
    assert world.violations() == []


def test_one_batch_comes_after_another(world: World) -> None:
    first, second = job(), job()
    one = batch(first)
    second = job(one.uuid)
    two = batch(second)
    submit(world, first, one, second, two)
    finish(world, GOOD)
    assert (world.state(one.uuid), world.state(two.uuid)) == (State.SUCCEEDED, State.WAITING)
    finish(world, GOOD)
    assert world.state(two.uuid) is State.SUCCEEDED


def test_a_batch_of_jobs_that_were_there_before_counts_those_that_have_ended(world: World) -> None:
    jobs = submit(world, job(), job())
    finish(world, BAD)
    (whole,) = submit(world, batch(*jobs))
    assert world.state(whole) is State.WAITING
    finish(world, GOOD)
    assert world.state(whole) is State.FAILED
    (again,) = submit(world, batch(*jobs))
    assert world.state(again) is State.FAILED


def test_a_job_may_be_in_two_batches(world: World) -> None:
    shared, own = job(), job()
    one, two = batch(shared), batch(shared, own)
    submit(world, shared, own, one, two)
    finish(world, GOOD)
    assert (world.state(one.uuid), world.state(two.uuid)) == (State.SUCCEEDED, State.WAITING)
    finish(world, GOOD)
    assert world.state(two.uuid) is State.SUCCEEDED


def test_an_open_batch_does_not_end(world: World) -> None:
    member = job()
    whole = batch(member, is_open=True)
    submit(world, member, whole)
    finish(world, GOOD)
    found = world.job(whole.uuid)
    assert (found.state, found.reason) == (State.WAITING, "open")


def test_a_batch_is_not_cancelled_or_revived_like_a_job(world: World) -> None:
    member = job()
    whole = batch(member)
    submit(world, member, whole)
    with pytest.raises(UsageError, match="is a batch"):
        world.store.cancel(whole.uuid)
    finish(world, BAD)
    assert world.store.revive([whole.uuid]) == [ReviveAnswer.REFUSED]


def test_a_member_is_kept_until_its_batch_has_ended(world: World) -> None:
    members = [job(), job()]
    whole = batch(*members)
    submit(world, *members, whole)
    finish(world, GOOD)
    assert world.store.delete([members[0].uuid]) == [DeleteAnswer.REFUSED]
    finish(world, GOOD)
    assert world.store.delete([members[0].uuid]) == [DeleteAnswer.DELETED]
    assert world.store.delete([whole.uuid]) == [DeleteAnswer.DELETED]


@pytest.mark.parametrize("how", ["cancel", "expire", "lapse"])
def test_whatever_ends_the_last_job_ends_the_batch(world: World, how: str) -> None:
    deadline = world.later(60) if how == "lapse" else None
    member = JobSpec(uuid=uuid4(), kind="a", max_crashes=1, expires_at=deadline)
    whole = batch(member)
    submit(world, member, whole)
    if how == "cancel":
        world.store.cancel(member.uuid)
    elif how == "expire":
        worker = world.worker()
        world.claim(worker)
        world.store.expire(worker, beat=None, begun=None)
    else:
        world.travel(61)
        assert world.store.lapse(10) == 1
        assert world.state(whole.uuid) is State.WAITING
        world.store.link(10)
    wanted = {"cancel": State.CANCELLED, "expire": State.FAILED, "lapse": State.SKIPPED}
    assert world.state(whole.uuid) is wanted[how]


def test_a_member_that_is_tried_again_keeps_its_batch_waiting(world: World) -> None:
    member = job()
    whole = batch(member)
    submit(world, member, whole)
    worker = world.worker()
    (turn,) = world.claim(worker)
    world.settle(worker, end(turn, Ending.RETRIED, delay_s=5.0))
    assert world.state(whole.uuid) is State.WAITING
    world.travel(6)
    world.store.promote(10)
    finish(world, GOOD)
    assert world.state(whole.uuid) is State.SUCCEEDED
