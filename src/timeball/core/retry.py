"""Retry arithmetic: which errors are tried again, and how long the wait is.

Nothing here sleeps, reads a clock or draws a random number: the caller passes
the draw in, so that every test of this module is exact. The jitters are those of
Marc Brooker, "Exponential Backoff and Jitter" (AWS Architecture Blog, 2015).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, assert_never

from timeball.errors import UsageError

Jitter = Literal["full", "equal", "decorrelated", "none"]

MAX_RETRIES_LIMIT: Final = 1_000_000

WAIT_LIMIT_S: Final = 10 * 366 * 86_400.0
"""What lies further ahead no store needs to be able to add to its clock."""


class PermanentError(Exception):
    """Raise this from a job to say that trying again cannot help."""


@dataclass(frozen=True, slots=True)
class Retry:
    """How often and when a job that raised is tried again.

    With n the number of failures so far and ``ceiling = min(cap_s, base_s * factor ** (n - 1))``
    the wait before the next attempt is drawn evenly from

    - full: ``[min_s, ceiling]``,
    - equal: ``[max(min_s, ceiling / 2), ceiling]``,
    - decorrelated: ``[base_s, min(cap_s, 3 * previous wait)]``, starting from ``base_s``,
    - none: exactly ``ceiling``.

    Args:
        max_retries: Failures that are followed by another attempt; 0 to 1,000,000.
        base_s: First ceiling in seconds.
        factor: Growth of the ceiling, at least 1.
        cap_s: Largest wait in seconds.
        min_s: Smallest wait in seconds, at most `cap_s`.
        jitter: One of the four above.
        on: Exception types that are worth another attempt; all others fail at once.
    """

    max_retries: int = 3
    base_s: float = 1.0
    factor: float = 2.0
    cap_s: float = 3600.0
    min_s: float = 0.0
    jitter: Jitter = "full"
    on: tuple[type[BaseException], ...] = (Exception,)

    def __post_init__(self) -> None:
        if isinstance(self.max_retries, bool) or not (0 <= self.max_retries <= MAX_RETRIES_LIMIT):
            raise UsageError(f"max_retries is {self.max_retries!r}: write 0 to 1,000,000")
        numbers = {"base_s": self.base_s, "cap_s": self.cap_s, "min_s": self.min_s}
        for name, value in numbers.items():
            if not (math.isfinite(value) and 0 <= value <= WAIT_LIMIT_S):
                raise UsageError(f"{name} is {value!r}: write seconds, from 0 to ten years")
        if not (math.isfinite(self.factor) and self.factor >= 1):
            raise UsageError(f"factor is {self.factor!r}: write 1 or more")
        if self.min_s > self.cap_s:
            raise UsageError(f"min_s {self.min_s} is above cap_s {self.cap_s}: swap them")
        if self.jitter not in {"full", "equal", "decorrelated", "none"}:
            raise UsageError(
                f"jitter is {self.jitter!r}: write 'full', 'equal', 'decorrelated' or 'none'"
            )

    def wants(self, error: BaseException) -> bool:
        """Return whether `error` is worth another attempt, budget aside.

        SystemExit, KeyboardInterrupt and other exceptions that are no `Exception`
        are tried again only where `on` names them.
        """
        return isinstance(error, self.on) and not isinstance(error, PermanentError)

    def delay_s(self, failures: int, draw: float, *, previous_s: float = 0.0) -> float:
        """Return the seconds to wait after the `failures`-th failure.

        Args:
            failures: Failures so far, this one included; at least 1.
            draw: A number in ``[0, 1)``; the caller owns the randomness.
            previous_s: The wait before this attempt, for decorrelated jitter; 0 if none.
        """
        assert failures >= 1
        assert 0.0 <= draw < 1.0
        try:
            ceiling = min(self.cap_s, self.base_s * self.factor ** (failures - 1))
        except OverflowError:  # a float power overflows long before an int would
            ceiling = self.cap_s
        match self.jitter:
            case "none":
                low = ceiling
            case "full":
                low = self.min_s
            case "equal":
                low = max(self.min_s, ceiling / 2)
            case "decorrelated":
                low = min(self.base_s, self.cap_s)
                ceiling = min(self.cap_s, 3 * max(previous_s, self.base_s))
            case _:
                assert_never(self.jitter)
        return max(low, self.min_s, low + draw * (ceiling - low))


class RetryBudget:
    """How many of all starts may be retries, so that a failing service is not buried under them.

    A retry is granted while, with it, the granted ones are no more than `share` of the starts:
    ``granted + 1 <= share * (starts + 1)``, in whole numbers. It starts after that and is a start
    itself, so at every instant the retries among the starts are no more than that share.

    Args:
        share: From 0, which allows no retry, to 1, which allows them all.

    Raises:
        UsageError: It is no share.
    """

    __slots__ = ("_all", "_part", "granted")

    def __init__(self, share: float | Fraction) -> None:
        is_number = isinstance(share, int | float | Fraction) and not isinstance(share, bool)
        if not (is_number and 0 <= share <= 1):  # nor is NaN
            raise UsageError(f"retry_budget is {share!r}: write a share of all starts, 0 to 1")
        exact = Fraction(str(share)) if isinstance(share, float) else Fraction(share)
        self._part, self._all = exact.as_integer_ratio()
        self.granted = 0

    def grant(self, starts: int) -> bool:
        """Grant one more retry, unless that is more than the share of `starts` and itself."""
        if not self.allows(self.granted + 1, starts + 1):
            return False
        self.granted += 1
        return True

    def allows(self, retries: int, starts: int) -> bool:
        """Return whether so many retries are within the share of so many starts."""
        return retries * self._all <= starts * self._part
