"""From rows to the records that people and audits read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import psycopg

from timeball.core.dependencies import Parent, Rule, RuledOut
from timeball.core.history import (
    EdgeRecord,
    EndingRecord,
    EntryRecord,
    GrantRecord,
    HeldRecord,
    JobHistory,
    OccurrenceRecord,
    RevivalRecord,
    ScheduleRecord,
    StaleRecord,
)
from timeball.core.limits import Holding, Scope
from timeball.core.notes import Progress
from timeball.core.payload import decode_value
from timeball.core.permits import Law, Start
from timeball.core.records import (
    DecidedOccurrence,
    Decision,
    Delivery,
    Job,
    Schedule,
    ScheduleSpec,
)
from timeball.core.states import FINAL_STATE, Ending, State
from timeball.store.postgres.connections import Connections, statement

Row = tuple[Any, ...]

_SPEC: Final = tuple(field.name for field in fields(ScheduleSpec))
"""What ends a row of the view ``timeball.schedules``."""

_PAGE: Final = 5_000
"""Rows fetched at a time by a streaming read."""


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
        error=error,
        args=decode_value(args),
        result=decode_value(result),
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


def histories(connections: Connections) -> Iterator[JobHistory]:
    """Return every job's history by id, merged from seven ordered streams of one snapshot."""
    with _snapshot(connections) as stream:
        entries = _Groups(stream("history_entries"))
        grants = _Groups(stream("history_grants"))
        endings = _Groups(stream("history_endings"))
        held = _Groups(stream("history_held"))
        events = _Groups(stream("history_events"))
        edges = _Groups(stream("history_edges"))
        for id_, uuid, kind, *facts in stream("history_jobs"):
            retries, crashes, once, created_at, run_at, expires_at, ruled_out = facts
            happened = events.of(id_)
            requests = [at for what, _, _, at in happened if what == "cancel_requested"]
            yield JobHistory(
                id=id_,
                uuid=uuid,
                kind=kind,
                max_retries=retries,
                max_crashes=crashes,
                delivery=Delivery.AT_MOST_ONCE if once else Delivery.AT_LEAST_ONCE,
                created_at=created_at,
                run_at=run_at,
                expires_at=expires_at,
                entries=tuple(EntryRecord(*row) for row in entries.of(id_)),
                grants=tuple(GrantRecord(*row) for row in grants.of(id_)),
                endings=tuple(
                    EndingRecord(turn, Ending(event), *rest)
                    for turn, event, *rest in endings.of(id_)
                ),
                held=next(
                    (HeldRecord(turn, State(s), *rest) for turn, s, *rest in held.of(id_)), None
                ),
                cancels_requested_at=tuple(requests),
                stale=tuple(_stale(happened)),
                revivals=tuple(_revivals(happened)),
                edges=tuple(_edge(*row) for row in edges.of(id_)),
                ruled_out=RuledOut(ruled_out or RuledOut.SKIP),
            )


def parent_of(row: Row) -> Parent:
    """Return the parent of a row of ``parents.sql``."""
    uuid, rule, state, result = row
    return Parent(uuid, Rule(rule), state and State(state), result)


def _stale(events: Iterable[Row]) -> Iterator[StaleRecord]:
    for what, turn, worker, at in events:
        if what == "stale_settlement":
            yield StaleRecord(turn, worker, at)


def _revivals(events: Iterable[Row]) -> Iterator[RevivalRecord]:
    return (RevivalRecord(turn, at) for what, turn, _, at in events if what == "revived")


def _edge(parent: int, rule: str, *facts: Any) -> EdgeRecord:
    linked_at, decided_at, met, known, ended, events, instants = facts
    states = (FINAL_STATE[Ending(event)] for event in events)
    ends = tuple(zip(states, instants, strict=True)) if known else None
    return EdgeRecord(parent, Rule(rule), linked_at, decided_at, met, ends, ended)


def schedule_histories(
    connections: Connections,
) -> Iterator[tuple[ScheduleRecord, Iterable[OccurrenceRecord]]]:
    """Return every schedule with the decisions about its occurrences, from one snapshot."""
    with _snapshot(connections) as stream:
        decided = _Groups(stream("history_occurrences"))
        for id_, name, active_from, cursor in stream("history_schedules"):
            record = ScheduleRecord(id_, name, active_from.astimezone(UTC), cursor.astimezone(UTC))
            yield (
                record,
                [
                    OccurrenceRecord(
                        id_,
                        nominal_at.astimezone(UTC),
                        Decision(decision),
                        reason,
                        job_id,
                        at.astimezone(UTC),
                    )
                    for nominal_at, decision, reason, job_id, at in decided.of(id_)
                ],
            )


def holdings(connections: Connections) -> Iterator[Holding]:
    """Return who counted against which limit, by limit and time."""
    with _snapshot(connections) as stream:
        for scope, *rest in stream("history_slots"):
            yield Holding(Scope(scope), *rest)


def starts(connections: Connections) -> Iterator[Start]:
    """Return the starts that a rate's limit is about, by limit and time."""
    with _snapshot(connections) as stream:
        for name, *law, at_us in stream("history_starts"):
            yield Start(name, Law(*law).rate, at_us)


class _Groups:
    """The rows of a stream ordered by its first column, handed out one key at a time."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._groups = groupby(rows, key=itemgetter(0))
        self._next = next(self._groups, None)

    def of(self, key: int) -> list[Row]:
        """Return the rows of `key` without it; keys must be asked for in order."""
        while self._next is not None and self._next[0] < key:
            self._next = next(self._groups, None)
        if self._next is None or self._next[0] != key:
            return []
        rows = [row[1:] for row in self._next[1]]
        self._next = next(self._groups, None)
        return rows


@contextmanager
def _snapshot(connections: Connections) -> Iterator[Any]:
    """Lend a function that streams a statement's rows, all of them from one snapshot."""
    with (
        connections.borrowed() as connection,
        connection.transaction(),
        ExitStack() as cursors,
    ):
        connection.execute(statement("read_snapshot"))

        def stream(name: str) -> Iterator[Row]:
            cursor = cursors.enter_context(psycopg.ServerCursor(connection, name))
            cursor.itersize = _PAGE
            cursor.execute(statement(name, connections.schema), binary=True)
            return iter(cursor)

        yield stream


def _utc(value: datetime | None) -> datetime | None:
    return None if value is None else value.astimezone(UTC)
