"""`timeball cron calendar`: a month or a year as a map of how often a schedule comes due."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

from timeball.cli.cron_terms import beginning, coming, expression_options, facts, title
from timeball.cli.output import json_option, write, write_json
from timeball.errors import UsageError
from timeball.importers.wording import counted

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.core.cron import Agenda
    from timeball.core.cron.months import Day

_MONTH_COUNT_MAX: Final = 1_500
_YEAR_COUNT_MAX: Final = 100
"""So far the occurrences of one day are counted: a year has many days, and cells of one digit."""

_DIGIT_MAX: Final = 9
_DAY_HOURS: Final = 24
_FIRST_YEAR: Final = 1901
_LAST_YEAR: Final = 2998
_SHORT, _LONG, _NONE, _MORE = "<", ">", "·", "+"
_STYLES: Final = {"none": "dim", "some": "green", "clock": "bold yellow", "": ""}
_CELL: Final = 10

Cell = tuple[str, str]
"""A text, and the name of its style."""


@click.command("calendar")
@expression_options
@click.option("--month", metavar="YYYY-MM", help="That month; else the present one.")
@click.option("--year", type=click.IntRange(_FIRST_YEAR, _LAST_YEAR), help="A whole year.")
@json_option
def calendar(
    expression: str, *, month: str | None, year: int | None, as_json: bool, **rule: Any
) -> None:
    """Map how often EXPRESSION comes due on each day.

    Days on which the clock is put forward have a <, those on which it is put back a >.
    """
    from timeball.core.cron.months import days

    if month and year:
        raise UsageError("--month and --year both say what to map: leave one of them out")
    plan = coming(expression, **rule)
    first, last = (date(year, 1, 1), date(year, 12, 31)) if year else _month(month, plan)
    found = days(plan, first, last, count_max=_YEAR_COUNT_MAX if year else _MONTH_COUNT_MAX)
    if as_json:
        write_json({**facts(plan), "days": [_record(each) for each in found]})
        return
    span = f"{first:%Y}" if year else f"{first:%B %Y}"
    write(f"{span}  {title(plan)}")
    _write_cells(_year_lines(found) if year else _month_lines(found))
    total, more = sum(each.runs for each in found), any(each.capped for each in found)
    write(f"{total:,} or more occurrences" if more else counted(total, "occurrence"))
    for line in _notes(plan, found):
        write(line)


def _month(text: str | None, plan: Agenda) -> tuple[date, date]:
    """Return the first and the last day of a month: the one that is written, or the present."""
    from timeball.core.cron.months import following_month

    if text is None:
        first = date.fromisoformat(plan.describe(beginning(None, "UTC")).local[:10]).replace(day=1)
    else:
        try:
            first = datetime.strptime(f"{text} +0000", "%Y-%m %z").date()
        except ValueError:
            raise UsageError(f"{text!r} is no month: write for example 2026-03") from None
    if not _FIRST_YEAR <= first.year <= _LAST_YEAR:
        raise UsageError(f"{text} is too far away: write a month from 1901 to 2998")
    return first, following_month(first) - timedelta(days=1)


def _month_lines(found: Sequence[Day]) -> Iterator[list[Cell]]:
    yield [(f" {name:{_CELL - 1}}", "") for name in ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat")] + [
        (" Sun", "")
    ]
    line: list[Cell] = [(" " * _CELL, "")] * found[0].day.weekday()
    for each in found:
        runs = f"x{each.runs}{_MORE if each.capped else ''}" if each.runs else _NONE
        line.append((f"{each.day.day:3} {runs}{_mark(each)}".ljust(_CELL), _style(each)))
        if each.day.weekday() == 6 or each is found[-1]:  # noqa: PLR2004 - Sunday
            yield line
            line = []


def _year_lines(found: Sequence[Day]) -> Iterator[list[Cell]]:
    yield [(" " * 4, ""), *((f"{number:<3}", "") for number in range(1, 32))]
    months = defaultdict(list)
    for each in found:
        months[each.day.month].append(each)
    for month in months.values():
        yield [
            (f"{month[0].day:%b} ", ""),
            *((f"{_digit(each)}{_mark(each)}".ljust(3), _style(each)) for each in month),
        ]


def _digit(day: Day) -> str:
    return _NONE if not day.runs else str(day.runs) if day.runs <= _DIGIT_MAX else _MORE


def _mark(day: Day) -> str:
    return _SHORT if day.hours < _DAY_HOURS else _LONG if day.hours > _DAY_HOURS else ""


def _style(day: Day) -> str:
    return "clock" if day.seams else "some" if day.runs else "none"


def _write_cells(lines: Iterator[list[Cell]]) -> None:
    """Write lines of cells: in colour on a terminal, plain everywhere else."""
    if not sys.stdout.isatty():
        for line in lines:
            write("".join(text for text, _ in line).rstrip())
        return
    from rich.console import Console
    from rich.text import Text

    console = Console()
    for line in lines:
        console.print(Text.assemble(*((text, _STYLES[style]) for text, style in line)), end="\n")


def _notes(plan: Agenda, found: Sequence[Day]) -> Iterator[str]:
    from timeball.core.cron.transitions import transitions, wall

    for each in found:
        for seam in each.seams:
            (jump,) = transitions(plan, seam.at - timedelta(seconds=1), 1)
            clock = [wall(seam, offset_s)[11:] for offset_s in (seam.before_s, seam.after_s)]
            yield (
                f"{each.day:%Y-%m-%d}{_mark(each)} has {each.hours:g} hours: "
                f"{' becomes '.join(clock)}; {jump.text}"
            )


def _record(day: Day) -> dict[str, Any]:
    return {
        "day": day.day.isoformat(),
        "hours": day.hours,
        "occurrences": day.runs,
        "more": day.capped,
    }
