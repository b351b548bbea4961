"""The API about jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Path, Query, Request, Response

from timeball.core.batches import BATCH
from timeball.core.dependencies import EdgesAnswer
from timeball.core.queues import COUNT_MAX, Queue
from timeball.core.records import CancelAnswer, Job
from timeball.core.redaction import redacted, redacted_value
from timeball.core.states import State
from timeball.core.upkeep import DeleteAnswer, MoveAnswer, ReviveAnswer, SnoozeAnswer
from timeball.errors import JobNotFound
from timeball.store.postgres.panorama import NEWEST_MAX, TurnRecord
from timeball.web.api.models import (
    NUMBER_MAX,
    Answered,
    Counts,
    EventOut,
    JobDetail,
    JobIn,
    JobOut,
    JobPage,
    LineOut,
    MoveIn,
    ParentIn,
    ParentOut,
    ParentsIn,
    ProgressOut,
    SnoozeIn,
    Submitted,
    TurnOut,
    answer,
)
from timeball.web.desk import Desk, caller_of, desk_of, sees_payload
from timeball.web.problems import Problem
from timeball.web.routes import Routes
from timeball.web.scopes import Scope

PAGE_MAX: Final = 500
"""Jobs of a page."""

routes = Routes("jobs")
Which = Annotated[str, Path(description="A uuid, or a job's number", max_length=64)]
Text = Annotated[str | None, Query(min_length=1, max_length=256)]


@routes.get("/api/v1/jobs", Scope.READ, gives=JobPage)
def list_jobs(
    request: Request,
    state: State | None = None,
    queue: Text = None,
    kind: Text = None,
    before: Annotated[int | None, Query(ge=0, le=NUMBER_MAX)] = None,
    limit: Annotated[int, Query(ge=1, le=PAGE_MAX)] = 50,
) -> Response:
    """List jobs, newest first."""
    only = {"state": state, "queue": queue, "kind": kind}
    found, more = page_of(desk_of(request), only, limit=limit, before_id=before)
    payload = sees_payload(request)
    return answer(JobPage(jobs=[job_out(job, payload=payload) for job in found], before=more))


@routes.get("/api/v1/counts", Scope.READ, gives=Counts)
def count_jobs(request: Request) -> Response:
    """Count jobs by their states, up to a bound."""
    counts, capped = counted(desk_of(request))
    return answer(Counts(counts=counts, newest=NEWEST_MAX, capped=sorted(capped)))


@routes.get("/api/v1/jobs/{job}", Scope.READ, gives=JobDetail, also=(404,))
def show_job(request: Request, job: Which) -> Response:
    """Show one job with its history."""
    desk, payload = desk_of(request), sees_payload(request)
    found = desk.find(job)
    turns = [turn_out(turn, payload=payload) for turn in desk.panorama.turns(found.id)]
    lines = desk.look.logs(found.uuid) if payload else []
    parents = desk.look.store.parents(found.id)
    return answer(
        JobDetail(
            job=job_out(found, payload=payload),
            turns=turns,
            events=[EventOut(**each._asdict()) for each in desk.panorama.happened(found.id)],
            after=[ParentOut(uuid=one.uuid, rule=one.rule, state=one.state) for one in parents],
            log=[LineOut(turn=n, at=at, text=redacted(text)) for n, at, text in lines],
        )
    )


@routes.post("/api/v1/jobs", Scope.SUBMIT, gives=Submitted, status=201, also=(409, 429))
def submit_job(request: Request, job: JobIn) -> Response:
    """Add one job."""
    return answer(submit(request, job), 201)


@routes.post("/api/v1/jobs/{job}/cancel", Scope.OPERATE, gives=Answered, also=(404, 409))
def cancel_job(request: Request, job: Which) -> Response:
    """Keep a job from starting, or ask its attempt to stop (-> cancelled)."""
    return answer(Answered(answer=cancel(request, job)))


@routes.post("/api/v1/jobs/{job}/revive", Scope.OPERATE, gives=Answered, also=(404, 409))
def revive_job(request: Request, job: Which) -> Response:
    """Start a job again that failed, was cancelled or skipped (-> pending)."""
    return answer(Answered(answer=revive(request, job)))


@routes.post("/api/v1/jobs/{job}/move", Scope.OPERATE, gives=Answered, also=(404, 409))
def move_job(request: Request, job: Which, where: MoveIn) -> Response:
    """Let a job that has not begun wait in another queue, with another priority, or both."""
    return answer(Answered(answer=move(request, job, **where.model_dump())))


@routes.post("/api/v1/jobs/{job}/snooze", Scope.OPERATE, gives=Answered, also=(404, 409))
def snooze_job(request: Request, job: Which, when: SnoozeIn) -> Response:
    """Let a job that has not begun start at an instant at the earliest (-> scheduled)."""
    return answer(Answered(answer=snooze(request, job, **when.model_dump())))


@routes.post("/api/v1/jobs/{job}/parents", Scope.OPERATE, gives=Answered, also=(404, 409))
def add_parents_of_job(request: Request, job: Which, more: ParentsIn) -> Response:
    """Have a job that waits for others wait for more of them: for all of these, or none."""
    return answer(Answered(answer=add_parents(request, job, pairs_of(more.after))))


@routes.delete("/api/v1/jobs/{job}", Scope.ADMIN, gives=Answered, also=(404, 409))
def delete_job(request: Request, job: Which) -> Response:
    """Delete a job that has ended, with its history."""
    return answer(Answered(answer=delete(request, job)))


def submit(request: Request, job: JobIn, *, on_record: bool = False) -> Submitted:
    """Add a job. Programs add many, each of them its own record; what a person adds is on record.

    Raises:
        UsageError: It can never work, and what to write instead.
        UniqueClash: Another job holds its unique key, and does not give way.
        QueueFull: Too many jobs wait in the queue.
    """
    given = job.model_dump(exclude_none=True, exclude={"kind", "after"})
    if job.after:
        given["after"] = pairs_of(job.after)
    desk = desk_of(request)

    def change() -> dict[str, Any]:
        handle = desk.client.submit(job.kind, **given)
        return {"id": handle.id, "uuid": handle.uuid}

    if not on_record:
        return Submitted(**change())
    caller, target, before = caller_of(request), f"job {job.uuid}", {"kind": job.kind}
    return Submitted(**desk.record(caller, "job.submit", target, before=before, change=change))


def cancel(request: Request, text: str) -> str:
    """Cancel a job on record; return what became of it.

    Raises:
        Problem: It had ended before, or is a batch.
    """

    def change(desk: Desk, job: Job) -> str:
        if job.kind == BATCH:
            raise Problem(409, f"it is a batch: POST /api/v1/batches/{job.uuid}/cancel instead")
        given = desk.client.cancel(job.uuid)
        return _accepted(given, job, refused=given is CancelAnswer.FINISHED)

    return _changed(request, text, "job.cancel", change)


def revive(request: Request, text: str) -> str:
    """Revive a job on record; return what became of it.

    Raises:
        Problem: It has not ended, has succeeded, or another job holds its unique key.
    """

    def change(desk: Desk, job: Job) -> str:
        given = desk.client.revive(job.uuid)
        return _accepted(given, job, refused=given is not ReviveAnswer.REVIVED)

    return _changed(request, text, "job.revive", change)


def move(request: Request, text: str, **where: Any) -> str:
    """Move a job on record; return what became of it. `where` is as `Client.move` takes it.

    Raises:
        UsageError: It does not say where to.
        Problem: It has begun or ended before.
    """

    def change(desk: Desk, job: Job) -> str:
        given = desk.client.move(job.uuid, **where)
        return _accepted(given, job, refused=given is not MoveAnswer.MOVED)

    return _changed(request, text, "job.move", change, **where)


def snooze(request: Request, text: str, **when: Any) -> str:
    """Put a job off on record; return what became of it. `when` is as `Client.snooze` takes it.

    Raises:
        UsageError: It does not say until when.
        Problem: It has begun or ended before, or waits for other jobs.
    """

    def change(desk: Desk, job: Job) -> str:
        given = desk.client.snooze(job.uuid, **when)
        return _accepted(given, job, refused=given is not SnoozeAnswer.SNOOZED)

    return _changed(request, text, "job.snooze", change, **when)


def add_parents(request: Request, text: str, after: Sequence[UUID | tuple[UUID, str]]) -> str:
    """Have a job wait for more others on record; return what became of it.

    Args:
        request: Who asks for it.
        text: The job.
        after: Its new parents, as `Client.add_edges` takes them.

    Raises:
        UsageError: One of them is not here, or waits for the job itself.
        Problem: It waits for no parent, or has begun or ended before.
    """

    def change(desk: Desk, job: Job) -> str:
        given = desk.client.add_edges(job.uuid, after)
        return _accepted(given, job, refused=given is EdgesAnswer.REFUSED)

    named = [str(one) if isinstance(one, UUID) else f"{one[0]} {one[1]}" for one in after]
    return _changed(request, text, "job.add_parents", change, after=", ".join(named))


def pairs_of(parents: Sequence[ParentIn]) -> list[UUID | tuple[UUID, str]]:
    """Return parents as a client takes them."""
    return [one.job if one.rule is None else (one.job, one.rule) for one in parents]


def delete(request: Request, text: str) -> str:
    """Delete a job on record; return what became of it.

    Raises:
        Problem: It has not ended.
    """

    def change(desk: Desk, job: Job) -> str:
        given = desk.client.delete(job.uuid)
        return _accepted(given, job, refused=given is DeleteAnswer.REFUSED)

    return _changed(request, text, "job.delete", change)


def _changed(request: Request, text: str, what: str, change: Any, **asked: Any) -> str:
    desk = desk_of(request)
    job = desk.find(text)
    after = desk.record(
        caller_of(request),
        what,
        f"job {job.uuid}",
        before={"state": job.state, "turn": job.turn},
        change=lambda: {"answer": change(desk, job), **_plain(asked)},
    )
    return str(after["answer"])


def _plain(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was asked for, as the record can hold it."""
    return {name: str(value) for name, value in asked.items() if value is not None}


