"""Batches of the memory store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from itertools import islice
from threading import Lock
from uuid import UUID

from timeball.core.batches import (
    BATCH,
    COUNT_MAX,
    MEMBERS,
    OPEN,
    BatchLine,
    BatchState,
    Member,
    MemberAttempt,
    MemberEdge,
    ReopenAnswer,
)
from timeball.core.callbacks import CALLBACK
from timeball.core.dependencies import Rule, RuledOut, Sentence, needs_of
from timeball.core.payload import decode_value
from timeball.core.records import JobSpec
from timeball.core.states import INITIAL, TERMINAL, Ending, Event, State, allowed
from timeball.core.uniqueness import Submitted
from timeball.errors import JobNotFound, UniqueClash, UsageError
from timeball.store.graph import LINK_MAX, links_of
from timeball.store.memory_graph import PARENTS
from timeball.store.memory_operator import MemoryOperator
from timeball.store.memory_rows import Row, Tie, job_of


class MemoryBatches(MemoryOperator, ABC):
    """Batches, and what is added to them, read of them and started again."""

    _clock: Callable[[], datetime]
    _lock: Lock
    _rows: dict[int, Row]
    _ids: dict[UUID, int]

    @abstractmethod
    def _submit(self, specs: Sequence[JobSpec]) -> list[Submitted]: ...

    @abstractmethod
    def _go_on(self, rows: Sequence[Row], keys: set[str]) -> None: ...

    def add_members(self, batch: UUID, specs: Sequence[JobSpec]) -> list[Submitted]:
        """See `Batching.add_members`."""
        with self._lock:
            whole = self._batch_row(batch)
            if whole.state is not State.WAITING or whole.unwanted:
                text = f"batch {batch} has ended, or was cancelled: make another one"
                raise UsageError(text)
            self._check_members(whole, specs)
            added = self._submit(specs)
            for job, uuid in added:
                if job not in whole.ties:
                    whole.ties[job] = Tie(uuid, Rule.MEMBER, self._clock())
                    self._children[job].append(whole)
                    whole.needs = needs_of(
                        tie.rule for tie in whole.ties.values() if tie.met is None
                    )
            for _ in links_of(specs):
                self._link(LINK_MAX)
            return added

    def close_batch(self, batch: UUID, *, stop: bool = False) -> bool:
        """See `Batching.close_batch`."""
        with self._lock:
            whole = self._batch_row(batch)
            if whole.state is State.WAITING and stop and not whole.unwanted:
                whole.unwanted = True
                whole.cancels.append(self._clock().timestamp())
            if whole.held_for != OPEN:
                return False
            whole.held_for = MEMBERS
            if all(tie.met is not None for tie in whole.ties.values()):
                self._join_up(whole)
                self._go_on([whole], set())
            return True

    def cancel_many(self, uuids: Sequence[UUID]) -> set[UUID]:
        """See `Batching.cancel_many`."""
        with self._lock:
            known = (self._rows[self._ids[uuid]] for uuid in uuids if uuid in self._ids)
            rows = [row for row in known if row.spec.kind != BATCH and row.state in INITIAL]
            for row in rows:
                self._rule_out(row, Event.CANCEL, Ending.CANCELLED, "requested")
            self._go_on(rows, {key for key in map(_key, rows) if key})
            return {row.spec.uuid for row in rows}

    def reopen(self, jobs: Sequence[tuple[int, int]]) -> ReopenAnswer:
        """See `Batching.reopen`."""
        with self._lock:
            rows = [self._rows[job] for job, _ in jobs if job in self._rows]
            same = len(rows) == len(jobs) and all(
                row.turn == turn
                and allowed(row.state, Event.REVIVE)
                and row.spec.kind not in {BATCH, CALLBACK}
                for row, (_, turn) in zip(rows, jobs, strict=True)
            )
            if not same:
                return ReopenAnswer.CHANGED
            for row in rows:
                if not self._retake_key(row):
                    raise UniqueClash(row.spec.uuid, "its unique key is another one's now")
            batches = self._batches_of(rows)
            again = {row.id for row in (*rows, *batches)}
            for row in (*rows, *batches):
                if row.ties:
                    self._reset(row, again)
            for row in (*rows, *(each for each in batches if each.state in TERMINAL)):
                self._start_again(row)
            self._line_up(
                [row for row in rows if row.on_its_way], {k for k in map(_key, rows) if k}
            )
            return ReopenAnswer.DONE

    def batch(self, batch: UUID) -> BatchState:
        """See `Batching.batch`."""
        with self._lock:
            whole = self._batch_row(batch)
            ties = self._members(whole)
            states = Counter(
                self._rows[job].state if job in self._rows else State.SUCCEEDED if tie.met else None
                for job, tie in ties.items()
            )
            gone = states.pop(None, 0)
            return BatchState(
                id=whole.id,
                uuid=batch,
                name=_name(whole),
                state=whole.state,
                is_open=whole.held_for == OPEN,
                created_at=whole.created_at,
                ended_at=job_of(whole, paused=False).ended_at,
                states={state: states[state] for state in State},
                gone=gone,
            )

    def batches(self, *, limit: int, before_id: int | None = None) -> list[BatchLine]:
        """See `Batching.batches`."""
        with self._lock:
            rows = (row for row in reversed(self._rows.values()) if row.spec.kind == BATCH)
            page = islice((r for r in rows if before_id is None or r.id < before_id), limit)
            return [_line(row) for row in page]

    def batch_left(self, batch: UUID) -> list[tuple[UUID, bool]]:
        """See `Batching.batch_left`."""
        with self._lock:
            whole = self._batch_row(batch)
            nodes = sorted((row.id for row in self._nodes(whole)), reverse=True)
            found = [*nodes, *sorted(self._members(whole), reverse=True)]
            rows = [self._rows[job] for job in found if job in self._rows]
            return [(r.spec.uuid, r.spec.kind == BATCH) for r in rows if r.state not in TERMINAL]

    def batch_members(self, batch: UUID) -> list[Member]:
        """See `Batching.batch_members`."""
        with self._lock:
            whole = self._batch_row(batch)
            found = {*self._members(whole), *(row.id for row in self._nodes(whole))}
            return [_member(self._rows[job]) for job in sorted(found) if job in self._rows]

    # The rest runs under the lock.

    def _batch_row(self, batch: UUID) -> Row:
        row = self._rows.get(self._ids.get(batch, 0))
        if row is None or row.spec.kind != BATCH:
            raise JobNotFound(batch)
        return row

    def _nodes(self, whole: Row) -> list[Row]:
        """Return a batch and all batches in it."""
        found = {whole.id: whole}
        todo = [whole]
        for row in todo:
            inner = (self._rows[job] for job in _member_ids(row) if job in self._rows)
            new = {each.id: each for each in inner if each.spec.kind == BATCH}
            todo += [each for job, each in new.items() if job not in found]
            found |= new
        return list(found.values())

    def _members(self, whole: Row) -> dict[int, Tie]:
        nodes = {row.id: row for row in self._nodes(whole)}
        return {
            job: row.ties[job]
            for row in nodes.values()
            for job in _member_ids(row)
            if job not in nodes
        }

    def _check_members(self, whole: Row, specs: Sequence[JobSpec]) -> None:
        own = {tie.uuid for tie in whole.ties.values()} | {spec.uuid for spec in specs}
        for spec in specs:
            strange = [edge.parent for edge in spec.after if edge.parent not in own]
            if strange:
                raise UsageError(
                    f"after names job {strange[0]}, which is not in the batch: name its own jobs"
                )
            known = self._ids.get(spec.uuid)
            if spec.kind == BATCH or (known is not None and known not in whole.ties):
                raise UsageError(
                    f"job {spec.uuid} was there before, or is a batch: add new jobs to a batch"
                )

    def _batches_of(self, rows: Iterable[Row]) -> list[Row]:
        """Return the batches that jobs are in and that were told of their ends, and so on."""
        found: dict[int, Row] = {}
        todo = list(rows)
        for row in todo:
            for child in self._children.get(row.id, ()):
                tie = child.ties[row.id]
                if tie.rule is Rule.MEMBER and tie.met is not None and child.id not in found:
                    found[child.id] = child
                    todo.append(child)
        return list(found.values())

    def _reset(self, row: Row, again: set[int]) -> None:
        """Have the edges of a job decided anew that come from jobs that start again."""
        ties = {job: tie for job, tie in row.ties.items() if not tie.spawned}
        for job, tie in ties.items():
            if job in again:
                tie.decided_at = tie.met = None
        needs = needs_of(tie.rule for tie in ties.values())
        for tie in ties.values():
            if tie.met is not None:
                needs = needs.after(tie.rule, met=tie.met)
        row.needs = needs

    def _start_again(self, row: Row) -> None:
        needs, is_batch = row.needs, row.spec.kind == BATCH
        waits = needs is not None and needs.sentence(row.spec.ruled_out) is Sentence.WAIT
        self._begin_anew(row, State.WAITING if is_batch or waits else State.PENDING)
        if row.state is State.WAITING:
            self._hold(row, reason=MEMBERS if is_batch else PARENTS)


def _line(row: Row) -> BatchLine:
    ties = [tie for tie in row.ties.values() if tie.rule is Rule.MEMBER]
    return BatchLine(
        id=row.id,
        uuid=row.spec.uuid,
        name=_name(row),
        state=row.state,
        is_open=row.held_for == OPEN,
        created_at=row.created_at,
        ended_at=job_of(row, paused=False).ended_at,
        members=min(COUNT_MAX, len(ties)),
        left=min(COUNT_MAX, sum(tie.met is None for tie in row.ties.values())),
    )


def _member(row: Row) -> Member:
    job = job_of(row, paused=False)
    entered = {entry.turn: entry.at for entry in row.entries}
    attempts = [(turn, end.how) for turn, end in sorted(row.endings.items())]
    is_batch = row.spec.kind == BATCH
    return Member(
        id=row.id,
        uuid=row.spec.uuid,
        kind=row.spec.kind,
        state=row.state,
        turn=row.turn,
        reason=job.reason,
        ruled_out=RuledOut.RUN if is_batch else row.spec.ruled_out,
        name=_name(row) if is_batch else "",
        edges=tuple(
            MemberEdge(n, tie.rule, tie.met)
            for n, tie in sorted(row.ties.items())
            if not tie.spawned
        ),
        attempts=tuple(
            MemberAttempt(
                turn,
                how.ending,
                entered.get(turn, how.began_at),
                how.began_at,
                how.ran_s,
                row.endings[turn - 1].how.delay_s if turn - 1 in row.endings else 0.0,
            )
            for turn, how in attempts
            if how.began_at is not None
        ),
        spawned=tuple(sorted(job for job, tie in row.ties.items() if tie.spawned)),
        queue=None if row.moved_to else row.spec.queue,
        key=row.spec.key,
    )


def _member_ids(row: Row) -> list[int]:
    return [job for job, tie in row.ties.items() if tie.rule is Rule.MEMBER]


def _name(row: Row) -> str:
    return str(decode_value(row.spec.args).get("name", ""))


def _key(row: Row) -> str | None:
    return row.spec.key
