"""What the API takes and gives. Instants are RFC 3339 with an offset; integers are exact."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field
from starlette.responses import Response

from timeball.core.limits import Scope as LimitScope
from timeball.core.records import Decision, Delivery
from timeball.core.states import Ending, State

NUMBER_MAX: Final = 2**63 - 1
Number = Annotated[int, Field(ge=0, le=NUMBER_MAX)]
Name = Annotated[str, Field(min_length=1, max_length=256)]


def _written(value: Any) -> Any:
    """Let pass what was written out; Pydantic would make an instant of a number, and of true."""
    if value is None or isinstance(value, str):
        return value
    raise ValueError("write an instant with its offset, such as 2026-03-01T09:00:00+01:00")


def _whole(value: Any) -> Any:
    """Take 6.0 for what it is in JSON: the number 6."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Instant = Annotated[AwareDatetime, BeforeValidator(_written)]
WHOLE: Final = BeforeValidator(_whole)  # after the bounds, which the description would lack else
Real = Annotated[float, Field(strict=True)]
Truth = Annotated[bool, Field(strict=True)]
Priority = Annotated[int, Field(ge=0, le=9, strict=True), WHOLE]


class Model(BaseModel):
    """Base of all: nothing that is not named."""

    model_config = ConfigDict(extra="forbid")


def answer(model: Model, status: int = 200) -> Response:
    """Return an answer of JSON: integers of any length exactly, no other number than there was."""
    text = json.dumps(model.model_dump(mode="json"), ensure_ascii=False, allow_nan=False)
    return Response(text, status, media_type="application/json")


class ProgressOut(Model):
    """How far a job says that it is."""

    done: float
    total: float | None
    note: str | None
    turn: int
    at: datetime


class JobOut(Model):
    """A job. `args`, `result` and `error` are null without the scope read_payload."""

    id: int
    uuid: UUID
    kind: str
    queue: str
    priority: int
    state: State
    reason: str | None
    key: str | None
    turn: int
    attempts: int
    failures: int
    crashes: int
    max_retries: int
    created_at: datetime
    run_at: datetime | None
    expires_at: datetime | None
    began_at: datetime | None
    ended_at: datetime | None
    worker: int | None
    error_type: str | None
    error: str | None
    args: Any
    result: Any
    progress: ProgressOut | None


class JobPage(Model):
    """A page of jobs, newest first. Of those that do not fit it looks at 5,000 and no more."""

    jobs: list[JobOut] = Field(description="Perhaps none, and yet others that fit are further back")
    before: int | None = Field(description="Ask with it for the page that follows; null: none")


class TurnOut(Model):
    """One passing of a job through its queue. `error` and `result` need read_payload."""

    turn: int
    lined_at: datetime | None
    granted_at: datetime | None
    worker: int | None
    began_at: datetime | None
    ran_s: float | None
    ended_at: datetime | None
    ending: Ending | None
    reason: str | None
    error_type: str | None
    error: str | None
    result: Any


class EventOut(Model):
    """Something rare that happened to a job."""

    at: datetime
    what: str
    turn: int | None
    worker: int | None


class ParentOut(Model):
    """A job that this one comes after."""

    uuid: UUID
    rule: str
    state: State | None = Field(description="null: it was deleted")


class LineOut(Model):
    """A line that a job has logged."""

    turn: int
    at: datetime
    text: str


class JobDetail(Model):
    """A job with all that is known of it."""

    job: JobOut
    turns: list[TurnOut] = Field(description="The newest 200, oldest first")
    events: list[EventOut]
    after: list[ParentOut]
    log: list[LineOut] = Field(description="Empty without the scope read_payload")


class ParentIn(Model):
    """A job to come after, and what is waited for."""

    job: UUID
    rule: str | None = None


class JobIn(Model):
    """A job to add: as `Client.submit` takes it."""

    kind: Name
    args: dict[str, Any] = Field(default_factory=dict)
    uuid: UUID | None = Field(None, description="Sending the same one again adds nothing")
    queue: Name | None = None
    priority: Priority | None = None
    run_at: Instant | None = None
    delay_s: Annotated[Real, Field(ge=0)] | None = None
    expires_at: Instant | None = None
    max_retries: Annotated[int, Field(ge=0, strict=True), WHOLE] | None = None
    max_crashes: Annotated[int, Field(ge=1, strict=True), WHOLE] | None = None
    timeout_s: Annotated[Real, Field(gt=0)] | None = None
    delivery: Delivery | None = None
    key: Name | None = None
    unique: Name | None = None
    unique_scope: Literal["kind", "queue", "global"] | None = None
    unique_until: Literal["ended", "started"] | None = None
    on_clash: Literal["ignore", "reject", "replace"] | None = None
    after: Annotated[list[ParentIn], Field(max_length=1_000)] | None = None
    ruled_out: Literal["skip", "fail", "run"] | None = None