def _accepted(given: str, job: Job, *, refused: bool) -> str:
    if given == "not_found":
        raise JobNotFound(job.uuid)
    if refused:
        raise Problem(409, f"the job is {job.state}: {given}; nothing was changed")
    return str(given)


def page_of(
    desk: Desk,
    only: Mapping[str, Any],
    *,
    limit: int,
    before_id: int | None,
    looked: int | None = None,
) -> tuple[list[Job], int | None]:
    """Return a page of jobs, and before which id to ask for the next; None: there is none.

    Where not every job fits, it looks at a bounded number of them: it may hold few, or none, and
    yet not be the last.

    Args:
        desk: Where to look.
        only: `state`, `queue` and `kind`, as `timeball.store.base.JobFilter` has them.
        limit: Jobs of the page.
        before_id: The last id of the page before.
        looked: At how many jobs it looks; None: `LOOKED_MAX`.
    """
    some = any(value is not None for value in only.values())
    horizon = desk.panorama.horizon(only.get("state"), before_id, looked) if some else None
    found = desk.look.jobs(limit=limit + 1, before_id=before_id, from_id=horizon, **only)
    if len(found) > limit:
        return found[:limit], found[limit - 1].id
    return found, horizon


def counted(desk: Desk) -> tuple[dict[State, int], set[State]]:
    """Return how many jobs are in each state, and in which there are so many or more.

    Those that have ended are counted among the newest only.
    """
    found, capped = waiting(desk, desk.look.queues())
    for state, minutes in desk.panorama.endings().items():
        found[state] = minutes.total()
        if found[state] >= NEWEST_MAX:
            capped.add(state)
    return {state: found[state] for state in State}, capped


