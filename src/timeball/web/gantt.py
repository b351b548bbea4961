"""A batch as bars, one row a slot: what ran when, what it waited for, and how fast it could be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from markupsafe import Markup

from timeball.core.batches import Member
from timeball.core.makespan import AttemptRecord, span_of
from timeball.core.report import BatchReport
from timeball.core.states import Ending
from timeball.web.wording import duration

BARS_MAX: Final = 1_500
"""More attempts are not drawn."""

ROWS_MAX: Final = 64

_W, _LEFT, _RIGHT, _TOP, _ROW = 1120.0, 74.0, 12.0, 34.0, 26.0
_NS: Final = 1e9
_LABEL_ROOM: Final = 150.0
_TICKS: Final = 10
_NICE: Final = (1, 2, 5, 10, 15, 30, 60)
_TONES: Final = {Ending.RETRIED: "failed", Ending.LOST: "failed", None: "running"}


def drawn(
    attempts: Sequence[AttemptRecord[int]], members: Mapping[int, Member], report: BatchReport
) -> Markup:
    """Return the attempts of a batch, with its makespan and the least that it could have taken."""
    span = span_of(attempts)
    length = max(span.length_ns, 1) * 1.03
    rows = min(ROWS_MAX, 1 + max((each.slot for each in attempts), default=0))
    height = _TOP + rows * _ROW + 26

    def x(ns: float) -> float:
        return _LEFT + (ns - span.from_ns) / length * (_W - _LEFT - _RIGHT)

    parts = [*_times(x, span.from_ns, length, height), *_lanes(rows)]
    for each in attempts[:BARS_MAX]:
        if each.slot < rows:
            parts += _bar(each, members, x)
    bound_x, end_x = x(span.from_ns + report.bound.ns), x(span.to_ns)
    parts += _line("bound", bound_x, height, f"lower bound {duration(report.bound.ns / _NS)}", 8)
    parts += _line("mk", end_x, height, f"makespan {duration(report.makespan_ns / _NS)}", 22)
    return Markup(
        '<svg class="wide gantt" viewBox="0 0 1120 {:.0f}" role="img" aria-label="{}">{}</svg>'
    ).format(
        height,
        f"{len(attempts)} attempts in {rows} slots; the numbers above and the table below say more",
        Markup("").join(parts),
    )


def _bar(each: AttemptRecord[int], members: Mapping[int, Member], x: object) -> Iterator[Markup]:
    assert callable(x)
    top = _TOP + each.slot * _ROW + 4
    begin, end = x(each.started_ns), x(each.finished_ns)
    waited_s = (each.started_ns - each.queued_ns) / _NS
    from_x = max(_LEFT, x(each.queued_ns))
    if begin - from_x > 2:  # noqa: PLR2004 - pixels
        yield Markup(
            '<rect class="wait" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="3" rx="1.5"/>'
        ).format(from_x, top + 7.5, begin - from_x)
    tone = _TONES.get(each.ending, each.ending or "running")
    kind = members[each.job].kind if each.job in members else ""
    yield Markup(
        '<rect class="bar s-{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="18" rx="4">'
        "<title>{} #{}, attempt {}: {} after {}; waited {}</title></rect>"
    ).format(
        *(tone, begin, top, max(2.5, end - begin - 1.2), kind, each.job, each.attempt),
        *(each.ending or "running", duration(each.ran_ns / _NS), duration(waited_s)),
    )


def _times(x: object, begin: int, length: float, height: float) -> Iterator[Markup]:
    assert callable(x)
    step = _step(length / _NS)
    n = 0
    while n * step * _NS <= length:
        at = x(begin + n * step * _NS)
        yield Markup(
            '<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>'
            '<text class="tick" x="{0:.1f}" y="{3:.1f}" text-anchor="middle">{4:g} s</text>'
        ).format(at, _TOP - 4, height - 22, height - 6, n * step)
        n += 1


def _step(seconds: float) -> float:
    """Return a round number of seconds that cuts a length in at most so many parts."""
    size = 1e-3
    while True:
        for nice in _NICE:
            if nice * size * _TICKS >= seconds:
                return nice * size
        size *= 100 if size >= 1 else 10


def _lanes(rows: int) -> Iterator[Markup]:
    for row in range(rows):
        y = _TOP + row * _ROW
        yield Markup(
            '<text class="lane" x="{:.1f}" y="{:.1f}" text-anchor="end">slot {}</text>'
            '<line class="rule" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>'
        ).format(_LEFT - 12, y + 17, row + 1, _LEFT, _W - _RIGHT, y + _ROW, y + _ROW)


def _line(name: str, x: float, height: float, text: str, y: float) -> Iterator[Markup]:
    anchor, shift = ("end", -6) if x > _LEFT + _LABEL_ROOM else ("start", 6)
    yield Markup(
        '<line class="{0}" x1="{1:.1f}" x2="{1:.1f}" y1="{2:.1f}" y2="{3:.1f}"/>'
        '<text class="{0}-t" x="{4:.1f}" y="{5:.1f}" text-anchor="{6}">{7}</text>'
    ).format(name, x, y - 8, height - 22, x + shift, y + 2, anchor, text)
