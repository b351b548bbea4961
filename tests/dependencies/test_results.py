"""What children are told of what their parents returned."""

from __future__ import annotations

from tests.worker.loop.workshop import Workshop

import timeball as tb
from timeball.core.dependencies import Edge
from timeball.core.payload import RESULT_MAX
from timeball.core.states import State
from timeball.core.upkeep import DeleteAnswer


def define(shop: Workshop) -> None:
    @shop.job(name="give")
    def give(size: int) -> str:
        return "x" * size

    @shop.job(name="told")
    def told(ctx: tb.Context) -> object:
        (parent,) = ctx.parents()
        result = parent.result
        return len(result) if isinstance(result, str) else result


def test_a_result_of_256_kib_comes_whole_and_of_a_larger_one_it_is_said_what_to_do(
    shop: Workshop,
) -> None:
    define(shop)
    most = RESULT_MAX - len('""')
    parents = [shop.submit("give", f'{{"size":{size}}}') for size in (most, most + 1)]
    children = [shop.submit("told", after=(Edge(parent),)) for parent in parents]
    shop.run()
    assert shop.get(children[0]).result == most
    refused = shop.get(parents[1])
    assert (refused.state, refused.reason, refused.attempts) == (State.FAILED, "result", 1)
    assert "262,144 are kept: store it elsewhere, and return where it is" in str(refused.error)
    assert shop.get(children[1]).state is State.SKIPPED


def test_who_needs_the_result_of_a_parent_that_is_gone_fails_once_with_the_reason(
    shop: Workshop,
) -> None:
    define(shop)
    parent = shop.submit("give", '{"size":1}')
    shop.run()
    child = shop.submit("told", after=(Edge(parent),))
    assert shop.store.inner.delete([parent]) == [DeleteAnswer.DELETED]
    shop.submitted -= 1
    shop.run()
    job = shop.get(child)
    assert (job.state, job.error_type, job.attempts) == (State.FAILED, "ParentGone", 1)
    assert "keep ended jobs for longer" in str(job.error)
