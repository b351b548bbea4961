"""What must be true of a store when all is done, by the audit and by records kept beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from timeball.client.specs import agenda_of
from timeball.core.audit import Report, audit, audit_schedules
from timeball.core.history import JobHistory, ScheduleRecord
from timeball.core.records import Schedule
from timeball.core.states import Ending
from timeball.store.base import Store


def assert_sound(
    store: Store, accepted: int | None = None, schedules: Iterable[Schedule] = ()
) -> Report:
    """Audit all jobs and schedules of a store in which all work is done.

    Of schedules that are neither there nor among those given, only doubles can be found.
    """
    specs = {each.id: each.spec for each in (*schedules, *store.schedules())}
    histories = [(record, list(rows)) for record, rows in store.schedule_histories()]

    def expected(record: ScheduleRecord) -> Iterable[datetime]:
        spec = specs.get(record.id)
        if spec is None:
            rows = next(rows for each, rows in histories if each.id == record.id)
            return sorted({row.nominal_at for row in rows})
        return (due.at for due in agenda_of(spec).occurrences(record.activated_at))

    report = audit(store.histories(), quiesced=True, accepted=accepted)
    report = report.including(audit_schedules(histories, expected))
    assert report.violations == ()
    assert (report.lost, report.twice) == (0, 0)
    return report


def assert_agrees(histories: Iterable[JobHistory], effects: Iterable[str]) -> None:
    """Hold the record against effects that attempts have noted: `uuid turn`, or the uuid alone."""
    noted = Counter(effects)
    for job in histories:
        uuid, granted = str(job.uuid), [row.turn for row in job.grants]
        turns = [noted.pop(f"{uuid} {turn}", 0) for turn in granted]
        alone = noted.pop(uuid, 0)
        assert max(turns, default=0) <= 1, f"a turn of {uuid} ran twice"
        assert alone <= len(granted), f"{uuid} ran more often than it was granted"
        if job.endings[-1].ending is Ending.SUCCEEDED:
            assert turns[-1] or alone, f"{uuid} succeeded without having run"
    assert not noted, "something ran that was not granted"
