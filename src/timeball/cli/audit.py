"""`timeball audit`: prove from the record that no job was lost and none ran twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.output import json_option, write, write_json, write_table

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.core.audit import Report, Violation
    from timeball.core.cron import Agenda
    from timeball.core.history import OccurrenceRecord, ScheduleRecord
    from timeball.store.base import Store

    ScheduleHistory = tuple[ScheduleRecord, Iterable[OccurrenceRecord]]

_VIOLATED: Final = 7
_SHOWN: Final = 50


@click.command()
@click.option(
    "--quiesced", is_flag=True, help="All work should be done: every job must have ended."
)
@json_option
@dsn_option
@click.pass_context
def command(ctx: click.Context, *, quiesced: bool, as_json: bool, dsn: str | None) -> None:
    """Check the whole record of the database; the exit code is 7 if something is wrong in it."""
    with opened(dsn) as client:
        report = audited(client.store, quiesced=quiesced)
    if as_json:
        write_json(_record(report))
    else:
        write_table(("what", "count"), list(figures(report).items()))
        for violation in report.violations[:_SHOWN]:
            write(str(violation))
        left = sum(report.found.values()) - min(_SHOWN, len(report.violations))
        write(f"… and {left} more" if left else "" if not report.clean else "clean")
    ctx.exit(0 if report.clean else _VIOLATED)


def audited(store: Store, *, quiesced: bool) -> Report:
    """Return the audit of all jobs and schedules of a store; see `timeball.core.audit`."""
    from timeball.client.specs import agenda_of
    from timeball.core.audit import audit
    from timeball.core.limits import limit_violations
    from timeball.core.permits import rate_violations

    tables = {each.spec.name: agenda_of(each.spec) for each in store.schedules()}
    report = audit(store.histories(), quiesced=quiesced)
    report = report.including(limit_violations(store.holdings()))
    report = report.including(rate_violations(store.starts()))
    return report.including(schedule_violations(store.schedule_histories(), tables))


def schedule_violations(
    histories: Iterable[ScheduleHistory], tables: Mapping[str, Agenda]
) -> Iterator[Violation]:
    """Return what is wrong with the record of schedules.

    Args:
        histories: Each schedule with its decisions.
        tables: When each should have run. One that is not there was withdrawn, and nobody
            knows any more what it should have done: of it, only doubles are found.
    """
    from timeball.core.audit import audit_schedules

    decided: dict[int, list[datetime]] = {}

    def noted() -> Iterator[ScheduleHistory]:
        for record, rows in histories:
            kept = list(rows)
            decided[record.id] = sorted({row.nominal_at for row in kept})
            yield record, kept

    def expected(record: ScheduleRecord) -> Iterable[datetime]:
        table = tables.get(record.name)
        if table is None:
            return decided[record.id]
        return (due.at for due in table.occurrences(record.activated_at))

    return audit_schedules(noted(), expected)


def figures(report: Report) -> dict[str, int]:
    """Return what an audit counted, by what to call it."""
    return {
        "jobs": report.jobs,
        **{str(state): count for state, count in sorted(report.states.items())},
        "attempts": report.attempts,
        "refused settlements": report.stale,
        "lost": report.lost,
        "twice": report.twice,
        "violations": sum(report.found.values()),
    }


def _record(report: Report) -> dict[str, Any]:
    return {
        "clean": report.clean,
        "jobs": report.jobs,
        "states": {str(state): count for state, count in report.states.items()},
        "turns": report.turns,
        "attempts": report.attempts,
        "endings": report.endings,
        "stale": report.stale,
        "lost": report.lost,
        "twice": report.twice,
        "found": dict(report.found),
        "violations": [violation._asdict() for violation in report.violations],
    }
