"""Carries out one attempt: calls what was submitted, and says how that ended. Never raises."""

from __future__ import annotations

import asyncio
import time
from contextvars import Context as Variables
from functools import partial
from typing import Any, Final
from uuid import uuid5

from timeball.action.context import Context, Lent
from timeball.action.notebook import spoken
from timeball.action.parents import ParentJob
from timeball.action.python import failure, steered
from timeball.chance import now
from timeball.core.notes import Progress
from timeball.core.outcomes import Raised, Run, Unbegun, decide
from timeball.core.records import Settlement, Turn
from timeball.core.states import Ending, State
from timeball.engine.handles import Attempt, Work
from timeball.engine.runner import Done, Ended, Lost, Spawning
from timeball.engine.spawning import Brood, end_of

DONE: Final = Done()
"""Returned None, as many do."""

_PLAIN: Final = frozenset({type(None), bool, int, float, str, bytes, list, dict, tuple})
"""Types of results that ask for nothing, whatever they hold."""


def carry_out(attempt: Attempt) -> Ended:
    """Run one attempt in this thread, which cannot be stopped from outside."""
    work = attempt.work
    form, kwargs = work.form, work.kwargs
    try:
        if work.more is not None and work.more.spawned:
            return end_of(work)
        variables = work.context
        # A copy each: what one attempt sets, the next one must not see.
        run = Variables().run if variables is None else variables.copy().run
        if kwargs is None and form.context is None:
            value = run(form.call, *work.args)
        else:
            brood = None if form.context is None else Brood(work)
            value = run(form.call, *work.args, **_keywords(attempt, brood))
            if brood is not None:
                return brood.joined(DONE if value is None else _said(value))
        return DONE if value is None else _said(value)
    except BaseException as error:  # noqa: BLE001 - a job may raise SystemExit too
        return failure(error, form.retry)
    finally:
        attempt.ended_ns = form.clock_ns()


async def carry_out_async(attempt: Attempt) -> Ended:
    """Run one attempt on this event loop; a cancelled one is `Unbegun` where it was asked to be."""
    work = attempt.work
    form, timeout_s = work.form, work.form.timeout_s
    scope: asyncio.Timeout | None = None
    try:
        # Before its task took a step, so that nothing has cancelled that.
        if attempt.stop is not None and attempt.stop.raised:
            return Unbegun("stopped")
        if work.more is not None and work.more.spawned:
            return end_of(work)
        brood = None if form.context is None else Brood(work)
        if work.kwargs is None and form.context is None and timeout_s is None:
            value = await form.call(*work.args)
        elif timeout_s is None:  # a timer costs more than all the rest
            value = await form.call(*work.args, **_keywords(attempt, brood))
        else:
            async with asyncio.timeout(timeout_s) as scope:
                value = await form.call(*work.args, **_keywords(attempt, brood))
        said = DONE if value is None else _said(value)
        return said if brood is None else brood.joined(said)
    except BaseException as error:  # noqa: BLE001 - a job may raise SystemExit too
        if isinstance(error, asyncio.CancelledError) and stopped(attempt):
            return Unbegun("stopped")
        if scope is not None and scope.expired():
            text = f"ran longer than its {timeout_s:g} s"
            return Raised(error_type="TimeoutError", error=text, again=True, reason="timeout")
        return failure(error, form.retry)
    finally:
        attempt.ended_ns = form.clock_ns()


def stopped(attempt: Attempt) -> bool:
    """Return whether somebody has asked this attempt to stop."""
    return attempt.stop is not None and attempt.stop.raised


def turn_of(work: Work, attempt: Attempt) -> Turn:
    """Return an attempt in the words of the durable worker, which decide what follows it."""
    form, more = work.form, work.more
    return Turn(
        lane=form.priority,
        seq=attempt.seq,
        job_id=work.id if isinstance(work.id, int) else 0,
        turn=attempt.turn,
        uuid=uuid5(form.engine.uuid, str(work.id)),
        kind=form.name,
        args="{}",
        attempts=attempt.turn - 1,
        failures=more.failures if more else 0,
        crashes=more.crashes if more else 0,
        delay_s=more.delay_s if more else 0.0,
        max_retries=form.retry.max_retries,
        timeout_s=form.timeout_s,
        granted_at=attempt.granted_ns / 1e9,
        at_most_once=form.once,
    )


def settlement_of(attempt: Attempt, said: Ended, draw: float) -> Settlement:
    """Return what follows from how an attempt ended, by the same law as for the durable worker.

    Args:
        attempt: The attempt.
        said: How it ended; not `Done`.
        draw: A number in ``[0, 1)`` for the jitter.
    """
    form = attempt.work.form
    turn = turn_of(attempt.work, attempt)
    if isinstance(said, Lost):
        ending, reason = Ending.LOST, "lost"
        if form.once or turn.crashes + 1 >= form.max_crashes:
            ending, reason = Ending.FAILED, "lost" if form.once else "quarantined"
        attempt.work.outcome = Raised(error_type="Lost", error=said.text, again=True, reason=reason)
        return Settlement(*turn[:4], ending, reason=reason)
    assert not isinstance(said, Done | Spawning)
    run = Run(attempt.started_ns / 1e9, (attempt.ended_ns - attempt.started_ns) / 1e9)
    return decide(turn, said, run, form.retry, draw)


def _keywords(attempt: Attempt, brood: Brood | None) -> dict[str, Any]:
    work = attempt.work
    form, kwargs = work.form, dict(work.kwargs or ())
    if form.context is not None:
        assert attempt.stop is not None
        kwargs[form.context] = Context(
            turn_of(work, attempt),
            attempt.stop,
            timeout_s=form.timeout_s,
            occurrence=None,
            monotonic=time.monotonic,
            lent=_lent(attempt, brood),
        )
    return kwargs


def _lent(attempt: Attempt, brood: Brood | None) -> Lent:
    work = attempt.work
    after = work.more.after if work.more is not None else ()
    return Lent(
        parents=lambda: [_parent(each) for each in after],
        hear=partial(_hear, attempt),
        spawn=None if brood is None or work.form.once else brood.add,
    )


def _hear(attempt: Attempt, done: Any, total: Any, note: Any) -> None:
    """Keep what an attempt says of how far it is, for who holds its handle."""
    work, word = attempt.work, spoken(attempt.work.id, done, total, note)
    if word is not None and attempt.end is None:
        work.form.engine.heard[work] = Progress(*word, attempt.turn, now())


def _parent(work: Work) -> ParentJob:
    value = work.outcome if work.state is State.SUCCEEDED else None
    uuid = uuid5(work.form.engine.uuid, str(work.id))
    return ParentJob(uuid=uuid, state=work.state, value=value)


def _said(value: Any) -> Ended:
    asked = None if type(value) in _PLAIN else steered(value)
    if asked is None:
        return Done(value)
    assert not hasattr(asked, "result"), "actions of the durable engine are not run by this one"
    return asked
