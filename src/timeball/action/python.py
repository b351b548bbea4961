"""Carries out one attempt of a kind: decodes, calls, and turns what happened into an `Outcome`.

Nothing that a job does gets past here: not an exception whose text raises, not SystemExit,
not a result that no database can hold.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import time
import traceback
from collections.abc import Callable
from contextvars import Context as Variables
from dataclasses import replace
from typing import Any, Final, TypeVar

from timeball.action.context import (
    NOTHING_LENT,
    Cancel,
    Context,
    JobOccurrence,
    Lent,
    Snooze,
    StopSign,
)
from timeball.action.failed import ActionFailed
from timeball.action.kind import Kind
from timeball.action.secret import KEY, referring
from timeball.core.misfire import OCCURRENCE_ARG
from timeball.core.outcomes import Outcome, Raised, Returned, Snoozed, Stopped, Unbegun
from timeball.core.payload import (
    ERROR_MAX,
    SEALED,
    decode_args,
    decode_value,
    encode_result,
    storable,
)
from timeball.core.records import Turn
from timeball.core.retry import WAIT_LIMIT_S, Retry
from timeball.errors import UsageError
from timeball.observe.concealment import concealed, concealed_value, without_secrets

T = TypeVar("T")

NAME_MAX: Final = 200
REASON_MAX: Final = 500
_NOTHING: Final = Returned()
_SEALED: Final = (
    "its arguments are sealed and cannot be opened here: set TIMEBALL_SEAL for the worker as for "
    "who has submitted it, and see that both have the same key"
)
_UNSTORABLE: Final = '{"unstorable":'


class _Unfit(Exception):
    """The turn cannot be called at all."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def carry_out(kind: Kind, turn: Turn, stop: StopSign, lent: Lent = NOTHING_LENT) -> Outcome:
    """Run one attempt in this thread and return how it ended. Never raises.

    A thread cannot be stopped: `stop`, and the timeout, are for the job to look at.
    """
    try:
        # Variables of its own: what one job sets, the next one on this thread must not see.
        value = Variables().run(kind.call, **_arguments(kind, turn, stop, lent))
        return _NOTHING if value is None else _outcome(value)
    except BaseException as error:  # noqa: BLE001 - a job may raise SystemExit too
        return failure(error, kind.retry)


async def carry_out_async(
    kind: Kind, turn: Turn, stop: StopSign, lent: Lent = NOTHING_LENT
) -> Outcome:
    """Run one attempt on this event loop and return how it ended. Never raises.

    Where the task is cancelled after `stop` was raised, the turn is given back.
    """
    scope: asyncio.Timeout | None = None
    try:
        arguments = _arguments(kind, turn, stop, lent)
        timeout_s = timeout_of(kind, turn)
        if timeout_s is None:  # a timer costs more than all the rest
            value = await kind.call(**arguments)
        else:
            async with asyncio.timeout(timeout_s) as scope:
                value = await kind.call(**arguments)
        return _NOTHING if value is None else _outcome(value)
    except BaseException as error:  # noqa: BLE001 - a job may raise SystemExit too
        if isinstance(error, asyncio.CancelledError) and stop.raised:
            return Unbegun("stopped")
        if scope is not None and scope.expired():
            text = f"ran longer than its {timeout_s:g} s"
            return Raised(error_type="TimeoutError", error=text, again=True, reason="timeout")
        return failure(error, kind.retry)


def _arguments(kind: Kind, turn: Turn, stop: StopSign, lent: Lent) -> dict[str, Any]:
    try:
        arguments = {} if turn.args == "{}" else decode_args(turn.args)
        if arguments.keys() == {SEALED}:
            raise ActionFailed(_SEALED, error_type="Sealed", again=True)
        told = arguments.pop(OCCURRENCE_ARG, None)
        occurrence = None if told is None else JobOccurrence.of(told)
        if KEY in turn.args:
            arguments = referring(arguments)
    except (UsageError, KeyError, TypeError, ValueError) as error:
        raise _Unfit("undecodable", f"the stored arguments cannot be read: {error}") from None
    complaint = kind.parameters.complaint(arguments)
    if complaint is not None:
        raise _Unfit("arguments", f"{kind.place} takes other arguments now: {complaint}")
    if kind.parameters.context is not None:
        arguments[kind.parameters.context] = Context(
            turn,
            stop,
            timeout_s=timeout_of(kind, turn),
            occurrence=occurrence,
            monotonic=time.monotonic,
            lent=lent,
        )
    return arguments


