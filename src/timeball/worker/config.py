"""How one worker behaves."""

from __future__ import annotations

from dataclasses import dataclass

from timeball.action.kind import RunsIn
from timeball.core.records import AGING_DEFAULT_S


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """How one worker behaves. Durations are in seconds."""

    name: str
    queues: tuple[str, ...] = ("default",)
    slots: int = 8
    """Attempts that may run at once (W)."""

    lease_s: float = 30.0
    """How long it may be silent before it is given up."""

    poll_s: float = 1.0
    """Longest rest when nothing wakes it."""

    drain_s: float = 25.0
    """How long a stop waits for what runs."""

    prefetch_s: float = 0.05
    """How far ahead it claims, at the rate at which its attempts end; further where its store is
    so slow that slots would run dry."""

    aging_s: float = AGING_DEFAULT_S
    """What a priority class is worth in waiting."""
    runner: RunsIn = "thread"
    """Where functions run whose kind does not say."""

    grace_s: float = 5.0
    """From SIGTERM to SIGKILL, for a process apart whose attempt is to end."""
