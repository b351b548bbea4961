"""`timeball audit`: prove from the record that no job was lost and none ran twice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.output import json_option, write, write_json, write_table

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.core.audit import Report, Violation
    from timeball.core.cron import Agenda
    from timeball.core.history import OccurrenceRecord, ScheduleRecord
    from timeball.observe.board import Samples
    from timeball.store.base import Store

    ScheduleHistory = tuple[ScheduleRecord, Iterable[OccurrenceRecord]]

_VIOLATED: Final = 7
_SHOWN: Final = 50
_CHECKED: Final = (*(f"I{n}" for n in range(1, 20) if n not in {10, 11}), "I6'")


@click.command()
@click.option(
    "--quiesced", is_flag=True, help="All work should be done: every job must have ended."
)
@click.option(
    "--since",
    metavar="WHEN",
    help="Begin with the oldest job to which anything has happened since then: an instant such "
    "as 2026-12-24T09:00Z, or how long ago, such as 36h.",
)
@click.option(
    "--metrics",
    "page",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write there for Prometheus how many violations of each invariant there are.",
)
@json_option
@dsn_option
@click.pass_context
def command(
    ctx: click.Context,
    *,
    quiesced: bool,
    since: str | None,
    page: Path | None,
    as_json: bool,
    dsn: str | None,
) -> None:
    """Check the record of the database; the exit code is 7 if something is wrong in it."""
    from timeball.cli.times import ago

    with opened(dsn) as client:
        start = None if since is None else ago(since, client.store.now())
        report = audited(client.store, quiesced=quiesced, since=start)
    if page is not None:
        _tell(report, page)
    if as_json:
        write_json(_record(report))
    else:
        write_table(("what", "count"), list(figures(report).items()))
        for violation in report.violations[:_SHOWN]:
            write(str(violation))
        left = sum(report.found.values()) - min(_SHOWN, len(report.violations))
        write(f"… and {left} more" if left else "" if not report.clean else "clean")
    ctx.exit(0 if report.clean else _VIOLATED)


def audited(store: Store, *, quiesced: bool, since: datetime | None = None) -> Report:
    """Return the audit of the jobs and schedules of a store; see `timeball.core.audit`.

    Args:
        store: Whose record to check.
        quiesced: Whether all work should be done.
        since: What had ended and was decided by then is left out; None: all is checked.
    """
    from timeball.client.specs import agenda_of
    from timeball.core.audit import audit, stray_violations
    from timeball.core.limits import limit_violations
    from timeball.core.permits import rate_violations

    tables = {each.spec.name: agenda_of(each.spec) for each in store.schedules()}
    report = audit(store.histories(since), quiesced=quiesced)
    report = report.including(stray_violations(store.strays()))
    from_s = -inf if since is None else since.timestamp()
    report = report.including(limit_violations(store.holdings(since), since=from_s))
    report = report.including(rate_violations(store.starts(since)))
    schedules = (
        (record if since is None else after(record, since), rows)
        for record, rows in store.schedule_histories()
    )
    return report.including(schedule_violations(schedules, tables))


def after(record: ScheduleRecord, since: datetime) -> ScheduleRecord:
    """Return a schedule of which nothing is expected up to an instant."""
    return record._replace(activated_at=max(record.activated_at, since))


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
            decided.clear()  # of one schedule at a time: of all there may be millions
            decided[record.id] = sorted({row.nominal_at for row in kept})
            yield record, kept

    def expected(record: ScheduleRecord) -> Iterable[datetime]:
        table = tables.get(record.name)
        if table is None:
            return decided[record.id]
        return (due.at for due in table.occurrences(record.activated_at))

    return audit_schedules(noted(), expected)


def _tell(report: Report, page: Path) -> None:
    """Write the counts for Prometheus; whoever reads meanwhile finds the old page or the new."""
    from timeball.observe.exposition import exposition
    from timeball.observe.families import VIOLATIONS

    counts = dict.fromkeys(_CHECKED, 0) | dict(report.found)
    samples: Samples = {(VIOLATIONS.name, (name,)): [count] for name, count in counts.items()}
    new = page.with_name(f".{page.name}.new")
    new.write_text(exposition(samples, [VIOLATIONS]), "utf-8")
    new.replace(page)


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
