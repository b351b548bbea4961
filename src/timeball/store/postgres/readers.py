"""From rows to the records that people and audits read."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Final

from timeball.core.dependencies import Awaited, Parent, Rule
from timeball.core.notes import Progress
from timeball.core.payload import SEALED
from timeball.core.records import (
    DecidedOccurrence,
    Decision,
    Job,
    Schedule,
    ScheduleSpec,
    Turn,
)
from timeball.core.states import State
from timeball.store.postgres.sealing import opened, opened_text, opened_value

Row = tuple[Any, ...]

_SPEC: Final = tuple(field.name for field in fields(ScheduleSpec))
"""What ends a row of the view ``timeball.schedules``."""


def turn_of(lane: int, seq: int, row: Row) -> Turn:
    """Return the turn of a row of ``lease_turns.sql``."""
    turn = Turn(lane, seq, *row)
    if turn.awaited is not None:
        result, failed = turn.awaited
        turn = turn._replace(awaited=Awaited(result and opened(result, "result"), failed))
    if SEALED not in turn.args:
        return turn
    return turn._replace(args=opened(turn.args, f"args:{turn.uuid}"))


def list_of(state: State | None) -> str:
    """Return which statement lists jobs in a state without reading all of them."""
    match state:
        case State.FAILED | State.CANCELLED | State.SKIPPED:
            return "jobs_ended"
        case State.SCHEDULED | State.WAITING:
            return "jobs_held"
        case State.RUNNING:
            return "jobs_running"
        case _:
            return "jobs"


def job_of(row: Row) -> Job:
    """Return the job of a row of ``get.sql`` or ``jobs.sql``."""
    (id_, uuid, kind, queue, priority, state, turn, attempts, failures, crashes) = row[:10]
    (max_retries, created_at, run_at, began_at, ended_at, worker) = row[10:16]
    (reason, error_type, error, args, result, expires_at, key, *said) = row[16:]
    return Job(
        id=id_,
        uuid=uuid,
        kind=kind,
        queue=queue,
        priority=priority,
        state=State(state),
        turn=turn,
        attempts=attempts,
        failures=failures,
        crashes=crashes,
        max_retries=max_retries,
        created_at=created_at.astimezone(UTC),
        run_at=_utc(run_at),
        expires_at=_utc(expires_at),
        began_at=_utc(began_at),
        ended_at=_utc(ended_at),
        worker=worker,
        reason=reason,
        error_type=error_type,
        error=opened_text(error, "error"),
        args=opened_value(args, f"args:{uuid}"),
        result=opened_value(result, "result"),
        key=key,
        progress=_progress(*said) if said else None,
    )


def _progress(
    done: float | None, total: float | None, note: str | None, turn: int, at: datetime
) -> Progress | None:
    return None if done is None else Progress(done, total, note, turn, at.astimezone(UTC))


def schedule_of(row: Row) -> Schedule:
    """Return the schedule of a row of the view ``timeball.schedules``."""
    (id_, revision, cursor, next_at, state, error, due_at, *rest) = row[: -len(_SPEC)]
    (zone_version, fingerprint, offset_s, fired, fired_at, last_job) = rest
    return Schedule(
        id=id_,
        spec=ScheduleSpec(**dict(zip(_SPEC, row[-len(_SPEC) :], strict=True))),
        revision=revision,
        cursor=cursor.astimezone(UTC),
        next_at=_utc(next_at),
        state=state,
        error=error,
        due_at=_utc(due_at),
        zone_version=zone_version,
        fingerprint=fingerprint,
        offset_s=offset_s,
        fired=fired,
        fired_at=_utc(fired_at),
        last_job=last_job,
    )


def occurrence_of(row: Row) -> DecidedOccurrence:
    """Return the occurrence of a row of ``occurrences.sql``."""
    nominal_at, decided_at, decision, reason, job, state = row
    return DecidedOccurrence(
        nominal_at=nominal_at.astimezone(UTC),
        decided_at=decided_at.astimezone(UTC),
        decision=Decision(decision),
        reason=reason,
        job=job,
        job_state=state and State(state),
    )


def parent_of(row: Row) -> Parent:
    """Return the parent of a row of ``parents.sql``."""
    uuid, rule, state, result = row
    plain = result and opened(result, "result")
    return Parent(uuid, Rule(rule), state and State(state), plain)


def _utc(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC)
