"""Random layered graphs, and where each of their jobs ends, as the rules say it in words."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from timeball import State
from timeball.core.dependencies import Rule, RuledOut


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
        rules = {parent: random.choice(list(WRITTEN)) for parent in parents}
        nodes.append(Node(rules, random.choice(list(RuledOut)), random.random() < 0.3))
    return nodes


WRITTEN = tuple(rule for rule in Rule if rule is not Rule.MEMBER)
"""The rules that a caller may write."""


def allows(rule: str, state: str) -> bool:
    bad = state in {"failed", "cancelled"}
    words = {"one_failed": bad, "none_failed": not bad, "all_done": True, "always": True}
    return words.get(rule, state == "succeeded")


def predicted(nodes: Sequence[Node]) -> list[State]:
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


def longest(nodes: Sequence[Node], spent_ns: Sequence[int]) -> int:
    """The longest way through what jobs spent, along edges on which each was waited for."""
    ways: list[int] = []
    for node, own in zip(nodes, spent_ns, strict=True):
        before = [
            ways[parent]
            for parent, rule in node.after.items()
            if spent_ns[parent] and not rule.startswith("one")
        ]
        ways.append(own + max(before, default=0))
    return max(ways)
