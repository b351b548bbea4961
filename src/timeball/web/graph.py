"""What comes after what, in layers from left to right; the table beside it says the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from markupsafe import Markup

from timeball.core.batches import Member, MemberEdge, parents_first, with_spawners
from timeball.core.dependencies import Rule

NODES_MAX: Final = 80
"""More are not drawn."""

_STEP_X, _STEP_Y, _WIDE, _HIGH = 210.0, 44.0, 164.0, 30.0
_NAME_MAX: Final = 18
_WORDLESS: Final = frozenset({Rule.ALL_SUCCESS, Rule.MEMBER})
"""Rules of edges that are drawn without a word: the usual one, and the dashed one."""


def drawn(
    members: Sequence[Member], base: str, *, most: int = NODES_MAX, here: int | None = None
) -> Markup | None:
    """Return jobs and what they come after; None where that is nothing, or too much.

    Args:
        members: Jobs, and batches in them.
        base: What paths of pages begin with.
        most: How many to draw.
        here: The number of the one that it is about.
    """
    members = with_spawners(members)
    found = {member.id: member for member in members}
    edges = [
        (edge, member.id) for member in members for edge in member.edges if edge.parent in found
    ]
    if not edges or len(found) > most:
        return None
    place = _places(found)
    width = max(x for x, _ in place.values()) + _WIDE + 4
    height = max(y for _, y in place.values()) + _HIGH + 4
    parts = [_edge(edge, place[edge.parent], place[child]) for edge, child in _clear(edges)]
    parts += [_node(found[each], place[each], base, here=each == here) for each in found]
    label = f"{len(found)} jobs and {len(edges)} edges; the table below says the same"
    return Markup(
        '<svg class="dag" width="{0:.0f}" height="{1:.0f}" viewBox="0 0 {0:.0f} {1:.0f}" '
        'role="img" aria-label="{2}">{3}</svg>'
    ).format(width, height, label, Markup("").join(parts))


def _clear(edges: Sequence[tuple[MemberEdge, int]]) -> list[tuple[MemberEdge, int]]:
    """Return edges without those from members to their batch that others of it come after."""
    homes = defaultdict(set)
    for edge, child in edges:
        if edge.rule is Rule.MEMBER:
            homes[edge.parent].add(child)
    implied = {(edge.parent, batch) for edge, child in edges for batch in homes.get(child, ())}
    return [
        (edge, child)
        for edge, child in edges
        if edge.rule is not Rule.MEMBER or (edge.parent, child) not in implied
    ]


def _places(members: Mapping[int, Member]) -> dict[int, tuple[float, float]]:
    """Return where each is drawn: right of all that it comes after, near the middle of them."""
    layer: dict[int, int] = {}
    for member in parents_first(members):
        parents = [edge.parent for edge in member.edges if edge.parent in layer]
        layer[member.id] = 1 + max((layer[parent] for parent in parents), default=-1)
    layers = defaultdict(list)
    for job, depth in layer.items():
        layers[depth].append(job)
    row: dict[int, float] = {}
    most = max(len(jobs) for jobs in layers.values())
    for depth in sorted(layers):
        jobs = sorted(layers[depth], key=lambda job: (_middle(members[job], row), job))
        first = (most - len(jobs)) / 2
        row.update({job: first + n for n, job in enumerate(jobs)})
    return {job: (2 + layer[job] * _STEP_X, 2 + row[job] * _STEP_Y) for job in layer}


def _middle(member: Member, row: Mapping[int, float]) -> float:
    rows = [row[edge.parent] for edge in member.edges if edge.parent in row]
    return sum(rows) / len(rows) if rows else 0.0


def _edge(edge: MemberEdge, parent: tuple[float, float], child: tuple[float, float]) -> Markup:
    (x1, y1), (x2, y2) = parent, child
    x1, y1, y2 = x1 + _WIDE, y1 + _HIGH / 2, y2 + _HIGH / 2
    middle = (x1 + x2) / 2
    line = Markup(
        '<path class="edge{5}" d="M{0:.1f},{1:.1f}C{2:.1f},{1:.1f} {2:.1f},{3:.1f} {4:.1f},{3:.1f}"'
        "><title>{6}</title></path>"
    ).format(
        x1,
        y1,
        middle,
        y2,
        x2,
        " member" if edge.rule is Rule.MEMBER or edge.spawns else "",
        edge.words,
    )
    if edge.rule in _WORDLESS:
        return line
    return line + Markup(
        '<text class="rule-t" x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>'
    ).format(x2 - 4, y2 - 5, edge.words)


def _node(member: Member, at: tuple[float, float], base: str, *, here: bool) -> Markup:
    x, y = at
    name = member.name or ("batch" if member.is_batch else member.kind)
    path = f"{base}/{'batches' if member.is_batch else 'jobs'}/{member.uuid}"
    return Markup(
        '<a href="{0}"><g class="node s-{1}{13}"><rect x="{2:.1f}" y="{3:.1f}" width="{4:.0f}" '
        'height="{5:.0f}" rx="8"/><svg class="ic" x="{6:.1f}" y="{7:.1f}" width="14" height="14">'
        '<use href="#i-{1}"/></svg><text x="{8:.1f}" y="{9:.1f}">{10}</text>'
        "<title>{11} #{12}: {1}</title></g></a>"
    ).format(
        *(path, member.state, x, y, _WIDE, _HIGH, x + 10, y + 8, x + 30, y + 19.5),
        *(_short(name), name, member.id, " here" if here else ""),
    )


def _short(text: str) -> str:
    return text if len(text) <= _NAME_MAX else text[: _NAME_MAX - 1] + "…"
