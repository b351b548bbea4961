"""Callbacks of the memory store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from threading import Lock
from uuid import UUID

from timeball.core.callbacks import CALL, CALLBACK, CallAnswer
from timeball.core.payload import decode_value
from timeball.core.states import TERMINAL, Ending, Event
from timeball.store.calling import answer_to
from timeball.store.memory_rows import Row


class MemoryCalls(ABC):
    """Jobs that wait for a call from outside."""

    _lock: Lock
    _rows: dict[int, Row]
    _ids: dict[UUID, int]

    @abstractmethod
    def _is_late(self, row: Row) -> bool: ...

    @abstractmethod
    def _rule_out(self, row: Row, event: Event, ending: Ending, reason: str) -> None: ...

    @abstractmethod
    def _go_on(self, rows: Sequence[Row], keys: set[str]) -> None: ...

    def call_back(self, callback: UUID, result: str | None) -> CallAnswer:
        """See `Calling.call_back`."""
        with self._lock:
            row = self._rows.get(self._ids.get(callback, 0))
            if row is None or row.spec.kind != CALLBACK:
                return CallAnswer.NOT_FOUND
            if row.state in TERMINAL:
                how = row.endings[row.turn].how
                return answer_to(how.ending, decode_value(how.result), result)
            if self._is_late(row):
                return CallAnswer.EXPIRED
            self._rule_out(row, Event.CALL, Ending.SUCCEEDED, CALL)
            end = row.endings[row.turn]
            row.endings[row.turn] = end._replace(how=end.how._replace(result=result))
            self._go_on([row], set())
            return CallAnswer.ACCEPTED
