"""What a job comes after, as a caller writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from timeball.action.words import word
from timeball.core.dependencies import PARENTS_MAX, Edge, Rule, RuledOut
from timeball.errors import UsageError


def parents_of(options: Mapping[str, Any]) -> tuple[tuple[Edge, ...], RuledOut]:
    """Return the edges among the options of a submit, and what happens if they rule it out.

    Raises:
        UsageError: What is wrong, and what to write instead.
    """
    after = options.get("after")
    if after is None:
        given = sorted({"rule", "ruled_out"} & options.keys())
        if given:
            raise UsageError(f"{', '.join(given)} is about parents: pass after=[…] too")
        return (), RuledOut.SKIP
    if not isinstance(after, list | tuple | set | frozenset):
        raise UsageError(f"after is {after!r:.80}: write a list, after=[job]")
    if len(after) > PARENTS_MAX:
        raise UsageError(f"after names {len(after):,} jobs: write {PARENTS_MAX:,} at most")
    rule = word(Rule, "rule", options.get("rule", Rule.ALL_SUCCESS))
    rules: dict[UUID, Rule] = {}
    for each in after:
        edge = _edge(each, rule)
        if rules.setdefault(edge.parent, edge.rule) is not edge.rule:
            raise UsageError(f"after names job {edge.parent} with two rules: choose one")
    edges = tuple(Edge(parent, chosen) for parent, chosen in rules.items())
    return edges, word(RuledOut, "ruled_out", options.get("ruled_out", RuledOut.SKIP))


def _edge(given: Any, rule: Rule) -> Edge:
    parent = given
    if isinstance(given, tuple) and len(given) == 2:  # noqa: PLR2004 - a pair
        parent, written = given
        rule = word(Rule, "the rule in after", written)
    uuid = getattr(parent, "uuid", parent)
    try:
        return Edge(uuid if isinstance(uuid, UUID) else UUID(str(uuid)), rule)
    except ValueError:
        raise UsageError(
            f"after holds {given!r:.80}: write handles, uuids, or pairs such as (job, 'all_done')"
        ) from None
