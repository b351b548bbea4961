"""Different jobs with edges among them are submitted to a scheduler as one, all or none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

import timeball as tb
from timeball import AsyncScheduler, Context, Scheduler, State
from timeball.action.draft import Draft
from timeball.errors import SchedulerClosed, UsageError


def total(ctx: Context) -> int:
    return sum(parent.result for parent in ctx.parents())


def fail() -> None:
    raise PermissionError


def test_edges_name_handles_ids_and_earlier_drafts() -> None:
    with Scheduler(workers=2, retry=tb.Retry(0)) as s:
        there = s.submit(pow, 2, 3)
        named = s.submit(pow, 2, 2, id="named")
        first = tb.draft(pow, 2, 0, id="first")
        drafts = [first, tb.draft(total, after=[there, named.id, first, ("first", "all_success")])]
        _, child = s.submit_all(drafts)
    assert child.result() == 8 + 4 + 1


def test_a_flow_runs_in_its_order_with_empty_and_single_groups() -> None:
    order: list[str] = []

    def note(name: str) -> Draft:
        return tb.draft(order.append, name)

    flow = tb.chain(note("a"), tb.group(), tb.group(note("b")), tb.chord([], note("c")), note("d"))
    with Scheduler(workers=4) as s:
        s.submit_all(flow)
    assert order == ["a", "b", "c", "d"]


def test_a_rule_of_a_draft_holds_for_the_edges_that_a_chain_adds() -> None:
    with Scheduler(workers=2, retry=tb.Retry(0)) as s:
        handles = s.submit_all(tb.chain(fail, tb.draft(int, rule="all_done"), fail, int))
    assert [handle.state for handle in handles] == [
        *(State.FAILED, State.SUCCEEDED),
        *(State.FAILED, State.SKIPPED),
    ]


def test_all_are_there_or_none() -> None:
    with Scheduler() as s:
        s.submit(int, id="here")
        good = tb.draft(int, id="good")
        for bad in (
            tb.draft(int, id="here"),
            tb.draft(int, id="good"),
            tb.draft(int, after=[tb.draft(int)]),
            tb.draft(int, after=["nobody"]),
            tb.draft(int, priority=77),
        ):
            with pytest.raises(UsageError):
                s.submit_all([good, bad])
        s.wait()
        assert sum(s.counts().values()) == 1
        assert s.submit_all([]) == []
        s.submit_all([good])


class Raced(dict[str, Any]):
    """Ids of which another thread claims one just after it was looked at, or before its claim."""

    def __init__(self, other: Callable[[], object]) -> None:
        self._others = [other]

    def __contains__(self, name: object) -> bool:
        found = super().__contains__(name)
        self._race(name)
        return found

    def setdefault(self, name: str, work: Any) -> Any:  # type: ignore[override]  # with a job
        self._race(name)
        return super().setdefault(name, work)

    def _race(self, name: object) -> None:
        if name == "raced" and self._others:
            self._others.pop()()


def test_of_two_that_claim_an_id_at_once_one_is_refused_whole() -> None:
    with Scheduler(workers=1) as s:
        s._engine._named = Raced(lambda: s.submit(int, id="raced"))
        with pytest.raises(UsageError, match="'raced' is here already"):
            s.submit_all([tb.draft(int, id="first"), tb.draft(int, id="raced")])
        s.submit(int, id="first")
        s.wait()
        assert len(s._engine.states()) == sum(s.counts().values()) == 2
        assert s.violations() == []


def test_nothing_is_taken_in_after_the_end() -> None:
    s = Scheduler()
    s.shutdown()
    with pytest.raises(SchedulerClosed):
        s.submit_all([tb.draft(int)])


def test_a_submission_waits_for_room_and_goes_in_whole() -> None:
    gate, given = Event(), Event()
    with Scheduler(workers=1, max_pending=2) as s:
        s.submit(gate.wait)
        s.submit(int)
        s.submit(int)  # the queue is full once the first has begun

        def more() -> None:
            s.submit_all([tb.draft(int) for _ in range(5)])
            given.set()

        thread = Thread(target=more)
        thread.start()
        assert not given.wait(0.02)
        gate.set()
        thread.join(30)
        s.wait()
        assert s.counts()[State.SUCCEEDED] == 8


def test_coroutines_do_the_same() -> None:
    async def double(n: int) -> int:
        return 2 * n

    async def run() -> int:
        async with AsyncScheduler(workers=2) as s:
            parts = [tb.draft(double, n) for n in range(4)]
            *_, child = await s.submit_all(tb.chord(parts, total))
            return int(await child)

    assert asyncio.run(run()) == 12
