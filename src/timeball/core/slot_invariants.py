"""What must hold of the slots that a job has: I9 of the contract, as far as one job tells it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from timeball.core.history import JobHistory
from timeball.core.states import State

_COUNTS: Final = {"key": {State.PENDING, State.RUNNING}, "queue": {State.RUNNING}}


def idle(history: JobHistory, states: Iterable[State]) -> Iterator[str]:
    """Yield the slots that the job has, although it is not under way."""
    for slot in history.slots:
        if history.held is not None or not _COUNTS[slot.scope].intersection(states):
            now = " and ".join(states) or "in no state"
            yield f"has a slot of {slot.scope} {slot.name}, and is {now}"
