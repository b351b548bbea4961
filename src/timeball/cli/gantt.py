"""A batch as a picture: one row per slot, a bar per attempt, what held it up, how fast it could be.

The picture is an SVG of its own, light or dark as its viewer prefers, without scripts, fonts or
links. Its size is bounded: beyond `BARS_MAX` attempts those that share a pixel are drawn as one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from xml.sax.saxutils import escape

from timeball.cli.batch_run import RUNNING, Bar, Run
from timeball.core.states import Ending
from timeball.importers.crontab_line import harmless

BARS_MAX: Final = 2_000
ROWS_MAX: Final = 128

_WIDTH: Final = 1_200
_LEFT: Final = 64
_RIGHT: Final = 32
_PLOT: Final = _WIDTH - _LEFT - _RIGHT
_TOP: Final = 108
_ROWS_HEIGHT: Final = 420
_ROW_LEAST: Final = 6
_ROW_MOST: Final = 28
_TEXT_MAX: Final = 80
_CHAR: Final = 6.6
"""Pixels that a character takes, about."""

_FLOOR_COLUMNS: Final = 3

_COLOURS: Final = MappingProxyType(
    {
        str(Ending.FAILED): ("#c62828", "#ef5350"),
        str(Ending.LOST): ("#7b1fa2", "#ba68c8"),
        str(Ending.RETRIED): ("#c77700", "#ffb74d"),
        str(Ending.CANCELLED): ("#6d6d6d", "#9e9e9e"),
        str(Ending.SNOOZED): ("#1565c0", "#64b5f6"),
        RUNNING: ("#00838f", "#4dd0e1"),
        str(Ending.SUCCEEDED): ("#2e7d32", "#66bb6a"),
    }
)
"""For each outcome a light and a dark colour; where several share a pixel, the first is seen."""

_OTHER: Final = ("#5d4037", "#a1887f")
_STYLE: Final = """
svg { background: #ffffff; font: 12px system-ui, sans-serif; }
text { fill: #1f2328; }
.small { fill: #59636e; font-size: 11px; }
.title { font-size: 16px; font-weight: 600; }
.bold { font-weight: 600; }
.in { fill: #ffffff; font-size: 11px; }
.row { fill: #f2f4f6; }
.grid { stroke: #d9dee3; }
.wait { stroke: #8c959f; fill: none; }
.makespan { stroke: #1f2328; stroke-width: 1.5; }
.bound { stroke: #0550ae; stroke-width: 1.5; stroke-dasharray: 5 3; }
.bound-text { fill: #0550ae; }
"""
_DARK: Final = """
svg { background: #0d1117; }
text { fill: #e6edf3; }
.small { fill: #9198a1; }
.in { fill: #0d1117; }
.row { fill: #161b22; }
.grid { stroke: #2b323b; }
.wait { stroke: #767f89; }
.makespan { stroke: #e6edf3; }
.bound { stroke: #79c0ff; }
.bound-text { fill: #79c0ff; }
"""


def gantt(run: Run) -> str:
    """Return the picture of a run as the text of an SVG file."""
    return "\n".join(_Picture(run).lines()) + "\n"


class _Piece(NamedTuple):
    """What is drawn of a bar, or of several that share a pixel; in pixels."""

    row: int
    from_x: float
    to_x: float
    wait_x: float
    """Where its whisker begins; where there is none, `from_x`."""

    outcome: str
    bar: Bar | None
    """None: it stands for several."""


class _Picture:
    def __init__(self, run: Run) -> None:
        self._run = run
        report = run.report
        self._makespan_ns: int = report["makespan_ns"]
        self._span_ns: int = max(1, self._makespan_ns, report["bound_ns"])
        self._rows = min(report["workers"], ROWS_MAX)
        height = _ROWS_HEIGHT // max(1, self._rows)
        self._row = min(_ROW_MOST, max(_ROW_LEAST, height))
        self._bottom = _TOP + self._rows * self._row
        self._merged = len(run.bars) > BARS_MAX
        self._counts = Counter(bar.outcome for bar in run.bars)

    def lines(self) -> Iterator[str]:
        outcomes = sorted(self._counts, key=_rank, reverse=True)
        floors: Mapping[str, int] = self._run.report["floors_ns"]
        floor_rows = -(-max(1, len(floors)) // _FLOOR_COLUMNS)
        height = self._bottom + 112 + 20 * floor_rows
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
            f'width="{_WIDTH}" height="{height}" role="img">'
        )
        yield f"<title>{_safe(self._run.name)}</title>"
        yield f"<style>{_style(outcomes)}</style>"
        yield from self._head()
        yield from self._grid()
        pieces = _merged(self._pieces()) if self._merged else list(self._pieces())
        yield from self._whiskers(pieces)
        yield from self._paths(pieces) if self._merged else map(self._bar, pieces)
        yield from self._marks()
        yield from self._outcomes(outcomes)
        yield from self._floors(floors)
        yield "</svg>"

    def _x(self, ns: int) -> float:
        return _LEFT + _PLOT * ns / self._span_ns

    def _head(self) -> Iterator[str]:
        report = self._run.report
        yield _text(_LEFT, 30, self._run.name, "title")
        limit = f", at most {self._run.rate}" if self._run.rate else ""
        merged = (
            "; attempts that share a pixel are one bar, coloured by the worst"
            if self._merged
            else ""
        )
        hidden = report["workers"] - self._rows
        rest = f"; {hidden:,} more slots are not drawn" if hidden else ""
        said = (
            f"{report['jobs']:,} jobs, {report['attempts']:,} starts, {report['workers']:,} slots"
            f"{limit}{merged}{rest}"
        )
        yield _text(_LEFT, 50, said, "small")

    def _grid(self) -> Iterator[str]:
        for row in range(self._rows):
            y = _TOP + row * self._row
            yield _rect(_LEFT, y, _PLOT, self._row - 1, "row")
            if self._row > 10 or row % 10 == 0:  # noqa: PLR2004 - a line of text is that high
                yield _text(_LEFT - 8, y + self._row / 2 + 4, f"slot {row}", "small", "end")
        step_ns = _step(self._span_ns)
        for ns in range(0, self._span_ns + 1, step_ns):
            x = self._x(ns)
            yield _line(x, _TOP, x, self._bottom + 4, "grid")
            yield _text(x, self._bottom + 18, _time(ns), "small", "middle")

    def _pieces(self) -> Iterator[_Piece]:
        """Yield a piece for each bar, slot by slot and in the order of their starts."""
        free_ns: dict[int, int] = {}
        for bar in sorted(self._run.bars, key=lambda bar: (bar.slot, bar.started_ns)):
            if bar.slot >= self._rows:
                continue
            # While another attempt had the slot, it was that which kept this one out of it.
            waited_ns = max(free_ns.get(bar.slot, 0), bar.started_ns - bar.limiter_ns)
            free_ns[bar.slot] = bar.finished_ns
            from_x = self._x(bar.started_ns)
            yield _Piece(
                row=bar.slot,
                from_x=from_x,
                to_x=max(from_x + 1, self._x(bar.finished_ns)),
                wait_x=min(from_x, self._x(waited_ns)),
                outcome=bar.outcome,
                bar=bar,
            )

    def _whiskers(self, pieces: Iterable[_Piece]) -> Iterator[str]:
        ticks = min(8, self._row - 2) / 2
        moves = []
        for piece in pieces:
            if piece.from_x - piece.wait_x < 1:
                continue
            y = _TOP + piece.row * self._row + (self._row - 1) / 2
            moves.append(
                f"M{piece.wait_x:.1f} {y - ticks:.1f}v{2 * ticks:.1f}m0 {-ticks:.1f}"
                f"H{piece.from_x:.1f}"
            )
        if moves:
            yield f'<path class="wait" d="{"".join(moves)}"/>'

    def _bar(self, piece: _Piece) -> str:
        bar, y = piece.bar, _TOP + piece.row * self._row
        assert bar is not None
        width = piece.to_x - piece.from_x
        name = harmless(str(bar.job), _TEXT_MAX)
        told = f"job {name}, attempt {bar.attempt}: {bar.outcome}"
        ran = _time(bar.finished_ns - bar.started_ns)
        full = f"{told}; began at {_time(bar.started_ns)}, ran {ran}, held {_time(bar.limiter_ns)}"
        inside = next(
            (text for text in (told, bar.outcome) if len(text) * _CHAR < width - 8), ""
        )  # the word, and not the colour alone, wherever there is room for it
        label = ""
        if inside and self._row > 12:  # noqa: PLR2004 - a line of text is that high
            label = _text(piece.from_x + 5, y + self._row / 2 + 3.5, inside, "in")
        shape = _rect(piece.from_x, y + 1, width, self._row - 3, bar.outcome)
        return f"<g><title>{_safe(full, 3 * _TEXT_MAX)}</title>{shape}{label}</g>"

    def _paths(self, pieces: Iterable[_Piece]) -> Iterator[str]:
        moves: dict[str, list[str]] = defaultdict(list)
        for row, from_x, to_x, _, outcome, _ in pieces:
            y, high = _TOP + row * self._row + 1, self._row - 3
            width = to_x - from_x
            moves[outcome].append(f"M{from_x:.0f} {y}h{width:.0f}v{high}h-{width:.0f}z")
        for outcome, found in moves.items():
            yield f'<path class="{outcome}" d="{"".join(found)}"/>'

    def _marks(self) -> Iterator[str]:
        report = self._run.report
        makespan_x, bound_x = self._x(self._makespan_ns), self._x(report["bound_ns"])
        yield _line(makespan_x, 68, makespan_x, self._bottom, "makespan")
        yield _line(bound_x, 88, bound_x, self._bottom, "bound")
        yield _mark(makespan_x, 76, f"makespan {_time(self._makespan_ns)}", "bold")
        least = f"no schedule takes less than {_time(report['bound_ns'])}: {report['binding']}"
        yield _mark(bound_x, 98, least, "bound-text")

    def _outcomes(self, outcomes: Sequence[str]) -> Iterator[str]:
        x, y = float(_LEFT), self._bottom + 46
        for outcome in outcomes:
            words = f"{outcome} {self._counts[outcome]:,}"
            yield _rect(x, y - 10, 12, 12, outcome)
            yield _text(x + 18, y, words)
            x += 18 + len(words) * _CHAR + 22
        yield f'<path class="wait" d="M{x:.1f} {y - 9}v10m0 -5h16"/>'
        yield _text(x + 24, y, "held by a limit while the slot was free")

    def _floors(self, floors: Mapping[str, int]) -> Iterator[str]:
        y = self._bottom + 74
        yield _text(_LEFT, y, "Floors: what no schedule of these attempts can beat", "bold")
        rows = -(-max(1, len(floors)) // _FLOOR_COLUMNS)
        for at, (floor, ns) in enumerate(floors.items()):
            column, row = divmod(at, rows)
            x, binds = _LEFT + column * _PLOT / _FLOOR_COLUMNS, floor == self._run.report["binding"]
            line = f"{floor}: {_time(ns)}{', binds' if binds else ''}"
            yield _text(x, y + 20 * (row + 1), line, "bound-text" if binds else "small")


def _merged(pieces: Iterable[_Piece]) -> list[_Piece]:
    """Return pieces in whole pixels, at most one for each; touching ones that look alike are one.

    The pieces of a row come one after another, from left to right.
    """
    found: list[_Piece] = []
    for piece in pieces:
        from_x, to_x = int(piece.from_x), max(int(piece.from_x) + 1, int(piece.to_x))
        last = found[-1] if found else None
        if last is None or last.row != piece.row or from_x > last.to_x:
            wait_x = piece.wait_x if last is None or last.row != piece.row else max(
                piece.wait_x, last.to_x
            )  # fmt: skip
            found.append(piece._replace(from_x=from_x, to_x=to_x, wait_x=wait_x, bar=None))
        elif last.outcome == piece.outcome:
            found[-1] = last._replace(to_x=max(last.to_x, to_x))
        elif from_x < last.to_x and last.to_x - last.from_x == 1:
            worse = min(last.outcome, piece.outcome, key=_rank)
            found[-1] = last._replace(to_x=max(last.to_x, to_x), outcome=worse)
        elif to_x > last.to_x or _rank(piece.outcome) < _rank(last.outcome):
            begin = min(max(from_x, last.to_x - 1), to_x - 1)
            found[-1] = last._replace(to_x=begin)
            found.append(_Piece(piece.row, begin, max(to_x, begin + 1), begin, piece.outcome, None))
    return found


def _rank(outcome: str) -> int:
    order = list(_COLOURS)
    return order.index(outcome) if outcome in order else order.index(str(Ending.SNOOZED))


def _style(outcomes: Iterable[str]) -> str:
    chosen = {outcome: _COLOURS.get(outcome, _OTHER) for outcome in outcomes}
    light = "".join(f".{name} {{ fill: {light}; }}\n" for name, (light, _) in chosen.items())
    dark = "".join(f".{name} {{ fill: {dark}; }}\n" for name, (_, dark) in chosen.items())
    return f"{_STYLE}{light}@media (prefers-color-scheme: dark) {{{_DARK}{dark}}}\n"


def _safe(text: str, limit: int = _TEXT_MAX) -> str:
    return escape(harmless(text, limit))


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "") -> str:
    attributes = f' class="{kind}"' if kind else ""
    attributes += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{attributes}>{_safe(text, 2 * _TEXT_MAX)}</text>'


def _mark(x: float, y: float, text: str, kind: str) -> str:
    """Return what is written beside a line, on the side where there is room."""
    left = x > _LEFT + _PLOT / 2
    return _text(x - 6 if left else x + 6, y, text, kind, "end" if left else "")


def _rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}"/>'


def _line(x: float, y: float, to_x: float, to_y: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>'


def _step(span_ns: int) -> int:
    """Return a round time of which 5 to 12 fit into the span."""
    unit = 1
    while True:
        for factor in (1, 2, 5):
            if span_ns // (unit * factor) <= 10:  # noqa: PLR2004 - labels that fit side by side
                return unit * factor
        unit *= 10


def _time(ns: Any) -> str:
    """Return a time for people."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if ns >= size:
            return f"{ns / size:,.4g} {unit}"
    return f"{ns} ns" if ns else "0"
