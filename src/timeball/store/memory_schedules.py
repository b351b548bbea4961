"""The half of the memory store that keeps schedules and decides each occurrence once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from threading import Lock
from typing import Final

from timeball.core.history import OccurrenceRecord, ScheduleRecord
from timeball.core.records import (
    Decision,
    JobSpec,
    OccurrenceDecision,
    Schedule,
    ScheduleSpec,
)
from timeball.store.base import occurrence_job

_ACTIVE: Final = "active"
_ERROR: Final = "error"
_RETIRED: Final = "retired"


class MemorySchedules(ABC):
    """Schedules and occurrences; the jobs of those that fire go to `_add`."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._clock = now
        self._lock = Lock()
        self._schedules: dict[str, Schedule] = {}
        self._activated: dict[str, datetime] = {}
        self._occurrences: dict[tuple[int, datetime], OccurrenceRecord] = {}

    def now(self) -> datetime:
        """See `Store.now`."""
        return self._clock()

    def declare(self, spec: ScheduleSpec, *, cursor: datetime, next_at: datetime | None) -> int:
        """See `Store.declare`."""
        with self._lock:
            new = Schedule(len(self._schedules) + 1, spec, 1, cursor, next_at, _ACTIVE, None)
            old = self._schedules.get(spec.name)
            if old is not None:
                if (old.spec, old.state) == (spec, _ACTIVE):
                    return old.id
                new = new._replace(id=old.id, revision=old.revision + 1)
            if old is None or old.state == _RETIRED or _rhythm(old.spec) != _rhythm(spec):
                self._activated[spec.name] = cursor
            else:
                new = new._replace(cursor=old.cursor, next_at=old.next_at)
            self._schedules[spec.name] = new
            return new.id

    def withdraw(self, source: str, *, keep: Collection[str]) -> list[str]:
        """See `Store.withdraw`."""
        with self._lock:
            theirs = [s for s in self._listed() if s.spec.source == source]
            gone = [s for s in theirs if s.spec.name not in keep]
            for schedule in gone:
                self._change(schedule, state=_RETIRED)
            return [schedule.spec.name for schedule in gone]

    def due_schedules(self, limit: int) -> tuple[datetime, list[Schedule]]:
        """See `Store.due_schedules`."""
        with self._lock:
            now = self._clock()
            active = [s for s in self._listed() if s.state == _ACTIVE]
            due = sorted((s.next_at, s.id, s) for s in active if s.next_at and s.next_at <= now)
            return now, [schedule for _, _, schedule in due[:limit]]

    def fire(
        self,
        schedule: Schedule,
        decisions: Sequence[OccurrenceDecision],
        *,
        cursor: datetime,
        next_at: datetime | None,
    ) -> list[int] | None:
        """See `Store.fire`."""
        with self._lock:
            if not self._as_read(schedule):
                return None
            self._schedules[schedule.spec.name] = schedule._replace(cursor=cursor, next_at=next_at)
            made = [self._decide(schedule, decision) for decision in decisions]
            return [job_id for job_id in made if job_id is not None]

    def suspend(self, schedule: Schedule, error: str) -> None:
        """See `Store.suspend`."""
        with self._lock:
            if self._as_read(schedule):
                self._change(schedule, state=_ERROR, error=error)

    def schedules(self) -> list[Schedule]:
        """See `Store.schedules`."""
        with self._lock:
            return self._listed()

    def schedule_histories(self) -> Iterator[tuple[ScheduleRecord, Iterable[OccurrenceRecord]]]:
        """See `Store.schedule_histories`."""
        with self._lock:
            decided = sorted(self._occurrences.values())
            return iter(
                [
                    (
                        ScheduleRecord(s.id, s.spec.name, self._activated[s.spec.name], s.cursor),
                        [row for row in decided if row.schedule_id == s.id],
                    )
                    for s in self._schedules.values()
                ]
            )

    # The rest runs under the lock.

    @abstractmethod
    def _add(self, spec: JobSpec) -> int: ...

    def _listed(self) -> list[Schedule]:
        kept = [s for s in self._schedules.values() if s.state != _RETIRED]
        return sorted(kept, key=lambda s: s.spec.name)

    def _as_read(self, schedule: Schedule) -> bool:
        """Return whether a schedule is still what somebody read."""
        held = self._schedules[schedule.spec.name]
        unchanged = (held.revision, held.cursor) == (schedule.revision, schedule.cursor)
        return unchanged and held.state == _ACTIVE

    def _change(self, schedule: Schedule, *, state: str, error: str | None = None) -> None:
        self._schedules[schedule.spec.name] = schedule._replace(
            revision=schedule.revision + 1, state=state, error=error
        )

    def _decide(self, schedule: Schedule, what: OccurrenceDecision) -> int | None:
        """Record one decision, once and for ever; return the id of the job that it added."""
        if (schedule.id, what.nominal_at) in self._occurrences:
            return None
        fired = what.decision is Decision.FIRED
        job_id = self._add(occurrence_job(schedule.spec, what)) if fired else None
        self._occurrences[schedule.id, what.nominal_at] = OccurrenceRecord(
            schedule.id, what.nominal_at, what.decision, what.reason, job_id, self._clock()
        )
        return job_id


def _rhythm(spec: ScheduleSpec) -> tuple[str, ...]:
    """Return what the instants of its occurrences depend on."""
    return spec.expression, spec.tz, spec.gap, spec.overlap
