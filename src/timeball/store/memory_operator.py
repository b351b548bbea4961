"""What an operator asks of the memory store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from threading import Lock
from uuid import UUID

from timeball.core.history import RevivalRecord
from timeball.core.records import ReviveAnswer
from timeball.core.states import Event, State, allowed
from timeball.store.memory_rows import Row, move


class MemoryOperator(ABC):
    """Jobs that have ended start again, at the word of an operator."""

    _clock: Callable[[], datetime]
    _lock: Lock
    _rows: dict[int, Row]
    _ids: dict[UUID, int]

    @abstractmethod
    def _line_up(self, rows: Iterable[Row]) -> None: ...

    def revive(self, uuids: Sequence[UUID]) -> list[ReviveAnswer]:
        """See `Store.revive`."""
        with self._lock:
            known = sorted(self._ids[uuid] for uuid in set(uuids) & self._ids.keys())
            answers = {self._rows[job].spec.uuid: self._revive(self._rows[job]) for job in known}
            return [answers.get(uuid, ReviveAnswer.NOT_FOUND) for uuid in uuids]

    # The rest runs under the lock.

    def _revive(self, row: Row) -> ReviveAnswer:
        if not allowed(row.state, Event.REVIVE):
            return ReviveAnswer.REFUSED
        move(row, Event.REVIVE, State.PENDING)
        row.revivals.append(RevivalRecord(row.turn, self._clock().timestamp()))
        row.turn += 1
        row.tally = row.forgiven = row.tally._replace(delay_s=0.0)
        row.unwanted = False
        self._line_up([row])
        return ReviveAnswer.REVIVED
