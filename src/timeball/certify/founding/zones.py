"""B, B2 and C2: schedules where the wall clock jumps, fired from a database whose clock is set."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from timeball.certify.founding.oracle import Wanted, fires, jumps
from timeball.certify.scenario import Check, Outcome, Scenario
from timeball.certify.stage import Stage
from timeball.certify.verbs import KIND
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.cron import Zone, load_zone
from timeball.core.records import Decision, ScheduleSpec
from timeball.core.standing import standing
from timeball.worker.agendas import Agendas
from timeball.worker.ticker import Ticker

_SECOND: Final = timedelta(seconds=1)
_LIMIT: Final = 1_000
_BEGINNING: Final = -(2**62)
_EARLY: Final = "fired before its instant"
_JOBS: Final = "jobs of all schedules"
_VANCOUVER: Final = "America/Vancouver"
_LEAVES: Final = datetime(2026, 11, 1, 9, tzinfo=UTC)
_HOUR_S: Final = 3600


class Case(NamedTuple):
    """One schedule, from when until when, and all instants at which it must fire."""

    wanted: Wanted
    begin: datetime
    end: datetime
    fires: tuple[datetime, ...]

    def spec(self, name: str) -> ScheduleSpec:
        """Return the schedule as somebody declares it."""
        wanted = self.wanted
        rule = {"gap": wanted.gap, "overlap": wanted.overlap}
        return schedule_spec(name, KIND, cron=wanted.cron, tz=wanted.tz, catchup="all", **rule)


def cases(name: str) -> dict[str, Case]:
    """Return the cases of the frozen table that belong to a scenario, by their names."""
    table = json.loads((files(__package__) / "zones.json").read_text("utf-8"))
    return {key: _case(row) for key, row in table[name].items()}


def _case(row: Mapping[str, Any]) -> Case:
    wanted = Wanted(row["cron"], row["tz"], row["gap"], row["overlap"])
    instants = tuple(map(datetime.fromisoformat, row["fires"]))
    begin, end = datetime.fromisoformat(row["from"]), datetime.fromisoformat(row["until"])
    return Case(wanted, begin, end, instants)


class Calendar:
    """Schedules in one database, whose clock goes from one instant to the next."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.fired = 0
        self.early = 0
        """Jobs that were there a second before their instant."""

    def play(self, name: str, spec: ScheduleSpec, case: Case, zones: Sequence[Zone] = ()) -> None:
        """Declare a schedule and let the clock go over all its instants, then pause it.

        Args:
            name: Of the schedule.
            spec: The schedule.
            case: When it is there, and when it must fire.
            zones: The zone data of whoever ticks at each instant; else those that are installed.
        """
        first = (lambda _: zones[0]) if zones else load_zone
        self.stage.travel(case.begin)
        table = Agendas(first).of(spec)
        self.stage.store.declare(spec, standing(table, case.begin))
        for number, at in enumerate(case.fires):
            ticker = _ticker(self.stage, zones, number)
            self.early += self._jobs(ticker, at - _SECOND)
            self.fired += self._jobs(ticker, at)
        self.early += self._jobs(_ticker(self.stage, zones, -1), case.end)
        self.stage.store.pause(name)

    def told(self, name: str) -> list[str]:
        """Return the instants at which a schedule has fired, as it is on record."""
        found = self.stage.store.occurrences(name, limit=_LIMIT)
        return sorted(_text(each.nominal_at) for each in found if each.decision is Decision.FIRED)

    def _jobs(self, ticker: Ticker, at: datetime) -> int:
        """Tick at an instant until nothing is due, and return how many jobs there are more."""
        self.stage.travel(at)
        jobs = 0
        while True:
            tick = ticker.tick()
            jobs += tick.jobs
            if tick.rest_s > 0:
                return jobs


def _ticker(stage: Stage, zones: Sequence[Zone], number: int) -> Ticker:
    if not zones:
        return Ticker(stage.store)
    return Ticker(stage.store, lambda _: zones[number])


def run_table(stage: Stage, *, name: str) -> Outcome:
    """Play every case of the frozen table; hold table, engine and oracle against each other."""
    found = cases(name)
    calendar = Calendar(stage)
    for key, case in sorted(found.items(), key=lambda each: each[1].begin):
        calendar.play(key, case.spec(key), case, CHANGING.get(key, ()))
    by_wall = {key: case for key, case in found.items() if not case.wanted.cron.startswith("@")}
    walls = (jumps(case.wanted.tz, case.begin, case.end) for case in found.values())
    return Outcome(
        expected={
            **{key: [_text(at) for at in case.fires] for key, case in found.items()},
            _EARLY: 0,
            _JOBS: sum(len(case.fires) for case in found.values()),
        },
        observed={
            **{key: calendar.told(key) for key in found},
            _EARLY: calendar.early,
            _JOBS: sum(stage.store.counts().values()),
        },
        checks=(
            _same("oracle", by_wall, lambda case: fires(case.wanted, case.begin, case.end)),
            _same("engine", found, _computed),
        ),
        witness={
            "occurrences fired": calendar.fired,
            "schedules that met a jump": sum(count > 0 for count in walls),
        },
    )


def _computed(case: Case) -> list[datetime]:
    """Return what the engine computes, without a database."""
    found = []
    for due in agenda_of(case.spec("computed")).occurrences(case.begin):
        if due.at > case.end:
            break
        if due.reason is None:
            found.append(due.at)
    return found


def _same(
    name: str, found: Mapping[str, Case], instants: Callable[[Case], list[datetime]]
) -> Check:
    other = {key: instants(case) for key, case in found.items()}
    wrong = [key for key, case in found.items() if other[key] != list(case.fires)]
    text = "; ".join(f"{key}: {[_text(at) for at in other[key]]}" for key in wrong[:3])
    return Check(name, not wrong, text)


def _text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _vancouver(version: str, *, leaves: bool) -> Zone:
    """Return the zone as its data were before and after its rules were changed in 2026."""
    starts, offsets = [_BEGINNING], [-7 * _HOUR_S]
    if leaves:
        starts.append(int(_LEAVES.timestamp()))
        offsets.append(-8 * _HOUR_S)
    return Zone(_VANCOUVER, tuple(starts), tuple(offsets), version=version)


_OLD: Final = _vancouver("2025b", leaves=True)
_NEW: Final = _vancouver("2026f", leaves=False)
CHANGING: Final[Mapping[str, tuple[Zone, ...]]] = MappingProxyType(
    {"nine-under-rules-that-change": (_OLD, _NEW, _NEW)}
)
"""Cases in which whoever ticks has other zone data from one instant to the next."""


def _scenario(number: str, title: str) -> Scenario:
    name = f"sc_{number}"
    return Scenario(
        id=number,
        title=title,
        run=partial(run_table, name=name),
        invariants=("I16", "I17", "I18"),
        founding=name,
    )


B: Final = _scenario("B", "New York's hour that is missing and the one that comes twice")
B2: Final = _scenario("B2", "jumps of half an hour, at midnight, of a day; Ramadan")
C2: Final = _scenario("C2", "declared before a jump, fired after it; 24 h; rules that change")
