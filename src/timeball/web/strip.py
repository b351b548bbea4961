"""One day of some schedules, drawn on elapsed time: a day of 23 or 25 hours is as long as it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, NamedTuple

from markupsafe import Markup

from timeball.core.cron import Agenda, Zone
from timeball.core.cron.days import Seam, midnight, seams

FIRES_MAX: Final = 100
"""Of one schedule and day: more are one line."""

_W, _LEFT, _RIGHT, _TOP, _ROW = 1120.0, 260.0, 14.0, 46.0, 30.0
_HOUR: Final = timedelta(hours=1)
_NAME_MAX: Final = 22
_EXPRESSION_MAX: Final = 16


class Row(NamedTuple):
    """One schedule of the strip."""

    name: str
    expression: str
    agenda: Agenda


class Strip(NamedTuple):
    """A local day of a zone."""

    zone: Zone
    day: date
    begin: datetime
    end: datetime

    @property
    def hours(self) -> float:
        """How long it is."""
        return (self.end - self.begin) / _HOUR

    @property
    def seams(self) -> list[Seam]:
        """Where its clock jumps."""
        return seams(self.zone, self.begin, self.end)


def strip_of(zone: Zone, day: date) -> Strip:
    """Return a day of a zone."""
    return Strip(zone, day, midnight(zone, day), midnight(zone, day + timedelta(days=1)))


def drawn(strip: Strip, rows: Sequence[Row], *, now: datetime | None = None) -> Markup:
    """Return when schedules come due on a day.

    Args:
        strip: The day.
        rows: The schedules, from top to bottom.
        now: Marked where it lies on that day.
    """
    height = _TOP + len(rows) * _ROW + 8
    parts = [*_seams(strip, height), *_hours(strip, height)]
    for i, row in enumerate(rows):
        parts += _row(strip, row, _TOP + i * _ROW + _ROW / 2)
    if now is not None and strip.begin <= now < strip.end:
        x = _x(strip, now)
        parts.append(
            Markup(
                '<line class="now" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>'
            ).format(x, _TOP - 8, height - 6)
        )
    return Markup(
        '<svg class="wide strip" viewBox="0 0 1120 {:.0f}" role="img" aria-label="{}">{}</svg>'
    ).format(
        height,
        f"When {len(rows)} schedules come due on {strip.day}, a day of {strip.hours:g} hours",
        Markup("").join(parts),
    )


def _x(strip: Strip, at: datetime) -> float:
    return _LEFT + (at - strip.begin) / (strip.end - strip.begin) * (_W - _LEFT - _RIGHT)


def _wall(strip: Strip, at: datetime) -> datetime:
    offset_s = strip.zone.offset(int(at.timestamp()))
    return (at + timedelta(seconds=offset_s)).replace(tzinfo=None)


def _hours(strip: Strip, height: float) -> Iterator[Markup]:
    """Yield a line and the wall clock's hour for each hour that passes."""
    jumps = strip.seams
    hot = {_wall(strip, s.at).hour for s in jumps} | {
        _wall(strip, s.at - timedelta(seconds=1)).hour for s in jumps if not s.is_gap
    }
    at = strip.begin
    while at <= strip.end:
        x, wall = _x(strip, at), _wall(strip, at)
        name = "tick hot" if wall.hour in hot and jumps and at != strip.end else "tick"
        yield Markup(
            '<line class="grid" x1="{0:.1f}" x2="{0:.1f}" y1="{1:.1f}" y2="{2:.1f}"/>'
            '<text class="{3}" x="{0:.1f}" y="{4:.1f}" text-anchor="middle">{5}</text>'
        ).format(x, _TOP - 6, height - 6, name, _TOP - 12, f"{wall:%H}")
        at += _HOUR


def _seams(strip: Strip, height: float) -> Iterator[Markup]:
    for seam in strip.seams:
        jump = timedelta(seconds=abs(seam.jump_s))
        first = _wall(strip, seam.at) - (jump if seam.is_gap else timedelta())
        words = "does not exist" if seam.is_gap else "happens twice"
        text = f"{first:%H:%M} to {first + jump:%H:%M} {words}"
        begin = _x(strip, seam.at - (timedelta() if seam.is_gap else jump))
        width = 3.0 if seam.is_gap else _x(strip, seam.at + jump) - begin
        yield Markup(
            '<rect class="seam" x="{:.1f}" y="22" width="{:.1f}" height="{:.1f}" rx="3"/>'
            '<text class="seam-t" x="{:.1f}" y="14" text-anchor="middle">{}</text>'
        ).format(begin, width, height - 28, begin + width / 2, text)


def _row(strip: Strip, row: Row, y: float) -> Iterator[Markup]:
    yield Markup(
        '<text class="lane" x="0" y="{:.1f}">{}<title>{}</title></text>'
        '<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="end">{}</text>'
    ).format(
        *(y + 4, _short(row.name, _NAME_MAX), row.name),
        *(_LEFT - 16, y + 4, _short(row.expression, _EXPRESSION_MAX)),
    )
    second = timedelta(seconds=1)
    fires = row.agenda.between(strip.begin - second, strip.end - second, FIRES_MAX + 1)
    if len(fires) > FIRES_MAX:
        yield Markup(
            '<line class="often" x1="{:.1f}" x2="{:.1f}" y1="{:.1f}" y2="{:.1f}"/>'
        ).format(_LEFT, _W - _RIGHT, y, y)
        return
    for at in fires:
        text = f"{_wall(strip, at):%H:%M:%S} · {at.astimezone(UTC):%H:%M:%S} UTC"
        yield Markup(
            '<circle class="fire" cx="{:.1f}" cy="{:.1f}" r="5"><title>{}</title></circle>'
        ).format(_x(strip, at), y, text)


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
