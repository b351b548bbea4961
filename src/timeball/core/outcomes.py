"""How an attempt ended, and what follows from it.

`decide` is the only place that turns what user code did into what happens to
the job. It is total: every outcome of every turn has one settlement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, assert_never

from timeball.core.dependencies import SPAWNED, Awaited
from timeball.core.records import JobSpec, Settlement, Turn
from timeball.core.retry import Retry
from timeball.core.states import Ending


@dataclass(frozen=True, slots=True)
class Returned:
    """The action returned; `result` is the text of a JSON value, None for none."""

    result: str | None = None
    spawned: tuple[JobSpec, ...] = ()
    """Jobs that it waits for before it counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """The action raised, timed out, or could not be called at all."""

    error_type: str
    error: str
    again: bool
    """Whether this error is worth another attempt, budget aside."""

    reason: str | None = None
    retry_after_s: float | None = None
    """The error's own word on how long to wait; wins over the jitter."""


@dataclass(frozen=True, slots=True)
class Snoozed:
    """The action asked to be run again after `delay_s` seconds; costs no retry."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Stopped:
    """The action ended its own job, or a cancelled attempt has stopped."""

    reason: str


@dataclass(frozen=True, slots=True)
class Unbegun:
    """The turn was given back before its attempt began, or was interrupted by a stop."""

    reason: str = "stopped"


Outcome = Returned | Raised | Snoozed | Stopped | Unbegun


UNCOMMITTED: Final = "uncommitted"
"""Why an attempt is tried again whose transaction was not committed, as far as its worker knows.
Where it was after all, the store knows better: the turn has ended with the success in it."""


TURN_MAX: Final = 2**31 - 2
"""No job has more turns: a store counts no further. One that still asks for another has failed."""


class Run(NamedTuple):
    """When an attempt began and how long it ran."""

    began_at: float | None
    """Epoch seconds on the store's clock; None where it did not begin."""

    ran_s: float


def decide(turn: Turn, outcome: Outcome, run: Run, retry: Retry, draw: float) -> Settlement:
    """Return what happens to a job now that a turn of it has ended.

    Args:
        turn: The turn as it was granted.
        outcome: What the attempt did.
        run: When it began and how long it ran.
        retry: The law of the waits; the budget is the turn's own `max_retries`.
        draw: A number in ``[0, 1)`` for the jitter.
    """
    began_at, ran_s = run
    if turn.at_most_once and began_at is not None and not isinstance(outcome, Returned | Stopped):
        return _the_only_attempt(turn, outcome, run)
    if turn.turn >= TURN_MAX and not _is_last(outcome):
        return _the_last_turn(turn, run)
    match outcome:
        case Returned(result=result, spawned=spawned):
            ending = Ending.AWAITED if spawned else Ending.SUCCEEDED
            # Positional on purpose: this line runs once per job.
            return Settlement(
                *turn[:4], ending, None, 0.0, began_at, ran_s, result, None, None, spawned
            )
        case Snoozed(delay_s=delay_s):
            ending, reason = Ending.SNOOZED, None
        case Stopped(reason=reason):
            ending, delay_s = Ending.CANCELLED, 0.0
        case Unbegun(reason=reason):
            ending, delay_s = Ending.RELEASED, 0.0
        case Raised():
            return _after_error(turn, outcome, run, retry, draw)
        case _:
            assert_never(outcome)
    return Settlement(
        *turn[:4], ending, reason=reason, delay_s=delay_s, began_at=began_at, ran_s=ran_s
    )


def _is_last(outcome: Outcome) -> bool:
    """Return whether no other turn follows, whatever the budgets are."""
    match outcome:
        case Stopped() | Returned(spawned=()):
            return True
        case _:
            return False


def finished(awaited: Awaited) -> Returned | Raised:
    """Return the outcome of a job that has waited for those it had spawned."""
    if awaited.failed is None:
        return Returned(awaited.result)
    return Raised(
        error_type="SpawnedJobFailed",
        error=f"job {awaited.failed}, which it spawned, did not succeed: revive that one, then it",
        again=False,
        reason=SPAWNED,
    )


def _the_only_attempt(turn: Turn, outcome: Raised | Snoozed | Unbegun, run: Run) -> Settlement:
    """An at-most-once job whose one attempt did not bring it to an end: it has failed."""
    error_type: str | None = None
    match outcome:
        case Raised(error=error):
            error_type, reason = outcome.error_type, outcome.reason or "exhausted"
        case Snoozed():
            reason, error = "at_most_once", "it asked to be run again, and may run only once"
        case Unbegun():
            reason = "lost"
            error = "its worker was stopped in the middle of it, and it may run only once"
        case _:
            assert_never(outcome)
    return Settlement(
        *turn[:4],
        Ending.FAILED,
        reason=reason,
        began_at=run.began_at,
        ran_s=run.ran_s,
        error_type=error_type,
        error=error,
    )


def _the_last_turn(turn: Turn, run: Run) -> Settlement:
    """A job that has had as many turns as can be counted, and needs another one: it has failed."""
    return Settlement(
        *turn[:4],
        Ending.FAILED,
        reason="turns",
        began_at=run.began_at,
        ran_s=run.ran_s,
        error=f"it has had {TURN_MAX:,} turns, and no more can be counted: submit it again",
    )


def _after_error(turn: Turn, raised: Raised, run: Run, retry: Retry, draw: float) -> Settlement:
    failures = turn.failures + 1
    if raised.again and failures <= turn.max_retries:
        ending, reason = Ending.RETRIED, raised.reason
        delay_s = retry.delay_s(failures, draw, previous_s=turn.delay_s)
        if raised.retry_after_s is not None:
            delay_s = raised.retry_after_s
    else:
        ending, delay_s = Ending.FAILED, 0.0
        reason = raised.reason or ("exhausted" if raised.again else "permanent")
    return Settlement(
        *turn[:4],
        ending,
        reason=reason,
        delay_s=delay_s,
        began_at=run.began_at,
        ran_s=run.ran_s,
        error_type=raised.error_type,
        error=raised.error,
    )
