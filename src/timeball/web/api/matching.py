"""Changes of all jobs that a filter lets through, in bounded parts."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Final

from fastapi import Request, Response
from pydantic import Field

from timeball.action.job_specs import checked_name
from timeball.client import Client
from timeball.core.batches import BATCH
from timeball.core.records import Job
from timeball.core.states import TERMINAL, State
from timeball.errors import StoreUnavailable, UsageError
from timeball.web.api.jobs import page_of
from timeball.web.api.models import WHOLE, Model, Name, Truth, answer
from timeball.web.desk import Desk, caller_of, desk_of
from timeball.web.routes import Routes
from timeball.web.scopes import Scope

JOBS_MAX: Final = 5_000
"""Jobs that one request changes; it may be sent again for those that are left."""

PART: Final = 500
"""Of them in one transaction."""

WORK_S: Final = 8.0
"""Then a request begins no other part."""

STATES: Final = {
    "cancel": tuple(state for state in State if state not in TERMINAL),
    "revive": (State.FAILED, State.CANCELLED, State.SKIPPED),
    "delete": tuple(state for state in State if state in TERMINAL),
}
"""In which states an action means something to a job."""

_TOP: Final = 10**18 - 1
"""No job has a greater number."""

routes = Routes("jobs")


class MatchingIn(Model):
    """Which jobs are meant: at least one of state, queue and kind, or every one."""

    state: State | None = None
    queue: Name | None = None
    kind: Name | None = None
    every: Truth = False
    up_to: Annotated[int, Field(ge=0, le=10**18, strict=True), WHOLE] | None = Field(
        None, description="No job with a greater number, so that none is meant that came since"
    )
    mark: Annotated[str, Field(pattern=r"^[a-z]{1,16}:[0-9]{1,18}$")] | None = Field(
        None, description="Where the answer before said that it goes on"
    )


class Matched(Model):
    """What became of them."""

    answers: dict[str, int]
    mark: str | None = Field(description="Ask again with it for what is left; null: nothing is")
    away: bool = Field(
        default=False, description="The database went away in the middle: wait before asking again"
    )


@routes.post("/api/v1/matching/cancel", Scope.OPERATE, gives=Matched)
def cancel_matching(request: Request, which: MatchingIn) -> Response:
    """Keep jobs from starting, or ask them to stop, up to 5,000 (-> cancelled)."""
    return answer(changed(request, "cancel", which))


@routes.post("/api/v1/matching/revive", Scope.OPERATE, gives=Matched)
def revive_matching(request: Request, which: MatchingIn) -> Response:
    """Start jobs again that failed, were cancelled or skipped, up to 5,000 (-> pending)."""
    return answer(changed(request, "revive", which))


@routes.post("/api/v1/matching/delete", Scope.ADMIN, gives=Matched)
def delete_matching(request: Request, which: MatchingIn) -> Response:
    """Delete jobs that have ended, up to 5,000, with their history."""
    return answer(changed(request, "delete", which))


def states_of(action: str, state: State | None) -> tuple[State, ...]:
    """Return the states in which an action is meant: all that it has a meaning in, or one."""
    meant = STATES[action]
    return meant if state is None else tuple(each for each in meant if each == state)


def changed(request: Request, action: str, which: MatchingIn) -> Matched:
    """Change jobs on record, part by part, as far as one request goes.

    Raises:
        UsageError: No job is named, nor all of them; a name or the state is none for this.
    """
    named = {name: text for name in ("queue", "kind") if (text := getattr(which, name))}
    only = {name: checked_name(name, text) for name, text in named.items()}
    states = states_of(action, which.state)
    if not (only or which.state or which.every):
        raise UsageError('which ones? write state, queue or kind, or "every": true for all')
    if not states:
        raise UsageError(f"{action} is for jobs that are {', '.join(STATES[action])}")
    desk = desk_of(request)
    found = Matched(answers={}, mark=None)

    def change() -> dict[str, Any]:
        nonlocal found
        found = _parts(desk, _CHANGES[action], _places(states, which), only)
        return found.model_dump()

    words = [f"{name}:{text}" for name, text in (("state", which.state), *only.items()) if text]
    target = f"jobs: {' '.join(words) or 'every one'}"
    before = {"up_to": which.up_to, "mark": which.mark}
    try:
        desk.record(caller_of(request), f"jobs.{action}", target, before=before, change=change)
    except StoreUnavailable:
        if not found.answers:
            raise
        # The record stays open; who asks is told what was done all the same.
        return found.model_copy(update={"away": True})
    return found


def _places(states: Sequence[State], which: MatchingIn) -> list[tuple[State, int]]:
    """Return where to look: each state with the number below which."""
    first = min(_TOP, _TOP if which.up_to is None else which.up_to + 1)
    if which.mark is None:
        return [(state, first) for state in states]
    name, _, number = which.mark.partition(":")
    if name not in states:
        raise UsageError("mark: write the one that the answer before gave")
    at = states.index(State(name))
    return [(states[at], min(int(number), first)), *((state, first) for state in states[at + 1 :])]


def _parts(
    desk: Desk,
    change: Callable[[Client, list[Job]], Iterable[str]],
    places: Sequence[tuple[State, int]],
    only: dict[str, Any],
) -> Matched:
    answers, until, left = Counter[str](), time.monotonic() + WORK_S, deque(places)
    while left:
        state, before = left.popleft()
        here = Matched(answers=answers, mark=f"{state}:{before}")
        most = min(PART, JOBS_MAX - answers.total())
        if not most or time.monotonic() > until:
            return here
        try:
            page, more = page_of(desk, {**only, "state": state}, limit=most, before_id=before)
            answers.update(str(each) for each in change(desk.client, page))
        except StoreUnavailable:
            if not answers:
                raise
            return here.model_copy(update={"away": True})
        if more is not None:
            left.appendleft((state, more))
    return Matched(answers=answers, mark=None)


def _cancel(client: Client, jobs: list[Job]) -> Iterable[str]:
    """Cancel jobs; a batch is left alone, for it ends with the last of its own."""
    uuids = [job.uuid for job in jobs if job.kind != BATCH]
    done = client.store.cancel_many(uuids) if uuids else set()
    yield from ("cancelled" for _ in done)
    yield from (client.cancel(uuid) for uuid in uuids if uuid not in done)
    yield from ("refused" for _ in jobs[len(uuids) :])


_CHANGES: Final[dict[str, Callable[[Client, list[Job]], Iterable[str]]]] = {
    "cancel": _cancel,
    "revive": lambda client, jobs: client.revive_many(job.uuid for job in jobs),
    "delete": lambda client, jobs: client.delete_many(job.uuid for job in jobs),
}