def waiting(desk: Desk, queues: Sequence[Queue]) -> tuple[Counter[State], set[State]]:
    """Return how many jobs are in each state that no job ends in, and of which there are more."""
    found = desk.panorama.held()
    found[State.PENDING] += sum(queue.pending for queue in queues)
    found[State.RUNNING] = sum(queue.running for queue in queues)
    capped = {state for state, count in found.items() if count >= COUNT_MAX}
    if any(queue.pending >= queue.counted_to for queue in queues):
        capped.add(State.PENDING)
    return Counter({state: min(count, COUNT_MAX) for state, count in found.items()}), capped


def job_out(job: Job, *, payload: bool) -> JobOut:
    """Return a job for JSON; what looks like a secret is hidden."""
    facts = asdict(job)
    facts["progress"] = None
    if job.progress is not None:
        progress = ProgressOut(**job.progress._asdict())
        facts["progress"] = progress if payload else progress.model_copy(update={"note": None})
    facts["args"] = redacted_value("", job.args) if payload else None
    facts["result"] = redacted_value("", job.result) if payload else None
    facts["error"] = redacted(job.error) if payload and job.error else None
    return JobOut(**facts)


def turn_out(turn: TurnRecord, *, payload: bool) -> TurnOut:
    """Return a turn for JSON."""
    facts = turn._asdict()
    del facts["direct"]
    facts["error"] = redacted(turn.error) if payload and turn.error else None
    facts["result"] = redacted_value("", turn.result) if payload else None
    return TurnOut(**facts)
