"""What becomes of a schedule when governments change their clocks, and zone data follows.

The instants of all later occurrences may move. Counting goes on from the last one that was
decided, not from now, and for a schedule that follows the wall clock by what the wall showed
then: after 09:00 comes what the new data put after 09:00, so that no time of day is lost and
none runs twice.
"""

from __future__ import annotations

from datetime import UTC, datetime

from timeball.core.cron.agenda import Agenda
from timeball.core.cron.instants import epoch
from timeball.core.cron.policy import Overlap
from timeball.core.cron.zone import Zone

_WATCHED_YEARS = 2
_YEAR_S = 366 * 86_400
_REACH_S = 2 * 86_400


def fingerprint(zone: Zone, since: datetime, years: int = _WATCHED_YEARS) -> str:
    """Return a short text that changes when the zone's offsets in the years after `since` do."""
    begin = epoch(since)
    return zone.fingerprint(begin, begin + years * _YEAR_S)


def recompute(agenda: Agenda, cursor: datetime, wall: datetime) -> datetime:
    """Return where to go on under new zone data: the cursor that keeps its place on the wall.

    Args:
        agenda: The schedule, its zone already of the new data.
        cursor: The last occurrence decided.
        wall: What the wall clock showed there by the data of that time, without a zone.
    """
    if not agenda.fixed:
        return cursor
    shown = epoch(wall.replace(tzinfo=UTC))
    begin = epoch(cursor) - _REACH_S
    found = _passes(agenda.zone, shown, begin, begin + 2 * _REACH_S)
    if agenda.policy.overlap is Overlap.BOTH and epoch(cursor) in found:
        return cursor  # one pass was decided, and the other may be to come
    at = found[-1] if agenda.policy.overlap is Overlap.SECOND else found[0]
    return datetime.fromtimestamp(at, UTC)


def _passes(zone: Zone, wall: int, begin: int, end: int) -> list[int]:
    """Return the instants at which a wall time is shown; in a gap, the last one before it."""
    stretches = range(zone.index(begin), zone.index(end) + 1)
    found = [wall - zone.offsets[i] for i in stretches if zone.index(wall - zone.offsets[i]) == i]
    gaps = [zone.starts[i] - 1 for i in stretches if zone.starts[i] + zone.offsets[i] > wall]
    return found or gaps[:1]
