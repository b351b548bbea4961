"""`timeball cron next` and `timeball cron explain`: when an expression comes due, and why then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from timeball.cli.cron_terms import beginning, facts, from_option, policy_options, timetable
from timeball.cli.output import iso, json_option, say, write, write_json, write_table
from timeball.errors import UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.cli.cron_preview import Transition
    from timeball.core.cron import Cron, Occurrence, Timetable

_COUNT_MAX: Final = 10_000
_EXPLAINED: Final = 5
_AHEAD: Final = 2
"""So many transitions are shown where no year is given."""

_YEAR_TRANSITIONS_MAX: Final = 50
_VALUES_SHOWN: Final = 12
_LAST_YEAR: Final = 2999


@click.command("next")
@policy_options
@click.argument("expression")
@from_option
@click.option("-n", "--count", type=click.IntRange(1, _COUNT_MAX), default=10, show_default=True)
@json_option
def next_(expression: str, *, start: str | None, count: int, as_json: bool, **terms: Any) -> None:
    """Show the next occurrences of EXPRESSION (five or six fields, or a nickname)."""
    table = timetable(expression, **terms)
    after = beginning(start, table.zone.name)
    found = [table.describe(at) for at in islice(table.following(after), count)]
    if as_json:
        occurrences = [
            {"at": iso(each.at), "local": each.local, "fold": each.fold, "shifted": each.shifted}
            for each in found
        ]
        write_json({**facts(table), "from": iso(after), "occurrences": occurrences})
        return
    say(f"{table.cron.canonical()} in {table.zone.name}")
    rows = [
        (each.local.replace("T", " "), iso(each.at), "moved by a gap" if each.shifted else "")
        for each in found
    ]
    write_table(("local", "utc", "note"), rows)


@click.command("explain")
@policy_options
@click.argument("expression")
@from_option
@click.option("--year", type=click.IntRange(1901, 2999), help="Look at that year; else from now.")
@json_option
def explain(
    expression: str, *, start: str | None, year: int | None, as_json: bool, **terms: Any
) -> None:
    """Say what EXPRESSION means and what daylight-saving time does to it.

    Both transitions ahead (or those of --year) are shown with what happens there by each policy;
    the policy that holds has a star.
    """
    from timeball.core.cron import prose, warnings

    if year and start:
        raise UsageError("--year and --from both say where to begin: leave one of them out")
    table = timetable(expression, **terms)
    after = _year_start(table, year) if year else beginning(start, table.zone.name)
    following = [table.describe(at) for at in islice(table.following(after), _EXPLAINED)]
    transitions, warned = _transitions(table, after, year), warnings(table, after)
    if as_json:
        from timeball.cli.cron_preview import record

        write_json(
            {
                **facts(table),
                "prose": prose(table.cron),
                "fields": {name: text for name, text, _ in _fields(table.cron)},
                "from": iso(after),
                "occurrences": [{"at": iso(each.at), "local": each.local} for each in following],
                "transitions": [record(each) for each in transitions],
                "warnings": warned,
            }
        )
        return
    for line in _explained(table, following, transitions, prose(table.cron)):
        write(line)
    for text in warned:
        write(f"warning {text}")


def _explained(
    table: Timetable, following: list[Occurrence], transitions: list[Transition], prose: str
) -> Iterator[str]:
    from timeball.cli.cron_preview import lines, told

    yield f"{table.cron.canonical()}  in {table.zone.name}: {prose}"
    fields = [f"{name:14}{text}{values}" for name, text, values in _fields(table.cron)]
    yield from _block("fields", fields)
    yield from _block("class", [_class(table)])
    yield from _block("next", [told(each) for each in following] or ["never again"])
    yield from _block("DST", [line for each in transitions for line in lines(each)])
    if not transitions:
        yield from _block("DST", [f"{table.zone.name} has no transition there: nothing changes"])


def _block(title: str, texts: list[str]) -> Iterator[str]:
    for at, text in enumerate(texts):
        yield f"{'' if at else title:8}{text}"


def _fields(cron: Cron) -> Iterator[tuple[str, str, str]]:
    """Yield each field that was written: its name, its text, and which values that is."""
    names = ("second", "minute", "hour", "day-of-month", "month", "day-of-week", "year")
    fields = (cron.second, cron.minute, cron.hour, cron.day, cron.month, cron.weekday, cron.year)
    written = {5: slice(1, 6), 6: slice(0, 6), 7: slice(0, 7)}[cron.arity]
    for name, field in list(zip(names, fields, strict=True))[written]:
        text, values = str(field), ",".join(map(str, field.values))
        telling = len(field.values) <= _VALUES_SHOWN and values not in {"", text}
        yield name, text, f"  ({values})" if telling and not field.everything else ""


def _class(table: Timetable) -> str:
    interval = len(table.cron.hour.values) == 24  # noqa: PLR2004 - hours of a day
    name = "interval (all 24 hours)" if interval else "fixed times"
    return f"{name}; gap: {table.gap}, overlap: {table.overlap}"


def _year_start(table: Timetable, year: int) -> datetime:
    from timeball.cli.cron_days import midnight

    return midnight(table.zone, date(year, 1, 1)) - timedelta(seconds=1)


def _transitions(table: Timetable, after: datetime, year: int | None) -> list[Transition]:
    from timeball.cli.cron_preview import transition
    from timeball.core.cron import dst_preview

    if year is None:
        return [transition(table, each) for each in dst_preview(table, after, _AHEAD)]
    found = dst_preview(table, after, _YEAR_TRANSITIONS_MAX)
    if year < _LAST_YEAR:
        end = _year_start(table, year + 1)
        found = [each for each in found if each.at <= end]
    return [transition(table, each) for each in found]
