"""What an operator asks of the memory store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from threading import Lock
from uuid import UUID

from timeball.core.batches import BATCH
from timeball.core.callbacks import CALLBACK
from timeball.core.history import EntryRecord, RevivalRecord, SnoozeRecord
from timeball.core.overlap_runs import OVERLAP
from timeball.core.records import Settlement, Turn
from timeball.core.states import TERMINAL, Ending, Event, State, allowed
from timeball.core.upkeep import (
    DeleteAnswer,
    Keep,
    MoveAnswer,
    ReviveAnswer,
    SnoozeAnswer,
    Trimmed,
)
from timeball.store.memory_lanes import MemoryLanes
from timeball.store.memory_rows import Ended, Row, move
from timeball.store.memory_spawn import MemorySpawn


class MemoryOperator(MemoryLanes, MemorySpawn, ABC):
    """Jobs change their lane, start again or go, at the word of an operator."""

    _clock: Callable[[], datetime]
    _lock: Lock
    _rows: dict[int, Row]
    _ids: dict[UUID, int]
    _requests: dict[tuple[int, UUID], list[Turn]]
    _deleted = 0

    @abstractmethod
    def _forget_permits(self) -> None: ...

    @abstractmethod
    def _hold(
        self, row: Row, *, run_at: datetime | None = None, reason: str | None = None
    ) -> None: ...

    @abstractmethod
    def _line_up(self, rows: Iterable[Row], keys: Iterable[str] = ()) -> int: ...

    def revive(self, uuids: Sequence[UUID]) -> list[ReviveAnswer]:
        """See `Store.revive`."""
        with self._lock:
            known = sorted(self._ids[uuid] for uuid in set(uuids) & self._ids.keys())
            rows = [self._rows[job] for job in known]
            answers = {row.spec.uuid: self._revive(row) for row in rows}
            keys = {row.spec.key for row in rows if row.spec.key}
            self._line_up([row for row in rows if row.on_its_way], keys)
            return [answers.get(uuid, ReviveAnswer.NOT_FOUND) for uuid in uuids]

    def move(self, uuid: UUID, *, queue: str | None, priority: int | None) -> MoveAnswer:
        """See `Queueing.move`."""
        with self._lock:
            if uuid not in self._ids:
                return MoveAnswer.NOT_FOUND
            row = self._rows[self._ids[uuid]]
            if row.state in TERMINAL:
                return MoveAnswer.FINISHED
            if row.state is State.RUNNING:
                return MoveAnswer.RUNNING
            old = row.place
            self._shift(row, (queue or old[0], old[1] if priority is None else priority))
            return MoveAnswer.MOVED

    def snooze(self, uuid: UUID, until: datetime) -> SnoozeAnswer:
        """See `Queueing.snooze`."""
        with self._lock:
            if uuid not in self._ids:
                return SnoozeAnswer.NOT_FOUND
            row = self._rows[self._ids[uuid]]
            if row.state in TERMINAL:
                return SnoozeAnswer.FINISHED
            if row.state is State.RUNNING:
                return SnoozeAnswer.RUNNING
            if row.state is State.WAITING or row.held_for == OVERLAP:
                return SnoozeAnswer.WAITING
            self._put_off(row, until)
            return SnoozeAnswer.SNOOZED

    def delete(self, uuids: Sequence[UUID]) -> list[DeleteAnswer]:
        """See `Store.delete`."""
        with self._lock:
            known = sorted(self._ids[uuid] for uuid in set(uuids) & self._ids.keys())
            answers = {self._rows[job].spec.uuid: self._delete(self._rows[job]) for job in known}
            return [answers.get(uuid, DeleteAnswer.NOT_FOUND) for uuid in uuids]

    def trim(self, keep: Keep, *, after: tuple[int, ...] = (), limit: int = 500) -> Trimmed:
        """See `Store.trim`."""
        with self._lock:
            page = [row for row in self._rows.values() if (row.id,) > after][:limit]
            old = [row for row in page if self._is_old(row, keep)]
            for row in old:
                self._delete(row)
            self._forget_permits()
            return Trimmed(len(old), (page[-1].id,) if len(page) == limit else None)

    def deleted(self) -> int:
        """See `Store.deleted`."""
        with self._lock:
            return self._deleted

    def lapse(self, limit: int) -> int:
        """See `Store.lapse`."""
        with self._lock:
            late = [row for row in self._rows.values() if self._is_late(row)][:limit]
            for row in late:
                self._lapse(row)
            return len(late)

    # The rest runs under the lock.

    def _shift(self, row: Row, place: tuple[str, int]) -> None:
        """Bring a job that has not begun to another lane, unless it is there."""
        old, new = self._lane(row.place), self._lane(place)
        if old is new:
            return
        row.moved_to = place
        if row.line is not None:
            self._line_up([row])
        if row.id not in old.pending:
            return  # it is held, and will line up there
        move(row, Event.MOVE, State.PENDING)
        del old.pending[row.id]
        now = self._clock()
        self._end_turn(row, Ending.MOVED)
        kept = [each for each in row.holdings if each[3] == row.turn - 1]
        row.holdings += [(scope, name, now.timestamp(), row.turn, n) for scope, name, *_, n in kept]
        row.entries.append(EntryRecord(row.turn, now.timestamp()))
        new.pending[row.id] = row

    def _put_off(self, row: Row, until: datetime) -> None:
        """Let a job start later that is pending, or scheduled."""
        if row.state is State.SCHEDULED:
            assert row.run_at is not None
            row.run_at = max(row.run_at, until)
            row.snoozes.append(SnoozeRecord(row.turn, until.timestamp()))
            return
        move(row, Event.SNOOZE, State.SCHEDULED)
        self._lane(row.place).pending.pop(row.id, None)
        self._end_turn(row, Ending.SNOOZED)
        row.snoozes.append(SnoozeRecord(row.turn, until.timestamp()))
        row.lined_at = None
        self._hold(row, run_at=until)
        self._line_up([], self._free(row))

    def _end_turn(self, row: Row, ending: Ending) -> None:
        """End a turn that was not granted; the next one takes its place."""
        end = Settlement(0, 0, row.id, row.turn, ending, "requested")
        row.endings[row.turn] = Ended(end, self._clock(), None)
        row.turn += 1

    def _is_late(self, row: Row) -> bool:
        if row.deadline is None or not allowed(row.state, Event.LAPSE):
            return False
        return row.deadline <= self._clock()

    def _is_old(self, row: Row, keep: Keep) -> bool:
        kept_s = keep.succeeded_s if row.state is State.SUCCEEDED else keep.others_s
        if row.state not in TERMINAL or kept_s is None or self._is_needed(row):
            return False
        return row.endings[row.turn].at <= self._clock() - timedelta(seconds=kept_s)

    def _delete(self, row: Row) -> DeleteAnswer:
        if row.state not in TERMINAL or self._is_needed(row):
            return DeleteAnswer.REFUSED
        self._drop_key(row)
        self._forget(row)
        del self._rows[row.id], self._ids[row.spec.uuid]
        self._deleted += 1
        granted = [lease.turns for lease in row.grants.values()]
        for turns in (*granted, *self._requests.values()):
            turns[:] = [turn for turn in turns if turn.job_id != row.id]
        return DeleteAnswer.DELETED

    def _revive(self, row: Row) -> ReviveAnswer:
        if not allowed(row.state, Event.REVIVE) or row.spec.kind in {BATCH, CALLBACK}:
            return ReviveAnswer.REFUSED
        if not self._retake_key(row):
            return ReviveAnswer.CLASHED
        self._begin_anew(row, State.PENDING)
        return ReviveAnswer.REVIVED

    def _begin_anew(self, row: Row, state: State) -> None:
        if row.spec.kind == BATCH:  # which waits for its jobs again, however it has ended
            row.state = state
        else:
            move(row, Event.REVIVE, state)
        row.revivals.append(RevivalRecord(row.turn, self._clock().timestamp()))
        row.turn += 1
        row.tally = row.forgiven = row.tally._replace(delay_s=0.0)
        row.unwanted, row.deadline = False, None

    def _replace(self, row: Row) -> None:
        self._rule_out(row, Event.CANCEL, Ending.CANCELLED, "replaced")
        self._unlink(row)

    def _lapse(self, row: Row) -> None:
        self._rule_out(row, Event.LAPSE, Ending.EXPIRED, "expired")
        self._unlink(row)
