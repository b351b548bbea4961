"""What follows the first step of a coroutine that was taken by hand, since many have no second."""

from __future__ import annotations

import types
from collections.abc import Coroutine, Generator
from typing import Any, TypeVar

R = TypeVar("R")


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
