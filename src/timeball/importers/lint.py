"""A lint of schedules, whatever file they stand in: what will surprise, and what to write instead.

Works on what an importer found, so that every format has every rule. Needs no database and runs
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final

from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.cron import Cron, Timetable
from timeball.core.redaction import redacted
from timeball.errors import UsageError
from timeball.importers.found import Findings, Found, KindCall, Needs, Origin
from timeball.importers.lint_fields import (
    day_or_weekday,
    missing_minute,
    short_months,
    uneven_step,
    weekday_numbering,
)
from timeball.importers.lint_finding import Finding, Severity, Subject
from timeball.importers.lint_runs import (
    crowded_minute,
    day_long_interval,
    no_overlap_guard,
    secret_shown,
)
from timeball.importers.lint_zones import in_a_fold, in_a_gap, zone_in_comment

Rule = Callable[[Subject], Iterator[Finding]]

RULES: Final[tuple[Rule, ...]] = (
    missing_minute,
    weekday_numbering,
    day_or_weekday,
    uneven_step,
    short_months,
    in_a_gap,
    in_a_fold,
    zone_in_comment,
    day_long_interval,
    no_overlap_guard,
    secret_shown,
)
_NEVER: Final = "never comes due"
_REBOOT: Final = "'@reboot'"


def lint(findings: Findings, *, after: datetime, tz: str) -> list[Finding]:
    """Return every remark about the schedules of one file, in the order of its lines.

    Args:
        findings: What an importer read.
        after: The instant from which "next" counts, aware.
        tz: The zone of what names none, where the file names none either.
    """
    default_tz = findings.default_tz or tz
    subjects: list[Subject] = []
    said = [_unreadable(each, findings.origin) for each in findings.needs]
    for found in findings.found:
        try:
            subject = _subject(findings, found, default_tz, after)
            said += [finding for rule in (*RULES, _ended) for finding in rule(subject)]
            subjects.append(subject)
        except UsageError as error:
            wrong = Needs(line=found.line, name=found.name, text=redacted(str(error)))
            said.append(_unreadable(wrong, findings.origin))
    said += crowded_minute(subjects)
    return sorted(said, key=lambda each: each.line)


def _subject(findings: Findings, found: Found, default_tz: str, after: datetime) -> Subject:
    tz, options = found.tz or default_tz, found.options.given()
    options.pop("paused", None)  # of what it will do once it is resumed
    kind, args = found.name, {}
    if isinstance(found.runs, KindCall):
        kind, args = found.runs.kind, dict(found.runs.args)
    spec = schedule_spec(found.name, kind, cron=found.expression, tz=tz, args=args, **options)
    coming = agenda_of(spec)
    cron = coming.expressions[0]
    table = (
        Timetable(cron, coming.zone, coming.policy.gap, coming.policy.overlap)
        if isinstance(cron, Cron)
        else None
    )
    return Subject(
        found=found, origin=findings.origin, tz=tz, agenda=coming, table=table, after=after
    )


def _unreadable(needs: Needs, origin: Origin) -> Finding:
    """Return the remark about something that no schedule could be made of."""
    never = _NEVER in needs.text
    # Such a file is refused where it comes from, too; of a crontab only we refuse @reboot.
    strict = origin in {Origin.CRONTAB, Origin.TOML} and _REBOOT not in needs.text
    mark = "; " if "; " in needs.text else ": "
    says, parted, instead = needs.text.rpartition(mark)
    return Finding(
        line=needs.line,
        rule="never-fires" if never else "needs-you",
        severity=Severity.ERROR if never or strict else Severity.WARNING,
        name=needs.name,
        says=says if parted else needs.text,
        instead=instead if parted else "",
    )


def _ended(subject: Subject) -> Iterator[Finding]:
    if subject.agenda.next(subject.after) is None:
        yield subject.finding(
            "never-fires",
            Severity.ERROR,
            "never fires again: all of its times have passed",
            "write a year or an end that is to come, or leave it out",
        )