def timeout_of(kind: Kind, turn: Turn) -> float | None:
    """Return the seconds that one attempt may take: the job's own word before its kind's."""
    return kind.timeout_s if turn.timeout_s is None else turn.timeout_s


def steered(value: Any) -> Outcome | None:
    """Return the outcome that a job asked for by what it returned; None for a plain result.

    Raises:
        TypeError: It returned something that has not run yet, and was closed.
    """
    match value:
        case Snooze(delay_s=delay_s):
            return Snoozed(delay_s)
        case Cancel(reason=reason):
            return Stopped(without_secrets(str(reason), REASON_MAX))
        case Returned() | Raised() | Snoozed() | Stopped() | Unbegun():
            return value  # an action of ours that knows better
    if inspect.iscoroutine(value) or inspect.isgenerator(value):
        value.close()
        raise TypeError(f"returned a {type(value).__name__}: use async def, and return no iterator")
    if inspect.isasyncgen(value):
        raise TypeError("returned an async generator: a job returns its result")
    return None


def _outcome(value: Any) -> Outcome:
    asked = steered(value)
    if asked is not None:
        return _shown(asked)
    result = encode_result(value)
    own = isinstance(value, dict) and "unstorable" in value
    if result is not None and result.startswith(_UNSTORABLE) and not own:
        reason = decode_value(result)["reason"]
        raise _Unfit("result", f"it ran, but its result cannot be stored: {reason}")
    return _shown(Returned(result))


def _shown(outcome: Outcome) -> Outcome:
    """Return an outcome without the secrets that its job was told."""
    match outcome:
        case Returned(result=str() as result) if concealed(result) != result:
            # In the value and not in its text, where a number may look like a secret.
            return Returned(encode_result(concealed_value(decode_value(result))))
        case Raised():
            return replace(outcome, error=without_secrets(outcome.error, ERROR_MAX))
        case _:
            return outcome


def failure(error: BaseException, retry: Retry) -> Raised:
    """Return what is kept of an exception, whatever it does when it is looked at."""
    if isinstance(error, ActionFailed):
        return Raised(
            error_type=error.error_type,
            error=without_secrets(str(error), ERROR_MAX),
            again=error.again and retry.wants(error),
            retry_after_s=_retry_after_s(error),
        )
    if isinstance(error, _Unfit):
        return Raised(
            error_type="InvalidPayload",
            error=storable(str(error)),
            again=False,
            reason=error.reason,
        )
    name = type(error).__name__
    text = _ask(lambda: str(error), f"{name}.__str__ raised an exception of its own")
    return Raised(
        error_type=_ask(lambda: _type_name(error), name),
        error=_ask(lambda: _story(error, text), without_secrets(text, ERROR_MAX)),
        again=retry.wants(error),
        retry_after_s=_ask(lambda: _retry_after_s(error), None),
    )


def _ask(question: Callable[[], T], otherwise: T) -> T:
    """Return the answer of an exception, which is the job's code too and may raise anything."""
    try:
        return question()
    except BaseException:  # noqa: BLE001 - foreign code, see above
        return otherwise


def _type_name(error: BaseException) -> str:
    kind = type(error)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return storable(f"{module}{kind.__qualname__}", NAME_MAX)


def _story(error: BaseException, text: str) -> str:
    """Return the text of an exception first, then where it came from, without our own frame."""
    trace = error.__traceback__ and error.__traceback__.tb_next
    lines = traceback.TracebackException(type(error), error, trace).format()
    return without_secrets(f"{text}\n\n{''.join(lines)}", ERROR_MAX)


def _retry_after_s(error: BaseException) -> float | None:
    delay_s = getattr(error, "retry_after_s", None)
    if delay_s is None or not (math.isfinite(delay_s) and delay_s >= 0):
        return None
    return min(float(delay_s), WAIT_LIMIT_S)
