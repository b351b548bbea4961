"""Attempts of jobs made up on the spot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

from timeball.action.context import StopSign
from timeball.action.kind import Kind
from timeball.action.python import carry_out, carry_out_async
from timeball.action.registry import Registry
from timeball.core.outcomes import Outcome, Raised
from timeball.core.records import Turn

OCCURRENCE = {
    "schedule": "nightly",
    "nominal_at": "2026-03-08T07:00:00+00:00",
    "nominal_local": "2026-03-08T03:00:00-04:00",
    "fold": 0,
    "shifted": True,
    "catchup": False,
    "missed_count": 2,
}


def turn(args: str = "{}", *, timeout_s: float | None = None, attempts: int = 0) -> Turn:
    return Turn(
        1, 1, 7, 1, UUID(int=7), "job", args, attempts, 0, 0, 0.0, 3, timeout_s, 1_000.0
    )  # fmt: skip


def kind(call: Callable[..., Any], **options: Any) -> Kind:
    registry = Registry()
    registry.job(name="job", **options)(call)
    return registry["job"]


def outcome(
    call: Callable[..., Any], args: str = "{}", *, stop: StopSign | None = None, **options: Any
) -> Outcome:
    """What becomes of a function or coroutine function, by the form that is for it."""
    what = kind(call, **options)
    if what.is_async:
        return asyncio.run(carry_out_async(what, turn(args), stop or StopSign()))
    return carry_out(what, turn(args), stop or StopSign())


def both(returns: Any) -> list[Callable[[], Any]]:
    async def coroutine() -> Any:
        await asyncio.sleep(0)
        return returns

    return [lambda: returns, coroutine]


def raising(error: BaseException) -> list[Callable[[], Any]]:
    def function() -> None:
        raise error

    async def coroutine() -> None:
        await asyncio.sleep(0)
        raise error

    return [function, coroutine]


def failure(call: Callable[..., Any], args: str = "{}", **options: Any) -> Raised:
    found = outcome(call, args, **options)
    assert isinstance(found, Raised)
    found.error.encode()  # no lone surrogate
    assert "\0" not in found.error + found.error_type
    return found
