"""Batches: what is added to them, read of them, closed and started again."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from tests.store.batches import BAD, GOOD, batch, finish, job, submit
from tests.store.world import World, end

from timeball.core.batches import ReopenAnswer, failed_part
from timeball.core.dependencies import Rule
from timeball.core.records import JobSpec
from timeball.core.states import Ending, State
from timeball.errors import JobNotFound, UsageError

# What is added later


def test_a_member_that_is_added_keeps_the_batch_from_ending(world: World) -> None:
    first = job()
    whole = batch(first)
    submit(world, first, whole)
    worker = world.worker()
    (turn,) = world.claim(worker)
    more = [job(first.uuid), job()]
    more[1] = job(more[0].uuid)
    added = world.store.add_members(whole.uuid, more)
    assert [each.uuid for each in added] == [each.uuid for each in more]
    assert world.store.add_members(whole.uuid, more) == added
    world.settle(worker, end(turn))
    for _ in more:
        assert world.state(whole.uuid) is State.WAITING
        finish(world, GOOD)
    assert world.state(whole.uuid) is State.SUCCEEDED
    assert world.store.batch(whole.uuid).jobs == 3


def test_a_batch_that_has_ended_takes_nothing_more(world: World) -> None:
    first, late = job(), job()
    whole = batch(first)
    submit(world, first, whole)
    finish(world, GOOD)
    with pytest.raises(UsageError, match="has ended"):
        world.store.add_members(whole.uuid, [late])
    with pytest.raises(JobNotFound):
        world.job(late.uuid)


def test_a_cycle_through_what_is_added_cannot_be_written(world: World) -> None:
    first = job()
    whole = batch(first)
    child = job(whole.uuid)
    other = job()
    submit(world, first, whole, child, other)
    for parent in (whole, child):
        with pytest.raises(UsageError, match="not in the batch"):
            world.store.add_members(whole.uuid, [job(parent.uuid)])
    for old in (other, batch()):
        with pytest.raises(UsageError, match="was there before, or is a batch"):
            world.store.add_members(whole.uuid, [old])
    assert world.store.batch(whole.uuid).jobs == 1


def test_what_is_no_batch_is_not_found(world: World) -> None:
    member = world.submit()
    for call in (world.store.batch, world.store.batch_left, world.store.close_batch):
        with pytest.raises(JobNotFound):
            call(member)


def test_an_open_batch_ends_when_it_is_closed(world: World) -> None:
    member = job()
    whole, empty = batch(member, is_open=True), batch(is_open=True)
    after = job(whole.uuid)
    submit(world, member, whole, empty, after)
    finish(world, GOOD)
    assert (world.state(whole.uuid), world.state(empty.uuid)) == (State.WAITING,) * 2
    assert world.store.batch(whole.uuid).is_open
    assert world.store.close_batch(whole.uuid)
    assert world.store.close_batch(empty.uuid)
    assert (world.state(whole.uuid), world.state(empty.uuid)) == (State.SUCCEEDED,) * 2
    assert world.state(after.uuid) is State.PENDING
    assert not world.store.close_batch(whole.uuid)


def test_a_batch_that_is_closed_before_the_end_ends_with_its_last_job(world: World) -> None:
    members = [job(), job()]
    whole = batch(members[0], is_open=True)
    submit(world, members[0], whole)
    world.store.add_members(whole.uuid, [members[1]])
    finish(world, GOOD)
    assert world.store.close_batch(whole.uuid)
    assert world.state(whole.uuid) is State.WAITING
    finish(world, BAD)
    assert world.state(whole.uuid) is State.FAILED


def test_a_batch_that_was_stopped_takes_nothing_more(world: World) -> None:
    member = job()
    whole = batch(member, is_open=True)
    submit(world, member, whole)
    world.store.close_batch(whole.uuid, stop=True)
    with pytest.raises(UsageError, match="was cancelled"):
        world.store.add_members(whole.uuid, [job()])
    world.store.cancel(member.uuid)
    assert world.state(whole.uuid) is State.CANCELLED


# What is read


def test_the_counts_of_a_batch_are_those_of_all_its_jobs(world: World) -> None:
    jobs = [job() for _ in range(6)]
    waiting, later = job(jobs[5].uuid), JobSpec(uuid=uuid4(), kind="a", delay_s=60.0)
    inner = batch(*jobs[:3])
    whole = batch(inner, jobs[0], *jobs[3:], waiting, later)
    submit(world, *jobs, waiting, later, inner, whole, job())
    finish(world, GOOD, BAD)
    world.store.cancel(jobs[2].uuid)
    worker = world.worker()
    world.claim(worker, 1)
    found = world.store.batch(whole.uuid)
    counts = {state: count for state, count in found.states.items() if count}
    assert counts == {
        State.SUCCEEDED: 1,
        State.FAILED: 1,
        State.CANCELLED: 1,
        State.RUNNING: 1,
        State.PENDING: 2,
        State.WAITING: 1,
        State.SCHEDULED: 1,
    }
    assert (found.jobs, found.ended, found.gone) == (8, 3, 0)
    assert found.progress == 3 / 8
    left = [later.uuid, waiting.uuid, *(each.uuid for each in reversed(jobs[3:]))]
    assert world.store.batch_left(whole.uuid) == [
        (whole.uuid, True),
        *((uuid, False) for uuid in left),
    ]
    world.store.revive([jobs[1].uuid])
    assert world.store.batch(whole.uuid).states[State.PENDING] == 3


def test_deleted_members_are_counted_as_far_as_they_are_known(world: World) -> None:
    members = [job(), job(), job()]
    whole = batch(*members)
    submit(world, *members, whole)
    finish(world, GOOD, GOOD, BAD)
    world.store.delete([members[0].uuid, members[2].uuid])
    found = world.store.batch(whole.uuid)
    assert (found.states[State.SUCCEEDED], found.gone, found.progress) == (2, 1, 1.0)


def test_a_page_of_batches_says_how_far_each_is(world: World) -> None:
    members = [job() for _ in range(3)]
    first, second = batch(*members), batch(members[0])
    submit(world, *members, first, second)
    finish(world, GOOD)
    newest, oldest = world.store.batches(limit=2)
    assert (newest.uuid, newest.members, newest.left) == (second.uuid, 1, 0)
    assert (oldest.uuid, oldest.members, oldest.left) == (first.uuid, 3, 2)
    assert (newest.name, newest.state, newest.is_open) == ("b", State.SUCCEEDED, False)
    assert [b.uuid for b in world.store.batches(limit=9, before_id=newest.id)] == [first.uuid]


def test_the_members_of_a_batch_are_told_with_their_attempts(world: World) -> None:
    first = job()
    second = job(first.uuid)
    inner = batch(first)
    whole = batch(inner, second)
    submit(world, first, second, inner, whole, job())
    worker = world.worker()
    turns = world.claim(worker, 1)
    world.travel(3)
    world.settle(worker, end(turns[0], Ending.RETRIED, ran_s=2.5, delay_s=1.0))
    world.travel(2)
    world.store.promote(10)
    finish(world, GOOD, GOOD)
    found = world.store.batch_members(whole.uuid)
    assert [each.uuid for each in found] == [first.uuid, second.uuid, inner.uuid, whole.uuid]
    assert [(a.turn, a.ending, a.ran_s) for a in found[0].attempts] == [
        (1, Ending.RETRIED, 2.5),
        (2, GOOD, 0.0),
    ]
    assert all(a.queued_at <= a.began_at for a in found[0].attempts)
    assert [(edge.parent, edge.met) for edge in found[3].edges] == [
        (found[1].id, None),
        (found[2].id, True),
    ]
    assert (found[3].is_batch, found[3].name, found[0].name) == (True, "b", "")


# Once more


def retry(world: World, whole: UUID) -> int:
    part = failed_part(world.store.batch_members(whole))
    assert world.store.reopen(part) is ReopenAnswer.DONE
    return len(part)


def test_the_failed_part_starts_again_and_the_batch_waits_for_it(world: World) -> None:
    good, bad = job(), job()
    after_bad = job(bad.uuid)
    last = job(after_bad.uuid, good.uuid)
    whole = batch(good, bad, after_bad, last)
    told = job(whole.uuid, rule=Rule.ALL_DONE)
    submit(world, good, bad, after_bad, last, whole)
    finish(world, GOOD, BAD)
    assert world.state(whole.uuid) is State.FAILED
    submit(world, told)
    assert retry(world, whole.uuid) == 3
    assert world.state(good.uuid) is State.SUCCEEDED
    assert world.state(bad.uuid) is State.PENDING
    assert {world.state(each.uuid) for each in (after_bad, last, whole)} == {State.WAITING}
    assert world.state(told.uuid) is State.PENDING
    world.store.cancel(told.uuid)
    finish(world, GOOD)
    finish(world, GOOD)
    assert world.state(whole.uuid) is State.WAITING
    finish(world, GOOD)
    assert world.state(whole.uuid) is State.SUCCEEDED
    assert retry(world, whole.uuid) == 0


def test_a_batch_that_still_waits_can_be_tried_again(world: World) -> None:
    members = [job(), job()]
    whole = batch(*members)
    submit(world, *members, whole)
    finish(world, BAD)
    assert retry(world, whole.uuid) == 1
    finish(world, GOOD)
    assert world.state(whole.uuid) is State.WAITING
    finish(world, GOOD)
    assert world.state(whole.uuid) is State.SUCCEEDED


def test_what_the_failure_has_not_ruled_out_does_not_start_again(world: World) -> None:
    outside, bad, good = job(), job(), job()
    alert = job(bad.uuid, rule=Rule.ONE_FAILED)
    quiet = job(good.uuid, rule=Rule.ONE_FAILED)
    both = job(bad.uuid, outside.uuid)
    whole = batch(bad, good, alert, quiet, both)
    submit(world, outside, bad, good, alert, quiet, both, whole)
    finish(world, BAD, BAD, GOOD)
    finish(world, GOOD)
    assert world.state(quiet.uuid) is State.SKIPPED
    assert retry(world, whole.uuid) == 1  # not `both`, which the job outside rules out still
    assert world.state(both.uuid) is State.SKIPPED
    finish(world, GOOD)
    assert world.state(whole.uuid) is State.SUCCEEDED


def test_the_batches_above_wait_too_and_those_after_an_inner_one(world: World) -> None:
    bad, other = job(), job()
    inner = batch(bad)
    after = job(inner.uuid)
    outer = batch(inner, after, other)
    submit(world, bad, other, inner, after, outer)
    finish(world, BAD, GOOD)
    states = [world.state(each.uuid) for each in (inner, after, outer)]
    assert states == [State.FAILED, State.SKIPPED, State.FAILED]
    assert retry(world, outer.uuid) == 2
    assert {world.state(each.uuid) for each in (inner, after, outer)} == {State.WAITING}
    finish(world, GOOD)
    assert world.state(inner.uuid) is State.SUCCEEDED
    finish(world, GOOD)
    assert world.state(outer.uuid) is State.SUCCEEDED


def test_a_batch_that_has_succeeded_waits_again_and_what_came_after_it_ran_once(
    world: World,
) -> None:
    bad, good = job(), job()
    ruled_out = job(bad.uuid)
    inner, failed = batch(good, ruled_out), batch(bad)
    after = job(inner.uuid)
    alert = job(inner.uuid, rule=Rule.ONE_FAILED)
    outer = batch(inner, failed, after, alert)
    submit(world, bad, good, ruled_out, inner, failed, after, alert, outer)
    finish(world, BAD, GOOD)
    finish(world, GOOD)
    assert (world.state(inner.uuid), world.state(after.uuid)) == (State.SUCCEEDED, State.SUCCEEDED)
    assert retry(world, outer.uuid) == 3  # the alert too, which the first end had ruled out
    assert {world.state(each.uuid) for each in (inner, alert, outer)} == {State.WAITING}
    finish(world, GOOD)
    finish(world, BAD)
    assert (world.state(inner.uuid), world.state(alert.uuid)) == (State.FAILED, State.PENDING)
    assert (world.state(after.uuid), world.job(after.uuid).turn) == (State.SUCCEEDED, 1)
    finish(world, GOOD)
    assert world.state(outer.uuid) is State.FAILED
    assert world.violations() == []


def test_a_part_that_is_not_as_it_was_is_left_alone(world: World) -> None:
    bad = job()
    whole = batch(bad)
    submit(world, bad, whole)
    finish(world, BAD)
    part = failed_part(world.store.batch_members(whole.uuid))
    world.store.revive([bad.uuid])
    assert world.store.reopen(part) is ReopenAnswer.CHANGED
    assert world.state(whole.uuid) is State.FAILED
    finish(world, GOOD)
    assert (
        world.state(whole.uuid) is State.FAILED
    )  # told once: reviving a job alone changes nothing


def test_a_job_with_a_key_waits_for_it_when_it_starts_again(world: World) -> None:
    worker = world.worker()
    members = [JobSpec(uuid=uuid4(), kind="a", key="k") for _ in range(2)]
    whole = batch(*members)
    submit(world, *members, whole)
    for ending in (BAD, BAD, GOOD, GOOD):
        if world.state(whole.uuid) is State.FAILED:
            assert retry(world, whole.uuid) == 2
        (turn,) = world.claim(worker)
        world.settle(worker, end(turn, ending))
    assert world.state(whole.uuid) is State.SUCCEEDED


# Many at once


def test_many_are_kept_from_starting_at_once_and_the_others_are_left(world: World) -> None:
    worker = world.worker()
    running, pending, later = job(), job(), JobSpec(uuid=uuid4(), kind="a", delay_s=60.0)
    waiting, keyed = job(pending.uuid), JobSpec(uuid=uuid4(), kind="a", key="k")
    outside = job(pending.uuid)
    specs = [running, pending, later, waiting, keyed]
    whole = batch(*specs)
    submit(world, *specs, whole, outside)
    (turn,) = world.claim(worker, 1)
    assert turn.uuid == running.uuid
    done = world.store.cancel_many([*(each.uuid for each in specs), whole.uuid, uuid4()])
    assert done == {each.uuid for each in specs[1:]}
    assert {world.state(uuid) for uuid in done} == {State.CANCELLED}
    assert (world.state(outside.uuid), world.state(running.uuid)) == (
        State.SKIPPED,
        State.RUNNING,
    )
    assert world.claim(worker) == []
    assert world.store.cancel_many(list(done)) == set()
    assert world.state(whole.uuid) is State.WAITING
    world.settle(worker, end(turn))
    assert world.state(whole.uuid) is State.CANCELLED


def test_the_last_of_a_key_leave_room_when_many_are_cancelled(world: World) -> None:
    worker = world.worker()
    first, second = (JobSpec(uuid=uuid4(), kind="a", key="k") for _ in range(2))
    submit(world, first, second)
    assert world.store.cancel_many([first.uuid]) == {first.uuid}
    assert [turn.uuid for turn in world.claim(worker)] == [second.uuid]
