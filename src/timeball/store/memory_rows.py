"""What the memory store keeps, and how a reader or the audit sees it.

The dataclasses change under the store's lock; the functions below them only read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple
from uuid import UUID

from timeball.core.dependencies import Awaited, Needs, Rule
from timeball.core.history import (
    EdgeRecord,
    EndingRecord,
    EntryRecord,
    GrantRecord,
    HeldRecord,
    JobHistory,
    RevivalRecord,
    SlotRecord,
    SnoozeRecord,
    StaleRecord,
)
from timeball.core.invariants import CRASH_REASONS
from timeball.core.limits import Scope
from timeball.core.notes import LogLine, Progress
from timeball.core.outcomes import TURN_MAX, UNCOMMITTED
from timeball.core.payload import decode_value
from timeball.core.queues import QUEUE_PAUSED
from timeball.core.records import Delivery, Job, JobSpec, Settlement, Turn
from timeball.core.states import FINAL_STATE, TERMINAL, Ending, Event, State, allowed

SAID: Final = {
    Ending.SUCCEEDED: Event.SUCCEED,
    Ending.FAILED: Event.FAIL,
    Ending.CANCELLED: Event.CANCEL,
    Ending.RETRIED: Event.RETRY,
    Ending.SNOOZED: Event.SNOOZE,
    Ending.RELEASED: Event.RELEASE,
    Ending.LOST: Event.EXPIRE,
    Ending.AWAITED: Event.AWAIT,
}
"""What a worker may say of a turn, and what that does to the job."""


class Tally(NamedTuple):
    """What a job went through in those of its turns that have ended."""

    attempts: int = 0
    failures: int = 0
    crashes: int = 0
    delay_s: float = 0.0
    """The wait after the last of them."""


class Lease(NamedTuple):
    """One batch of turns of one lane, granted to one worker by one claim."""

    lane: int
    seq: int
    worker: int
    floor: int
    turns: list[Turn]
    at: datetime


class Ended(NamedTuple):
    """How one turn ended."""

    how: Settlement
    at: datetime
    said_by: int | None
    """The worker that settled it; None for a cancel or an expiry."""


@dataclass(slots=True)
class Tie:
    """One edge of a child; see `EdgeRecord`."""

    uuid: UUID
    rule: Rule
    linked_at: datetime | None
    decided_at: datetime | None = None
    met: bool | None = None
    spawned: bool = False
    added: bool = False


@dataclass(slots=True)
class Row:
    """One job: what was asked for, where it stands, and what has happened to it."""

    id: int
    spec: JobSpec
    created_at: datetime
    first_at: datetime | None = None
    """Earliest start as it was submitted; None: at once."""
    deadline: datetime | None = None
    """If it has not begun by then, it is skipped; None once it has begun."""
    state: State = State.PENDING
    turn: int = 1
    tally: Tally = field(default_factory=Tally)
    forgiven: Tally = field(default_factory=Tally)
    """What it had gone through when it was last revived: its budgets count from there."""
    run_at: datetime | None = None
    moved_to: tuple[str, int] | None = None
    """Queue and priority class, where they are no longer those it was submitted with."""
    held_for: str | None = None
    """Why it is pending and yet not in its lane."""
    held_at: datetime | None = None
    """Since when."""
    line: str | None = None
    """In the line of which limit on starts it is held."""
    lined_at: datetime | None = None
    """Since when it has waited for such a limit; None: it does not, or has begun since."""
    holdings: list[tuple[Scope, str, float, int, int]] = field(default_factory=list)
    """Against which limits its turns counted: scope, name, since when, turn, by which limit."""
    unwanted: bool = False
    """Its attempt was asked to stop: no other one follows."""
    cancels: list[float] = field(default_factory=list)
    revivals: list[RevivalRecord] = field(default_factory=list)
    snoozes: list[SnoozeRecord] = field(default_factory=list)
    entries: list[EntryRecord] = field(default_factory=list)
    grants: dict[int, Lease] = field(default_factory=dict)
    """By turn: a turn is granted once."""
    endings: dict[int, Ended] = field(default_factory=dict)
    """By turn: a turn ends once."""
    stale: list[StaleRecord] = field(default_factory=list)
    ties: dict[int, Tie] = field(default_factory=dict)
    """By the parent's id."""
    needs: Needs | None = None
    """What a waiting job still waits for."""
    progress: Progress | None = None
    lines: dict[tuple[int, int], LogLine] = field(default_factory=dict)
    """By turn and number."""

    @property
    def place(self) -> tuple[str, int]:
        """The queue and priority class in which it waits, runs or has ended."""
        return self.moved_to or (self.spec.queue, self.spec.priority)

    @property
    def queue(self) -> str:
        """The queue in which it is."""
        return self.place[0]

    @property
    def on_its_way(self) -> bool:
        """Whether it is pending and neither in its lane nor held."""
        entered = self.entries[-1].turn if self.entries else 0
        return self.state is State.PENDING and entered < self.turn and self.held_for is None


