"""`timeball cron next` and `timeball cron explain`: when an expression comes due, and why then."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from timeball.cli.cron_terms import (
    beginning,
    coming,
    expression_options,
    facts,
    from_option,
    title,
    words,
)
from timeball.cli.output import iso, json_option, say, write, write_json, write_table
from timeball.errors import UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.core.cron import Agenda, Cron, Due, Occurrence
    from timeball.core.cron.transitions import Transition

_COUNT_MAX: Final = 10_000
_EXPLAINED: Final = 5
_AHEAD: Final = 2
"""So many transitions are shown where no year is given."""

_YEAR_TRANSITIONS_MAX: Final = 50
_VALUES_SHOWN: Final = 12
_FIRST_YEAR: Final = 1901
_LAST_YEAR: Final = 2998


@click.command("next")
@expression_options
@from_option
@click.option(
    "-n",
    "--count",
    type=click.IntRange(1, _COUNT_MAX),
    default=10,
    show_default=True,
    help="So many of them.",
)
@json_option
def next_(expression: str, *, begin: str | None, count: int, as_json: bool, **rule: Any) -> None:
    """Show the next occurrences of EXPRESSION.

    EXPRESSION has five fields, or six with seconds first; or is a nickname such as @daily, an
    interval such as "@every 90m", "@calendar every 2 weeks on mon at 09:00", or
    "@rrule 2026-01-05T09:00 FREQ=MONTHLY;BYDAY=2MO".
    """
    found = coming(expression, **rule)
    after = beginning(begin, found.zone.name)
    due = list(_due(found, after, count))
    if as_json:
        write_json(
            {
                **facts(found),
                "from": iso(after),
                "occurrences": [_record(found, each) for each in due if each.reason is None],
                "left_out": [
                    {"at": iso(each.at), "reason": each.reason} for each in due if each.reason
                ],
            }
        )
        return
    say(title(found))
    rows = []
    for each in due:
        told = found.describe(each.at)
        rows.append((told.local.replace("T", " "), iso(each.at), _note(each, shifted=told.shifted)))
    write_table(("local", "utc", "note"), rows)


def _due(found: Agenda, after: datetime, count: int) -> Iterator[Due]:
    """Yield so many occurrences that run, and those between them that do not."""
    left = count
    for each in islice(found.occurrences(after), _COUNT_MAX):
        yield each
        left -= each.reason is None
        if not left:
            return


def _note(due: Due, *, shifted: bool) -> str:
    if due.reason:
        return f"does not run: {due.reason}"
    late = f"jitter: starts at {iso(due.due_at)}" if due.due_at > due.at else ""
    return late or ("moved by a gap" if shifted else "")


def _record(found: Agenda, due: Due) -> dict[str, Any]:
    told = found.describe(due.at)
    return {
        "at": iso(due.at),
        "local": told.local,
        "fold": told.fold,
        "shifted": told.shifted,
        "due_at": iso(due.due_at),
    }


@click.command("explain")
@expression_options
@from_option
@click.option(
    "--year",
    type=click.IntRange(_FIRST_YEAR, _LAST_YEAR),
    help="Look at that year; else from now on.",
)
@json_option
def explain(
    expression: str, *, begin: str | None, year: int | None, as_json: bool, **rule: Any
) -> None:
    """Say what EXPRESSION means and what daylight-saving time does to it.

    The next two transitions of the zone, or all of --year, are shown with what happens there by
    each policy; the policy that holds has a star. EXPRESSION is what `timeball cron next` takes.
    """
    from timeball.core.cron import warnings

    if year and begin:
        raise UsageError("--year and --from both say where to begin: leave one of them out")
    found = coming(expression, **rule)
    after = _year_start(found, year) if year else beginning(begin, found.zone.name)
    following = [found.describe(at) for at in islice(found.following(after), _EXPLAINED)]
    jumps, warned = _transitions(found, after, year), warnings(found, after)
    if as_json:
        from timeball.cli.cron_preview import record

        write_json(
            {
                **facts(found),
                "prose": words(found),
                "fields": {name: text for name, text, _ in _fields(found)},
                "from": iso(after),
                "occurrences": [{"at": iso(each.at), "local": each.local} for each in following],
                "transitions": [record(each) for each in jumps],
                "warnings": warned,
            }
        )
        return
    for line in _explained(found, following, jumps):
        write(line)
    for text in warned:
        write(f"warning {text}")


def _explained(
    found: Agenda, following: list[Occurrence], jumps: list[Transition]
) -> Iterator[str]:
    from timeball.cli.cron_preview import lines, told

    yield title(found)
    yield from _block("fields", [f"{name:14}{text}{more}" for name, text, more in _fields(found)])
    yield from _block("class", [_class(found)])
    yield from _block("next", [told(each) for each in following] or ["never again"])
    yield from _block("DST", [line for each in jumps for line in lines(each)])
    if not jumps:
        yield from _block("DST", [f"{found.zone.name} has no transition there: nothing changes"])


def _block(name: str, texts: list[str]) -> Iterator[str]:
    for at, text in enumerate(texts):
        yield f"{'' if at else name:8}{text}"


def _fields(found: Agenda) -> Iterator[tuple[str, str, str]]:
    """Yield each field of the first expression: its name, its text, and which values that is."""
    from timeball.core.cron.transitions import timetables

    table = next(timetables(found), None)
    if table is None:
        return
    cron: Cron = table.cron
    names = ("second", "minute", "hour", "day-of-month", "month", "day-of-week", "year")
    fields = (cron.second, cron.minute, cron.hour, cron.day, cron.month, cron.weekday, cron.year)
    written = {5: slice(1, 6), 6: slice(0, 6), 7: slice(0, 7)}[cron.arity]
    for name, field in list(zip(names, fields, strict=True))[written]:
        text, values = str(field), ",".join(map(str, field.values))
        telling = len(field.values) <= _VALUES_SHOWN and values not in {"", text}
        yield name, text, f"  ({values})" if telling and not field.everything else ""


def _class(found: Agenda) -> str:
    from timeball.core.cron import Cron, resolve
    from timeball.core.cron.every import Every

    if all(isinstance(each, Every) for each in found.expressions):
        return "elapsed time: it knows no wall clock"
    hourly = all(
        isinstance(each, Cron) and resolve(each).overlap == "both" for each in found.expressions
    )
    name = "interval (all 24 hours)" if hourly else "fixed times"
    return f"{name}; gap: {found.policy.gap}, overlap: {found.policy.overlap}"


def _year_start(found: Agenda, year: int) -> datetime:
    from timeball.core.cron.days import midnight

    return midnight(found.zone, date(year, 1, 1)) - timedelta(seconds=1)


def _transitions(found: Agenda, after: datetime, year: int | None) -> list[Transition]:
    from timeball.core.cron.transitions import transitions

    if year is None:
        return list(transitions(found, after, _AHEAD))
    end = _year_start(found, year + 1)
    return [
        each for each in transitions(found, after, _YEAR_TRANSITIONS_MAX) if each.seam.at <= end
    ]
