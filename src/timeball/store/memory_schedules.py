"""The half of the memory store that keeps schedules and decides each occurrence once."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from threading import Lock
from typing import Final
from uuid import UUID

from timeball.core.history import OccurrenceRecord, ScheduleRecord
from timeball.core.overlap_runs import OVERLAP, sift
from timeball.core.records import (
    BACKFILL,
    CancelAnswer,
    DecidedOccurrence,
    Decision,
    Fired,
    Firing,
    JobSpec,
    OccurrenceDecision,
    OverlapRuns,
    Schedule,
    ScheduleSpec,
    Standing,
    ZoneUse,
)
from timeball.core.states import TERMINAL
from timeball.errors import ScheduleNotFound
from timeball.store.base import Decide, occurrence_job
from timeball.store.memory_rows import Row

_ACTIVE: Final = "active"
_PAUSED: Final = "paused"
_ERROR: Final = "error"
_RETIRED: Final = "retired"


class MemorySchedules(ABC):
    """Schedules and occurrences; the jobs of those that fire go to `_add`."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._clock = now
        self._lock = Lock()
        self._rows: dict[int, Row] = {}
        self._ids: dict[UUID, int] = {}
        self._schedules: dict[str, Schedule] = {}
        self._activated: dict[str, datetime] = {}
        self._occurrences: dict[tuple[int, datetime], OccurrenceRecord] = {}
        self._runs: dict[int, list[Row]] = {}
        """By schedule: its latest job, or where overlaps matter all that may not have ended."""

    def now(self) -> datetime:
        """See `Store.now`."""
        return self._clock()

    def declare(self, spec: ScheduleSpec, standing: Standing) -> int:
        """See `Store.declare`."""
        with self._lock:
            old = self._schedules.get(spec.name)
            if old is None:
                blank = Schedule(len(self._schedules) + 1, spec, 1, standing[0], None, "", None)
                new = _moved(blank, standing)._replace(state=_ACTIVE)
                self._activated[spec.name] = standing.cursor
            elif old.spec == spec and old.state in {_ACTIVE, _PAUSED}:
                return old.id
            else:
                state = _PAUSED if old.state == _PAUSED else _ACTIVE
                new = old._replace(spec=spec, revision=old.revision + 1, state=state, error=None)
                if old.state == _RETIRED or _rhythm(old.spec) != _rhythm(spec):
                    new = _moved(new, standing)._replace(fired=0)
                    self._activated[spec.name] = standing.cursor
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

    def remove(self, name: str) -> None:
        """See `Store.remove`."""
        with self._lock:
            self._change(self._named(name), state=_RETIRED)

    def pause(self, name: str) -> None:
        """See `Store.pause`."""
        with self._lock:
            schedule = self._named(name)
            if schedule.state != _PAUSED:
                self._change(schedule, state=_PAUSED)

    def resume(self, schedule: Schedule, standing: Standing) -> bool:
        """See `Store.resume`."""
        with self._lock:
            held = self._as_read(schedule, {_PAUSED, _ERROR})
            if held is not None:
                self._change(_moved(held, standing), state=_ACTIVE)
            return held is not None

    def fire_due(self, limit: int, decide: Decide) -> Fired:
        """See `Store.fire_due`."""
        with self._lock:
            now = self._clock()
            active = [s for s in self._listed() if s.state == _ACTIVE]
            due = sorted((s.due_at, s.id, s) for s in active if s.due_at and s.due_at <= now)
        firings = decide(now, [schedule for _, _, schedule in due[:limit]])
        answers = zip(firings, self.fire(firings), strict=True)
        return Fired(now, len(due[:limit]), list(answers))

    def fire(self, firings: Sequence[Firing]) -> list[list[int] | None]:
        """See `Store.fire`."""
        with self._lock:
            return [self._fire(firing) for firing in firings]

    def admit(self, limit: int) -> int:
        """See `Store.admit`."""
        with self._lock:
            first = [runs[0] for each in self._runs if (runs := self._ahead(each))]
            free = [row for row in first if row.held_for == OVERLAP][:limit]
            self._line_up(free)
            return len(free)

    def run_now(self, schedule: Schedule, job: JobSpec) -> int:
        """See `Store.run_now`."""
        with self._lock:
            held = self._named(schedule.spec.name)
            job_id = self._add(job)
            self._note_run(held, self._ahead(held.id), [job_id])
            return job_id

    def backfill(
        self, schedule: Schedule, decisions: Sequence[OccurrenceDecision]
    ) -> list[int | None] | None:
        """See `Store.backfill`."""
        with self._lock:
            held = self._schedules[schedule.spec.name]
            if held.revision != schedule.revision or held.state == _RETIRED:
                return None
            ahead, made = self._ahead(held.id), [self._refire(held, each) for each in decisions]
            self._note_run(held, ahead, [job_id for job_id in made if job_id is not None])
            return made

    def suspend(self, schedule: Schedule, error: str) -> None:
        """See `Store.suspend`."""
        with self._lock:
            held = self._as_read(schedule, {_ACTIVE})
            if held is not None:
                self._change(held, state=_ERROR, error=error)

    def schedules(self) -> list[Schedule]:
        """See `Store.schedules`."""
        with self._lock:
            return self._listed()

    def schedule(self, name: str) -> Schedule:
        """See `Store.schedule`."""
        with self._lock:
            return self._named(name)

    def occurrences(
        self, name: str, *, limit: int, before: datetime | None = None
    ) -> list[DecidedOccurrence]:
        """See `Store.occurrences`."""
        with self._lock:
            wanted = self._named(name).id
            rows = [row for (each, _), row in self._occurrences.items() if each == wanted]
            shown = [row for row in rows if before is None or row.nominal_at < before]
            shown.sort(key=lambda row: row.nominal_at, reverse=True)
            return [self._shown_occurrence(row) for row in shown[:limit]]

    def zones(self) -> list[ZoneUse]:
        """See `Store.zones`."""
        with self._lock:
            return sorted({_use(s) for s in self._listed() if s.state == _ACTIVE})

    def in_zone(self, use: ZoneUse, limit: int) -> list[Schedule]:
        """See `Store.in_zone`."""
        with self._lock:
            found = [s for s in self._listed() if s.state == _ACTIVE and _use(s) == use]
            return sorted(found, key=lambda s: s.id)[:limit]

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
    def _add(self, spec: JobSpec, *, queued: bool = False) -> int: ...

    @abstractmethod
    def _line_up(self, rows: Iterable[Row], keys: Iterable[str] = ()) -> int: ...

    @abstractmethod
    def _stop(self, row: Row) -> CancelAnswer: ...

    @abstractmethod
    def _unlink(self, row: Row) -> None: ...

    def _listed(self) -> list[Schedule]:
        kept = [s for s in self._schedules.values() if s.state != _RETIRED]
        return sorted(kept, key=lambda s: s.spec.name)

    def _named(self, name: str) -> Schedule:
        found = self._schedules.get(name)
        if found is None or found.state == _RETIRED:
            raise ScheduleNotFound(name)
        return found

    def _as_read(self, schedule: Schedule, states: Collection[str]) -> Schedule | None:
        """Return a schedule as it is, if it is still what somebody read."""
        held = self._schedules[schedule.spec.name]
        unchanged = (held.revision, held.cursor) == (schedule.revision, schedule.cursor)
        return held if unchanged and held.state in states else None

    def _change(self, schedule: Schedule, *, state: str, error: str | None = None) -> None:
        self._schedules[schedule.spec.name] = schedule._replace(
            revision=schedule.revision + 1, state=state, error=error
        )

    def _ahead(self, schedule_id: int) -> list[Row]:
        """Return the jobs of a schedule that have not ended, in the order of their coming."""
        return [row for row in self._runs.get(schedule_id, ()) if row.state not in TERMINAL]

    def _fire(self, firing: Firing) -> list[int] | None:
        held = self._as_read(firing.schedule, {_ACTIVE, _PAUSED})
        if held is None:
            return None
        if firing.moved:
            self._activated[held.spec.name] = max(held.cursor, firing.standing.cursor)
        policy, ahead, left = OverlapRuns(held.spec.overlap_runs), self._ahead(held.id), _left(held)
        new = [
            each for each in firing.decisions if (held.id, each.nominal_at) not in self._occurrences
        ]
        sifted = sift(new, policy, ahead=len(ahead), left=left)
        fired = [each.nominal_at for each in sifted if each.decision is Decision.FIRED]
        if policy is OverlapRuns.REPLACE and fired:
            for row in ahead:
                self._stop(row)
                self._unlink(row)
        jobs: list[int] = []
        for each in sifted:
            queued = policy is OverlapRuns.QUEUE_ONE and bool(ahead or jobs)
            job_id = self._decide(held, each, queued=queued)
            jobs += [] if job_id is None else [job_id]
        now = _moved(held, firing.standing)
        now = now._replace(
            fired=held.fired + len(fired), fired_at=max(fired, default=held.fired_at)
        )
        if left is not None and len(fired) >= left:
            now = now._replace(next_at=None, due_at=None)
        self._schedules[held.spec.name] = now
        self._note_run(now, ahead, jobs)
        return jobs

    def _note_run(self, schedule: Schedule, ahead: list[Row], jobs: list[int]) -> None:
        """Remember the jobs that were added, beside those that have not ended."""
        if not jobs:
            return
        rows = [self._rows[job_id] for job_id in jobs]
        waits = any(row.held_for == OVERLAP for row in ahead)
        latest = schedule.spec.overlap_runs == OverlapRuns.ALLOW and not waits
        left = [row for row in ahead if row.state not in TERMINAL]  # the others were replaced
        self._runs[schedule.id] = rows[-1:] if latest else [*left, *rows]
        self._schedules[schedule.spec.name] = schedule._replace(last_job=rows[-1].spec.uuid)

    def _decide(
        self, schedule: Schedule, what: OccurrenceDecision, *, queued: bool = False
    ) -> int | None:
        """Record one decision, once and for ever; return the id of the job that it added."""
        fired = what.decision is Decision.FIRED
        spec = occurrence_job(schedule.spec, what) if fired else None
        job_id = self._add(spec, queued=queued) if spec else None
        self._occurrences[schedule.id, what.nominal_at] = OccurrenceRecord(
            schedule.id, what.nominal_at, what.decision, what.reason, job_id, self._clock()
        )
        return job_id

    def _refire(self, schedule: Schedule, what: OccurrenceDecision) -> int | None:
        """Fire an occurrence, though it was skipped; return None where it has fired."""
        before = self._occurrences.get((schedule.id, what.nominal_at))
        if before is not None and before.decision is Decision.FIRED:
            return None
        return self._decide(schedule, what._replace(reason=BACKFILL))

    def _shown_occurrence(self, row: OccurrenceRecord) -> DecidedOccurrence:
        job = None if row.job_id is None else self._rows.get(row.job_id)
        return DecidedOccurrence(
            nominal_at=row.nominal_at,
            decided_at=row.decided_at,
            decision=row.decision,
            reason=row.reason,
            job=job.spec.uuid if job else None,
            job_state=job.state if job else None,
        )


def _moved(schedule: Schedule, standing: Standing) -> Schedule:
    """Return a schedule that has come as far as somebody found."""
    return schedule._replace(**standing._asdict() | {"due_at": standing.due_at or standing.next_at})


def _left(schedule: Schedule) -> int | None:
    """Return how many more runs a schedule allows; None for any number."""
    max_runs: int | None = json.loads(schedule.spec.terms).get("max_runs")
    return None if max_runs is None else max_runs - schedule.fired


def _use(schedule: Schedule) -> ZoneUse:
    return ZoneUse(schedule.spec.tz, schedule.zone_version)


def _rhythm(spec: ScheduleSpec) -> tuple[str, ...]:
    """Return what the instants of its occurrences depend on."""
    return spec.expression, spec.tz, spec.gap, spec.overlap, spec.terms
