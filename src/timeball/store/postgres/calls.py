"""Callbacks in PostgreSQL."""

from __future__ import annotations

from abc import ABC
from uuid import UUID

from timeball.core.callbacks import CallAnswer
from timeball.core.states import Ending
from timeball.store.calling import answer_to
from timeball.store.postgres.connections import Run
from timeball.store.postgres.sealing import closed, opened_value


class PostgresCalls(ABC):
    """Callbacks; see `timeball.store.calling.Calling` for what the verb promises."""

    _run: Run

    def call_back(self, callback: UUID, result: str | None) -> CallAnswer:
        """See `Calling.call_back`."""
        said = None if result is None else closed(result, "result")
        ((answer, had),) = self._run("call_back", callback=callback, result=said)
        if answer in {CallAnswer.ACCEPTED, CallAnswer.NOT_FOUND}:
            return CallAnswer(answer)
        return answer_to(Ending(answer), opened_value(had, "result"), result)