class Submitted(Model):
    """A job that was added, or the one that was there."""

    id: int
    uuid: UUID


class MoveIn(Model):
    """Where a job is to wait: another queue, another priority, or both."""

    queue: Name | None = None
    priority: Priority | None = None


class SnoozeIn(Model):
    """When a job may start at the earliest: one of both."""

    until: Instant | None = None
    delay_s: Annotated[Real, Field(ge=0)] | None = None


class ParentsIn(Model):
    """The jobs that a job is to wait for too."""

    after: Annotated[list[ParentIn], Field(min_length=1, max_length=1_000)]


class Answered(Model):
    """What became of a change."""

    answer: str


class Counts(Model):
    """How many jobs are in each state. What has ended is counted among the newest jobs only."""

    counts: dict[State, int]
    newest: int = Field(description="Among so many of the newest jobs those ended are counted")
    capped: list[State] = Field(description="Of these there are so many, or more")


class QueueOut(Model):
    """A queue. Numbers of jobs end at `counted_to`: it means so many or more."""

    name: str
    pending: int
    held: int
    running: int
    oldest_s: float | None
    paused_at: datetime | None
    paused_by: str | None
    at_once: int | None
    max_depth: int | None
    counted_to: int = Field(description="10,000; less where there are many queues")


class QueueList(Model):
    """Every queue, by name."""

    queues: list[QueueOut]


class DepthIn(Model):
    """How many jobs may wait in a queue; null: any number."""

    max_depth: Annotated[int, Field(ge=1, le=1_000_000, strict=True), WHOLE] | None


class LimitOut(Model):
    """A limit, and how far it is used up."""

    scope: LimitScope
    name: str
    at_once: int | None
    used: int
    rate: str | None


class LimitList(Model):
    """Every limit that was set."""

    limits: list[LimitOut]


class LimitIn(Model):
    """What to limit. What is left out stays as it is; null takes a limit away."""

    scope: LimitScope
    name: Name
    at_once: Annotated[int, Field(ge=1, le=10_000, strict=True), WHOLE] | None = None
    rate: Annotated[str, Field(max_length=64, examples=["5/s", "100/m"])] | None = None


class ScheduleOut(Model):
    """A schedule. `args` is null without the scope read_payload."""

    name: str
    kind: str
    expression: str
    tz: str
    gap: str
    overlap: str
    queue: str
    priority: int
    catchup: str
    overlap_runs: str
    source: str
    state: str
    error: str | None
    next_at: datetime | None
    fired: int
    fired_at: datetime | None
    last_job: UUID | None
    args: Any


class ScheduleList(Model):
    """Every schedule, by name."""

    schedules: list[ScheduleOut]


class OccurrenceOut(Model):
    """What was decided about an occurrence, and why."""

    at: datetime
    decision: Decision
    reason: str | None
    decided_at: datetime
    job: UUID | None
    job_state: State | None


class ScheduleDetail(Model):
    """A schedule, when it fires next, and what was decided lately."""

    schedule: ScheduleOut
    next: list[datetime]
    occurrences: list[OccurrenceOut] = Field(description="The latest 50, latest first")


class ResumeIn(Model):
    """How to resume a schedule."""

    backfill: Truth = Field(False, description="Run what came during the pause")


class WorkerOut(Model):
    """A worker."""

    id: int
    name: str
    kinds: list[str]
    queues: list[str]
    lease_s: float
    started_at: datetime
    beat_at: datetime
    silent_s: float
    ended_at: datetime | None
    end_reason: str | None
    running: int


class WorkerList(Model):
    """The workers that live, and the latest 20 that do not."""

    workers: list[WorkerOut]


class OperationOut(Model):
    """A change that a person made."""

    id: int
    at: datetime
    who: str
    origin: str
    what: str
    target: str
    before: Any
    after: Any
    ended_at: datetime | None


class OperationPage(Model):
    """A page of changes, newest first."""

    operations: list[OperationOut]
    before: int | None = Field(description="Ask with it for the page that follows; null: none")
