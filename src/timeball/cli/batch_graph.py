"""A batch as a graph: what comes after what, in words, for Graphviz, or as a picture.

Jobs of one kind, in one state and equally far from the beginning are one node: a thousand of them
look like one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final
from xml.sax.saxutils import escape

from timeball.core.batches import Member, parents_first, with_spawners
from timeball.core.dependencies import Rule
from timeball.core.states import State
from timeball.importers.crontab_line import harmless

NODES_MAX: Final = 400
"""Nodes of a picture; those beyond are counted, not drawn."""

_TEXT_MAX: Final = 40
_WIDE: Final = 230
_HIGH: Final = 44
_GAP_X: Final = 70
_GAP_Y: Final = 22
_EDGE: Final = 24

_COLOURS: Final = MappingProxyType(
    {
        State.SUCCEEDED: ("#2e7d32", "#66bb6a"),
        State.FAILED: ("#c62828", "#ef5350"),
        State.CANCELLED: ("#6d6d6d", "#9e9e9e"),
        State.SKIPPED: ("#6d6d6d", "#9e9e9e"),
        State.RUNNING: ("#00838f", "#4dd0e1"),
        State.PENDING: ("#1565c0", "#64b5f6"),
        State.SCHEDULED: ("#1565c0", "#64b5f6"),
        State.WAITING: ("#c77700", "#ffb74d"),
    }
)
"""For each state a light and a dark colour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """Jobs that look alike, or one batch."""

    number: int
    layer: int
    """How many steps it is from the beginning."""

    label: str
    state: State
    jobs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Nodes in the order of their layers, and edges with their rules and how many they are."""

    name: str
    nodes: Sequence[Node]
    edges: Mapping[tuple[int, int, str], int]


def graph_of(members: Sequence[Member], name: str) -> Graph:
    """Return the graph of a batch."""
    members = with_spawners(members)
    found = {member.id: member for member in members}
    layers: dict[int, int] = {}
    for member in parents_first(found):
        parents = [layers[edge.parent] for edge in member.edges if edge.parent in layers]
        layers[member.id] = 1 + max(parents, default=-1)
    groups: defaultdict[tuple[int, bool, str, State], list[Member]] = defaultdict(list)
    for member in members:
        own = f"{member.name or 'batch'} ({member.id})" if member.is_batch else member.kind
        groups[layers[member.id], member.is_batch, own, member.state].append(member)
    nodes, number_of = [], {}
    for number, ((layer, _, own, state), alike) in enumerate(sorted(groups.items(), key=_place)):
        label = own if len(alike) == 1 else f"{len(alike):,} of {own}"
        nodes.append(Node(number=number, layer=layer, label=label, state=state, jobs=len(alike)))
        number_of.update({member.id: number for member in alike})
    edges = Counter(
        (number_of[edge.parent], number_of[member.id], edge.words)
        for member in members
        for edge in member.edges
        if edge.parent in found
    )
    return Graph(name=name, nodes=nodes, edges=edges)


def _place(group: tuple[tuple[int, bool, str, State], list[Member]]) -> tuple[int, int]:
    (layer, *_), alike = group
    return layer, alike[0].id


def lines(graph: Graph) -> Iterator[str]:
    """Yield the graph in words: each node, and what it comes after."""
    for node in graph.nodes:
        after = [
            f"{graph.nodes[parent].label}{'' if rule == Rule.ALL_SUCCESS else f' ({rule})'}"
            for parent, child, rule in sorted(graph.edges)
            if child == node.number
        ]
        told = f" after {', '.join(after)}" if after else ""
        yield f"{'  ' * node.layer}{node.label}: {node.state}{told}"


def dot(graph: Graph) -> str:
    """Return the graph in the language of Graphviz."""
    rows = ["digraph batch {", "  rankdir=LR;", '  node [shape=box, style="rounded,filled"];']
    for node in graph.nodes:
        label = _quoted(f"{node.label}\n{node.state}")
        colour = _COLOURS[node.state][0]
        rows.append(f'  n{node.number} [label={label}, fillcolor="{colour}", fontcolor="#ffffff"];')
    for (parent, child, rule), count in sorted(graph.edges.items()):
        words = _edge_words(rule, count)
        rows.append(f"  n{parent} -> n{child}{f' [label={_quoted(words)}]' if words else ''};")
    return "\n".join([*rows, "}"]) + "\n"


def _edge_words(rule: str, count: int) -> str:
    shown = "" if rule in {Rule.ALL_SUCCESS, Rule.MEMBER} else str(rule)
    return " ".join(filter(None, [f"{count:,} of" if count > 1 and shown else "", shown]))


def _quoted(text: str) -> str:
    safe = "\n".join(harmless(line, 2 * _TEXT_MAX) for line in text.split("\n"))
    return '"' + safe.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def svg(graph: Graph) -> str:
    """Return the graph as the text of an SVG file, light or dark as its viewer prefers."""
    drawn = graph.nodes[:NODES_MAX]
    rows: Counter[int] = Counter()
    places: dict[int, tuple[int, int]] = {}
    for node in drawn:
        x = _EDGE + node.layer * (_WIDE + _GAP_X)
        places[node.number] = x, 2 * _EDGE + rows[node.layer] * (_HIGH + _GAP_Y)
        rows[node.layer] += 1
    width = 2 * _EDGE + (1 + max(rows, default=0)) * (_WIDE + _GAP_X) - _GAP_X
    height = 3 * _EDGE + max(rows.values(), default=1) * (_HIGH + _GAP_Y)
    hidden = len(graph.nodes) - len(drawn)
    head = graph.name + (f" ({hidden:,} more are not drawn)" if hidden else "")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
        f"<title>{_safe(graph.name)}</title>",
        f"<style>{_style()}</style>",
        f'<text x="{_EDGE}" y="{_EDGE}" class="head">{_safe(head, 80)}</text>',
        *_curves(graph, places),
        *(_box(node, *places[node.number]) for node in drawn),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _curves(graph: Graph, places: Mapping[int, tuple[int, int]]) -> Iterator[str]:
    for (parent, child, rule), count in sorted(graph.edges.items()):
        if parent not in places or child not in places:
            continue
        (x, y), (to_x, to_y) = places[parent], places[child]
        x, y, to_y = x + _WIDE, y + _HIGH // 2, to_y + _HIGH // 2
        half = (to_x - x) // 2
        told = escape(_edge_words(rule, count) or f"{count:,}")
        kind = "member" if rule in {Rule.MEMBER, "spawns"} else "edge"
        yield (
            f'<path class="{kind}" d="M{x} {y}C{x + half} {y} {to_x - half} {to_y} {to_x} {to_y}">'
            f"<title>{told}</title></path>"
        )


def _box(node: Node, x: int, y: int) -> str:
    words = (
        f'<text x="{x + 12}" y="{y + 19}">{_safe(node.label, _TEXT_MAX - 10)}</text>'
        f'<text x="{x + 12}" y="{y + 35}" class="small">{node.state}</text>'
    )
    box = f'<rect x="{x}" y="{y}" width="{_WIDE}" height="{_HIGH}" rx="6" class="{node.state}"/>'
    return f"<g><title>{_safe(node.label, 120)}: {node.state}</title>{box}{words}</g>"


def _style() -> str:
    rules = [
        "svg { background: #ffffff; font: 13px system-ui, sans-serif; }",
        "text { fill: #1f2328; } .small { font-size: 11px; fill: #59636e; }",
        ".head { font-weight: 600; } rect { fill: #f6f8fa; stroke-width: 2; }",
        "path { fill: none; stroke: #8c959f; stroke-width: 1.5; }",
        ".member { stroke-dasharray: 4 3; }",
        *(f".{state} {{ stroke: {light}; }}" for state, (light, _) in _COLOURS.items()),
    ]
    dark = [
        "svg { background: #0d1117; } text { fill: #e6edf3; } .small { fill: #9198a1; }",
        "rect { fill: #161b22; }",
        *(f".{state} {{ stroke: {shade}; }}" for state, (_, shade) in _COLOURS.items()),
    ]
    return f"{' '.join(rules)} @media (prefers-color-scheme: dark) {{ {' '.join(dark)} }}"


def _safe(text: str, limit: int = _TEXT_MAX) -> str:
    return escape(harmless(text, limit))
