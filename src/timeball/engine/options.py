"""What a scheduler may be told, checked once."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from timeball.core.rate import Rate
from timeball.core.records import AGING_DEFAULT_S
from timeball.core.retry import Retry, RetryBudget
from timeball.engine.runner import Runner
from timeball.errors import UsageError


class SchedulerOptions(TypedDict, total=False):
    """The options of a scheduler besides `workers`; see `Options` for what each means."""

    rate: Rate | str | None
    runner: Literal["threads", "processes"] | Runner
    aging_s: float
    key_limits: Mapping[str, int]
    fair_share: bool
    keep_results: Literal["all", "none"] | int
    max_pending: int | None
    retry: Retry
    retry_budget: float | None
    strict: Literal["observed", "recorded"]
    clock_ns: Callable[[], int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a scheduler behaves.

    Args:
        workers: W, the most attempts at a time.
        rate: The most starts in a time; None for no limit.
        runner: Where callables that are no coroutines run: "threads"; "processes", each of which
            can be killed; or ``Processes(…)``, which are the same with options.
        aging_s: Seconds that one priority class is worth: a job is overtaken only by jobs that
            are ready within that time after it, for each class that they are above it.
        key_limits: For some keys, the most attempts at a time.
        fair_share: Whether the keys of a priority class take turns.
        keep_results: How many ended jobs the scheduler itself remembers, with their records; a
            handle keeps its own.
        max_pending: Where so many jobs have not started yet, `submit` waits.
        retry: For callables that are no kinds of job with a retry of their own.
        retry_budget: The share of all starts that may be retries, 0 to 1; a job beyond it fails
            with the reason "retry-budget". None for no such limit.
        strict: Whether the limit holds for what the callable's own clock sees ("observed"), or
            for the recorded starts only.
        clock_ns: A monotonic clock in nanoseconds, for tests; None for the machine's.
    """

    workers: int = 8
    rate: Rate | str | None = None
    runner: Literal["threads", "processes"] | Runner = "threads"
    aging_s: float = AGING_DEFAULT_S
    key_limits: Mapping[str, int] = field(default_factory=dict)
    fair_share: bool = False
    keep_results: Literal["all", "none"] | int = "all"
    max_pending: int | None = None
    retry: Retry = field(default_factory=lambda: Retry(0))
    retry_budget: float | None = None
    strict: Literal["observed", "recorded"] = "observed"
    clock_ns: Callable[[], int] | None = None

    def __post_init__(self) -> None:
        _check_count("workers", self.workers)
        if isinstance(self.rate, str):
            object.__setattr__(self, "rate", Rate.parse(self.rate))
        elif not (self.rate is None or isinstance(self.rate, Rate)):
            raise UsageError(f"rate is {self.rate!r}: write Rate({self.rate!r}, per_s=1)")
        if not (math.isfinite(self.aging_s) and self.aging_s >= 0):
            raise UsageError(f"aging_s is {self.aging_s!r}: write seconds, 0 or more")
        for key, limit in self.key_limits.items():
            _check_count(f"key_limits[{key!r}]", limit)
        if self.max_pending is not None:
            _check_count("max_pending", self.max_pending, "1 or more, or None for no limit")
        if not isinstance(self.retry, Retry):
            raise UsageError(f"retry is {self.retry!r}: write Retry({self.retry!r})")
        self.budget()
        self._check_words()

    def _check_words(self) -> None:
        if isinstance(self.runner, str) and self.runner not in {"threads", "processes"}:
            raise UsageError(f"runner is {self.runner!r}: write 'threads' or 'processes'")
        if self.keep_results not in {"all", "none"}:
            _check_count("keep_results", self.keep_results, "1 or more, 'all' or 'none'")
        if self.strict not in {"observed", "recorded"}:
            raise UsageError(f"strict is {self.strict!r}: write 'observed' or 'recorded'")

    @property
    def limit(self) -> Rate | None:
        """The rate, parsed."""
        assert not isinstance(self.rate, str)
        return self.rate

    def budget(self) -> RetryBudget | None:
        """Return the retry budget, of which nothing has been used."""
        return None if self.retry_budget is None else RetryBudget(self.retry_budget)

    @property
    def kept(self) -> int | None:
        """How many ended jobs are remembered; None for all."""
        if self.keep_results == "all":
            return None
        return 0 if self.keep_results == "none" else int(self.keep_results)


def _check_count(name: str, value: object, what: str = "1 or more") -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UsageError(f"{name} is {value!r}: write {what}")
