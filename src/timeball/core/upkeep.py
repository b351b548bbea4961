"""What operators ask for and are answered."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class ReviveAnswer(StrEnum):
    """What became of a job that an operator wanted to start again."""

    REVIVED = "revived"  # it is pending, with its budget of retries whole again
    REFUSED = "refused"  # it has not ended, or it has succeeded
    CLASHED = "clashed"  # another job holds its unique key
    NOT_FOUND = "not_found"


class MoveAnswer(StrEnum):
    """What became of a job that was to wait in another lane."""

    MOVED = "moved"  # it waits there, behind all that did before; or it was there already
    RUNNING = "running"  # a worker has it: it was granted before
    FINISHED = "finished"  # it had ended before
    NOT_FOUND = "not_found"


class SnoozeAnswer(StrEnum):
    """What became of a job that was to be put off."""

    SNOOZED = "snoozed"  # it is scheduled, and does not start before that instant
    WAITING = "waiting"  # it waits for other jobs, and not for an instant
    RUNNING = "running"  # a worker has it: it was granted before
    FINISHED = "finished"  # it had ended before
    NOT_FOUND = "not_found"


class DeleteAnswer(StrEnum):
    """What became of a job that was to be deleted."""

    DELETED = "deleted"  # it is gone with its history
    REFUSED = "refused"  # it has not ended: cancel it first
    NOT_FOUND = "not_found"


class Keep(NamedTuple):
    """How long a job is kept once it has ended, in seconds; None: for ever."""

    succeeded_s: float | None = 7 * 86_400.0
    others_s: float | None = 30 * 86_400.0
    """Failed, cancelled and skipped ones."""


class Trimmed(NamedTuple):
    """What one look at jobs that ended long ago has done."""

    deleted: int
    after: tuple[int, ...] | None
    """Where the next look goes on; None: everything has been looked at."""
