"""The states of a job, and the only ways to move between them.

`TRANSITIONS` is the one source of truth. The memory store asks `allowed`; every
SQL file that moves a job names its events in its first line, and
`tests/architecture/test_sql_guards.py` fails where the two disagree. The diagram
in `docs/concepts/states.md` is what `mermaid` prints.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import Final


class State(StrEnum):
    """Where a job is. Every job is in exactly one state at any instant."""

    SCHEDULED = "scheduled"  # not before a later instant: run_at, a backoff, a snooze
    WAITING = "waiting"  # some parent has not yet decided, or a call from outside has not come
    PENDING = "pending"  # may start now
    RUNNING = "running"  # one turn is granted to one worker
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"  # ruled out before it began: by a parent, or by its deadline


class Event(StrEnum):
    """What can happen to a job. Named for the cause, not for the new state."""

    DUE = "due"  # the clock has passed run_at
    RELEASE = "release"  # a parent frees a child; a stopping worker gives a turn back
    SKIP = "skip"  # an edge can no longer be satisfied
    CLAIM = "claim"  # a turn is granted to one worker
    SUCCEED = "succeed"
    RETRY = "retry"  # the attempt failed and the retry budget is not spent
    FAIL = "fail"  # a permanent error, or the budget is spent
    SNOOZE = "snooze"  # the job, or before it began an operator, asked for later; no retry
    EXPIRE = "expire"  # the worker's lease was observed to have ended
    CANCEL = "cancel"
    LAPSE = "lapse"  # its expires_at has passed before it began
    MOVE = "move"  # its priority or queue has changed
    JOIN = "join"  # the last job of a batch has ended, and with it the batch
    CALL = "call"  # what a callback waits for has come
    AWAIT = "await"  # it waits for children that it spawned
    REVIVE = "revive"  # an operator starts it again


TERMINAL: Final = frozenset({State.SUCCEEDED, State.FAILED, State.CANCELLED, State.SKIPPED})
INITIAL: Final = frozenset({State.SCHEDULED, State.WAITING, State.PENDING})

_S = State
TRANSITIONS: Final = MappingProxyType(
    {
        (_S.SCHEDULED, Event.DUE): frozenset({_S.PENDING}),
        (_S.WAITING, Event.RELEASE): frozenset({_S.PENDING, _S.SCHEDULED}),
        (_S.WAITING, Event.SKIP): frozenset({_S.SKIPPED, _S.FAILED}),
        (_S.WAITING, Event.JOIN): TERMINAL,
        (_S.WAITING, Event.CALL): frozenset({_S.SUCCEEDED}),
        (_S.PENDING, Event.CLAIM): frozenset({_S.RUNNING}),
        (_S.RUNNING, Event.SUCCEED): frozenset({_S.SUCCEEDED}),
        # Where a cancel was requested, what would have become another turn ends cancelled.
        (_S.RUNNING, Event.RETRY): frozenset({_S.SCHEDULED, _S.CANCELLED}),
        (_S.RUNNING, Event.SNOOZE): frozenset({_S.SCHEDULED, _S.CANCELLED}),
        (_S.RUNNING, Event.RELEASE): frozenset({_S.PENDING, _S.CANCELLED}),
        (_S.RUNNING, Event.EXPIRE): frozenset({_S.PENDING, _S.SCHEDULED, _S.FAILED, _S.CANCELLED}),
        (_S.RUNNING, Event.FAIL): frozenset({_S.FAILED}),
        (_S.RUNNING, Event.CANCEL): frozenset({_S.CANCELLED}),
        (_S.RUNNING, Event.AWAIT): frozenset({_S.WAITING}),
        (_S.SCHEDULED, Event.CANCEL): frozenset({_S.CANCELLED}),
        (_S.WAITING, Event.CANCEL): frozenset({_S.CANCELLED}),
        (_S.PENDING, Event.CANCEL): frozenset({_S.CANCELLED}),
        (_S.SCHEDULED, Event.LAPSE): frozenset({_S.SKIPPED}),
        (_S.WAITING, Event.LAPSE): frozenset({_S.SKIPPED}),
        (_S.PENDING, Event.LAPSE): frozenset({_S.SKIPPED}),
        (_S.PENDING, Event.MOVE): frozenset({_S.PENDING}),
        (_S.PENDING, Event.SNOOZE): frozenset({_S.SCHEDULED}),
        (_S.FAILED, Event.REVIVE): frozenset({_S.PENDING, _S.WAITING}),
        (_S.CANCELLED, Event.REVIVE): frozenset({_S.PENDING, _S.WAITING}),
        (_S.SKIPPED, Event.REVIVE): frozenset({_S.PENDING, _S.WAITING}),
    }
)


class Ending(StrEnum):
    """How one turn ended. A job has at most one ending per turn: that is the fence."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    EXPIRED = "expired"  # its deadline passed before it began
    RETRIED = "retried"  # this one and those below are followed by another turn
    SNOOZED = "snoozed"
    RELEASED = "released"
    LOST = "lost"  # its worker, or its process apart, died; costs one crash
    MOVED = "moved"
    AWAITED = "awaited"


FINAL_STATE: Final = MappingProxyType(
    {
        Ending.SUCCEEDED: State.SUCCEEDED,
        Ending.FAILED: State.FAILED,
        Ending.CANCELLED: State.CANCELLED,
        Ending.SKIPPED: State.SKIPPED,
        Ending.EXPIRED: State.SKIPPED,
    }
)
"""The terminal state that an ending leads to; absent where another turn follows."""


def allowed(state: State, event: Event) -> frozenset[State]:
    """Return the states that `event` may lead to from `state`; empty where it may not happen."""
    return TRANSITIONS.get((state, event), frozenset())


def sources(event: Event) -> frozenset[State]:
    """Return the states in which `event` may happen."""
    return frozenset(state for state, cause in TRANSITIONS if cause is event)


def mermaid() -> str:
    """Return the transition table as a Mermaid state diagram, for the docs."""
    edges = [
        f"    {a} --> {b}: {event}" for (a, event), bs in TRANSITIONS.items() for b in sorted(bs)
    ]
    starts = [f"    [*] --> {state}: submit" for state in sorted(INITIAL)]
    return "\n".join(["stateDiagram-v2", *starts, *edges])
