"""The record as the audit reads it: streams of one snapshot, a page of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import psycopg

from timeball.core.dependencies import Rule, RuledOut
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
    SlotRecord,
    SnoozeRecord,
    StaleRecord,
)
from timeball.core.limits import Holding, Scope
from timeball.core.permits import Law, Start
from timeball.core.rate import Rate
from timeball.core.records import Decision, Delivery
from timeball.core.states import FINAL_STATE, Ending, State
from timeball.store.postgres.connections import Connections, statement

Row = tuple[Any, ...]
_Record = TypeVar("_Record")
_Stream = Callable[..., Iterator[Row]]

_PAGE: Final = 5_000
"""Rows fetched at a time."""

# An audit makes millions of these: a look-up is quicker than a call of the class.
_ENDINGS: Final = MappingProxyType({str(ending): ending for ending in Ending})


def histories(connections: Connections, since: datetime | None = None) -> Iterator[JobHistory]:
    """Return every job's history by id, merged from eight ordered streams of one snapshot.

    Args:
        connections: To where the ledger is.
        since: Begin with the oldest job to which anything has happened since then.
    """
    with _snapshot(connections) as stream:
        first = 0 if since is None else next(stream("history_first", since=since))[0]

        def rows_of(name: str) -> Iterator[Row]:
            return stream(name, first=first)

        entries = _Groups(rows_of("history_entries"), EntryRecord._make)
        grants = _Groups(rows_of("history_grants"), GrantRecord._make)
        endings = _Groups(rows_of("history_endings"), _ending)
        held = _Groups(rows_of("history_held"), _held)
        events = _Groups(rows_of("history_events"), tuple)
        edges = _Groups(rows_of("history_edges"), _edge)
        slots = _Groups(rows_of("history_used"), SlotRecord._make)
        for id_, uuid, kind, *facts in rows_of("history_jobs"):
            retries, crashes, once, created_at, run_at, expires_at, ruled_out = facts
            happened, held_as = events.of(id_), held.of(id_)
            yield JobHistory(
                id_,
                uuid,
                kind,
                retries,
                crashes,
                Delivery.AT_MOST_ONCE if once else Delivery.AT_LEAST_ONCE,
                created_at,
                run_at,
                entries.of(id_),
                grants.of(id_),
                endings.of(id_),
                held_as[0] if held_as else None,
                *(_happened(happened) if happened else ((), (), ())),
                expires_at,
                edges.of(id_),
                RuledOut(ruled_out) if ruled_out else RuledOut.SKIP,
                slots.of(id_),
                _snoozes(happened) if happened else (),
            )


def schedule_histories(
    connections: Connections,
) -> Iterator[tuple[ScheduleRecord, Iterable[OccurrenceRecord]]]:
    """Return every schedule with the decisions about its occurrences, from one snapshot."""
    with _snapshot(connections) as stream:
        decided = _Groups(stream("history_occurrences"), _occurrence)
        for id_, name, active_from, cursor in stream("history_schedules"):
            record = ScheduleRecord(id_, name, active_from.astimezone(UTC), cursor.astimezone(UTC))
            yield record, [row._replace(schedule_id=id_) for row in decided.of(id_)]


def holdings(connections: Connections, since: datetime | None = None) -> Iterator[Holding]:
    """Return who counted against which limit, by limit and time."""
    with _snapshot(connections) as stream:
        for scope, *rest in stream("history_slots", since=since):
            yield Holding(Scope(scope), *rest)


def starts(connections: Connections, since: datetime | None = None) -> Iterator[Start]:
    """Return the starts that a rate's limit is about, by limit and time."""
    with _snapshot(connections) as stream:
        known: tuple[list[Any], Rate] | None = None  # one for many starts
        for name, *law, at_us in stream("history_starts", since=since):
            if known is None or known[0] != law:
                known = law, Law(*law).rate
            yield Start(name, known[1], at_us)


def _ending(row: Row) -> EndingRecord:
    turn, event, *rest = row
    return EndingRecord(turn, _ENDINGS[event], *rest)


def _held(row: Row) -> HeldRecord:
    turn, state, *rest = row
    return HeldRecord(turn, State(state), *rest)


def _happened(
    events: Iterable[Row],
) -> tuple[tuple[float, ...], tuple[StaleRecord, ...], tuple[RevivalRecord, ...]]:
    rows = [*events]
    return (
        tuple(at for what, _, _, at in rows if what == "cancel_requested"),
        tuple(StaleRecord(*row) for what, *row in rows if what == "stale_settlement"),
        tuple(RevivalRecord(turn, at) for what, turn, _, at in rows if what == "revived"),
    )


def _snoozes(events: Iterable[Row]) -> tuple[SnoozeRecord, ...]:
    return tuple(SnoozeRecord(turn, until) for what, turn, _, until in events if what == "snoozed")


def _edge(row: Row) -> EdgeRecord:
    parent, rule, linked_at, decided_at, met, known, ended, events, instants, *kind = row
    states = (FINAL_STATE[_ENDINGS[event]] for event in events)
    ends = tuple(zip(states, instants, strict=True)) if known else None
    return EdgeRecord(parent, Rule(rule), linked_at, decided_at, met, ends, ended, *kind)


def _occurrence(row: Row) -> OccurrenceRecord:
    nominal_at, decision, reason, job_id, at = row
    nominal_at, at = nominal_at.astimezone(UTC), at.astimezone(UTC)
    return OccurrenceRecord(0, nominal_at, Decision(decision), reason, job_id, at)


class _Groups(Generic[_Record]):
    """The records of a stream ordered by its first column, handed out one key at a time."""

    def __init__(self, rows: Iterator[Row], make: Callable[[Row], _Record]) -> None:
        self._rows, self._make = rows, make
        self._row = next(rows, None)

    def of(self, key: int) -> tuple[_Record, ...]:
        """Return the records of `key`; keys must be asked for in order."""
        row = self._row
        if row is None or row[0] > key:
            return ()
        found = []
        while row is not None and row[0] <= key:
            if row[0] == key:
                found.append(self._make(row[1:]))
            row = next(self._rows, None)
        self._row = row
        return tuple(found)


@contextmanager
def _snapshot(connections: Connections) -> Iterator[_Stream]:
    """Lend a function that streams a statement's rows, all of them from one snapshot."""
    with (
        connections.borrowed() as connection,
        connection.transaction(),
        ExitStack() as cursors,
    ):
        connection.execute(statement("read_snapshot"))

        def stream(name: str, **params: Any) -> Iterator[Row]:
            cursor = cursors.enter_context(psycopg.ServerCursor(connection, name))
            cursor.execute(statement(name, connections.schema), params, binary=True)
            while page := cursor.fetchmany(_PAGE):
                yield from page

        yield stream
