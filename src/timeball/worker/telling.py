"""What a worker tells of its turns: numbers to a board, lines to the log, both, or nothing.

The loop tells once per batch, and a thread that begins an attempt only where lines are written.
Where nobody wants to know, there is no teller, and no call.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Final, Protocol

from timeball.core.outcomes import UNCOMMITTED
from timeball.core.records import Settlement, Turn, Verdict
from timeball.core.states import Ending
from timeball.observe import families
from timeball.observe.board import Board
from timeball.observe.families import Family
from timeball.observe.transitions import Happening, Transition, tell

_NS: Final = families.NS_PER_S
_RUN_S: Final = [bound / _NS for bound in families.RUN.bounds]
_QUEUE_WAIT_S: Final = [bound / _NS for bound in families.QUEUE_WAIT.bounds]
_WORDS: Final = frozenset({Ending.CANCELLED, Ending.SNOOZED})
"""Endings whose reason is the job's own word."""


_GOING_ON: Final = {
    Ending.SNOOZED: families.SNOOZES,
    Ending.AWAITED: families.AWAITS,
    Ending.RELEASED: families.RELEASES,
    Ending.LOST: families.CRASHES,  # whether the job has another attempt is for the store to say
}

Told = tuple[Turn, Settlement, Verdict]
"""One settlement between its turn and what the store said to it."""


def committed(told: Told) -> Told:
    """Return the same; of what was committed though its worker could not know, that it was."""
    turn, said, verdict = told
    if verdict is Verdict.ALREADY and said.reason == UNCOMMITTED:
        said = Settlement(*said[:4], Ending.SUCCEEDED, began_at=said.began_at, ran_s=said.ran_s)
    return turn, said, verdict


Herald = Callable[[int, Turn, float, int], None]
"""Told by whichever thread carries an attempt out that it begins: the worker, the turn, the
instant on the store's clock, and for how many nanoseconds the thread waited for the lock before.
"""


class Teller(Protocol):
    """Somebody who is told, by the loop's own thread, of what it did. Must not wait, or fail."""

    def claimed(self, worker: int, turns: Sequence[Turn], took_ns: int) -> None:
        """Turns were granted, maybe none, by a call that took so long."""
        ...

    def settled(self, worker: int, told: Sequence[Told], took_ns: int) -> None:
        """Endings were recorded, or refused, by a call that took so long."""
        ...

    def locked(self, wait_ns: int, times: int) -> None:
        """So long, and so often, have the worker's threads waited for its lock until now."""
        ...


class _Kind:
    """The series of a kind that every job of it moves, and what is to be added to them."""

    def __init__(self, board: Board, kind: str) -> None:
        self.succeeded = board.at(families.FINISHED, kind, Ending.SUCCEEDED, "")
        self.run = board.at(families.RUN, kind)
        self.queue_wait = board.at(families.QUEUE_WAIT, kind)
        self.successes = 0
        self.ran_s: list[float] = []
        self.waited_s: list[float] = []


class Counts:
    """Counts on a board. Starts are not its business: `BegunTable` counts them.

    Args:
        board: Where.
        kinds: All that its worker knows.
    """

    def __init__(self, board: Board, kinds: Iterable[str]) -> None:
        self._board = board
        self._kinds = {kind: _Kind(board, kind) for kind in kinds}
        self._lock_wait = board.at(families.LOCK_WAIT, "slots")
        for family in (families.CLAIM, families.CLAIM_BATCH, families.SETTLE):
            board.at(family)

    def claimed(self, worker: int, turns: Sequence[Turn], took_ns: int) -> None:
        """See `Teller.claimed`."""
        self._board.observe(families.CLAIM, took_ns)
        self._board.observe(families.CLAIM_BATCH, len(turns))

    def locked(self, wait_ns: int, times: int) -> None:
        """See `Teller.locked`."""
        self._board.cells[self._lock_wait] = wait_ns
        self._board.cells[self._lock_wait + 1] = times

    def settled(self, worker: int, told: Sequence[Told], took_ns: int) -> None:
        """See `Teller.settled`."""
        self._board.observe(families.SETTLE, took_ns)
        kinds, stale, success = self._kinds, Verdict.STALE, Ending.SUCCEEDED
        for turn, said, verdict in told:
            kind = kinds.get(turn.kind)
            if verdict is stale or kind is None:
                self._board.add(*_series(turn.kind, said, verdict))
                continue
            if said.ending is success:
                kind.successes += 1
            else:
                self._board.add(*_series(turn.kind, said, verdict))
            began_at = said.began_at
            if began_at is not None:
                kind.ran_s.append(said.ran_s)
                kind.waited_s.append(max(0.0, began_at - turn.ready_at))
        for name in {turn.kind for turn, _, _ in told} & kinds.keys():
            self._write(kinds[name])

    def _write(self, kind: _Kind) -> None:
        cells = self._board.cells
        cells[kind.succeeded] += kind.successes
        kind.successes = 0
        for at, values, bounds_s in (
            (kind.run, kind.ran_s, _RUN_S),
            (kind.queue_wait, kind.waited_s, _QUEUE_WAIT_S),
        ):
            cells[at] += int(sum(values) * _NS)
            for place, count in Counter(map(partial(bisect_left, bounds_s), values)).items():
                cells[at + 1 + place] += count
            values.clear()


def _series(kind: str, said: Settlement, verdict: Verdict) -> tuple[Family, *tuple[str, ...]]:
    """Return the counter that a settlement moves, with its labels."""
    if verdict is Verdict.STALE:
        return families.STALE, kind
    if said.ending is Ending.RETRIED:
        return families.RETRIES, kind, said.error_type or ""
    going_on = _GOING_ON.get(said.ending)
    if going_on is not None:
        return going_on, kind
    return families.FINISHED, kind, said.ending, said.error_type or ""


class Lines:
    """Writes log lines."""

    def claimed(self, worker: int, turns: Sequence[Turn], took_ns: int) -> None:
        """See `Teller.claimed`."""
        for turn in turns:
            tell(_line(Happening.CLAIMED, worker, turn))

    def locked(self, wait_ns: int, times: int) -> None:
        """Say nothing: it is about no job."""

    def begun(self, worker: int, turn: Turn, began_at: float, lock_ns: int) -> None:
        """Be a `Herald`."""
        tell(
            _line(Happening.BEGUN, worker, turn)._replace(
                attempt=turn.attempts + 1,
                began_at=began_at,
                queue_wait_s=round(max(0.0, began_at - turn.ready_at), 6),
                lock_wait_s=lock_ns / _NS,
            )
        )

    def settled(self, worker: int, told: Sequence[Told], took_ns: int) -> None:
        """See `Teller.settled`."""
        for turn, said, verdict in told:
            event = Happening.STALE_SETTLEMENT if verdict is Verdict.STALE else said.ending
            line = _line(event, worker, turn)._replace(
                delay_s=said.delay_s or None,
                reason=None if said.ending in _WORDS else said.reason,
                error_type=said.error_type,
            )
            if said.began_at is not None:
                ended_at = said.began_at + said.ran_s
                line = line._replace(
                    attempt=turn.attempts + 1, began_at=said.began_at, ended_at=ended_at
                )
            tell(line)


def _line(event: Happening | Ending, worker: int, turn: Turn) -> Transition:
    return Transition(
        event, turn.job_id, turn.kind, turn.turn, worker=worker, granted_at=turn.granted_at
    )
