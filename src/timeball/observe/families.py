"""Every metric there is: its name, what it counts, its labels, and the bounds of its buckets.

All numbers are kept as integers. Durations are in nanoseconds, and told in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

NS_PER_S: Final = 1_000_000_000


class Form(StrEnum):
    """What may happen to the numbers of a family, in the words of Prometheus."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"  # sum and count alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """All series of one name."""

    name: str
    form: Form
    says: str
    """One line, for people."""

    labels: tuple[str, ...] = ()
    bounds: tuple[int, ...] = ()
    """Of a histogram: the upper bounds of its buckets, but for the last one, which has none."""

    scale: int = 1
    """How many of the integers are one of the unit in the name."""

    @property
    def cells(self) -> int:
        """How many numbers a series has: the sum, then what is counted, each on its own."""
        match self.form:
            case Form.HISTOGRAM:
                return len(self.bounds) + 2
            case Form.SUMMARY:
                return 2
            case _:
                return 1


_MS: Final = 1_000_000
# From a quick call inside one machine to a job of a day.
_WAITS: Final = tuple(
    ms * _MS
    for ms in (1, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000, 60_000, 600_000, 3_600_000, 86_400_000)
)
_CALLS: Final = tuple(
    us * 1_000
    for us in (500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 1_000_000)
)
_BATCHES: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500)


def _counter(name: str, says: str, *labels: str) -> Family:
    return Family(name=f"timeball_{name}", form=Form.COUNTER, says=says, labels=labels)


def _gauge(name: str, says: str, *labels: str, scale: int = 1) -> Family:
    return Family(name=f"timeball_{name}", form=Form.GAUGE, says=says, labels=labels, scale=scale)


def _seconds(name: str, says: str, *labels: str, bounds: tuple[int, ...]) -> Family:
    return Family(
        name=f"timeball_{name}_seconds",
        form=Form.HISTOGRAM,
        says=says,
        labels=labels,
        bounds=bounds,
        scale=NS_PER_S,
    )


# Counted by each worker process.
STARTS: Final = _counter("job_starts_total", "Attempts that have begun.")
FINISHED: Final = _counter(
    "jobs_finished_total",
    "Jobs whose last turn was settled here, by how they ended.",
    "kind", "outcome", "error_type",
)  # fmt: skip
RETRIES: Final = _counter(
    "job_retries_total", "Attempts that failed and are followed by another.", "kind", "error_type"
)
SNOOZES: Final = _counter("job_snoozes_total", "Attempts that asked to run again later.", "kind")
AWAITS: Final = _counter(
    "job_awaits_total", "Attempts whose jobs wait for those they spawned.", "kind"
)
RELEASES: Final = _counter(
    "job_releases_total", "Turns given back before they began, or interrupted by a stop.", "kind"
)
CRASHES: Final = _counter("job_crashes_total", "Attempts whose process apart died.", "kind")
STALE: Final = _counter(
    "stale_settlements_total", "Settlements that came too late and changed nothing.", "kind"
)
RUN: Final = _seconds("job_run", "How long attempts ran.", "kind", bounds=_WAITS)
QUEUE_WAIT: Final = _seconds(
    "job_queue_wait", "From when a turn might start to when it began.", "kind", bounds=_WAITS
)
LOCK_WAIT: Final = Family(
    name="timeball_lock_wait_seconds",
    form=Form.SUMMARY,
    says="How long threads waited for a lock of ours, those that had to.",
    labels=("lock",),
    scale=NS_PER_S,
)
CLAIM: Final = _seconds("claim", "How long the store took to grant turns.", bounds=_CALLS)
SETTLE: Final = _seconds("settle", "How long the store took to record endings.", bounds=_CALLS)
CLAIM_BATCH: Final = Family(
    name="timeball_claim_batch_size",
    form=Form.HISTOGRAM,
    says="Turns in one claim.",
    bounds=_BATCHES,
)

# Counted by the supervisor.
LEASES_EXPIRED: Final = _counter(
    "leases_expired_total", "Workers given up: they died, or were silent for a lease.", "cause"
)
TURNS_EXPIRED: Final = _counter(
    "turns_expired_total", "What became of the open turns of workers given up.", "outcome"
)
DEATHS: Final = _counter("child_deaths_total", "Worker processes that ended unasked.")
STALLS: Final = _counter(
    "worker_stalls_total", "Times that a job has kept its worker process from turning.", "stuck"
)
CRON_DECISIONS: Final = _counter(
    "cron_decisions_total",
    "Occurrences that were decided here, by schedule and decision.",
    "schedule", "decision",
)  # fmt: skip

# Read when somebody asks.
SLOTS: Final = _gauge("worker_slots", "Slots of this worker's processes, by state.", "state")
CHILDREN: Final = _gauge("worker_children", "Worker processes that live.")
JOBS: Final = _gauge(
    "jobs", "Jobs that wait, by queue and state; counted to 10,000 each.", "queue", "state"
)
OLDEST: Final = _gauge(
    "queue_oldest_pending_seconds",
    "How long the longest waiting pending job has waited.",
    "queue",
    scale=NS_PER_S,
)
CRON_LAG: Final = _gauge(
    "cron_lag_seconds", "How long the most overdue occurrence has been due.", scale=NS_PER_S
)
CLOCK_SKEW: Final = _gauge(
    "clock_skew_seconds",
    "How far this machine's clock is ahead of the database's, whose clock counts.",
    scale=NS_PER_S,
)
STORE_UP: Final = _gauge("store_up", "Whether the store answered when these numbers were read.")

FAMILIES: Final = (
    STARTS, FINISHED, RETRIES, SNOOZES, AWAITS, RELEASES, CRASHES, STALE, RUN, QUEUE_WAIT,
    LOCK_WAIT, CLAIM, CLAIM_BATCH, SETTLE, LEASES_EXPIRED, TURNS_EXPIRED, DEATHS, SLOTS,
    CHILDREN, JOBS, OLDEST, STALLS, CRON_DECISIONS, CRON_LAG, CLOCK_SKEW, STORE_UP,
)  # fmt: skip

VIOLATIONS: Final = _counter(
    "invariant_violations_total", "What the last audit found wrong in the record.", "invariant"
)
"""Told by `timeball audit --metrics`, and by no worker."""
