"""A month of one schedule: how often it comes due on each day, as a map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final

from markupsafe import Markup

from timeball.core.cron.months import Day

COUNT_MAX: Final = 100
"""So far the occurrences of one day are counted."""

_W, _CELL, _ROW, _TOP, _GAP = 504.0, 72.0, 46.0, 20.0, 4.0
_WEEK: Final = 7
_LEVELS: Final = 4
_NAMES: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY_HOURS: Final = 24


def drawn(days: Sequence[Day], here: str, *, shown: date) -> Markup:
    """Return the map of a month, each day of which leads to itself.

    Args:
        days: All of its days.
        here: The address of the page, with a query to which the day is added.
        shown: The day that the page shows.
    """
    most = max((each.runs for each in days), default=0) or 1
    first = days[0].day.weekday()
    height = _TOP + ((first + len(days) - 1) // _WEEK + 1) * _ROW
    parts = [*_names(), *(_cell(each, first, most, here, shown) for each in days)]
    return Markup(
        '<svg class="month" viewBox="0 0 {:.0f} {:.0f}" role="img" aria-label="{}">{}</svg>'
    ).format(_W, height, _said(days), Markup("").join(parts))


def total(days: Sequence[Day]) -> str:
    """Return how often it comes due in all."""
    runs, more = sum(each.runs for each in days), any(each.capped for each in days)
    times = f"{runs:,}{' or more' if more else ''}"
    return f"{times} occurrence{'' if runs == 1 and not more else 's'}"


def _said(days: Sequence[Day]) -> str:
    return f"How often it comes due on each day of {days[0].day:%B %Y}: {total(days)}"


def _names() -> Iterator[Markup]:
    for column, name in enumerate(_NAMES):
        x = column * _CELL + (_CELL - _GAP) / 2
        yield Markup('<text class="tick" x="{:.0f}" y="12" text-anchor="middle">{}</text>').format(
            x, name
        )


def _cell(each: Day, first: int, most: int, here: str, shown: date) -> Markup:
    row, column = divmod(first + each.day.day - 1, _WEEK)
    x, y = column * _CELL, _TOP + row * _ROW
    # Few against many is told by the shade, and each number by itself: a shade is never exact.
    level = -(-each.runs * _LEVELS // most)
    classes = f"day h{level}{' on' if each.day == shown else ''}"
    runs = f"{each.runs}{'+' if each.capped else ''}" if each.runs else ""
    odd = f"{each.hours:g} h" if each.hours != _DAY_HOURS else ""
    title = f"{each.day:%A, %-d %B %Y}: {runs or 'none'}{f', a day of {odd}' if odd else ''}"
    return Markup(
        '<a href="{}{}" class="{}"><title>{}</title>'
        '<rect x="{:.0f}" y="{:.0f}" width="{:.0f}" height="{:.0f}" rx="6"/>'
        '<text class="tick" x="{:.0f}" y="{:.0f}">{}</text>'
        '<text class="tick hot" x="{:.0f}" y="{:.0f}" text-anchor="end">{}</text>'
        '<text class="runs" x="{:.0f}" y="{:.0f}" text-anchor="middle">{}</text></a>'
    ).format(
        *(here, each.day, classes, title),
        *(x, y, _CELL - _GAP, _ROW - _GAP),
        *(x + 6, y + 14, each.day.day),
        *(x + _CELL - _GAP - 6, y + 14, odd),
        *(x + (_CELL - _GAP) / 2, y + 33, runs),
    )
