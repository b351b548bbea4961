"""The records that pass between the layers. All are immutable; none does I/O.

Those of the hot path (`Turn`, `Settlement`) are named tuples, because a frozen
dataclass of this size costs ten times as long to make; the others are frozen
dataclasses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from timeball.core.dependencies import Awaited, Edge, RuledOut
from timeball.core.notes import Progress
from timeball.core.states import Ending, State
from timeball.core.uniqueness import Unique

PRIORITY_DEFAULT = 5
AGING_DEFAULT_S = 10.0
"""What a priority class is worth, in seconds of waiting."""

"""The middle one of the classes 0 … 9; 9 starts first."""

MAX_CRASHES_DEFAULT = 3


class Delivery(StrEnum):
    """What happens to a job whose worker died in the middle of an attempt."""

    AT_LEAST_ONCE = "at_least_once"  # another attempt follows
    AT_MOST_ONCE = "at_most_once"  # failed with reason "lost": never a second attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """What a caller asks for, checked and encoded, before any store has seen it."""

    uuid: UUID
    """Made by the caller: submitting the same one twice gives one job."""

    kind: str
    """Name of what is to be run, such as ``"mail.welcome"``."""

    args: str = "{}"
    """Keyword arguments as the text of a JSON object."""

    queue: str = "default"
    priority: int = PRIORITY_DEFAULT
    run_at: datetime | None = None
    """Earliest start, aware; None means at once."""

    delay_s: float | None = None
    """In place of `run_at`: seconds from the submit, by the store's clock."""

    max_retries: int = 3
    max_crashes: int = MAX_CRASHES_DEFAULT
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    timeout_s: float | None = None
    expires_at: datetime | None = None
    """If it has not begun by then, aware, it is skipped."""

    unique: Unique | None = None
    key: str | None = None
    """Of the jobs with the same key only so many are under way at once as its limit says."""

    after: tuple[Edge, ...] = ()
    """Its parents: jobs that exist, or come earlier in the same submission."""

    ruled_out: RuledOut = RuledOut.SKIP


class Turn(NamedTuple):
    """One granted turn of one job: the right to carry out one attempt and to say how it ended."""

    lane: int
    seq: int
    """With `lane` the key of the lease that grants this turn."""

    job_id: int
    turn: int
    """The fencing token: 1, 2, 3 … per job."""

    uuid: UUID
    kind: str
    args: str
    attempts: int
    """Turns of this job that began before this one."""

    failures: int
    crashes: int
    delay_s: float
    """The wait that came before this turn, for decorrelated jitter; 0 at first."""

    max_retries: int
    timeout_s: float | None
    granted_at: float
    """Epoch seconds on the store's clock: the instant of the lease."""

    at_most_once: bool = False  # no attempt may follow one that has begun
    ready_at: float = 0.0
    """Epoch seconds on the store's clock: from then on this turn might start."""

    limited: bool = False
    """When it ends, another turn that waits for its key or its queue may have room."""

    rates: Sequence[str] = ()
    """The limits of which its start needs permits, such as ``kind:a``."""

    waited: bool = False
    """Whether it has come out of the line of those that wait for such a limit."""

    awaited: Awaited | None = None


class Settlement(NamedTuple):
    """How one turn ended, decided by `outcomes.decide` and written by a store."""

    lane: int
    seq: int
    job_id: int
    turn: int
    ending: Ending
    reason: str | None = None
    """Short word for machines: "exhausted", "permanent", "timeout", "undecodable" …"""

    delay_s: float = 0.0
    """Seconds until the next turn may start, where the ending is RETRIED or SNOOZED."""

    began_at: float | None = None
    """Epoch seconds, the store's clock; None where the turn never began."""

    ran_s: float = 0.0
    result: str | None = None
    """Text of a JSON value."""

    error_type: str | None = None
    error: str | None = None
    spawned: tuple[JobSpec, ...] = ()  # added if this is accepted, where the ending is AWAITED


class Verdict(StrEnum):
    """What became of one settlement."""

    ACCEPTED = "accepted"
    ALREADY = "already"  # the same worker had written the same ending: an answer was lost
    STALE = "stale"  # the turn was never this worker's, or has ended otherwise


class CancelAnswer(StrEnum):
    """What a cancel achieved."""

    CANCELLED = "cancelled"  # it will never start
    REQUESTED = "requested"  # it runs; one terminal state follows, no new attempt
    FINISHED = "finished"  # it had ended before
    NOT_FOUND = "not_found"


class Promoted(NamedTuple):
    """What `promote` did."""

    moved: int
    next_due_s: float | None
    """Seconds until a job falls due, or some may come that wait for a rate; None: none does."""
    rated: frozenset[str] = frozenset()
    """The queues whose starts are limited: a claim needs permits for them."""
    lined: bool = False
    """Whether the starts of some kind are limited: its jobs come to their lanes by promoting."""


class Pulse(NamedTuple):
    """One worker's sign of life, as read by a sweeper."""

    worker: int
    beat: int
    lease_s: float


