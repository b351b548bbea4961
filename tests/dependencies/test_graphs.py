"""Random layered graphs end in both engines with exactly the states that were predicted."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest
from tests.dependencies.graphs import drawn, predicted
from tests.worker.loop.workshop import Workshop

from timeball import Retry, Scheduler
from timeball.core.dependencies import Edge

NODES = 1_500


def fail() -> None:
    raise PermissionError


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_scheduler_brings_every_node_where_it_should_be(seed: int) -> None:
    nodes = drawn(Random(seed), NODES)
    with Scheduler(workers=4, retry=Retry(0)) as s:
        handles = []
        for node in nodes:
            after = [(handles[n], rule) for n, rule in node.after.items()]
            call = fail if node.fails else int
            handles.append(s.submit(call, after=after, ruled_out=node.ruled_out))
        s.wait()
        assert s.violations() == []
    assert sum(a is not b.state for a, b in zip(predicted(nodes), handles, strict=True)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_worker_brings_every_node_where_it_should_be(shop: Workshop, seed: int) -> None:
    nodes = drawn(Random(100 + seed), NODES)

    @shop.job(name="good")
    def good() -> None: ...

    @shop.job(name="bad", retry=Retry(0))
    def bad() -> None:
        raise PermissionError

    uuids: list[UUID] = []
    for node in nodes:
        after = tuple(Edge(uuids[n], rule) for n, rule in node.after.items())
        kind = "bad" if node.fails else "good"
        uuids.append(shop.submit(kind, after=after, ruled_out=node.ruled_out))
    shop.run(slots=4)
    states = [shop.get(uuid).state for uuid in uuids]
    assert sum(a is not b for a, b in zip(predicted(nodes), states, strict=True)) == 0
