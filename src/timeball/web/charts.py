"""Charts as SVG text: drawn here, styled by the page's sheet, with words for who listens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

_SPARK_W, _SPARK_H = 120.0, 28.0
_AREA_W, _AREA_H = 560.0, 150.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 38.0, 8.0, 12.0, 20.0
_LINES: Final = 4
_NICE: Final = (1, 2, 5)


def spark(values: Sequence[float]) -> Markup:
    """Return a line without axes; a table or a number beside it says the same."""
    most = max(values, default=0) or 1
    step = _SPARK_W / max(1, len(values) - 1)
    points = " ".join(
        f"{i * step:.1f},{_SPARK_H - 2 - value / most * (_SPARK_H - 5):.1f}"
        for i, value in enumerate(values)
    )
    return Markup(
        '<svg class="spark" viewBox="0 0 120 28" preserveAspectRatio="none" aria-hidden="true">'
        '<polygon points="0,28 {0} 120,28"/><polyline points="{0}"/></svg>'
    ).format(points)


def area(values: Sequence[float], *, label: str, limit: float | None = None) -> Markup:
    """Return how something went over the last seconds, against a limit where there is one.

    Args:
        values: One a second, the latest last.
        label: What it is, for those who do not see it.
        limit: Drawn as a line.
    """
    top = _ceiling(max([*values, limit or 0]))
    width, height = _AREA_W - _LEFT - _RIGHT, _AREA_H - _TOP - _BOTTOM
    last = max(1, len(values) - 1)

    def x(i: float) -> float:
        return _LEFT + i / last * width

    def y(value: float) -> float:
        return _TOP + height - value / top * height

    parts = [_grid(top, y)]
    if values:
        points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in enumerate(values))
        parts.append(
            Markup(
                '<polygon class="fill" points="{0:.1f},{1:.1f} {2} {3:.1f},{1:.1f}"/>'
                '<polyline class="line" points="{2}"/>'
            ).format(x(0), y(0), points, x(last))
        )
    parts += [_mark(x(i), i - last) for i in range(last, -1, -10)]
    if limit is not None:
        parts.append(
            Markup(
                '<line class="limit" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>'
                '<text class="limit-t" x="{:.1f}" y="{:.1f}" text-anchor="end">limit {:g}/s</text>'
            ).format(_LEFT, _AREA_W - _RIGHT, y(limit), y(limit), x(last), y(limit) - 5, limit)
        )
    return Markup(
        '<svg class="chart" viewBox="0 0 560 150" role="img" aria-label="{}">{}</svg>'
    ).format(label, Markup("").join(parts))


def bar(parts: Sequence[tuple[str, float]], *, label: str) -> Markup:
    """Return shares of a whole as one bar.

    Args:
        parts: The class of each, and its share; shares of nothing are left out.
        label: What it is, for those who do not see it.
    """
    shown = [(name, share) for name, share in parts if share > 0]
    whole = sum(share for _, share in shown) or 1
    room, at, rects = 1000.0 - 4 * max(0, len(shown) - 1), 0.0, []
    for name, share in shown:
        width = max(3.0, share / whole * room)
        rects.append(
            Markup('<rect class="p-{}" x="{:.1f}" y="0" width="{:.1f}" height="12"/>').format(
                name, at, width
            )
        )
        at += width + 4
    box = f"0 0 {max(at - 4, 1):.1f} 12"
    return Markup(
        '<svg class="split" viewBox="{}" preserveAspectRatio="none" role="img" aria-label="{}">'
        "{}</svg>"
    ).format(box, label, Markup("").join(rects))


def _grid(top: float, y: object) -> Markup:
    assert callable(y)
    lines = []
    for i in range(_LINES + 1):
        value = top * i / _LINES
        lines.append(
            Markup(
                '<line class="grid" x1="{0:.1f}" x2="{1:.1f}" y1="{2:.1f}" y2="{2:.1f}"/>'
                '<text class="tick" x="{3:.1f}" y="{4:.1f}" text-anchor="end">{5:,g}</text>'
            ).format(_LEFT, _AREA_W - _RIGHT, y(value), _LEFT - 6, y(value) + 4, value)
        )
    return Markup("").join(lines)


def _mark(x: float, seconds: float) -> Markup:
    text = "now" if not seconds else f"{seconds:.0f} s"
    anchor = "end" if not seconds else "middle"
    return Markup('<text class="tick" x="{:.1f}" y="146" text-anchor="{}">{}</text>').format(
        x, anchor, text
    )


def _ceiling(most: float) -> float:
    """Return a round number that is not less, in as many round parts as there are lines."""
    size = 1.0
    while True:
        for nice in _NICE:
            if nice * size * _LINES >= most:
                return nice * size * _LINES
        size *= 10
