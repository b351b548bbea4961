"""In which zone pages tell times: UTC, a local one, or that of the schedule a page is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from starlette.requests import Request

from timeball.chance import system_zone
from timeball.core.cron import Zone, load_zone
from timeball.errors import UsageError

ZONE_COOKIE: Final = "timeball_zone"
SCHEDULES: Final = "schedule"
"""The choice of each schedule's own zone; where there is no schedule, of UTC."""

LOCAL: Final = "local"
"""The choice of this machine's zone; a browser that runs scripts sends the name of its own."""

_UTC: Final = "UTC"


class Choice(NamedTuple):
    """What a reader has chosen."""

    value: str
    """`SCHEDULES`, or the name of a zone."""

    local: str
    """The zone that is offered as the local one."""

    zone: Zone
    """In which the page tells times."""


def choice_of(request: Request, own: str | None = None) -> Choice:
    """Return what the reader of a page has chosen.

    Args:
        request: What asks for it.
        own: The zone of the schedule that it is about.
    """
    value = settled(request.cookies.get(ZONE_COOKIE, "")) or SCHEDULES
    name = value if value != SCHEDULES else own or _UTC
    local = value if value not in {SCHEDULES, _UTC} else _here()
    try:
        return Choice(value, local, load_zone(name))
    except UsageError:  # the schedule's zone is known to who declared it, and not here
        return Choice(value, local, load_zone(_UTC))


def settled(text: str) -> str | None:
    """Return the choice that a text names: `SCHEDULES`, or a zone that there is; else None."""
    if text == SCHEDULES:
        return text
    try:
        return load_zone(_here() if text == LOCAL else text).name
    except UsageError:
        return None


def wall(at: datetime, zone: Zone) -> datetime:
    """Return what the clocks of a zone show, in UTC's place."""
    utc = at.astimezone(UTC)
    try:
        return utc + timedelta(seconds=zone.offset(int(utc.timestamp() // 1)))
    except OverflowError:  # at the end of all calendars
        return utc


def offset(at: datetime, zone: Zone) -> str:
    """Return how far the clocks of a zone are from UTC, such as "+01:00"."""
    seconds = zone.offset(int(at.timestamp() // 1))
    hours, rest = divmod(abs(seconds), 3600)
    return f"{'-' if seconds < 0 else '+'}{hours:02}:{rest // 60:02}"


def _here() -> str:
    try:
        return system_zone()
    except UsageError:  # TZ is no zone
        return _UTC
