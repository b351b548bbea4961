"""Random layered graphs end in both engines with exactly the states that were predicted."""

from __future__ import annotations

from random import Random
from typing import NamedTuple
from uuid import UUID

import pytest
from tests.worker.loop.workshop import Workshop

from timeball import Retry, Scheduler, State
from timeball.core.dependencies import Edge, Rule, RuledOut

NODES = 1_500


class Node(NamedTuple):
    """One job, by the numbers of its parents."""

    after: dict[int, Rule]
    ruled_out: RuledOut
    fails: bool


def drawn(random: Random, count: int) -> list[Node]:
    """Layers of 30, each job with up to four parents among the hundred before it."""
    nodes: list[Node] = []
    for n in range(count):
        first = n // 30 * 30
        before = range(max(0, first - 100), first)
        parents = random.choices(before, k=random.randrange(5)) if before else []
        rules = {parent: random.choice(list(Rule)) for parent in parents}
        nodes.append(Node(rules, random.choice(list(RuledOut)), random.random() < 0.3))
    return nodes


def allows(rule: str, state: str) -> bool:
    bad = state in {"failed", "cancelled"}
    words = {"one_failed": bad, "none_failed": not bad, "all_done": True, "always": True}
    return words.get(rule, state == "succeeded")


def predicted(nodes: list[Node]) -> list[State]:
    """Where each ends, worked out one after the other from what the rules say in words."""
    states: list[State] = []
    for node in nodes:
        ends = [(str(rule), str(states[parent])) for parent, rule in node.after.items()]
        met = [allows(rule, state) for rule, state in ends]
        ones = [ok for (rule, _), ok in zip(ends, met, strict=True) if rule.startswith("one")]
        alls = [ok for (rule, _), ok in zip(ends, met, strict=True) if not rule.startswith("one")]
        if (all(alls) and (any(ones) or not ones)) or node.ruled_out is RuledOut.RUN:
            states.append(State.FAILED if node.fails else State.SUCCEEDED)
        else:
            states.append(State.SKIPPED if node.ruled_out is RuledOut.SKIP else State.FAILED)
    return states


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
