"""Memory stores that each have one defect, which a simulation must find."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from timeball.core.dependencies import Sentence
from timeball.core.limits import Scope
from timeball.core.records import CancelAnswer, Promoted, Settlement, Turn, Verdict
from timeball.core.states import TERMINAL, Event, State
from timeball.store.memory import MemoryStore
from timeball.store.memory_rows import Ended, Row, Tie, told

_OLD: Final = timedelta(seconds=5)


class NoGrantCheck(MemoryStore):
    """Accepts what anybody says of a turn that has not ended."""

    def _record(self, worker: int, said: Settlement) -> Verdict:
        row = self._rows.get(said.job_id)
        if row is not None and said.turn not in row.endings and row.state is State.RUNNING:
            row.endings[said.turn] = Ended(told(row, said), self._clock(), worker)
            return Verdict.ACCEPTED
        return super()._record(worker, said)


class NoFence(MemoryStore):
    """Accepts another ending of a turn that has ended."""

    def _record(self, worker: int, said: Settlement) -> Verdict:
        row = self._rows.get(said.job_id)
        lease = row.grants.get(said.turn) if row else None
        if row is not None and lease is not None and lease.worker == worker:
            row.endings.pop(said.turn, None)
        return super()._record(worker, said)

    def _follow(self, row: Row, end: Settlement, event: Event, *, crashed: bool = False) -> None:
        if row.state is State.RUNNING:
            super()._follow(row, end, event, crashed=crashed)


class SameTurn(MemoryStore):
    """Gives a job that comes back the turn that it had."""

    def _follow(self, row: Row, end: Settlement, event: Event, *, crashed: bool = False) -> None:
        super()._follow(row, end, event, crashed=crashed)
        if row.state not in TERMINAL:
            row.turn -= 1
            row.grants.pop(row.turn)


class LateByAge(MemoryStore):
    """Takes a job for late because it has waited for long, whatever its deadline is."""

    def _is_late(self, row: Row) -> bool:
        waits = row.state in {State.PENDING, State.SCHEDULED}
        return waits and self._clock() - row.created_at > _OLD


class DecidedTwice(MemoryStore):
    """Counts an edge again whenever its parent is looked at."""

    def _weigh(self, child: Row, tie: Tie, state: State | None) -> Sentence:
        tie.decided_at = None
        return super()._weigh(child, tie, state)


class CancelForgotten(MemoryStore):
    """Tries a job again that was asked to stop."""

    def _follow(self, row: Row, end: Settlement, event: Event, *, crashed: bool = False) -> None:
        row.unwanted = False
        super()._follow(row, end, event, crashed=crashed)


class CancelUndone(MemoryStore):
    """Says of a running job that it is cancelled."""

    def _stop(self, row: Row) -> CancelAnswer:
        answer = super()._stop(row)
        return CancelAnswer.CANCELLED if answer is CancelAnswer.REQUESTED else answer


class NoSlots(MemoryStore):
    """Lets in all that wait for a key."""

    def _room(self, scope: Scope, name: str, most: int) -> int:
        return most


class ClaimsWhenGone(MemoryStore):
    """Goes on granting to a worker that was given up."""

    def claim(self, worker: int, **asked: Any) -> list[Turn]:
        """See `Store.claim`."""
        holder = self._workers[worker]
        gone, holder.gone = holder.gone, False
        try:
            return super().claim(worker, **asked)
        finally:
            holder.gone = gone


class NeverDue(MemoryStore):
    """Never lets line up what has fallen due."""

    def promote(self, limit: int) -> Promoted:
        """See `Store.promote`."""
        return super().promote(0)


class Defect(NamedTuple):
    """One of them."""

    store: type[MemoryStore]
    checks: frozenset[str]
    """One of which must be the first to find it."""


DEFECTS: Final[Mapping[str, Defect]] = MappingProxyType(
    {
        "settle without the grant check": Defect(NoGrantCheck, frozenset({"I4"})),
        "fence missing": Defect(NoFence, frozenset({"I4"})),
        "turn not raised on requeue": Defect(SameTurn, frozenset({"I1", "I3"})),
        "deadline by age": Defect(LateByAge, frozenset({"I2"})),
        "edge decided twice": Defect(DecidedTwice, frozenset({"I13", "I14"})),
        "cancel forgotten": Defect(CancelForgotten, frozenset({"I19"})),
        "cancel that is none": Defect(CancelUndone, frozenset({"I19"})),
        "slots not counted": Defect(NoSlots, frozenset({"I9"})),
        "what is due stays where it is": Defect(NeverDue, frozenset({"I6"})),
        "claim of one given up": Defect(ClaimsWhenGone, frozenset({"I5"})),
    }
)
