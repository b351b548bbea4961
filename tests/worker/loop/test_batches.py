"""Batches carried out by a worker: jobs that are added from inside, and the report."""

from __future__ import annotations

from uuid import UUID

from tests.worker.loop.workshop import Workshop

import timeball as tb
from timeball.core.states import State


def test_jobs_that_a_job_adds_to_its_own_batch_are_waited_for(shop: Workshop) -> None:
    client = tb.Client(shop.store)
    order: list[str] = []

    @shop.job(name="part")
    def part(n: int) -> int:
        order.append("part")
        return n

    @shop.job(name="sum")
    def add(ctx: tb.Context) -> int:
        order.append("sum")
        return sum(parent.result for parent in ctx.parents())

    @shop.job(name="split")
    def split(batch: str) -> None:
        own = client.get_batch(UUID(batch))
        parts = own.submit_many("part", [{"n": n} for n in range(5)])
        own.submit("sum", after=parts)

    @shop.job(name="last")
    def last() -> None:
        order.append("last")

    with client.batch("fan-out", open=True) as batch:
        pass
    batch.submit("split", batch=str(batch.uuid))
    child = client.submit("last", after=[batch])
    batch.close()
    shop.run(slots=4)
    assert order == [*["part"] * 5, "sum", "last"]
    assert batch.state().states[State.SUCCEEDED] == 7
    assert child.job().state is State.SUCCEEDED
    report = batch.report()
    assert (report.jobs, report.attempts, report.success_rate) == (7, 7, 1.0)
    assert report.bound.ns <= report.makespan_ns
