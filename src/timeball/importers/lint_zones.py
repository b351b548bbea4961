"""Lint rules about clocks that jump, and about zones that a comment names and a schedule does not.

What other schedulers do at a jump is what their implementations did when they were run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from timeball.core.cron import Preview, Zone, dst_preview, load_zone
from timeball.core.cron.zonedata import ABBREVIATIONS
from timeball.errors import InvalidSchedule
from timeball.importers.found import Origin
from timeball.importers.lint_finding import Finding, Severity, Subject

_LOOKED_AT: Final = 4
"""Transitions ahead: two years of the usual kind."""

_HOURS: Final = 24
_HOUR_S: Final = 3_600
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ABBREVIATED: Final = re.compile(
    rf"\d\s?(?:[ap]\.?m\.?,?\s)?\s?\(?({'|'.join(ABBREVIATIONS)})\b", re.IGNORECASE
)
_PLACE: Final = re.compile(
    r"\b(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific)"
    r"/[A-Z]\w{1,30}(?:/[A-Z]\w{1,30})?"
)
_ELSEWHERE_GAP: Final = {
    Origin.CRONTAB: "Debian's cron runs it right after the gap, others skip the day",
    Origin.KUBERNETES: "Kubernetes skips it that day",
}
_ELSEWHERE_FOLD: Final = {
    Origin.APSCHEDULER: "APScheduler runs it twice",
    Origin.KUBERNETES: "Kubernetes runs it twice",
    Origin.CRONTAB: "Debian's cron runs it once, others twice",
}


def in_a_gap(subject: Subject) -> Iterator[Finding]:
    """Find a fixed time that some day does not have."""
    preview = _affected(subject, gap=True)
    if preview is not None:
        yield subject.finding(
            "dst-gap",
            Severity.WARNING,
            f"on {preview.before[:10]} in {subject.tz} {_missing(preview)}"
            f"{_elsewhere(_ELSEWHERE_GAP, subject)}; Timeball {_then(preview)}",
            f"write a time before {preview.before[11:]} or from {preview.after[11:]} on, or say "
            "gap= in Timeball",
        )


def in_a_fold(subject: Subject) -> Iterator[Finding]:
    """Find a fixed time that some day has twice."""
    preview = _affected(subject, gap=False)
    if preview is not None:
        yield subject.finding(
            "dst-fold",
            Severity.WARNING,
            f"on {preview.before[:10]} in {subject.tz} {_missing(preview)}"
            f"{_elsewhere(_ELSEWHERE_FOLD, subject)}; Timeball {_then(preview)}",
            f"write a time before {preview.after[11:]} or from {preview.before[11:]} on, or say "
            "overlap= in Timeball",
        )


def zone_in_comment(subject: Subject) -> Iterator[Finding]:
    """Find a time in UTC whose comment says what the clock shows in a place with summer time."""
    table = subject.table
    if table is None or len(table.zone.starts) > 1 or len(table.cron.hour.values) == _HOURS:
        return
    for place in _named(subject.found.comment):
        winter, summer = _offsets(place, subject.after)
        if winter == summer:
            continue
        hour, minute = table.cron.hour.values[0], table.cron.minute.values[0]
        clock = f"{hour:02}:{minute:02}"
        shows = [
            _clock((hour * 60 + minute) * 60 + offset - table.zone.offsets[0])
            for offset in (winter, summer)
        ]
        yield subject.finding(
            "zone-in-comment",
            Severity.WARNING,
            f"{clock} {subject.tz} is {shows[0]} in {place.name} in winter and {shows[1]} in "
            "summer, and its comment names one of the two",
            f"set the zone of this schedule to {place.name} and write the time of that place",
        )
        return


def _affected(subject: Subject, *, gap: bool) -> Preview | None:
    """Return the next transition of one sort that touches a schedule of fixed times."""
    table = subject.table
    if table is None or len(table.cron.hour.values) == _HOURS:
        return None
    previews = dst_preview(table, subject.after, _LOOKED_AT)
    return next((p for p in previews if p.affected and (p.after > p.before) == gap), None)


def _missing(preview: Preview) -> str:
    return preview.text.partition(": ")[0]


def _then(preview: Preview) -> str:
    said = preview.text.partition(": ")[2]
    return f"has it {said}" if said.startswith("skipped") else said


def _elsewhere(known: dict[Origin, str], subject: Subject) -> str:
    said = known.get(subject.origin)
    return f": {said}" if said else ""


def _named(comment: str) -> Iterator[Zone]:
    """Yield the zones that a comment names: by abbreviation after a time, or by place."""
    names = [ABBREVIATIONS[word.upper()] for word in _ABBREVIATED.findall(comment)]
    for name in dict.fromkeys([*names, *_PLACE.findall(comment)]):
        try:
            yield load_zone(name)
        except InvalidSchedule:
            continue


def _offsets(zone: Zone, after: datetime) -> tuple[int, int]:
    """Return the offsets from UTC in the year ahead, the smaller first."""
    begin = (after - _EPOCH) // timedelta(seconds=1)
    found = [zone.offset(begin + month * 30 * _HOURS * _HOUR_S) for month in range(12)]
    return min(found), max(found)


def _clock(wall: int) -> str:
    minutes = wall % (_HOURS * _HOUR_S) // 60
    return f"{minutes // 60:02}:{minutes % 60:02}"
