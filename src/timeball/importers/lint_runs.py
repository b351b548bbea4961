"""Lint rules about what runs: how often, beside what, and what its command line gives away."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from timeball.core.redaction import holds_secret
from timeball.importers.found import Origin
from timeball.importers.lint_finding import Finding, Severity, Subject
from timeball.importers.wording import counted

_DAY_S: Final = 86_400
_MINUTE_S: Final = 60
_CLOSE: Final = timedelta(minutes=30)
"""Runs that follow one another this closely may well overlap."""

_TOGETHER_MAX: Final = 5
_AHEAD: Final = timedelta(days=8)
_OCCURRENCES_MAX: Final = 6_000
_ALL_OCCURRENCES_MAX: Final = 300_000
_LOOKED_AT: Final = 50
_NAMES_SHOWN: Final = 3
_GUARDS: Final = {
    Origin.CRONTAB: "write flock -n /run/lock/NAME.lock before the command",
    Origin.CELERY: 'take a lock in it, or set overlap_runs = "skip" in Timeball',
    Origin.APSCHEDULER: "write max_instances=1",
    Origin.KUBERNETES: "write concurrencyPolicy: Forbid",
    Origin.TOML: 'write overlap_runs = "skip"',
}


def day_long_interval(subject: Subject) -> Iterator[Finding]:
    """Find an interval of whole days, which has no time of day."""
    interval_s = subject.found.interval_s
    if interval_s and interval_s % _DAY_S == 0:
        days = int(interval_s // _DAY_S)
        yield subject.finding(
            "day-long-interval",
            Severity.WARNING,
            f"runs every {interval_s:,.0f} s ({counted(days, 'day')}) from whenever its scheduler "
            "started: after each restart at another time of day, and moved by each change of the "
            "clock",
            "write a time of day, such as 0 3 * * * in the zone that is meant",
        )


def no_overlap_guard(subject: Subject) -> Iterator[Finding]:
    """Find runs that follow closely, with nothing that keeps them apart."""
    if subject.found.guard or subject.found.options.overlap_runs in {
        "skip",
        "queue_one",
        "replace",
    }:
        return
    ahead = subject.agenda.between(subject.after, subject.after + _AHEAD, limit=_LOOKED_AT)
    apart = [after - before for before, after in pairwise(ahead)]
    least = min(apart, default=_AHEAD)
    if least <= _CLOSE:
        yield subject.finding(
            "no-overlap-guard",
            Severity.HINT,
            f"starts again after {_distance(least)}, also if the run before has not ended: two of "
            "them then run at once",
            _GUARDS[subject.origin],
        )


def _distance(least: timedelta) -> str:
    seconds = int(least.total_seconds())
    minutes, rest = divmod(seconds, _MINUTE_S)
    return counted(seconds, "second") if rest else counted(minutes, "minute")


def secret_shown(subject: Subject) -> Iterator[Finding]:
    """Find a password, token or key in what runs."""
    if holds_secret(str(subject.found.runs)):
        shown = " ".join(subject.found.text.split())
        yield subject.finding(
            "secret-on-command-line",
            Severity.ERROR,
            f"{shown}: everybody on the machine can read it in the list of processes, and "
            "everybody who reads this file",
            "put it into a file that only this user can read, or into a secret store, and name "
            "that here",
        )


def crowded_minute(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """Find the minute at which the most schedules of a file start, if these are many."""
    starts: defaultdict[datetime, list[Subject]] = defaultdict(list)
    limit = min(_OCCURRENCES_MAX, _ALL_OCCURRENCES_MAX // max(len(subjects), 1))
    for subject in subjects:
        ahead = subject.agenda.between(subject.after, subject.after + _AHEAD, limit=limit)
        for minute in dict.fromkeys(at.replace(second=0) for at in ahead):
            starts[minute].append(subject)
    if not starts:
        return
    at, together = max(starts.items(), key=lambda item: (len(item[1]), -item[0].timestamp()))
    if len(together) > _TOGETHER_MAX:
        names = [subject.found.name for subject in together]
        local = together[0].agenda.describe(at).local[:16].replace("T", " ")
        more = f" and {len(names) - _NAMES_SHOWN} more" if names[_NAMES_SHOWN:] else ""
        yield together[0].finding(
            "crowded-minute",
            Severity.HINT,
            f"{len(names)} schedules start in the minute of {local} ({together[0].tz}): "
            f"{', '.join(names[:_NAMES_SHOWN])}{more}",
            "give them different minutes, or a jitter",
        )
