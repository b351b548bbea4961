"""How many attempts ran at once, and whether that was too many: I9 of the in-process engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Overshoot(NamedTuple):
    """At one instant more ran than were allowed."""

    at_ns: int
    running: int


def most_at_once(spans: Iterable[tuple[int, int]]) -> int:
    """Return the most spans that any instant lies in; a span is without its end."""
    return max((running for _, running in _steps(spans)), default=0)


def overshoots(spans: Iterable[tuple[int, int]], limit: int) -> list[Overshoot]:
    """Return each instant at which one more than `limit` began to run.

    Args:
        spans: From the start of an attempt to its end, which is no part of it.
        limit: The most attempts at once.
    """
    found, before = [], 0
    for at_ns, running in _steps(spans):
        if running > before and running > limit:
            found.append(Overshoot(at_ns, running))
        before = running
    return found


def _steps(spans: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield every change, with how many run after it; of one instant, ends come first."""
    changes: list[tuple[int, int]] = []
    for from_ns, to_ns in spans:
        if to_ns > from_ns:  # one that took no time was never there together with another
            changes += [(from_ns, 1), (to_ns, -1)]
    running = 0
    for at_ns, change in sorted(changes):
        running += change
        yield at_ns, running
