"""The part of a store that takes calls from outside."""

from __future__ import annotations

from typing import Any, Final, Protocol
from uuid import UUID

from timeball.core.callbacks import CallAnswer
from timeball.core.payload import decode_value
from timeball.core.states import Ending

_ENDED: Final = {
    Ending.CANCELLED: CallAnswer.CANCELLED,
    Ending.EXPIRED: CallAnswer.EXPIRED,
}


class Calling(Protocol):
    """What a store must do about callbacks; see `timeball.store.base.Store` for what holds of all.

    A callback is submitted like a job, with kind `CALLBACK`, a deadline, and no parents, key or
    later start. It waits; nobody runs it.
    """

    def call_back(self, callback: UUID, result: str | None) -> CallAnswer:
        """End a callback that waits, with the JSON text of its result.

        Of a call, a cancel and a deadline that meet, exactly one ends it, and what that means for
        its children happens in the same commit. The same call again changes nothing and is answered
        as the first one was; a call after the deadline changes nothing either.
        """
        ...


def answer_to(ending: Ending, had: Any, result: str | None) -> CallAnswer:
    """Return what a call is told that came after the end.

    Args:
        ending: How the callback has ended.
        had: The result that it has ended with.
        result: The JSON text of what the call says.
    """
    if ending is not Ending.SUCCEEDED:
        return _ENDED[ending]
    return CallAnswer.ACCEPTED if _same(had, decode_value(result)) else CallAnswer.OTHERWISE


def _same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal; in Python alone, `True` equals 1."""
    pairs = [(one, other)]
    while pairs:
        match pair := pairs.pop():
            case (bool(), _) | (_, bool()):
                equal = pair[0] is pair[1]
            case (dict() as left, dict() as right):
                equal = left.keys() == right.keys()
                pairs += ((value, right.get(name)) for name, value in left.items())
            case (list() as left, list() as right):
                equal = len(left) == len(right)
                pairs += zip(left, right, strict=False)
            case (left, right):
                equal = left == right
        if not equal:
            return False
    return True
