"""The first step of a coroutine, taken by hand: many have no second."""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any, NamedTuple, TypeVar

R = TypeVar("R")


class Step(NamedTuple):
    """What the first step came to."""

    suspended: bool
    value: Any
    """What it returned; of one that was suspended, what it awaits."""


def first_step(coroutine: Coroutine[Any, Any, Any]) -> Step:
    """Take the first step of a coroutine, within the task that would await it."""
    try:
        return Step(suspended=True, value=coroutine.send(None))
    except StopIteration as end:
        return Step(suspended=False, value=end.value)


@types.coroutine
def resume(coroutine: Coroutine[Any, Any, R], awaited: Any) -> Generator[Any, Any, R]:
    """Go on with a coroutine that was suspended in its first step; await this one for it."""
    while True:
        try:
            yield awaited
        except BaseException as error:  # noqa: BLE001 - it goes to whom it was thrown at
            try:
                awaited = coroutine.throw(error)
            except StopIteration as end:
                value: R = end.value
                return value
        else:
            return (yield from coroutine.__await__())
