"""What a job spawns is added when its attempt has succeeded, by whatever way that goes."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from tests.worker.loop.workshop import Workshop

import timeball as tb
from timeball.action.graph_kind import KIND
from timeball.core.dependencies import Edge
from timeball.core.states import State


def test_a_job_succeeds_once_all_that_it_spawned_have_and_is_not_called_again(
    shop: Workshop,
) -> None:
    order: list[object] = []

    @shop.job(name="part")
    def part(n: int) -> int:
        order.append(n)
        return n

    @shop.job(name="sum")
    async def add(ctx: tb.Context) -> int:
        order.append("sum")
        return sum(parent.result for parent in ctx.parents())

    @shop.job(name="split")
    def split(ctx: tb.Context) -> str:
        order.append("split")
        parts = [ctx.spawn("part", n=n) for n in range(3)]
        assert parts[0].uuid != parts[1].uuid
        ctx.spawn("sum", after=parts)
        return "done"

    @shop.job(name="last")
    def last(ctx: tb.Context) -> str:
        order.append("last")
        (parent,) = ctx.parents()
        return str(parent.result)

    uuid = shop.submit("split")
    child = shop.submit("last", after=(Edge(uuid),))
    shop.run(slots=4)
    assert order[0] == "split"
    assert sorted(map(str, order[1:4])) == ["0", "1", "2"]
    assert order[4:] == ["sum", "last"]
    assert (shop.get(uuid).result, shop.get(child).result) == ("done", "done")
    assert shop.get(uuid).state is State.SUCCEEDED


def test_an_attempt_that_fails_spawns_nothing_and_the_next_one_the_same_jobs(
    shop: Workshop,
) -> None:
    seen: list[object] = []

    @shop.job(name="part")
    def part() -> None: ...

    @shop.job(name="split", retry=tb.Retry(2, base_s=0.0))
    async def split(ctx: tb.Context) -> None:
        seen.append(ctx.spawn("part").uuid)
        if ctx.attempt <= 2:
            raise ConnectionError

    uuid = shop.submit("split")
    shop.run()
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert shop.get(uuid).state is State.SUCCEEDED
    assert len(shop.page()) == 2


def test_what_it_spawned_fails_it_by_name(shop: Workshop) -> None:
    @shop.job(name="part", retry=tb.Retry(0))
    def part() -> None:
        raise PermissionError

    @shop.job(name="split")
    def split(ctx: tb.Context) -> None:
        ctx.spawn("part")

    uuid = shop.submit("split")
    shop.run()
    job = shop.get(uuid)
    assert (job.state, job.reason, job.error_type) == (State.FAILED, "spawned", "SpawnedJobFailed")
    assert "revive" in str(job.error)


@pytest.mark.parametrize("fault", ["before", "after"])
def test_a_lost_answer_neither_loses_nor_doubles_what_was_spawned(
    shop: Workshop, fault: str
) -> None:
    @shop.job(name="part")
    def part() -> None: ...

    @shop.job(name="split")
    def split(ctx: tb.Context) -> None:
        for _ in range(3):
            ctx.spawn("part")

    shop.store.faults["spawn"] = [fault]
    uuid = shop.submit("split")
    shop.run()
    assert shop.get(uuid).state is State.SUCCEEDED
    assert len(shop.page()) == 4


def test_what_can_never_be_added_is_told_at_once_or_fails_the_attempt(shop: Workshop) -> None:
    told: list[str] = []

    @shop.job(name="split", retry=tb.Retry(0))
    def split(ctx: tb.Context) -> None:
        with pytest.raises(tb.UsageError) as error:
            ctx.spawn("part", priority=77)
        told.append(str(error.value))
        first = ctx.spawn("part")
        with pytest.raises(tb.UsageError) as error:
            ctx.spawn("part", uuid=first.uuid)
        told.append(str(error.value))
        ctx.spawn("part", after=[ctx.id])

    uuid = shop.submit("split")
    shop.run()
    job = shop.get(uuid)
    assert "priority" in told[0]
    assert "already" in told[1]
    assert (job.state, job.error_type) == (State.FAILED, "timeball.errors.UsageError")
    assert "cycle" in str(job.error)
    assert len(shop.page()) == 1


def test_who_cannot_wait_cannot_spawn(shop: Workshop) -> None:
    @shop.job(name="split", delivery="at_most_once")
    def split(ctx: tb.Context) -> None:
        ctx.spawn("part")

    uuid = shop.submit("split", delivery=tb.Delivery.AT_MOST_ONCE, max_retries=0)
    shop.run()
    assert "cannot spawn" in str(shop.get(uuid).error)


def test_a_graph_that_was_declared_is_spawned_whole_and_is_over_once_it_is(shop: Workshop) -> None:
    order: list[str] = []

    @shop.job(name="note")
    def note(name: str) -> None:
        order.append(name)

    shop.registry.add(KIND)
    jobs = {
        "last": {"kind": "note", "args": {"name": "last"}, "after": ["left", "right"]},
        "alert": {"kind": "note", "args": {"name": "alert"}, "after": ["left"]},
        "left": {"kind": "note", "args": {"name": "left"}},
        "right": {"kind": "note", "args": {"name": "right"}},
    }
    jobs["alert"]["rule"] = "one_failed"
    uuid = shop.submit("timeball.graph", json.dumps({"jobs": jobs}))
    shop.run()
    assert sorted(order[:2]) == ["left", "right"]
    assert order[2:] == ["last"]
    job = shop.get(uuid)
    assert job.state is State.SUCCEEDED
    assert {name: shop.get(UUID(each)).state for name, each in job.result.items()} == {
        **dict.fromkeys(("left", "right", "last"), State.SUCCEEDED),
        "alert": State.SKIPPED,
    }


def test_a_flow_is_spawned_with_its_edges(shop: Workshop) -> None:
    order: list[str] = []

    @shop.job(name="note")
    def note(ctx: tb.Context, name: str) -> None:
        assert len(ctx.parents()) == {"a": 0, "b": 1, "c": 1, "d": 2}[name]
        order.append(name)

    @shop.job(name="root")
    def root(ctx: tb.Context) -> None:
        a, b, c, d = (tb.draft("note", name=name) for name in "abcd")
        spawned = ctx.spawn_all([*tb.chain(a, tb.group(b, c)), tb.draft("note", name="x")][:3])
        ctx.spawn("note", name="d", after=[(each, "all_done") for each in spawned[1:]])
        assert d.uuid not in {each.uuid for each in spawned}

    uuid = shop.submit("root")
    shop.run()
    assert shop.get(uuid).state is State.SUCCEEDED
    assert (order[0], sorted(order[1:3]), order[3:]) == ("a", ["b", "c"], ["d"])
