"""Limits on what is under way at once over all workers, and whether they were kept to: I9.

A job counts against the limit of its key from when it enters its lane, against that of its
queue from when its turn is granted, in both cases until the turn has ended. It is let in by
the limit of that instant, which is on record: so the record can be checked although limits
change, and one that is lowered is kept to once those who were let in before have ended.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import Final, NamedTuple

from timeball.core.audit import Violation
from timeball.core.rate import Rate

AT_ONCE_DEFAULT: Final = 1
"""The limit of a key for which nobody has set one."""

AT_ONCE_MAX: Final = 10_000


class Scope(StrEnum):
    """What a limit is about."""

    KEY = "key"
    KIND = "kind"
    QUEUE = "queue"


class Limit(NamedTuple):
    """One limit, and how far it is used up."""

    scope: Scope
    name: str
    """Of a key; one that ends in * stands for each key that begins so."""

    at_once: int | None
    """How many may be under way at once; None: this is not limited."""

    used: int = 0
    """Jobs that count against it now; with * those of all its keys together."""

    rate: Rate | None = None
    """How many may start in a time; None: this is not limited."""


class StartRate(NamedTuple):
    """How many may start in a time, and since when that has been so."""

    scope: Scope
    name: str
    """Of a key; one that ends in * stands for each key that begins so."""

    rate: Rate
    since: float
    """It holds for turns that were granted from then on, in epoch seconds on the store's clock."""


class Holding(NamedTuple):
    """From when to when one turn counted against a limit."""

    scope: Scope
    name: str
    at: float
    until: float | None
    """None: it still does."""

    job_id: int
    at_once: int
    """The limit by which it was let in."""


def fitting(patterns: Iterable[str], key: str) -> str | None:
    """Return whose limit holds for a key: its own, else that of the longest name with *."""
    fits = [name for name in patterns if name == key or _covers(name, key)]
    return max(fits, key=lambda name: (name == key, len(name)), default=None)


def _covers(name: str, key: str) -> bool:
    return name.endswith("*") and key.startswith(name[:-1])


def limit_violations(holdings: Iterable[Holding], *, since: float = -inf) -> Iterator[Violation]:
    """Yield every instant at which more counted against a limit than any of them was let in by.

    Args:
        holdings: By scope and name, of each in the order of `at`.
        since: Instants before this one are not looked at; who had gone by then may be left out.
    """
    for (scope, name), rows in groupby(holdings, itemgetter(0, 1)):
        open_: list[tuple[float, int, int]] = []
        for row in rows:
            until = inf if row.until is None else row.until
            while open_ and open_[0][0] <= row.at:
                heapq.heappop(open_)
            heapq.heappush(open_, (until, row.job_id, row.at_once))
            allowed = max(at_once for _, _, at_once in open_)
            if len(open_) > allowed and until > row.at >= since:
                jobs = ", ".join(str(job_id) for _, job_id, _ in sorted(open_)[:9])
                text = (
                    f"{len(open_)} at once, {allowed} allowed, when job {row.job_id} came: {jobs}"
                )
                yield Violation("I9", f"{scope} {name}", text)
