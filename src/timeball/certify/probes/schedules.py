"""Schedules: an occurrence is decided once, by whoever has read the newest cursor."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from timeball.certify.probes.probe import Probe
from timeball.certify.queries import query
from timeball.certify.stage import Stage
from timeball.certify.verbs import KIND
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.records import Decision, Firing, OccurrenceDecision, Schedule, Standing
from timeball.core.standing import standing

_NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
_HOUR: Final = timedelta(hours=1)


def _declared(stage: Stage) -> Schedule:
    stage.travel(_NOON)
    spec = schedule_spec("hourly", KIND, cron="0 * * * *", tz="UTC")
    stage.store.declare(spec, standing(agenda_of(spec), _NOON))
    stage.travel(_NOON + 2 * _HOUR)
    return stage.store.schedule("hourly")


def _firing(found: Schedule, hours: int) -> Firing:
    """Return what decides the first so many hours after noon."""
    instants = [_NOON + n * _HOUR for n in range(1, hours + 1)]
    decisions = [OccurrenceDecision(at, Decision.FIRED, None, "{}") for at in instants]
    return Firing(found, decisions, Standing(instants[-1], instants[-1] + _HOUR))


def _read_before(stage: Stage) -> Any:
    """Have one fire by what it read before another one fired further than it."""
    found = _declared(stage)
    first = stage.store.fire([_firing(found, 2)])
    second = stage.store.fire([_firing(found, 1)])
    cursor = stage.store.schedule("hourly").cursor
    return {
        "first": [len(jobs or ()) for jobs in first],
        "second": ["refused" if jobs is None else len(jobs) for jobs in second],
        "cursor": cursor.isoformat(),
    }


def _key_holds(stage: Stage) -> Any:
    """Write a decision by hand for an occurrence that has been decided."""
    stage.store.fire([_firing(_declared(stage), 1)])
    return type(stage.session().step(query("decide_again"))).__name__


READ_BEFORE: Final = Probe(
    name="who has read an older cursor fires nothing",
    run=_read_before,
    expected={"first": [2], "second": ["refused"], "cursor": "2026-03-01T14:00:00+00:00"},
)
KEY_HOLDS: Final = Probe(name="an occurrence has one row", run=_key_holds, expected="Refused")
