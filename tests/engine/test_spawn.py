"""Jobs of a scheduler that spawn others: over once those are, never called again, in no cycle."""

from __future__ import annotations

import asyncio
from threading import Event

import pytest

import timeball as tb
from timeball import AsyncScheduler, CancelAnswer, Context, Retry, Scheduler, State
from timeball.errors import JobFailed, UsageError


def fail() -> None:
    raise PermissionError


def total(ctx: Context) -> int:
    return sum(parent.result for parent in ctx.parents())


def test_a_job_is_over_once_all_that_it_spawned_are_and_is_not_called_again() -> None:
    order: list[object] = []

    def split(ctx: Context) -> str:
        order.append("split")
        ctx.spawn(order.append, "last", after=[ctx.spawn(order.append, n) for n in range(4)])
        return "done"

    def after(ctx: Context) -> None:
        order.append([parent.result for parent in ctx.parents()])

    with Scheduler(workers=3) as s:
        parent = s.submit(split)
        s.submit(after, after=[parent])
        s.wait()
        assert s.violations() == []
        assert s.report().states[State.SUCCEEDED] == 7
    assert parent.result() == "done"
    assert sorted(map(str, order[1:5])) == ["0", "1", "2", "3"]
    assert [order[0], *order[5:]] == ["split", "last", ["done"]]


def test_the_sum_of_what_was_spawned_is_there_before_who_comes_after() -> None:
    def add(ctx: Context) -> int:
        return total(ctx)

    sums: list[int] = []

    def split(ctx: Context) -> None:
        parts = [ctx.spawn(pow, 2, n) for n in range(4)]
        ctx.spawn(keep, after=[ctx.spawn(add, after=parts)])

    def keep(ctx: Context) -> None:
        sums.append(ctx.parents()[0].result)

    with Scheduler(workers=2) as s:
        last = s.submit(lambda: list(sums), after=[s.submit(split)])
    assert last.result() == [15]


def test_one_that_fails_fails_it_and_those_that_come_after_it_are_skipped() -> None:
    def split(ctx: Context) -> None:
        ctx.spawn(fail)
        ctx.spawn(int)

    with Scheduler(workers=2, retry=Retry(0)) as s:
        parent = s.submit(split)
        child = s.submit(int, after=[parent])
        s.wait()
        assert s.violations() == []
    assert (parent.state, parent.reason) == (State.FAILED, "spawned")
    assert child.state is State.SKIPPED
    with pytest.raises(JobFailed, match="which it spawned"):
        parent.result()


def test_an_attempt_that_fails_spawns_nothing() -> None:
    calls: list[int] = []

    def split(ctx: Context) -> None:
        calls.append(ctx.attempt)
        ctx.spawn(int)
        if ctx.attempt == 1:
            raise ConnectionError

    with Scheduler(workers=1, retry=Retry(1, base_s=0.0)) as s:
        s.submit(split)
        s.wait()
        assert s.counts()[State.SUCCEEDED] == 2
        assert s.violations() == []
    assert calls == [1, 2]


def test_a_cycle_is_refused_whole_with_its_way() -> None:
    gate = Event()

    def split(ctx: Context) -> None:
        gate.wait(30)
        ctx.spawn(int)
        ctx.spawn(int, after=["last"])

    with Scheduler(workers=2, retry=Retry(0)) as s:
        parent = s.submit(split, id="split")
        middle = s.submit(int, after=[parent], rule="all_done", id="middle")
        s.submit(int, after=[middle], id="last")
        gate.set()
        s.wait()
        assert sum(s.counts().values()) == 3
        assert s.violations() == []
    assert "job split spawns what waits for job last, which waits for job middle" in str(
        parent.error
    )
    assert str(parent.error).count("job split") == 2


