"""The half of the PostgreSQL store that keeps schedules and decides each occurrence once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime

import psycopg

from timeball.core.history import OccurrenceRecord, ScheduleRecord
from timeball.core.records import (
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
from timeball.errors import ScheduleNotFound
from timeball.store.base import Decide, occurrence_job
from timeball.store.postgres.connections import Connections, Run
from timeball.store.postgres.encoding import (
    encode,
    encode_schedule,
    encode_specs,
    encode_standing,
    firing_columns,
    standing_columns,
)
from timeball.store.postgres.histories import schedule_histories
from timeball.store.postgres.readers import occurrence_of, schedule_of


class PostgresSchedules(ABC):
    """Schedules and occurrences; see `timeball.store.base.Store` for what each verb promises."""

    connections: Connections
    _run: Run

    @abstractmethod
    def ensure_lanes(self, wanted: Iterable[tuple[str, int]]) -> None:
        """Make the lanes of these (queue, priority) pairs where they are missing."""

    @abstractmethod
    def wake(self, queues: Collection[str]) -> None:
        """Wake the workers that listen."""

    def now(self) -> datetime:
        """See `Store.now`."""
        now: datetime = self._run("now")[0][0]
        return now.astimezone(UTC)

    def declare(self, spec: ScheduleSpec, standing: Standing) -> int:
        """See `Store.declare`."""
        self.ensure_lanes([(spec.queue, spec.priority)])
        texts = {"spec": encode_schedule(spec), "standing": encode_standing(standing)}
        return int(self._run("declare", **texts)[0][0])

    def withdraw(self, source: str, *, keep: Collection[str]) -> list[str]:
        """See `Store.withdraw`."""
        return sorted(row[0] for row in self._run("withdraw", source=source, keep=sorted(keep)))

    def remove(self, name: str) -> None:
        """See `Store.remove`."""
        self._run("remove", schedule=self.schedule(name).id)

    def pause(self, name: str) -> None:
        """See `Store.pause`."""
        self._run("pause", schedule=self.schedule(name).id)

    def resume(self, schedule: Schedule, standing: Standing) -> bool:
        """See `Store.resume`."""
        read = {"schedule": schedule.id, "revision": schedule.revision, "seen": schedule.cursor}
        return bool(self._run("resume", **read, **standing_columns(standing)))

    def fire_due(self, limit: int, decide: Decide) -> Fired:
        """See `Store.fire_due`. One transaction; those that replace runs have their own."""
        firings: list[Firing] = []
        answers: list[tuple[Firing, list[int] | None]] = []
        try:
            with self.connections.transaction() as run:
                now = run("begin_tick")[0][0].astimezone(UTC)
                due = [schedule_of(row) for row in run("take_due", limit=limit)]
                firings = decide(now, due) if due else []
                together = [each for each in firings if not _replaces(each.schedule)]
                if together:
                    made = self._fire(together, run)
                    answers = [(each, made.get(n)) for n, each in enumerate(together)]
        except (psycopg.DataError, psycopg.IntegrityError):
            return Fired(now, len(due), list(zip(firings, self.fire(firings), strict=True)))
        self.wake({each.schedule.spec.queue for each, jobs in answers if jobs})
        alone = [each for each in firings if _replaces(each.schedule)]
        answers += zip(alone, self.fire(alone), strict=True)
        return Fired(now, len(due), answers)

    def fire(self, firings: Sequence[Firing]) -> list[list[int] | None]:
        """See `Store.fire`. One transaction, but one more for each schedule that replaces runs."""
        alone = [n for n, each in enumerate(firings) if _replaces(each.schedule)]
        together = [n for n, each in enumerate(firings) if not _replaces(each.schedule)]
        answers: dict[int, list[int]] = {}
        for numbers in ([together] if together else []) + [[n] for n in alone]:
            made = self._fire_apart([firings[n] for n in numbers])
            answers |= {numbers[place]: jobs for place, jobs in made.items()}
        self.wake({firings[n].schedule.spec.queue for n, jobs in answers.items() if jobs})
        return [answers.get(n) for n in range(len(firings))]

    def _fire_apart(self, firings: Sequence[Firing]) -> dict[int, list[int]]:
        """Fire; in halves where a row cannot be stored, so that it never stops the others."""
        try:
            return self._fire(firings, self._run)
        except (psycopg.DataError, psycopg.IntegrityError) as error:
            if len(firings) == 1:
                self.suspend(firings[0].schedule, str(error).splitlines()[0])
                return {}
        half = len(firings) // 2
        later = self._fire_apart(firings[half:])
        return self._fire_apart(firings[:half]) | {half + n: jobs for n, jobs in later.items()}

    def _fire(self, firings: Sequence[Firing], run: Run) -> dict[int, list[int]]:
        """Fire in one transaction; return the jobs of each firing that counted, by its place."""
        specs: list[JobSpec] = []
        decisions: list[dict[str, object]] = []
        for n, firing in enumerate(firings):
            for each in firing.decisions:
                fired = each.decision is Decision.FIRED
                told = {"n": n, "nominal_at": each.nominal_at, "fired": fired}
                if fired:
                    specs.append(occurrence_job(firing.schedule.spec, each))
                    told["uuid"] = specs[-1].uuid
                decisions.append({**told, "reason": each.reason})
        self.ensure_lanes((spec.queue, spec.priority) for spec in specs)
        asked = [{"n": n, **firing_columns(each)} for n, each in enumerate(firings)]
        texts = {"firings": encode(asked), "decisions": encode(decisions)}
        return dict(run("fire", **texts, jobs=encode_specs(specs)))

    def admit(self, limit: int) -> int:
        """See `Store.admit`."""
        return int(self._run("admit", limit=limit)[0][0])

    def run_now(self, schedule: Schedule, job: JobSpec) -> int:
        """See `Store.run_now`."""
        self.ensure_lanes([(job.queue, job.priority)])
        rows = self._run("run_now", schedule=schedule.id, jobs=encode_specs([job]))
        if not rows:
            raise ScheduleNotFound(schedule.spec.name)
        self.wake({job.queue})
        return int(rows[0][0])

    def backfill(
        self, schedule: Schedule, decisions: Sequence[OccurrenceDecision]
    ) -> list[int | None] | None:
        """See `Store.backfill`."""
        specs = [occurrence_job(schedule.spec, each) for each in decisions]
        self.ensure_lanes((spec.queue, spec.priority) for spec in specs)
        rows = self._run(
            "backfill",
            schedule=schedule.id,
            revision=schedule.revision,
            nominal_at=[each.nominal_at for each in decisions],
            uuids=[spec.uuid for spec in specs],
            jobs=encode_specs(specs),
        )
        self.wake({schedule.spec.queue})
        made: list[int | None] | None = rows[0][0]
        return made

    def suspend(self, schedule: Schedule, error: str) -> None:
        """See `Store.suspend`."""
        self._run("suspend", schedule=schedule.id, revision=schedule.revision, error=error)

    def schedules(self) -> list[Schedule]:
        """See `Store.schedules`."""
        return [schedule_of(row) for row in self._run("schedules")]

    def schedule(self, name: str) -> Schedule:
        """See `Store.schedule`."""
        rows = self._run("schedule", name=name)
        if not rows:
            raise ScheduleNotFound(name)
        return schedule_of(rows[0])

    def occurrences(
        self, name: str, *, limit: int, before: datetime | None = None
    ) -> list[DecidedOccurrence]:
        """See `Store.occurrences`."""
        schedule = self.schedule(name).id
        rows = self._run("occurrences", schedule=schedule, limit=limit, before=before)
        return [occurrence_of(row) for row in rows]

    def zones(self) -> list[ZoneUse]:
        """See `Store.zones`."""
        return [ZoneUse(*row) for row in self._run("zones")]

    def in_zone(self, use: ZoneUse, limit: int) -> list[Schedule]:
        """See `Store.in_zone`."""
        rows = self._run("in_zone", **use._asdict(), limit=limit)
        return [schedule_of(row) for row in rows]

    def schedule_histories(self) -> Iterator[tuple[ScheduleRecord, Iterable[OccurrenceRecord]]]:
        """See `Store.schedule_histories`."""
        return schedule_histories(self.connections)


def _replaces(schedule: Schedule) -> bool:
    return schedule.spec.overlap_runs == OverlapRuns.REPLACE
