"""A job of a scheduler reads what it comes after, as a durable one does."""

from __future__ import annotations

import asyncio
from collections import Counter
from threading import Event

import pytest

from timeball import Context, Retry, Scheduler, State, chain, draft
from timeball.core.floors import Floor
from timeball.errors import JobFailed


def give(n: int) -> dict[str, int]:
    return {"n": n}


def fail() -> None:
    raise PermissionError


def total(ctx: Context) -> int:
    return sum(parent.result["n"] for parent in ctx.parents())


async def total_async(ctx: Context) -> int:
    return sum(parent.result["n"] for parent in await asyncio.to_thread(ctx.parents))


def states(ctx: Context) -> list[tuple[State | None, object]]:
    return [(parent.state, parent.result) for parent in ctx.parents()]


@pytest.mark.parametrize("call", [total, total_async])
def test_fan_in_has_the_results_of_its_parents(call: object) -> None:
    with Scheduler(workers=2) as s:
        parents = [s.submit(give, n) for n in range(5)]
        child = s.submit(call, after=parents)
    assert child.result() == 10


def test_a_failed_parent_has_a_state_and_no_result() -> None:
    with Scheduler(workers=2) as s:
        parents = [(s.submit(fail), "all_done"), s.submit(give, 1)]
        child, alone = s.submit(states, after=parents), s.submit(states)
    assert child.result() == [(State.FAILED, None), (State.SUCCEEDED, {"n": 1})]
    assert alone.result() == []


def test_a_report_knows_that_one_of_several_was_enough() -> None:
    gate = Event()
    with Scheduler(workers=3) as s:
        slow, quick = s.submit(gate.wait), s.submit(give, 1)
        child = s.submit(give, 2, after=[slow, quick], rule="one_success")
        child.result()
        gate.set()
        s.wait()
        floors = s.report().bound.floors
    assert floors[Floor.CHAIN] <= s.report().makespan_ns


@pytest.mark.slow
def test_a_job_may_wait_for_the_last_of_a_long_chain_or_learn_that_it_must_not() -> None:
    gate = Event()

    def wait_for(name: str) -> object:
        gate.wait()
        return s.get(name).result()

    with Scheduler(workers=2, retry=Retry(0)) as s:
        waiting = s.submit(wait_for, "last")
        after_itself = s.submit(wait_for, "end", id="start")
        s.submit_all(chain(*[int] * 3_000, draft(int, id="last")))
        s.submit_all(chain(draft(int, after=["start"]), *[int] * 3_000, draft(int, id="end")))
        gate.set()
        assert waiting.result() == 0
        with pytest.raises(JobFailed, match="cannot end before it does"):
            after_itself.result()


@pytest.mark.slow
def test_ten_thousand_in_a_row_are_skipped_without_recursion() -> None:
    gate = Event()

    def refuse() -> None:
        gate.wait()
        raise PermissionError

    with Scheduler(workers=1, retry=Retry(0)) as s:
        handles = s.submit_all(chain(refuse, *[give] * 9_999))
        gate.set()
        s.wait()
    assert Counter(handle.state for handle in handles) == {State.FAILED: 1, State.SKIPPED: 9_999}
