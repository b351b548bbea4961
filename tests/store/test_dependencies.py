"""Jobs that come after others: whatever ends a parent decides its edges, each once."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from tests.store.world import World, end

from timeball.core.dependencies import Edge, Rule, RuledOut
from timeball.core.records import Delivery, JobSpec
from timeball.core.states import Ending, State
from timeball.core.uniqueness import OnClash, Unique
from timeball.core.upkeep import DeleteAnswer, Keep, ReviveAnswer
from timeball.errors import UsageError

ENDINGS = [Ending.SUCCEEDED, Ending.FAILED, Ending.CANCELLED]


def after(*parents: UUID, rule: Rule = Rule.ALL_SUCCESS) -> tuple[Edge, ...]:
    return tuple(Edge(parent, rule) for parent in parents)


def finish(world: World, job: UUID, ending: Ending = Ending.SUCCEEDED) -> None:
    """Run the one job that is pending to its end."""
    worker = world.worker()
    (turn,) = world.claim(worker, 1)
    assert turn.uuid == job
    world.settle(worker, end(turn, ending))


def test_a_child_waits_for_each_of_its_parents(world: World) -> None:
    a, b = world.submit(), world.submit()
    child = world.submit(after=after(a, b))
    for parent in (a, b):
        assert world.state(child) is State.WAITING
        finish(world, parent)
    assert world.state(child) is State.PENDING
    finish(world, child)


@pytest.mark.parametrize("ended_before", [True, False])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("rule", "met_by"),
    [
        (Rule.ALL_SUCCESS, {Ending.SUCCEEDED}),
        (Rule.ALL_DONE, set(ENDINGS)),
        (Rule.NONE_FAILED, {Ending.SUCCEEDED}),
        (Rule.ALWAYS, set(ENDINGS)),
        (Rule.ONE_SUCCESS, {Ending.SUCCEEDED}),
        (Rule.ONE_FAILED, {Ending.FAILED, Ending.CANCELLED}),
    ],
)
def test_a_rule_holds_whether_the_parent_ended_before_or_after(
    world: World, rule: Rule, met_by: set[Ending], ending: Ending, *, ended_before: bool
) -> None:
    parent = world.submit()
    if ended_before:
        finish(world, parent, ending)
    child = world.submit(after=after(parent, rule=rule))
    if not ended_before:
        finish(world, parent, ending)
    assert world.state(child) is (State.PENDING if ending in met_by else State.SKIPPED)


@pytest.mark.parametrize("last", range(3))
def test_one_success_does_not_wait_for_the_others(world: World, last: int) -> None:
    parents = [world.submit() for _ in range(3)]
    child = world.submit(after=after(*parents, rule=Rule.ONE_SUCCESS))
    for n in range(last):
        finish(world, parents[n], Ending.FAILED)
        assert world.state(child) is State.WAITING
    finish(world, parents[last])
    assert world.state(child) is State.PENDING


def test_one_success_is_ruled_out_by_the_last_failure(world: World) -> None:
    parents = [world.submit() for _ in range(3)]
    child = world.submit(after=after(*parents, rule=Rule.ONE_SUCCESS))
    for n, parent in enumerate(parents):
        assert world.state(child) is State.WAITING, n
        finish(world, parent, Ending.FAILED)
    assert world.state(child) is State.SKIPPED


@pytest.mark.parametrize(
    ("ruled_out", "state"),
    [
        (RuledOut.SKIP, State.SKIPPED),
        (RuledOut.FAIL, State.FAILED),
        (RuledOut.RUN, State.WAITING),
    ],
)
def test_who_is_ruled_out_ends_as_he_was_told_to(
    world: World, ruled_out: RuledOut, state: State
) -> None:
    bad, other = world.submit(), world.submit()
    child = world.submit(after=after(bad, other), ruled_out=ruled_out, expires_at=world.later(99))
    finish(world, bad, Ending.FAILED)
    job = world.job(child)
    assert (job.state, job.attempts, job.failures, job.crashes) == (state, 0, 0, 0)
    assert job.reason == ("parents" if state is State.WAITING else "parent")
    finish(world, other)
    assert world.state(child) is (State.PENDING if ruled_out is RuledOut.RUN else state)


def test_skipping_goes_down_and_stops_at_who_does_not_mind(world: World) -> None:
    first = world.submit()
    chain = [first]
    for _ in range(12):
        chain.append(world.submit(after=after(chain[-1])))
    tolerant = world.submit(after=after(chain[-1], rule=Rule.NONE_FAILED))
    strict = world.submit(after=after(tolerant))
    finish(world, first, Ending.FAILED)
    assert {world.state(job) for job in chain[1:]} == {State.SKIPPED}
    assert world.state(tolerant) is State.PENDING
    assert world.state(strict) is State.WAITING


def test_failing_goes_down_to_those_who_ask_for_a_failure(world: World) -> None:
    first = world.submit()
    second = world.submit(after=after(first), ruled_out=RuledOut.FAIL)
    third = world.submit(after=after(second, rule=Rule.ONE_FAILED))
    finish(world, first, Ending.CANCELLED)
    assert world.state(second) is State.FAILED
    assert world.state(third) is State.PENDING


def test_a_child_with_an_instant_waits_for_both(world: World) -> None:
    parent = world.submit()
    child = world.submit(after=after(parent), run_at=world.later(10))
    finish(world, parent)
    assert world.state(child) is State.SCHEDULED
    world.travel(10)
    assert world.store.promote(10).moved == 1
    late = world.submit(after=after(world.submit()), delay_s=5.0)
    world.travel(6)
    worker = world.worker()
    for turn in world.claim(worker):
        world.settle(worker, end(turn))
    assert world.state(late) is State.PENDING


def test_edges_within_one_submission_count(world: World) -> None:
    a, b, c = (uuid4() for _ in range(3))
    specs = [
        JobSpec(uuid=a, kind="a"),
        JobSpec(uuid=b, kind="a", after=after(a)),
        JobSpec(uuid=c, kind="a", after=after(a, b)),
    ]
    world.store.submit(specs)
    for job in (a, b, c):
        finish(world, job)


@pytest.mark.parametrize("lacking", ["unknown", "later", "itself"])
def test_a_parent_that_is_not_there_is_refused_and_nothing_is_added(
    world: World, lacking: str
) -> None:
    mine, later = uuid4(), uuid4()
    parent = {"unknown": uuid4(), "later": later, "itself": mine}[lacking]
    specs = [
        JobSpec(uuid=mine, kind="a", after=after(parent)),
        JobSpec(uuid=later, kind="a"),
    ]
    with pytest.raises(UsageError, match=f"{parent}, which is not here"):
        world.store.submit(specs)
    assert world.store.counts() == {}


def test_a_parent_named_twice_is_one_edge(world: World) -> None:
    parent = world.submit()
    child = world.submit(after=after(parent, parent))
    finish(world, parent)
    assert world.state(child) is State.PENDING


def test_submitting_a_child_again_changes_nothing(world: World) -> None:
    parent = world.submit()
    spec = JobSpec(uuid=uuid4(), kind="a", after=after(parent))
    assert world.store.submit([spec]) == world.store.submit([spec])
    finish(world, parent)
    assert world.store.submit([spec])[0].uuid == spec.uuid
    finish(world, spec.uuid)


@pytest.mark.parametrize("scheduled", [True, False])
def test_cancelling_a_parent_decides_its_edges(world: World, *, scheduled: bool) -> None:
    parent = world.submit(delay_s=60.0 if scheduled else None)
    child = world.submit(after=after(parent))
    grandchild = world.submit(after=after(child, rule=Rule.ALL_DONE))
    assert world.store.cancel(parent) == "cancelled"
    assert world.state(child) is State.SKIPPED
    assert world.state(grandchild) is State.PENDING


def test_a_cancelled_child_is_a_parent_that_was_cancelled(world: World) -> None:
    parent = world.submit()
    child = world.submit(after=after(parent))
    grandchild = world.submit(after=after(child, rule=Rule.ONE_FAILED))
    assert world.store.cancel(child) == "cancelled"
    assert world.state(grandchild) is State.PENDING
    worker = world.worker()
    for turn in world.claim(worker):
        world.settle(worker, end(turn))
    assert world.state(child) is State.CANCELLED


@pytest.mark.parametrize("ending", [Ending.RETRIED, Ending.RELEASED, Ending.SNOOZED])
def test_a_turn_that_is_followed_by_another_decides_nothing(world: World, ending: Ending) -> None:
    parent = world.submit()
    child = world.submit(after=after(parent))
    finish(world, parent, ending)
    assert world.state(child) is State.WAITING
    assert world.store.cancel(parent) == "cancelled"
    assert world.state(child) is State.SKIPPED


def test_a_retry_that_a_cancel_request_forbids_decides(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    child = world.submit(after=after(turn.uuid, rule=Rule.ALL_DONE))
    assert world.store.cancel(turn.uuid) == "requested"
    world.settle(worker, end(turn, Ending.RETRIED))
    assert world.state(turn) is State.CANCELLED
    assert world.state(child) is State.PENDING


@pytest.mark.parametrize("delivery", Delivery)
def test_a_dead_worker_decides_only_what_it_ends(world: World, delivery: Delivery) -> None:
    worker = world.worker()
    turn = world.start(worker, delivery=delivery)
    child = world.submit(after=after(turn.uuid))
    world.store.expire(worker, beat=None, begun=None)
    lost = delivery is Delivery.AT_MOST_ONCE
    assert world.state(child) is (State.SKIPPED if lost else State.WAITING)


def test_a_crash_too_many_decides(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker, max_crashes=1)
    child = world.submit(after=after(turn.uuid, rule=Rule.ONE_FAILED))
    world.settle(worker, end(turn, Ending.LOST, reason="process died"))
    assert world.state(child) is State.PENDING


@pytest.mark.parametrize("found_by", ["claim", "lapse"])
def test_a_deadline_that_passed_decides_once_it_is_linked(world: World, found_by: str) -> None:
    parent = world.submit(expires_at=world.later(5))
    skipped = world.submit(after=after(parent))
    tolerant = world.submit(after=after(parent, rule=Rule.NONE_FAILED))
    world.travel(6)
    if found_by == "claim":
        assert world.claim(world.worker()) == []
    else:
        assert world.store.lapse(10) == 1
    assert world.state(parent) is State.SKIPPED
    assert world.store.delete([parent]) == [DeleteAnswer.REFUSED]
    assert world.store.link(10) == 2
    assert [world.state(job) for job in (skipped, tolerant)] == [State.SKIPPED, State.PENDING]
    assert world.store.link(10) == 0


def test_a_waiting_job_has_a_deadline_too(world: World) -> None:
    parent = world.submit()
    child = world.submit(after=after(parent), expires_at=world.later(5))
    world.travel(6)
    assert world.store.lapse(10) == 1
    finish(world, parent)
    assert world.state(child) is State.SKIPPED


def test_an_edge_is_decided_once_whatever_becomes_of_the_parent(world: World) -> None:
    parent, other = world.submit(), world.submit()
    finish(world, parent, Ending.FAILED)
    done = world.submit(after=after(parent, rule=Rule.ALL_DONE))
    child = world.submit(after=(Edge(parent, Rule.ALL_DONE), Edge(other)))
    assert world.store.revive([parent]) == [ReviveAnswer.REVIVED]
    assert world.state(done) is State.PENDING
    late = world.submit(after=after(parent))
    finish(world, other)
    assert world.state(child) is State.PENDING
    assert world.state(late) is State.WAITING


def test_a_revived_child_starts_at_once(world: World) -> None:
    parent, slow = world.submit(), world.submit()
    child = world.submit(after=after(parent, slow))
    finish(world, parent, Ending.FAILED)
    assert world.store.revive([child]) == [ReviveAnswer.REVIVED]
    assert world.state(child) is State.PENDING
    finish(world, slow)
    finish(world, child)


@pytest.mark.parametrize("how", ["delete", "trim"])
def test_a_parent_may_go_once_its_edges_are_decided(world: World, how: str) -> None:
    parent, other = world.submit(), world.submit()
    child = world.submit(after=after(parent, other))
    finish(world, parent)
    if how == "delete":
        assert world.store.delete([parent]) == [DeleteAnswer.DELETED]
    else:
        world.travel(99)
        assert world.store.trim(Keep(1.0, 1.0)).deleted == 1
    known = world.store.parents(world.job(child).id)
    assert [(one.uuid, one.state) for one in known] == [(parent, None), (other, State.PENDING)]
    finish(world, other)
    assert world.state(child) is State.PENDING
    finish(world, child)
    assert world.store.delete([child, other]) == [DeleteAnswer.DELETED] * 2


def test_parents_are_told_with_their_results(world: World) -> None:
    a, b = world.submit(), world.submit()
    child = world.submit(after=(Edge(a), Edge(b, Rule.ALL_DONE)))
    worker = world.worker()
    one, two = world.claim(worker)
    world.settle(worker, end(one, result='{"n": 1}'), end(two, Ending.FAILED))
    told = world.store.parents(world.job(child).id)
    assert [(p.uuid, p.rule, p.state) for p in told] == [
        (a, Rule.ALL_SUCCESS, State.SUCCEEDED),
        (b, Rule.ALL_DONE, State.FAILED),
    ]
    assert [p.result for p in told] == ['{"n": 1}', None]
    assert world.store.parents(world.job(a).id) == []


def test_a_child_with_a_key_waits_for_room_when_its_parents_are_done(world: World) -> None:
    worker = world.worker()
    first = world.start(worker, key="k")
    parent = world.start(worker)
    child = world.submit(after=after(parent.uuid), key="k")
    world.settle(worker, end(parent))
    assert (world.state(child), world.job(child).reason) == (State.PENDING, "key")
    world.settle(worker, end(first))
    finish(world, child)


def test_a_parent_of_the_same_key_makes_room_for_its_child(world: World) -> None:
    worker = world.worker()
    parent = world.start(worker, key="k")
    child = world.submit(after=after(parent.uuid), key="k")
    world.settle(worker, end(parent))
    finish(world, child)


def test_a_parent_that_was_ignored_stands_for_the_holder_of_its_key(world: World) -> None:
    unique = Unique(key="k")
    holder = world.submit(unique=unique)
    ignored, child = uuid4(), uuid4()
    world.store.submit(
        [
            JobSpec(uuid=ignored, kind="a", unique=unique),
            JobSpec(uuid=child, kind="a", after=after(ignored, holder)),
        ]
    )
    finish(world, holder)
    finish(world, child)


def test_a_replaced_parent_was_cancelled(world: World) -> None:
    parent = world.submit(unique=Unique(key="k"), delay_s=60.0)
    child = world.submit(after=after(parent, rule=Rule.ONE_FAILED))
    world.submit(unique=Unique(key="k", on_clash=OnClash.REPLACE), delay_s=60.0)
    assert world.state(parent) is State.CANCELLED
    assert world.state(child) is State.PENDING


def test_fan_in_and_fan_out(world: World) -> None:
    root = world.submit()
    middle = [JobSpec(uuid=uuid4(), kind="a", after=after(root)) for _ in range(60)]
    last = JobSpec(uuid=uuid4(), kind="a", after=after(*(spec.uuid for spec in middle)))
    world.store.submit([*middle, last])
    finish(world, root)
    worker = world.worker()
    turns = world.claim(worker)
    assert [turn.uuid for turn in turns] == [spec.uuid for spec in middle]
    for turn in turns[:-1]:
        world.settle(worker, end(turn))
    assert world.state(last.uuid) is State.WAITING
    world.settle(worker, end(turns[-1]))
    finish(world, last.uuid)
