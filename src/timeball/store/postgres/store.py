"""Jobs that outlive every process and may be shared by many machines.

There is no SQL in this module: a verb is one statement of ``sql/``, run in a
transaction of its own. What needs more than one statement is a function of the
database, in ``functions/``, so that it is still one round trip and one commit.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from threading import Event
from typing import Any
from uuid import UUID, uuid5

import psycopg

from timeball.core.history import JobHistory, Stray
from timeball.core.notes import LogLine, Note
from timeball.core.payload import storable
from timeball.core.records import (
    AGING_DEFAULT_S,
    CancelAnswer,
    Expired,
    Job,
    Promoted,
    Pulse,
    Settlement,
    Turn,
    Verdict,
)
from timeball.core.states import State
from timeball.core.upkeep import DeleteAnswer, Keep, ReviveAnswer, Trimmed
from timeball.errors import JobNotFound, UsageError
from timeball.store.base import CLAIM_MAX, JobFilter
from timeball.store.postgres.batches import PostgresBatches
from timeball.store.postgres.calls import PostgresCalls
from timeball.store.postgres.connections import (
    SCHEMA_DEFAULT,
    Connections,
    Moved,
)
from timeball.store.postgres.encoding import encode, encode_notes, settlement_columns
from timeball.store.postgres.histories import histories
from timeball.store.postgres.limits import PostgresLimits
from timeball.store.postgres.listen import DIRECT, listen
from timeball.store.postgres.queues import PostgresQueues
from timeball.store.postgres.readers import job_of, list_of, turn_of
from timeball.store.postgres.schedules import PostgresSchedules
from timeball.store.postgres.sealing import chosen
from timeball.store.postgres.submission import PostgresSubmission
from timeball.store.postgres.within import Transactions

_log = logging.getLogger(__name__)


class PostgresStore(
    PostgresSubmission,
    PostgresLimits,
    PostgresBatches,
    PostgresCalls,
    PostgresQueues,
    PostgresSchedules,
):
    """The store in PostgreSQL; see `timeball.store.base.Store` for what each verb promises."""

    def __init__(self, dsn: str, *, schema: str = SCHEMA_DEFAULT, patience_s: float = 0.0) -> None:
        chosen()  # a seal that cannot be had must not show at the first job
        self.connections = Connections(dsn, schema=schema, patience_s=patience_s)
        direct = os.environ.get(DIRECT)
        self._listening = Connections(direct, schema=schema) if direct else self.connections
        self.transactions = Transactions(self.connections)
        self._run = self.connections.run
        self._lanes: set[tuple[str, int]] = set()
        self._looked_at = ""  # the last key that was looked at for room

    def close(self) -> None:
        """Close the connections of this store."""
        self.connections.close()

    def cancel(self, uuid: UUID) -> CancelAnswer:
        """See `Store.cancel`."""
        return CancelAnswer(self._run("cancel", uuid=uuid)[0][0])

    def revive(self, uuids: Sequence[UUID]) -> list[ReviveAnswer]:
        """See `Store.revive`. Workers that listen are woken after the commit."""
        rows = self._run("revive", uuids=list(uuids))
        answers = {uuid: ReviveAnswer(answer) for uuid, _, answer in rows}
        self.wake({queue for _, queue, answer in rows if answer == ReviveAnswer.REVIVED})
        return [answers.get(uuid, ReviveAnswer.NOT_FOUND) for uuid in uuids]

    def delete(self, uuids: Sequence[UUID]) -> list[DeleteAnswer]:
        """See `Store.delete`."""
        rows = self._run("delete_jobs", uuids=list(uuids))
        answers = {uuid: DeleteAnswer(answer) for uuid, answer in rows}
        return [answers.get(uuid, DeleteAnswer.NOT_FOUND) for uuid in uuids]

    def trim(self, keep: Keep, *, after: tuple[int, ...] = (), limit: int = 500) -> Trimmed:
        """See `Store.trim`. First jobs, then leases of which no job is left, then permits."""
        kept_s = min((s for s in keep if s is not None), default=None)
        if kept_s is None:
            return Trimmed(0, None)
        if len(after) <= 1:
            ((deleted, job),) = self._run(
                "trim_jobs", after=sum(after), limit=limit, **keep._asdict()
            )
            return Trimmed(deleted, (0, 0) if job is None else (job,))
        if len(after) == len(("lane", "seq")):
            lane, seq = after
            ((lane, seq),) = self._run(
                "trim_leases", lane=lane, seq=seq, limit=limit, keep_s=kept_s
            )
            return Trimmed(0, (0, 0, -1) if lane is None else (lane, seq))
        ((opens_us,),) = self._run("trim_permits", after=after[-1], limit=limit)
        return Trimmed(0, None if opens_us is None else (0, 0, opens_us))

    def deleted(self) -> int:
        """See `Store.deleted`."""
        return int(self._run("deleted")[0][0])

    # Working

    def register(
        self, name: str, *, kinds: Collection[str], queues: Sequence[str], lease_s: float
    ) -> int:
        """See `Store.register`."""
        rows = self._at_home(
            "register", name=name, kinds=sorted(kinds), queues=list(queues), lease_s=lease_s
        )
        return int(rows[0][0])

    def claim(  # noqa: PLR0913 - one question, all of it named
        self,
        worker: int,
        *,
        limit: int,
        request: UUID,
        floors: Mapping[int, int],
        newest: Mapping[int, int] | None = None,
        aging_s: float = AGING_DEFAULT_S,
        permits: Mapping[str, int] | None = None,
    ) -> list[Turn]:
        """See `Store.claim`. Two statements: nothing is locked while arguments are sent."""
        if not 1 <= limit <= CLAIM_MAX:
            raise UsageError(f"limit is {limit}: claim 1 to {CLAIM_MAX:,} turns at a time")
        lanes = sorted({*floors, *(newest or ())})
        while True:
            lane, seq, again = self._at_home(
                "claim",
                worker=worker,
                limit=limit,
                request=request,
                lanes=lanes,
                floors=[floors.get(lane) for lane in lanes],
                newest=None if newest is None else [newest.get(lane) for lane in lanes],
                aging_s=aging_s,
                permits=encode(permits or {}),
            )[0]
            if lane is None:
                if again:  # somebody had a lane that is not empty
                    continue
                return []
            rows = self._run("lease_turns", lane=lane, seq=seq, worker=worker)
            if rows:
                return [turn_of(lane, seq, row) for row in rows]
            # Every turn that was examined had ended before it began: look further.
            request = uuid5(request, "further")

    def _at_home(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        """Run a statement that needs the ledger to be at home, and have it move in where not."""
        try:
            return self._run(name, **params)
        except Moved as moved:
            _log.warning("%s: moving in", moved)
            self.move_in()
            return self._run(name, **params)

    def move_in(self) -> int | None:
        """Settle the ledger on the server that it is on now, after a failover or a restore.

        Workers do it by themselves before the first claim.

        Returns:
            How many pending turns were moved; None where nothing was to be done.
        """
        moved: int | None = self._run("move_in")[0][0]
        return moved

    def leases(self, worker: int, asked: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
        """See `Store.leases`."""
        lanes, seqs = [lane for lane, _ in asked], [seq for _, seq in asked]
        return set(self._run("leases", worker=worker, lanes=lanes, seqs=seqs))

    def settle(self, worker: int, settlements: Sequence[Settlement]) -> list[Verdict]:
        """See `Store.settle`."""
        if not settlements:
            return []
        try:
            rows = self._run("settle", worker=worker, **settlement_columns(settlements))
        except psycopg.DataError as error:
            return self._settle_apart(worker, settlements, error)
        return [Verdict(verdict) for verdict in rows[0][0]]

    def _settle_apart(
        self, worker: int, settlements: Sequence[Settlement], error: psycopg.DataError
    ) -> list[Verdict]:
        """Settle in halves, so that a row that cannot be stored never blocks the others."""
        if len(settlements) > 1:
            half = len(settlements) // 2
            return [
                *self.settle(worker, settlements[:half]),
                *self.settle(worker, settlements[half:]),
            ]
        text = storable(f"could not be stored: {error}")
        bare = settlements[0]._replace(result=None, error_type="Unstorable", error=text)
        rows = self._run("settle", worker=worker, **settlement_columns([bare]))
        return [Verdict(verdict) for verdict in rows[0][0]]

    def cancels(self, turns: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
        """See `Store.cancels`."""
        rows = self._run("cancels", job_ids=sorted({job_id for job_id, _ in turns}))
        return {(job_id, turn) for job_id, turn in rows}.intersection(turns)

    def promote(self, limit: int) -> Promoted:
        """See `Store.promote`."""
        rows = self._run("promote", limit=limit, after=self._looked_at)
        moved, next_due_s, self._looked_at, rated, lined = rows[0]
        return Promoted(moved, next_due_s, frozenset(rated), lined=lined)

    def note(self, notes: Sequence[Note]) -> set[int]:
        """See `Store.note`."""
        return {row[0] for row in self._run("note", notes=encode_notes(notes))} if notes else set()

    def lapse(self, limit: int) -> int:
        """See `Store.lapse`."""
        return int(self._run("lapse", limit=limit)[0][0])

    # Staying alive

    def beat(self, workers: Collection[int]) -> set[int]:
        """See `Store.beat`."""
        return {row[0] for row in self._run("beat", workers=sorted(workers))}

    def pulses(self) -> list[Pulse]:
        """See `Store.pulses`."""
        return [Pulse(*row) for row in self._run("pulses")]

    def expire(
        self, worker: int, *, beat: int | None, begun: Collection[tuple[int, int]] | None
    ) -> Expired | None:
        """See `Store.expire`."""
        return self._end_worker(worker, beat, begun, "expired")

    def retire(self, worker: int) -> None:
        """See `Store.retire`."""
        self._end_worker(worker, None, (), "retired")

    def _end_worker(
        self, worker: int, beat: int | None, begun: Collection[tuple[int, int]] | None, reason: str
    ) -> Expired | None:
        rows = self._run(
            "expire",
            worker=worker,
            beat=beat,
            begun_jobs=None if begun is None else [job_id for job_id, _ in begun],
            begun_turns=None if begun is None else [turn for _, turn in begun],
            began=list(begun.values()) if isinstance(begun, Mapping) else None,
            reason=reason,
        )
        return Expired(*rows[0]) if rows else None

    def listen(
        self, wake: Callable[[], None], stop: Event, queues: Collection[str] = ("default",)
    ) -> None:
        """Call `wake` when `queues` may have work, until `stop` is set. Blocks; never raises."""
        listen(self._listening, wake, stop, queues)

    # Reading

    def get(self, uuid: UUID) -> Job:
        """See `Store.get`."""
        rows = self._run("get", uuid=uuid)
        if not rows:
            raise JobNotFound(uuid)
        return job_of(rows[0])

    def logs(self, uuid: UUID) -> list[LogLine]:
        """See `Store.logs`."""
        rows = self._run("logs", uuid=uuid)
        if not rows:
            raise JobNotFound(uuid)
        found = [(turn, at, text) for turn, at, text in rows if at is not None]
        return [LogLine(turn, at.astimezone(UTC), text) for turn, at, text in found]

    def ended(self, uuids: Collection[UUID]) -> set[UUID]:
        """See `Store.ended`."""
        return {row[0] for row in self._run("ended", uuids=list(uuids))}

    def jobs(self, only: JobFilter) -> list[Job]:
        """See `Store.jobs`."""
        return [job_of(row) for row in self._run(list_of(only.state), **asdict(only))]

    def counts(self, queue: str | None = None) -> dict[State, int]:
        """See `Store.counts`."""
        return {State(state): count for state, count in self._run("counts", queue=queue)}

    def histories(self, since: datetime | None = None) -> Iterator[JobHistory]:
        """See `Store.histories`. Streams: a million jobs do not fill the memory."""
        return histories(self.connections, since)

    def strays(self) -> Iterator[Stray]:
        """See `Store.strays`."""
        return (Stray(*row) for row in self._run("history_strays"))
