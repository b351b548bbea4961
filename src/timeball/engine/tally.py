"""How many jobs are where. The states of the jobs are the truth; these follow, under one lock."""

from __future__ import annotations

from timeball.core.states import State


class Tally:
    """Counters of the jobs of one agenda."""

    __slots__ = (
        "cancelled", "failed", "open", "retrying", "scheduled", "skipped", "stale", "succeeded",
        "waiting",
    )  # fmt: skip

    def __init__(self) -> None:
        self.open = 0
        """Jobs that have been taken in and are in no terminal state."""
        self.scheduled = self.waiting = 0
        self.succeeded = self.failed = self.cancelled = self.skipped = 0
        self.retrying = 0
        """Of the scheduled ones, those that have begun before."""
        self.stale = 0
        """Attempts that said how they ended and were not heard."""

    @property
    def ended(self) -> int:
        """Jobs in a terminal state."""
        return self.succeeded + self.failed + self.cancelled + self.skipped

    def ends(self, state: State) -> None:
        """Count one more in a terminal state."""
        self.open -= 1
        self.succeeded += state is State.SUCCEEDED
        self.failed += state is State.FAILED
        self.cancelled += state is State.CANCELLED
        self.skipped += state is State.SKIPPED

    def by_state(self, running: int) -> dict[State, int]:
        """Return all of them by state, given how many run."""
        return {
            State.SCHEDULED: self.scheduled,
            State.WAITING: self.waiting,
            State.PENDING: self.open - self.scheduled - self.waiting - running,
            State.RUNNING: running,
            State.SUCCEEDED: self.succeeded,
            State.FAILED: self.failed,
            State.CANCELLED: self.cancelled,
            State.SKIPPED: self.skipped,
        }