@dataclass(slots=True)
class Lane:
    """The order in which the jobs of one queue and priority class start."""

    id: int
    queue: str
    priority: int
    pending: dict[int, Row] = field(default_factory=dict)
    """By id of the job, in the order in which they became pending."""
    seq: int = 0
    """Of the newest lease."""

    def head_s(self, aging_s: float) -> float:
        """Return since when its first job counts as waiting, where a class is worth `aging_s`."""
        return next(iter(self.pending.values())).entries[-1].at - self.priority * aging_s


@dataclass(slots=True)
class QueueRow:
    """What operators have said about a queue."""

    paused_at: datetime | None = None
    paused_by: str | None = None
    max_depth: int | None = None


@dataclass(slots=True)
class Worker:
    """Somebody who claims."""

    id: int
    name: str
    kinds: frozenset[str]
    queues: tuple[str, ...]
    lease_s: float
    beat: int = 1
    gone: bool = False
    """Given up or retired."""


def move(row: Row, event: Event, state: State) -> None:
    """Bring a job to a state that the table of transitions allows."""
    assert state in allowed(row.state, event), f"{event} does not lead {row.state} to {state}"
    row.state = state


def spent(row: Row) -> Tally:
    """Return what counts against the budgets of a job."""
    tally, forgiven = row.tally, row.forgiven
    return tally._replace(
        failures=tally.failures - forgiven.failures, crashes=tally.crashes - forgiven.crashes
    )


def crash(row: Row, *, began: bool = True) -> tuple[Ending, str | None]:
    """Return how a turn ends whose worker died in the middle of it, or before it began."""
    if row.turn >= TURN_MAX:
        return Ending.FAILED, "turns"
    if not began:
        return Ending.RELEASED, None
    if row.spec.delivery is Delivery.AT_MOST_ONCE:
        return Ending.FAILED, "lost"
    if spent(row).crashes + 1 >= row.spec.max_crashes:
        return Ending.FAILED, "quarantined"
    return Ending.LOST, None


def told(row: Row, said: Settlement) -> Settlement:
    """Return what a worker says of a turn; of one that was lost what that costs its job."""
    if said.ending is not Ending.LOST:
        return said
    ending, reason = crash(row)
    return said._replace(ending=ending, reason=reason or said.reason)


def repeats(known: Settlement, said: Settlement) -> bool:
    """Return whether a worker says again what is known of a turn, as it may after an outage."""
    if said.reason == UNCOMMITTED and known.ending is Ending.SUCCEEDED:
        return True
    failed = said.ending is Ending.LOST and known.reason in CRASH_REASONS
    return failed or (known.ending, known.reason) == (said.ending, said.reason)


def turn_of(
    row: Row, lease: Lease, rates: tuple[str, ...] = (), awaited: Awaited | None = None
) -> Turn:
    """Return the turn of a job that a lease grants."""
    return Turn(
        lane=lease.lane,
        seq=lease.seq,
        job_id=row.id,
        turn=row.turn,
        uuid=row.spec.uuid,
        kind=row.spec.kind,
        args=row.spec.args,
        **spent(row)._asdict(),
        max_retries=row.spec.max_retries,
        timeout_s=row.spec.timeout_s,
        granted_at=lease.at.timestamp(),
        at_most_once=row.spec.delivery is Delivery.AT_MOST_ONCE,
        ready_at=row.entries[-1].at,
        limited=any(turn == row.turn for *_, turn, _ in row.holdings),
        rates=rates,
        waited=row.lined_at is not None,
        awaited=awaited,
    )