class Expired(NamedTuple):
    """What became of the open turns of a worker that was given up."""

    released: int
    lost: int
    failed: int
    cancelled: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One job as a reader sees it, all from one snapshot."""

    id: int
    uuid: UUID
    kind: str
    queue: str
    priority: int
    state: State
    turn: int
    """The turn that the state speaks of."""

    attempts: int
    failures: int
    crashes: int
    max_retries: int
    created_at: datetime
    run_at: datetime | None
    """When it falls due; None unless scheduled."""

    began_at: datetime | None
    ended_at: datetime | None
    worker: int | None
    reason: str | None
    error_type: str | None
    error: str | None
    args: Any = field(default_factory=dict)
    result: Any = None
    expires_at: datetime | None = None
    """If it has not begun by then, it is skipped."""
    key: str | None = None
    progress: Progress | None = None
    """How far it says that it is; None also in a list of jobs."""


class OverlapRuns(StrEnum):
    """What happens to an occurrence while an earlier job of its schedule has not ended."""

    ALLOW = "allow"  # it runs beside it
    SKIP = "skip"  # it is skipped
    QUEUE_ONE = "queue_one"  # it waits until that one has ended; a second one is skipped
    REPLACE = "replace"  # that one is cancelled, and it runs


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSpec:
    """A recurring job as somebody declares it."""

    name: str
    """Unique; declaring it again changes it."""

    kind: str
    expression: str
    tz: str
    gap: str
    overlap: str
    terms: str = "{}"
    """What bounds and bends its occurrences, as the text of a JSON object: `Terms.to_json`."""

    args: str = "{}"
    queue: str = "default"
    priority: int = PRIORITY_DEFAULT
    max_retries: int = 3
    max_crashes: int = MAX_CRASHES_DEFAULT
    delivery: str = Delivery.AT_LEAST_ONCE
    timeout_s: float | None = None
    key: str | None = None
    catchup: str = "last"
    catchup_window_s: float = 86_400.0
    """What is later than this never runs."""

    catchup_limit: int = 1_000
    """With catchup "all": how many of the latest run."""

    grace_s: float = 60.0
    """With catchup "none": what is later than this does not run."""

    overlap_runs: str = OverlapRuns.ALLOW
    source: str = ""
    """Which file declared it; a later version of that file may take it back."""


class Standing(NamedTuple):
    """How far a schedule has come, as somebody computed it, and from which zone data."""

    cursor: datetime
    """Every occurrence up to here, inclusive, has been decided."""

    next_at: datetime | None
    """The first occurrence after the cursor that may run; None if there is none."""

    due_at: datetime | None = None
    """When the first one is to be decided, whether or not it may run; None: at `next_at`."""

    zone_version: str = ""
    fingerprint: str = ""
    """Of what the zone data say about the schedule's zone in the years after the cursor."""

    offset_s: int = 0
    """What the wall clock adds to UTC at the cursor, by those data."""


class Schedule(NamedTuple):
    """A schedule as a store holds it."""

    id: int
    spec: ScheduleSpec
    revision: int
    """Raised by every change; a decision made for an older one is refused."""

    cursor: datetime
    """Every occurrence up to here, inclusive, has been decided."""

    next_at: datetime | None
    """The first occurrence after the cursor that may run; None if there is none."""

    state: str
    """"active", "paused" or "error"."""

    error: str | None
    due_at: datetime | None = None
    """When the next occurrence is to be decided: its instant and the jitter."""

    zone_version: str = ""
    fingerprint: str = ""
    offset_s: int = 0
    fired: int = 0
    """Occurrences that have run since its expression, zone, policy and terms are what they are."""

    fired_at: datetime | None = None
    """The latest occurrence that has run."""

    last_job: UUID | None = None
    """The job that was added last, for whatever reason."""


BACKFILL = "backfill"
"""Why an occurrence was fired afterwards."""

SKIP_REASONS = frozenset(
    {
        *("excluded", "gap"),  # its schedule means it
        *("missed", "superseded", "window", "limit"),  # it was late
        *("overlap", "max_runs", "paused"),
    }
)
"""Why an occurrence may be skipped."""


class Decision(StrEnum):
    """What was done about one occurrence. Exactly one is recorded for each."""

    FIRED = "fired"
    SKIPPED = "skipped"


class OccurrenceDecision(NamedTuple):
    """One occurrence and what is to be done about it."""

    nominal_at: datetime
    decision: Decision
    reason: str | None
    args: str
    """The job's arguments."""


class Firing(NamedTuple):
    """What is to be recorded about one schedule, as it was read."""

    schedule: Schedule
    decisions: Sequence[OccurrenceDecision]
    standing: Standing
    moved: bool = False
    """Whether other zone data have moved its occurrences: what is to be decided counts anew."""


class Fired(NamedTuple):
    """What became of schedules that were due."""

    now: datetime
    """The clock that they were due by."""

    due: int
    answers: list[tuple[Firing, list[int] | None]]
    """Each firing with what `Store.fire` says of it."""


class ZoneUse(NamedTuple):
    """A zone that active schedules are in, and the zone data they were last computed with."""

    tz: str
    zone_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedOccurrence:
    """One occurrence as a reader sees it: what was decided, why, and what became of its job."""

    nominal_at: datetime
    decided_at: datetime
    decision: Decision
    reason: str | None
    """Why it was skipped; "backfill" where it was asked for afterwards."""

    job: UUID | None
    job_state: State | None
