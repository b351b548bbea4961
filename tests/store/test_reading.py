"""Reading: every answer is one snapshot, and the counts add up."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest
from tests.store.world import World, end

from timeball.core.history import SlotRecord
from timeball.core.states import TERMINAL, Ending, State
from timeball.errors import JobNotFound
from timeball.store.base import JobFilter


def one_of_each(world: World) -> dict[UUID, State]:
    worker = world.worker()
    states = {}
    for ending, state in (
        (Ending.SUCCEEDED, State.SUCCEEDED),
        (Ending.FAILED, State.FAILED),
        (Ending.CANCELLED, State.CANCELLED),
        (Ending.RETRIED, State.SCHEDULED),
        (None, State.RUNNING),
    ):
        turn = world.start(worker)
        if ending is not None:
            world.settle(worker, end(turn, ending, delay_s=60.0 * (ending is Ending.RETRIED)))
        states[turn.uuid] = state
    return states | {world.submit(): State.PENDING}


def ids(world: World, **only) -> list[int]:
    return [job.id for job in world.store.jobs(JobFilter(**only))]


def test_a_job_is_read_as_it_was_submitted(world: World) -> None:
    before = world.store.now()
    uuid = world.submit("mail", args='{"to":"x"}', queue="slow", priority=3, max_retries=7)
    job = world.job(uuid)
    assert (job.uuid, job.kind, job.args, job.queue) == (uuid, "mail", {"to": "x"}, "slow")
    assert (job.priority, job.max_retries, job.state, job.turn) == (3, 7, State.PENDING, 1)
    assert before <= job.created_at <= world.store.now()
    nothing = (job.run_at, job.began_at, job.ended_at, job.worker, job.reason)
    assert nothing == (None,) * 5
    assert (job.error_type, job.error, job.result) == (None,) * 3


def test_run_at_is_read_back_exactly(world: World) -> None:
    run_at = world.later(3_600).replace(microsecond=123_456)
    assert world.job(world.submit(run_at=run_at)).run_at == run_at


def test_a_job_that_never_was_is_not_found(world: World) -> None:
    with pytest.raises(JobNotFound):
        world.store.get(uuid4())


def test_counts_add_up(world: World) -> None:
    states = one_of_each(world)
    assert world.store.counts() == dict.fromkeys(states.values(), 1)


def test_counts_of_a_queue_leave_the_others_out(world: World) -> None:
    world.submit(queue="x")
    world.submit(queue="y")
    world.submit(queue="y", run_at=world.later(60))
    assert world.store.counts("y") == {State.PENDING: 1, State.SCHEDULED: 1}
    assert world.store.counts("z") == {}


def test_get_jobs_and_counts_agree(world: World) -> None:
    states = one_of_each(world)
    assert {job.uuid: job.state for job in world.store.jobs(JobFilter())} == states
    assert {uuid: world.state(uuid) for uuid in states} == states


def test_a_list_is_newest_first(world: World) -> None:
    one_of_each(world)
    found = ids(world)
    assert found == sorted(found, reverse=True)


def test_a_list_shows_what_was_asked_for(world: World) -> None:
    states = one_of_each(world)
    for uuid, state in states.items():
        assert [job.uuid for job in world.store.jobs(JobFilter(state=state))] == [uuid]
    odd = world.submit("b", queue="odd")
    assert ids(world, kind="b") == ids(world, queue="odd") == [world.job(odd).id]
    assert ids(world, kind="b", queue="default") == []
    for state, (each, *_) in {state: ids(world, state=state) for state in states.values()}.items():
        assert ids(world, state=state, from_id=each)[-1] == each
        assert each not in ids(world, state=state, from_id=each + 1)


def test_paging_loses_and_repeats_none_while_jobs_come_in(world: World) -> None:
    old = {world.job(world.submit()).id for _ in range(7)}
    seen = ids(world, limit=3)
    for _ in range(3):
        world.submit()
        seen += ids(world, limit=3, before_id=seen[-1])
    assert len(seen) == len(old)
    assert set(seen) == old


def test_what_has_ended_is_told_of_many_at_once(world: World) -> None:
    states = one_of_each(world)
    over = {uuid for uuid, state in states.items() if state in TERMINAL}
    assert world.store.ended([*states, uuid4()]) == over
    assert world.store.ended([]) == set()


def test_a_history_tells_every_turn(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker)
    world.settle(worker, end(turn, Ending.RETRIED, reason="flaky", delay_s=1.0))
    world.travel(2)
    world.store.promote(10)
    (again,) = world.claim(worker)
    world.store.cancel(turn.uuid)
    world.settle(worker, end(again, Ending.SNOOZED, delay_s=5.0))
    (history,) = world.store.histories()
    assert [entry.turn for entry in history.entries] == [1, 2]
    assert [(grant.turn, grant.worker) for grant in history.grants] == [(1, worker), (2, worker)]
    assert [(ended.turn, ended.ending, ended.worker) for ended in history.endings] == [
        (1, Ending.RETRIED, worker),
        (2, Ending.SNOOZED, worker),
        (3, Ending.CANCELLED, None),
    ]
    assert history.endings[0].reason == "flaky"
    assert len(history.cancels_requested_at) == 1
    assert history.held is None


def test_a_history_tells_why_a_job_is_held(world: World) -> None:
    run_at = world.later(60)
    world.submit(run_at=run_at)
    (history,) = world.store.histories()
    assert history.held is not None
    assert (history.held.turn, history.held.state) == (1, State.SCHEDULED)
    assert history.held.run_at == history.run_at == pytest.approx(run_at.timestamp(), abs=1e-5)


def test_histories_since_an_instant_begin_with_the_oldest_job_that_has_changed(
    world: World,
) -> None:
    worker = world.worker()
    world.settle(worker, end(world.start(worker)))
    running = world.start(worker)
    world.travel(10)
    later = world.later(0)
    assert list(world.store.histories(later)) == []
    new = world.submit()
    assert [history.uuid for history in world.store.histories(later)] == [new]
    world.settle(worker, end(running))
    assert [history.id for history in world.store.histories(later)] == [2, 3]
    assert list(world.store.strays()) == []


def test_a_history_tells_which_slots_a_job_has(world: World) -> None:
    worker = world.worker()
    turn = world.start(worker, key="k")
    world.submit(key="k")
    having, waiting = world.store.histories()
    assert having.slots == (SlotRecord("key", "k"),)
    assert waiting.slots == ()
    world.settle(worker, end(turn))
    having, waiting = world.store.histories()
    assert (having.slots, waiting.slots) == ((), (SlotRecord("key", "k"),))


def test_holdings_since_an_instant_leave_out_those_who_had_gone(world: World) -> None:
    worker = world.worker()
    world.settle(worker, end(world.start(worker, key="k")))
    world.travel(10)
    later = world.later(0)
    world.start(worker, key="k")
    assert len(list(world.store.holdings())) == 2
    assert [row.job_id for row in world.store.holdings(later)] == [2]


def test_histories_come_in_the_order_of_the_ids(world: World) -> None:
    one_of_each(world)
    found = [history.id for history in world.store.histories()]
    assert found == sorted(ids(world))
