"""What a program does with schedules: declare, pause, resume, run, backfill and look at them.

Occurrences are computed here, never in the database. A verb that takes several steps may
be cut short after any of them: what was decided stays decided, and the same call again
does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from timeball.action.job_call import JobCall
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.cron import Agenda
from timeball.core.misfire import BOUND, backfill, drop
from timeball.core.records import (
    DecidedOccurrence,
    Decision,
    Firing,
    OccurrenceDecision,
    Schedule,
    ScheduleSpec,
)
from timeball.core.standing import standing
from timeball.errors import UsageError
from timeball.store.base import Store

BACKFILL_MAX: Final = 100_000
"""Occurrences of one backfill."""

_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """What a backfill did, or with `dry_run` what it would do."""

    name: str
    fired: tuple[datetime, ...]
    """Occurrences that run by it, in their order."""

    already: tuple[datetime, ...]
    """Occurrences of the range that had run before: they do not run again."""

    dry_run: bool


class Schedules:
    """The verbs about schedules; `Client` has them."""

    store: Store

    def schedule(
        self,
        name: str,
        job: Callable[..., Any] | str | JobCall,
        *,
        cron: str,
        tz: str,
        **options: Any,
    ) -> int:
        """Add a recurring job or change the one of that name; return its id.

        Declaring the same again changes nothing; a new expression, zone, policy or new
        terms count from now on.

        Args:
            name: Unique name of the schedule.
            job: A function with `@tb.job`, the name of a kind, or what `tb.http` gives.
            cron: Five or six fields, or a nickname such as "@daily".
            tz: Name of a zone, such as "Europe/Paris".
            **options: `args` (a dictionary). When: `dst` ("auto" or "cron") or `gap` and
                `overlap`; the terms `any_of`, `exclude`, `on_excluded`, `start_at`,
                `end_at`, `max_runs`, `jitter_s`, `day_rule`. Which run: `catchup` ("last",
                "none", "all"), `catchup_window_s`, `catchup_limit`, `grace_s`,
                `overlap_runs` ("allow", "skip", "queue_one", "replace"). The jobs:
                `queue`, `priority`, `max_retries`, `max_crashes`, `timeout_s`,
                `delivery`, `key`. And `source`, the file that declares it.

        Raises:
            InvalidSchedule: The expression, the zone or a term is wrong, or it can never
                fire.
        """
        return self.declare(schedule_spec(name, job, cron=cron, tz=tz, **options))

    def declare(self, spec: ScheduleSpec) -> int:
        """Add or change a schedule whose spec was checked before, as from a file; return its id."""
        return self.store.declare(spec, standing(agenda_of(spec), self.store.now()))

    def remove_schedule(self, name: str) -> None:
        """Retire one schedule. What was decided stays on record; declaring it brings it back.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        self.store.remove(name)

    def withdraw(self, source: str, *, keep: Collection[str]) -> list[str]:
        """Retire the schedules that `source` once declared, but for `keep`; return their names."""
        return self.store.withdraw(source, keep=keep)

    def pause_schedule(self, name: str) -> None:
        """Keep a schedule from firing until it is resumed. Jobs that it has added go on.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        self.store.pause(name)

    def resume_schedule(self, name: str, *, backfill: bool = False) -> None:
        """Let a schedule go on that was paused, or that is in error.

        What came during a pause is dropped, each occurrence with a row that says so; with
        `backfill` each of them runs now instead, as far as `overlap_runs` lets it.

        Raises:
            ScheduleNotFound: No schedule has that name.
            InvalidSchedule: Its zone is still unknown.
        """
        while (schedule := self.store.schedule(name)).state != "active":
            table = agenda_of(schedule.spec)
            made = drop(schedule, table, self.store.now())
            if schedule.state == "error" or not made.decisions:
                self.store.resume(schedule, standing(table, schedule.cursor))
                continue
            decisions = _all_fired(schedule, table, made.decisions) if backfill else made.decisions
            self.store.fire([Firing(schedule, decisions, standing(table, made.cursor))])

    def backfill(
        self, name: str, start: datetime, end: datetime, *, dry_run: bool = False
    ) -> Backfill:
        """Run the past occurrences of a schedule from `start` to `end`, both included.

        Whatever was decided about them before, also if it was skipped or the schedule did
        not exist yet; only what has run does not run again, so the same call twice does no
        harm. The jobs are added at once, whatever `overlap_runs` says.

        Args:
            name: The schedule.
            start: Aware.
            end: Aware, and not in the future.
            dry_run: Only say what would run.

        Raises:
            ScheduleNotFound: No schedule has that name.
            UsageError: The range is empty, in the future or too long.
        """
        schedule = self.store.schedule(name)
        table = agenda_of(schedule.spec)
        wanted = _range(table, start, end, self.store.now())
        had_run = self._fired(name, start, end)
        fresh = [at for at in wanted if at not in had_run]
        late: set[datetime] = set()
        for first in range(0, 0 if dry_run else len(fresh), BOUND):
            chunk = fresh[first : first + BOUND]
            made = self.store.backfill(schedule, backfill(schedule, table, chunk))
            if made is None:
                raise UsageError(f"schedule {name!r} was edited meanwhile: look, and try again")
            late |= {at for at, job_id in zip(chunk, made, strict=True) if job_id is None}
        return Backfill(
            name=name,
            fired=tuple(at for at in fresh if at not in late),
            already=tuple(at for at in wanted if at in had_run or at in late),
            dry_run=dry_run,
        )

    def get_schedule(self, name: str) -> Schedule:
        """Return one schedule as it is now.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        return self.store.schedule(name)

    def schedules(self) -> list[Schedule]:
        """Return every schedule that is not retired, by name."""
        return self.store.schedules()

    def occurrences(
        self, name: str, limit: int = 50, before: datetime | None = None
    ) -> list[DecidedOccurrence]:
        """Return what was decided about a schedule's occurrences and why, latest first.

        Args:
            name: The schedule.
            limit: At most so many.
            before: Only occurrences before this instant: the last one of the page before.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        return self.store.occurrences(name, limit=limit, before=before)

    def _fired(self, name: str, start: datetime, end: datetime) -> set[datetime]:
        found: set[datetime] = set()
        page = self.occurrences(name, BOUND, end + _SECOND)
        while page:
            found |= {each.nominal_at for each in page if each.decision is Decision.FIRED}
            if page[-1].nominal_at < start:
                break
            page = self.occurrences(name, BOUND, page[-1].nominal_at)
        return found


def _range(table: Agenda, start: datetime, end: datetime, now: datetime) -> list[datetime]:
    """Return the occurrences of a range that a backfill may name."""
    if start.tzinfo is None or end.tzinfo is None:
        raise UsageError("start and end need a time zone: write tzinfo=UTC, or +00:00")
    if not start <= end <= now:
        raise UsageError(
            f"from {start.isoformat()} to {end.isoformat()}: write a range that does not end "
            f"before it begins, nor after now ({now.isoformat()})"
        )
    found = table.between(start - _SECOND, end, BACKFILL_MAX + 1)
    if len(found) > BACKFILL_MAX:
        raise UsageError(f"more than {BACKFILL_MAX:,} occurrences: backfill a shorter range")
    return [at for at in found if at >= start]


def _all_fired(
    schedule: Schedule, table: Agenda, decisions: list[OccurrenceDecision]
) -> list[OccurrenceDecision]:
    """Return the decisions, but with those that were dropped for a pause fired."""
    paused = [each.nominal_at for each in decisions if each.reason == "paused"]
    fired = {each.nominal_at: each for each in backfill(schedule, table, paused)}
    return [fired.get(each.nominal_at, each) for each in decisions]
