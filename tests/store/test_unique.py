"""Unique keys: one job of a key at a time, by a stated rule, and nobody else is touched."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest
from tests.store.world import World, end

from timeball.core.dependencies import Edge
from timeball.core.records import JobSpec
from timeball.core.states import Ending, State
from timeball.core.uniqueness import OnClash, Submitted, Unique, UniqueScope, UniqueUntil
from timeball.errors import UniqueClash


def keyed(key: str = "k", kind: str = "a", queue: str = "default", **how) -> JobSpec:
    run_at = how.pop("run_at", None)
    unique = Unique(key=key, **how)
    return JobSpec(uuid=uuid4(), run_at=run_at, kind=kind, queue=queue, unique=unique)


def submit(world: World, *specs: JobSpec) -> list[UUID]:
    added = world.store.submit(specs)
    assert [world.job(job.uuid).id for job in added] == [job.id for job in added]
    return [job.uuid for job in added]


def test_a_second_job_of_the_key_is_ignored_and_gives_the_first(world: World) -> None:
    first, second = keyed(), keyed()
    assert submit(world, first) == submit(world, second) == [first.uuid]
    assert world.store.counts() == {State.PENDING: 1}


def test_who_gives_way_leaves_no_parents_to_the_job_that_holds_its_key(world: World) -> None:
    first, parent = keyed(), JobSpec(uuid=uuid4(), kind="a")
    second = replace(keyed(), after=(Edge(parent.uuid),))
    assert submit(world, first, parent, second) == [first.uuid, parent.uuid, first.uuid]
    assert world.store.counts() == {State.PENDING: 2}


@pytest.mark.parametrize("state", ["pending", "scheduled", "running", "backoff"])
def test_a_job_holds_its_key_until_it_has_ended(world: World, state: str) -> None:
    """Others are unaffected, also where it falls due after the second one was submitted."""
    worker = world.worker()
    first = keyed(run_at=world.later(60) if state == "scheduled" else None)
    submit(world, first)
    if state in {"running", "backoff"}:
        (turn,) = world.claim(worker)
        if state == "backoff":
            world.settle(worker, end(turn, Ending.RETRIED, delay_s=60.0))
    other = world.submit()
    assert submit(world, keyed()) == [first.uuid]
    world.travel(60)
    world.store.promote(10)
    assert submit(world, keyed()) == [first.uuid]
    granted = {turn.uuid for turn in world.claim(worker)}
    assert granted == {other} | ({first.uuid} if state != "running" else set())


@pytest.mark.parametrize("ending", [Ending.SUCCEEDED, Ending.FAILED, Ending.CANCELLED])
def test_the_next_job_takes_the_key_over_from_one_that_has_ended(
    world: World, ending: Ending
) -> None:
    worker = world.worker()
    first, second = keyed(), keyed()
    submit(world, first)
    (turn,) = world.claim(worker)
    world.settle(worker, end(turn, ending))
    assert submit(world, second) == [second.uuid]
    assert submit(world, keyed()) == [second.uuid]


def test_a_job_may_hold_its_key_only_until_it_has_started(world: World) -> None:
    worker = world.worker()
    first, second = (keyed(until=UniqueUntil.STARTED) for _ in range(2))
    submit(world, first)
    assert submit(world, second) == [first.uuid]
    (turn,) = world.claim(worker)
    assert submit(world, second) == [second.uuid]
    world.settle(worker, end(turn, Ending.RETRIED, delay_s=60.0))
    assert submit(world, keyed()) == [second.uuid]


def test_what_was_given_back_before_it_began_holds_its_key_again(world: World) -> None:
    worker = world.worker()
    first = keyed(until=UniqueUntil.STARTED)
    submit(world, first)
    (turn,) = world.claim(worker)
    world.settle(worker, end(turn, Ending.RELEASED, began=False))
    assert submit(world, keyed()) == [first.uuid]


def test_a_clash_can_be_an_error_and_then_nothing_of_the_call_is_added(world: World) -> None:
    first, second = keyed(), keyed(on_clash=OnClash.REJECT)
    submit(world, first)
    plain = JobSpec(uuid=uuid4(), kind="a")
    with pytest.raises(UniqueClash, match="holds the unique key k") as clash:
        world.store.submit([plain, keyed("l"), second])
    assert str(clash.value.job) == str(first.uuid)
    assert world.store.counts() == {State.PENDING: 1}
    assert submit(world, keyed("l", on_clash=OnClash.REJECT)) != [first.uuid]


def test_a_newer_job_replaces_one_that_is_scheduled(world: World) -> None:
    first = keyed(run_at=world.later(60))
    second = keyed(run_at=world.later(90), on_clash=OnClash.REPLACE)
    submit(world, first)
    assert submit(world, second) == [second.uuid]
    assert (world.state(first.uuid), world.job(first.uuid).reason) == ("cancelled", "replaced")
    world.travel(90)
    assert world.store.promote(10).moved == 1
    assert world.order(world.worker()) == [second.uuid]


@pytest.mark.parametrize("begun", [True, False])
def test_what_may_start_at_any_moment_is_not_replaced(world: World, *, begun: bool) -> None:
    first = keyed()
    submit(world, first)
    if begun:
        world.claim(world.worker())
    with pytest.raises(UniqueClash):
        submit(world, keyed(on_clash=OnClash.REPLACE))
    assert world.state(first.uuid) is (State.RUNNING if begun else State.PENDING)


@pytest.mark.parametrize(
    ("scope", "apart"),
    [(UniqueScope.KIND, {"kind"}), (UniqueScope.QUEUE, {"queue"}), (UniqueScope.GLOBAL, set())],
)
def test_a_key_is_unique_within_its_scope(world: World, scope: UniqueScope, apart: set) -> None:
    first = keyed(scope=scope)
    submit(world, first)
    for name in ("kind", "queue"):
        spec = keyed(scope=scope, **{name: "other"})
        assert submit(world, spec) == [spec.uuid if name in apart else first.uuid]
    spec = keyed(scope=next(other for other in UniqueScope if other is not scope))
    assert submit(world, spec) == [spec.uuid]


def test_of_a_key_twice_in_one_call_the_first_counts(world: World) -> None:
    first, second, third = keyed(), keyed(), keyed("l")
    assert submit(world, first, third, second) == [first.uuid, third.uuid, first.uuid]
    with pytest.raises(UniqueClash):
        world.store.submit([keyed("m"), keyed("m", on_clash=OnClash.REPLACE)])
    assert world.store.counts() == {State.PENDING: 2}


def test_submitting_twice_is_no_clash(world: World) -> None:
    spec = keyed(on_clash=OnClash.REJECT)
    assert submit(world, spec, spec) == [spec.uuid] * 2
    worker = world.worker()
    (turn,) = world.claim(worker)
    world.settle(worker, end(turn))
    newer = keyed()
    submit(world, newer)
    assert submit(world, spec) == [spec.uuid]
    assert world.state(newer.uuid) is State.PENDING


def test_a_job_is_revived_only_with_its_key(world: World) -> None:
    first, second = keyed(), keyed()
    submit(world, first)
    world.store.cancel(first.uuid)
    submit(world, second)
    assert world.store.revive([first.uuid]) == ["clashed"]
    assert world.state(first.uuid) is State.CANCELLED
    world.store.cancel(second.uuid)
    assert world.store.revive([second.uuid, first.uuid]) == ["clashed", "revived"]
    assert submit(world, keyed()) == [first.uuid]


def test_a_deleted_job_frees_its_key(world: World) -> None:
    first, second = keyed(), keyed()
    submit(world, first)
    world.store.cancel(first.uuid)
    world.store.delete([first.uuid])
    assert submit(world, second) == [second.uuid]
    assert world.store.submit([first]) == [Submitted(world.job(second.uuid).id, second.uuid)]
