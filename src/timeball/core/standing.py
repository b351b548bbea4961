"""How far a schedule has come, and what becomes of that under other zone data."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from timeball.core.cron import Agenda, Zone, fingerprint, recompute
from timeball.core.records import Firing, Schedule, Standing

_PRINTS: Final = 4_096


def standing(agenda: Agenda, cursor: datetime) -> Standing:
    """Return how a schedule stands whose occurrences up to `cursor` have been decided."""
    first = agenda.next_due(cursor)
    runs = first is None or first.reason is None
    next_at = first.at if first and runs else agenda.next(cursor)
    return Standing(
        cursor=cursor,
        next_at=next_at,
        due_at=first and first.due_at,
        zone_version=agenda.zone.version,
        fingerprint=_print(agenda.zone, cursor),
        offset_s=int((agenda.wall(cursor) - cursor.replace(tzinfo=None)).total_seconds()),
    )


def carried_over(schedule: Schedule, agenda: Agenda) -> Firing | None:
    """Return what takes a schedule over to the zone data of its agenda; None if it is there.

    Where the data say the same about its zone, only their version is noted. Otherwise the
    occurrences after the last one decided are those of the new data: after 09:00 comes what
    they put after 09:00, so that no time of day is lost and none runs twice.
    """
    same = schedule.fingerprint in {"", _print(agenda.zone, schedule.cursor)}
    if same and schedule.zone_version in {"", agenda.zone.version}:
        return None
    cursor = schedule.cursor
    if not same:
        wall = cursor.replace(tzinfo=None) + timedelta(seconds=schedule.offset_s)
        cursor = recompute(agenda, cursor, wall)
    return Firing(schedule, (), standing(agenda, cursor), moved=not same)


def _print(zone: Zone, cursor: datetime) -> str:
    return _print_of_day(zone, cursor.replace(hour=0, minute=0, second=0, microsecond=0))


@lru_cache(_PRINTS)
def _print_of_day(zone: Zone, day: datetime) -> str:
    return fingerprint(zone, day)