def job_of(row: Row, *, paused: bool) -> Job:
    """Return a job as a reader sees it; how it went is told of the last turn that has ended.

    Args:
        row: The job.
        paused: Whether its queue is.
    """
    reason = QUEUE_PAUSED if paused and row.state is State.PENDING else row.held_for
    last = row.endings.get(max(row.endings, default=0))
    how = last.how if last else None
    lease = row.grants.get(how.turn) if how else None
    return Job(
        id=row.id,
        uuid=row.spec.uuid,
        kind=row.spec.kind,
        queue=row.queue,
        priority=row.place[1],
        state=row.state,
        turn=row.turn,
        attempts=row.tally.attempts,
        failures=row.tally.failures,
        crashes=row.tally.crashes,
        max_retries=row.spec.max_retries,
        created_at=row.created_at,
        run_at=row.run_at,
        expires_at=row.spec.expires_at,
        began_at=how and _instant(how.began_at),
        ended_at=last.at if last and row.state in TERMINAL else None,
        worker=lease and lease.worker,
        reason=reason or (how and how.reason),
        error_type=how and how.error_type,
        error=how and how.error,
        args=decode_value(row.spec.args),
        result=decode_value(how and how.result),
        key=row.spec.key,
        progress=row.progress,
    )


def history_of(
    row: Row, edges: tuple[EdgeRecord, ...], slots: tuple[SlotRecord, ...]
) -> JobHistory:
    """Return all that ever happened to a job, for the audit."""
    spec = row.spec
    held = row.run_at is not None or row.held_for is not None
    return JobHistory(
        id=row.id,
        uuid=spec.uuid,
        kind=spec.kind,
        max_retries=spec.max_retries,
        max_crashes=spec.max_crashes,
        delivery=spec.delivery,
        created_at=row.created_at.timestamp(),
        run_at=epoch(row.first_at),
        entries=tuple(row.entries),
        grants=tuple(
            GrantRecord(turn, lease.worker, lease.lane, lease.seq, lease.at.timestamp())
            for turn, lease in row.grants.items()
        ),
        endings=tuple(_ending(row, turn) for turn in row.endings),
        held=HeldRecord(row.turn, row.state, epoch(row.run_at), row.held_for) if held else None,
        cancels_requested_at=tuple(row.cancels),
        stale=tuple(row.stale),
        revivals=tuple(row.revivals),
        expires_at=epoch(spec.expires_at),
        edges=edges,
        ruled_out=spec.ruled_out,
        slots=slots,
        snoozes=tuple(row.snoozes),
    )


def newest_of(history: JobHistory) -> float:
    """Return when something last happened to a job, in epoch seconds."""
    ats = [row.at for row in history.entries] + [row.at for row in history.grants]
    return max([*ats, *(row.at for row in history.endings)], default=history.created_at)


def _ending(row: Row, turn: int) -> EndingRecord:
    lease, (how, at, _) = row.grants.get(turn), row.endings[turn]
    return EndingRecord(
        turn=turn,
        ending=how.ending,
        reason=how.reason,
        worker=lease.worker if lease else None,
        began_at=how.began_at,
        ran_s=how.ran_s,
        at=at.timestamp(),
        delay_s=how.delay_s,
    )


def ends_of(row: Row) -> tuple[tuple[State, float], ...]:
    """Return each terminal state that a job has reached, and when."""
    return tuple(
        (FINAL_STATE[end.how.ending], end.at.timestamp())
        for _, end in sorted(row.endings.items())
        if end.how.ending in FINAL_STATE
    )


def epoch(instant: datetime | None) -> float | None:
    """Return an instant in epoch seconds."""
    return None if instant is None else instant.timestamp()


def _instant(epoch: float | None) -> datetime | None:
    return None if epoch is None else datetime.fromtimestamp(epoch, UTC)