def test_two_that_spawn_what_waits_for_the_other_are_a_cycle() -> None:
    ready = [Event(), Event()]

    def split(ctx: Context, me: int) -> None:
        ready[me].set()
        ready[1 - me].wait(30)
        ctx.spawn(int, after=[str(1 - me)])

    with Scheduler(workers=2, retry=Retry(0)) as s:
        both = [s.submit(split, me=n, id=str(n)) for n in range(2)]
        s.wait()
        assert s.violations() == []
    # What the other one spawned was to come after it, and is skipped: that does no harm.
    assert {each.state for each in both} == {State.FAILED, State.SUCCEEDED}
    assert sum("a cycle" in str(each.error) for each in both) == 1


def test_mistakes_are_told_where_they_are_made() -> None:
    told: list[str] = []

    def split(ctx: Context) -> None:
        for bad in ({"priority": 77}, {"id": "x"}, {"after": [tb.draft(int)]}):
            with pytest.raises(UsageError) as error:
                ctx.spawn(int, **bad)
            told.append(str(error.value))

    with Scheduler() as s:
        parent = s.submit(split)
    assert parent.state is State.SUCCEEDED
    assert len(told) == 3


def test_one_that_waits_for_what_it_spawned_can_be_cancelled() -> None:
    gate, begun = Event(), Event()

    def hold() -> None:
        begun.set()
        gate.wait(30)

    def split(ctx: Context) -> None:
        ctx.spawn(hold)

    with Scheduler(workers=2) as s:
        parent = s.submit(split)
        assert begun.wait(30)
        assert parent.state is State.WAITING
        assert parent.cancel() is CancelAnswer.CANCELLED
        gate.set()
        s.wait()
        assert s.violations() == []
    assert parent.state is State.CANCELLED


def test_what_runs_at_the_end_of_a_scheduler_spawns_as_before_but_not_when_it_is_stopped() -> None:
    gate = Event()

    def split(ctx: Context) -> None:
        gate.wait(30)
        ctx.spawn(int)

    with Scheduler(workers=1) as s:
        drained = s.submit(split)
        gate.set()
    assert drained.state is State.SUCCEEDED
    gate.clear()
    s = Scheduler(workers=1)
    stopped = s.submit(split)
    while stopped.state is not State.RUNNING:
        gate.wait(0.001)
    s._engine.close("cancel")
    gate.set()
    s.shutdown("cancel")
    assert stopped.state is State.CANCELLED
    assert sum(s.counts().values()) == 1


def test_coroutines_spawn_coroutines() -> None:
    async def double(n: int) -> int:
        return 2 * n

    async def split(ctx: Context) -> int:
        ctx.spawn(total, after=[ctx.spawn(double, n) for n in range(3)])
        return 7

    async def run() -> tuple[int, int]:
        async with AsyncScheduler(workers=2) as s:
            parent = await s.submit(split)
            await s.wait()
            assert s.violations() == []
            return await parent, s.counts()[State.SUCCEEDED]

    assert asyncio.run(run()) == (7, 5)


def test_a_deep_tree_of_those_that_spawn_ends_from_its_leaves() -> None:
    def grow(ctx: Context, depth: int) -> int:
        if depth:
            ctx.spawn(grow, depth=depth - 1)
            ctx.spawn(grow, depth=depth - 1)
        return depth

    with Scheduler(workers=4) as s:
        root = s.submit(grow, depth=6)
        s.wait()
        assert s.violations() == []
        assert s.counts()[State.SUCCEEDED] == 2**7 - 1
    assert root.result() == 6


def test_the_turn_that_ends_a_job_which_has_spawned_is_no_retry() -> None:
    def split(ctx: Context) -> None:
        ctx.spawn(int)
        if ctx.attempt == 1:
            raise ConnectionError

    with Scheduler(workers=1, retry=Retry(1, base_s=0.0)) as s:
        s.submit(split)
        s.submit(int)
        s.wait()
        report = s.report()
        assert s.violations() == []
    # split, again, and its end; what it spawned; and the one beside it.
    assert (report.attempts, report.started, report.retries) == (5, 3, 1)
    assert report.as_dict()["retries"] == 1
    assert report.success == (1.0, 1.0, 2 / 3, 3 / 4)
