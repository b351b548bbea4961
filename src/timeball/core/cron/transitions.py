"""What a schedule does at a transition of its zone, and what it would do by another policy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final, NamedTuple

from timeball.core.cron.agenda import Agenda, agenda
from timeball.core.cron.days import Seam, hours, midnight, next_seams
from timeball.core.cron.explain import dst_preview
from timeball.core.cron.expression import Walls
from timeball.core.cron.fields import Cron
from timeball.core.cron.occurrences import Occurrence, RuleInstants, Timetable
from timeball.core.cron.policy import Gap, Overlap

RUNS_MAX: Final = 1_000
"""So far occurrences are counted."""

_SHOWN: Final = 3
_SECOND: Final = timedelta(seconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Runs(NamedTuple):
    """Occurrences in a stretch of time."""

    shown: list[Occurrence]
    """The first few."""

    total: int
    """Of all; counted to 1,000."""


class Choice(NamedTuple):
    """One policy, and what becomes by it of the wall times that are missing or come twice."""

    option: str
    """"gap" or "overlap"."""

    value: str
    chosen: bool
    outcome: str
    runs: Runs


class Transition(NamedTuple):
    """One transition with everything that can be said about it."""

    seam: Seam
    hours: float
    """How long its day is."""

    affected: int
    """How many of the wall times do not exist or come twice."""

    text: str
    """What happens."""

    day_runs: Runs
    """What runs on its day."""

    choices: list[Choice]
    """Every policy, where it matters."""


def transitions(coming: Agenda, after: datetime, count: int) -> Iterator[Transition]:
    """Yield what a schedule does at the next transitions of its zone, at most `count`."""
    for seam in next_seams(coming.zone, after, count):
        yield _transition(coming, seam)


def timetables(agenda: Agenda) -> Iterator[Timetable]:
    """Yield what each of its cron expressions says by itself."""
    for each in agenda.expressions:
        if isinstance(each, Cron):
            yield Timetable(each, agenda.zone, agenda.policy.gap, agenda.policy.overlap)


def _transition(coming: Agenda, seam: Seam) -> Transition:
    begin = midnight(coming.zone, seam.day)
    end = midnight(coming.zone, seam.day + timedelta(days=1))
    affected, text = _affected(coming, seam)
    return Transition(
        seam,
        hours([seam]),
        affected,
        text,
        _runs(coming, _within(coming, begin, end)),
        _choices(coming, seam) if affected else [],
    )


def _affected(coming: Agenda, seam: Seam) -> tuple[int, str]:
    """Return how many wall times a transition touches, and what happens to them."""
    tables = list(timetables(coming))
    if len(tables) == len(coming.expressions) == 1:
        (found,) = dst_preview(tables[0], seam.at - _SECOND, 1)
        return found.affected, found.text
    shows = (seam.at - _EPOCH) // _SECOND
    low, high = sorted((shows + seam.before_s, shows + seam.after_s))
    rows = [each.walls for each in coming.sources if isinstance(each, RuleInstants)]
    touched = {wall for walls in rows for wall in islice(_walls(walls, low, high), RUNS_MAX)}
    if not touched:
        return 0, "nothing is due by the clocks that jump: nothing changes"
    times = "1 of its times" if len(touched) == 1 else f"{len(touched)} of its times"
    what = "missing" if seam.is_gap else "there twice"
    return len(touched), f"{times} {'is' if len(touched) == 1 else 'are'} {what}"


def _walls(walls: Walls, low: int, high: int) -> Iterator[int]:
    found = walls.first(low)
    while found is not None and found < high:
        yield found
        found = walls.first(found + 1)


def _choices(coming: Agenda, seam: Seam) -> list[Choice]:
    jump = abs(timedelta(seconds=seam.jump_s))
    if not seam.is_gap:
        begin, end = seam.at - jump, seam.at + jump
        return [_of_overlap(coming, value, begin, end) for value in Overlap]
    begin, end = seam.at - timedelta(minutes=1), seam.at + jump
    usual = set(_within(_by(coming, gap=Gap.SKIP), begin, end))
    return [_of_gap(coming, value, usual, begin, end) for value in Gap]


def _of_gap(
    coming: Agenda, value: Gap, usual: set[datetime], begin: datetime, end: datetime
) -> Choice:
    found = _within(_by(coming, gap=value), begin, end)
    moved = [at for at in found if at not in usual]
    if value is Gap.SKIP:
        outcome = "skipped"
    elif moved:
        outcome = "shifted, once" if len(moved) == 1 else "shifted, each"
    else:
        outcome = "one with the occurrence that is due then anyway"
    chosen = value is coming.policy.gap
    return Choice("gap", value, chosen, outcome, _runs(coming, moved))


def _of_overlap(coming: Agenda, value: Overlap, begin: datetime, end: datetime) -> Choice:
    found = _within(_by(coming, overlap=value), begin, end)
    outcome = {
        Overlap.FIRST: "once, the first time",
        Overlap.SECOND: "once, the second time",
        Overlap.BOTH: "twice",
    }[value]
    chosen = value is coming.policy.overlap
    return Choice("overlap", value, chosen, outcome, _runs(coming, found))


def _by(coming: Agenda, **policy: Any) -> Agenda:
    """Return the same schedule under another policy."""
    other = replace(coming.policy, **policy)
    return agenda(coming.terms, coming.zone, other, name=coming.name)


def _within(coming: Agenda, begin: datetime, end: datetime) -> list[datetime]:
    """Return the occurrences from `begin` on and before `end`, at most 1,000."""
    return coming.between(begin - _SECOND, end - _SECOND, limit=RUNS_MAX)


def _runs(coming: Agenda, instants: list[datetime]) -> Runs:
    return Runs([coming.describe(at) for at in instants[:_SHOWN]], len(instants))


def clocks(seam: Seam) -> str:
    """Return what the wall clock does at a transition, as two wall times."""
    return f"{wall(seam, seam.before_s)} becomes {wall(seam, seam.after_s)}"


def wall(seam: Seam, offset_s: int) -> str:
    """Return what the wall clock shows at a transition, by one of the offsets around it."""
    return f"{seam.at.astimezone(UTC) + timedelta(seconds=offset_s):%Y-%m-%d %H:%M}"
