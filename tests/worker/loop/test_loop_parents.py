"""A job reads what it comes after, wherever it runs."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from tests.worker.loop.workshop import PATIENCE_S, Workshop
from tests.worker.test_apart import turn_of

from timeball.action.context import Context, StopSign
from timeball.core.dependencies import Edge, Parent, Rule
from timeball.core.outcomes import Returned
from timeball.core.states import State
from timeball.observe.transitions import LogFormat
from timeball.worker.apart import processes, run_apart
from timeball.worker.child import Load


def define(shop: Workshop) -> None:
    @shop.job(name="give")
    def give(n: int) -> dict[str, int]:
        return {"n": n}

    @shop.job(name="sum")
    def total(ctx: Context) -> int:
        return sum(parent.result["n"] for parent in ctx.parents())

    @shop.job(name="sum-async")
    async def total_async(ctx: Context) -> int:
        return sum(parent.result["n"] for parent in await ctx.parents_async())

    @shop.job(name="states")
    def states(ctx: Context) -> list[object]:
        return [[parent.state, parent.result] for parent in ctx.parents()]


@pytest.mark.parametrize("kind", ["sum", "sum-async"])
def test_fan_in_has_the_results_of_its_parents(shop: Workshop, kind: str) -> None:
    define(shop)
    parents = [shop.submit("give", f'{{"n":{n}}}') for n in range(5)]
    child = shop.submit(kind, after=tuple(map(Edge, parents)))
    shop.run()
    assert shop.get(child).result == 10


def test_a_coroutine_that_reads_its_parents_keeps_no_other_one_waiting(shop: Workshop) -> None:
    asked, answered = threading.Event(), threading.Event()
    define(shop)

    @shop.job(name="other")
    async def other() -> None:
        while not asked.is_set():
            await asyncio.sleep(0.001)
        answered.set()

    def slow(_job: int) -> None:
        asked.set()
        assert answered.wait(PATIENCE_S)

    shop.store.before["parents"] = slow
    shop.submit("other")
    child = shop.submit("sum-async", after=(Edge(shop.submit("give", '{"n":7}')),))
    shop.run(slots=2)
    assert shop.get(child).result == 7


def test_parents_come_in_the_order_of_their_submission_and_with_their_states(
    shop: Workshop,
) -> None:
    define(shop)
    good, bad = shop.submit("give", '{"n":1}'), shop.submit("give", '{"m":1}')
    edges = (Edge(bad, Rule.ALL_DONE), Edge(good))
    child, alone = shop.submit("states", after=edges), shop.submit("states")
    shop.run()
    assert shop.get(child).result == [["succeeded", {"n": 1}], ["failed", None]]
    assert shop.get(alone).result == []


def test_a_job_whose_parent_is_gone_fails_with_a_reason_and_is_not_tried_again(
    shop: Workshop,
) -> None:
    define(shop)
    parent = shop.submit("give", '{"n":1}')
    child = shop.submit("sum", after=(Edge(parent),), delay_s=0.2)
    kept = shop.store.inner.parents
    shop.store.inner.parents = lambda job: [
        each._replace(state=None, result=None) for each in kept(job)
    ]
    shop.run()
    job = shop.get(child)
    assert (job.state, job.error_type, job.attempts) == (State.FAILED, "ParentGone", 1)
    assert "keep ended jobs for longer" in str(job.error)


@pytest.mark.slow
def test_a_process_apart_is_given_them_along(tmp_path: Path) -> None:
    path = tmp_path / "apart_sum.py"
    path.write_text(
        "import timeball as tb\n"
        '@tb.job(name="apart-sum")\n'
        "def total(ctx: tb.Context):\n"
        "    return sum(parent.result for parent in ctx.parents())\n"
    )
    turn = turn_of("apart-sum")
    parents = [Parent(turn.uuid, Rule.ALL_SUCCESS, State.SUCCEEDED, str(n)) for n in (3, 4)]
    runner = processes([Load(target=str(path))], LogFormat.TEXT, 0.1)
    try:
        from tests.worker.test_apart import kind_of

        assert run_apart(runner, kind_of(), turn, StopSign(), parents) == Returned("7")
    finally:
        runner.close(5.0)
