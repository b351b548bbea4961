"""Queues as operators see them, and what they are answered."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Final, NamedTuple

COUNT_MAX: Final = 10_000
"""Where counting the jobs of one queue ends: a look at a queue of millions must be cheap."""

COUNT_BUDGET: Final = 10_000
"""Of this many queues share: where there are many, counting ends earlier, but not before 100."""

QUEUE_PAUSED: Final = "paused"
"""Why a job is pending and not granted: its queue is paused."""

DEPTH_MAX: Final = 1_000_000
"""The largest depth that a queue may be limited to."""


class Queue(NamedTuple):
    """One queue as it is now. Numbers of jobs end at `counted_to`: it means so many or more."""

    name: str
    pending: int
    """Jobs that may start now."""

    held: int
    """Jobs that may not start yet: scheduled, waiting, or held back for a reason."""

    running: int
    oldest_s: float | None
    """How long the first pending job has waited, in seconds; None: there is none."""

    paused_at: datetime | None = None
    """Since when no turn is granted; None: it is not paused."""

    paused_by: str | None = None
    at_once: int | None = None
    """How many may run at once over all workers; None: no limit."""

    max_depth: int | None = None
    """Beyond how many pending and held jobs a submission is refused; None: no limit."""

    counted_to: int = COUNT_MAX
    """Where counting jobs ended: at `COUNT_MAX`, or earlier where there are many queues."""


class MoveAnswer(StrEnum):
    """What became of a job that was to move to another queue or priority."""

    MOVED = "moved"  # it is there, at the back; also where it was there before
    RUNNING = "running"  # too late: its turn is granted
    FINISHED = "finished"  # it has ended
    NOT_FOUND = "not_found"
