"""The event record of a store, as the audit reads it: one history per job.

Named tuples, because an audit reads millions of them. Instants are epoch seconds
on the store's clock, read where they count: a grant's under the lane's lock, an
ending's and a cancel request's once the row is locked. An instant read earlier,
when the transaction began, can make a clean record look out of order.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple
from uuid import UUID

from timeball.core.dependencies import Rule, RuledOut
from timeball.core.records import Decision, Delivery
from timeball.core.states import FINAL_STATE, Ending, State


class EntryRecord(NamedTuple):
    """From `at` on, this turn might start."""

    turn: int
    at: float


class GrantRecord(NamedTuple):
    """A lease gave this turn to a worker."""

    turn: int
    worker: int
    lane: int
    seq: int
    at: float


class EndingRecord(NamedTuple):
    """How a turn ended. Exactly one per ended turn, whoever wrote it."""

    turn: int
    ending: Ending
    reason: str | None
    worker: int | None
    """Whose turn it was, also where somebody else saw it dead; None if it was never granted."""

    began_at: float | None
    """None where the attempt never began."""

    ran_s: float
    at: float
    delay_s: float = 0.0
    """Seconds from `at` until the next turn might start; 0 where none is known."""


class HeldRecord(NamedTuple):
    """This turn may not start yet: the job is scheduled, waiting, or pending for a reason."""

    turn: int
    state: State
    run_at: float | None
    reason: str | None


class StaleRecord(NamedTuple):
    """A settlement that was refused, and changed nothing."""

    turn: int
    worker: int
    at: float


class RevivalRecord(NamedTuple):
    """An operator started an ended job again: its next turn begins a new life."""

    turn: int
    """The turn that had ended for good."""

    at: float


class SnoozeRecord(NamedTuple):
    """An operator put a turn off that had not begun."""

    turn: int
    """The one that may not start before then."""

    until: float


class EdgeRecord(NamedTuple):
    """What a job was to wait for: how one of its parents ends."""

    parent: int
    rule: Rule
    linked_at: float | None
    """From when on the parent's end was sure to be told; None: not yet."""

    decided_at: float | None
    met: bool | None
    """What was decided; None: nothing yet."""

    ends: tuple[tuple[State, float], ...] | None
    """Each terminal state that the parent reached, and when; None: it was deleted."""

    ended: bool
    """Whether the parent is in a terminal state now, or was deleted."""

    spawned: bool = False
    """Whether the job waits for one that it has spawned: that one was added later."""

    added: bool = False
    """Whether the edge was added while the job waited: the parent may be the later one."""


class SlotRecord(NamedTuple):
    """The job counts against a limit now."""

    scope: str
    """Whose limit: of a "key" or of a "queue"."""

    name: str


class Stray(NamedTuple):
    """Rows of a job that is not on record itself."""

    table: str
    job_id: int
    rows: int


class JobHistory(NamedTuple):
    """Everything that ever happened to one job, from one snapshot."""

    id: int
    uuid: UUID
    kind: str
    max_retries: int
    max_crashes: int
    delivery: Delivery
    created_at: float
    run_at: float | None
    """Earliest start as it was submitted; None: at once."""

    entries: tuple[EntryRecord, ...] = ()
    """By turn, like `grants` and `endings`; of equal turns all rows, none left out."""

    grants: tuple[GrantRecord, ...] = ()
    endings: tuple[EndingRecord, ...] = ()
    held: HeldRecord | None = None
    cancels_requested_at: tuple[float, ...] = ()
    """When running attempts were asked to stop."""

    stale: tuple[StaleRecord, ...] = ()
    revivals: tuple[RevivalRecord, ...] = ()
    """By turn. The budgets of a job count from the last of them."""

    expires_at: float | None = None
    """If it has not begun by then, it is skipped."""

    edges: tuple[EdgeRecord, ...] = ()
    ruled_out: RuledOut = RuledOut.SKIP
    slots: tuple[SlotRecord, ...] = ()
    snoozes: tuple[SnoozeRecord, ...] = ()


class ScheduleRecord(NamedTuple):
    """One schedule. Instants of schedules are aware datetimes, exact to the second."""

    id: int
    name: str
    activated_at: datetime
    """When its present expression, zone and policy came into force: its first cursor."""

    cursor: datetime
    """Every occurrence after `activated_at` up to here, inclusive, has been decided."""


class OccurrenceRecord(NamedTuple):
    """What was done about one occurrence of a schedule."""

    schedule_id: int
    nominal_at: datetime
    decision: Decision
    reason: str | None
    job_id: int | None
    decided_at: datetime

    @property
    def lateness_s(self) -> float:
        """Return the seconds from the occurrence to its decision."""
        return (self.decided_at - self.nominal_at).total_seconds()


_NOTHING: Final = [None, (), (), (), None, (), RuledOut.SKIP, (), ()]
"""What follows the endings of a history to which nothing else has happened."""


def states_of(history: JobHistory) -> tuple[State, ...]:
    """Return every state that the record puts the job in: one, unless it is corrupt.

    The highest turn decides, as in the view ``timeball.jobs``: held, ended for good,
    granted (running) or entered (pending). A held row counts whatever its turn.
    """
    entries, grants, endings, held = history[8:12]
    found: tuple[State, ...] = () if held is None else (held.state,)
    entered = entries[-1].turn if entries else 0
    granted = grants[-1].turn if grants else 0
    ended = endings[-1].turn if endings else 0
    if held is not None and held.turn > max(entered, granted, ended):
        return found
    if ended and ended >= entered and ended >= granted:
        for row in endings:
            if row.turn == ended and row.ending in FINAL_STATE:
                return (*found, FINAL_STATE[row.ending])
        return found
    if granted and granted >= entered:
        return (*found, State.RUNNING)
    return (*found, State.PENDING) if entered else found


def went_plainly(history: JobHistory) -> bool:
    """Return whether a job was entered, granted and ended well in its first turn, and that is all.

    Most have, and nothing can be wrong with such a record; so an audit need not look closer.
    """
    entries, grants, endings, *rest = history[8:]
    if not len(entries) == len(grants) == len(endings) == 1 or rest != _NOTHING:
        return False
    (entry,), (grant,), (end,) = entries, grants, endings
    return (
        entry.turn == grant.turn == end.turn == 1
        and end.ending is Ending.SUCCEEDED
        and end.worker == grant.worker
        and end.at >= grant.at
        and history.run_at is None
    )


def state_of(history: JobHistory) -> State:
    """Return the one state of a job whose record is sound; `audit` tells whether it is."""
    states = states_of(history)
    assert len(states) == 1, f"job {history.id} is in {len(states)} states: run the audit"
    return states[0]
