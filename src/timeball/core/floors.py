"""How fast a batch could have been at best: floors under its makespan, and which one binds.

A floor is a length of time that no schedule of these attempts can beat, whatever the order, with
so many workers and such a limit on starts. The bound is the highest floor. All is computed in
whole nanoseconds, so "at least" is exact: a makespan is a whole number of them, and what falls
between two is rounded up.

The text book's ``max(sum(d) / W, max(d), N / R)`` is no floor: the first start is free and a
window lets R of them through at once, so many a real schedule beats it. It is reported as
`Bound.approximation_ns`, for comparison.

Sources: R. L. Graham, "Bounds on Multiprocessing Timing Anomalies" (1969) for work, longest path
and the pigeonhole over the largest jobs; the floors that know about starts are ours, and
``docs/concepts/makespan.md`` derives them.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate
from operator import add
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeVar

from timeball.errors import UsageError

J = TypeVar("J", bound=Hashable)

REACH_BUDGET: Final = 100_000
"""Jobs and edges visited for each of the two floors that look at all of a job's relatives."""


class StartLimit(Protocol):
    """What a floor must know of a limit on starts: at most `count` per `per_s` seconds."""

    @property
    def count(self) -> int | float | Fraction:
        """Starts per `per_s`, as the user wrote it."""

    @property
    def per_s(self) -> int | float | Fraction:
        """Seconds, as the user wrote them."""

    @property
    def gap_ns(self) -> int:
        """A pause after which the limit has forgotten all earlier starts.

        Strict window: its length. Bucket: the time to fill it, rounded up.
        """

    def earliest_offset_ns(self, k: int) -> int:
        """Return the least time from the first start to the `k`-th, k = 1 being the first itself.

        Strict window (R, P): ``(k - 1) // R * P``. Bucket (C, r): ``max(0, k - C) / r``, rounded
        up. It never falls as k grows, and is 0 for k = 1.
        """


class Chain(NamedTuple):
    """The attempts of one job, one after the other."""

    durations_ns: Sequence[int]
    waits_ns: Sequence[int] = ()
    """The backoff before the second attempt, the third, …; those left out are 0."""

    weight: int = 1
    """As how many starts each attempt counts for the limit."""

    @property
    def extent_ns(self) -> int:
        """Return the least time from the first attempt's start to the last one's end."""
        return sum(self.durations_ns) + sum(self.waits_ns[: len(self.durations_ns) - 1])


class Floor(StrEnum):
    """What holds a makespan up. Of equal floors the first in this order is said to bind."""

    LONGEST = "longest"  # one attempt; with dependencies, the longest path of them
    CHAIN = "chain"  # one job with its retries and their waits, or a path of such jobs
    START = "start"  # the last permit, and the shortest attempt after it
    WORK = "work"  # all attempts, spread evenly over the workers
    START_TAIL = "start-tail"  # of the k longest, one starts k-th or later
    RAMPED_WORK = "ramped-work"  # work, by workers that the limit lets begin one by one
    PIGEONHOLE = "pigeonhole"  # of the kW + 1 longest, one worker gets k + 1
    SUFFIX_PIGEONHOLE = "suffix-pigeonhole"  # the same among those that start k-th or later
    SERIAL_START = "serial-start"  # one worker: a long attempt makes the limit forget
    AFTER_WORK = "after-work"  # a job, and the work that must follow it
    BEFORE_WORK = "before-work"  # a job, and the work that must precede it
    ANCESTOR_START = "ancestor-start"  # start-tail, each attempt with all that must follow it


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The least possible makespan, and why."""

    ns: int
    binding: Floor
    """The first floor that is as high as the bound."""

    floors: Mapping[Floor, int]
    """All that apply, in nanoseconds, in their order."""

    approximation_ns: int
    """The classic formula. May lie above the best schedule: never compare it with a record."""

    @property
    def seconds(self) -> float:
        """Return the bound in seconds, for people."""
        return self.ns / 1e9

    def raised_to(self, part: Bound) -> Bound:
        """Return this bound, each floor as high as that of a part of the attempts, if that is more.

        What no schedule of a part can beat, no schedule of the whole can.
        """
        names = {*self.floors, *part.floors}
        floors = {n: max(self.floors.get(n, 0), part.floors.get(n, 0)) for n in names}
        most = max(self.approximation_ns, part.approximation_ns)
        return _highest(floors, approximation_ns=most)


def bound(
    jobs: Mapping[J, Chain],
    *,
    workers: int,
    limit: StartLimit | None = None,
    parents: Mapping[J, Collection[J]] | None = None,
) -> Bound:
    """Return a length of time that no schedule of these attempts can beat.

    The schedule is one of at most `workers` attempts at a time, whose starts obey `limit`, whose
    retries begin no earlier than their wait after the attempt before, and in which a job begins
    after all attempts of its parents have ended. Near-linear in attempts and edges.

    Args:
        jobs: What was carried out, attempt by attempt; a job without attempts counts for nothing.
        workers: Slots, at least 1.
        limit: On starts; None for none.
        parents: For each job those that it really waited for: leave out an edge whose trigger
            rule let the child start before the parent's end. A parent that has no attempts is
            passed over, and nothing is concluded through it.

    Raises:
        UsageError: No workers, a negative time, or dependencies in a circle.
    """
    if workers < 1:
        raise UsageError(f"workers is {workers!r}: write 1 or more")
    begun = {job: chain for job, chain in jobs.items() if chain.durations_ns}
    durations = [d for chain in begun.values() for d in chain.durations_ns]
    if any(d < 0 for d in durations) or any(w < 0 for c in begun.values() for w in c.waits_ns):
        raise UsageError("a duration or a wait is negative: write nanoseconds, 0 or more")
    if not durations:
        return _highest({}, approximation_ns=0)
    weights = sorted(chain.weight for chain in begun.values() for _ in chain.durations_ns)
    offsets = _offsets(limit, weights)
    pace_ns = offsets[1] if offsets[1:] else 0
    graph = _Graph(begun, parents, pace_ns) if parents else _NoGraph(begun, pace_ns)
    floors = _plain(sorted(durations), offsets, workers) | graph.floors(workers)
    floors[Floor.START] = offsets[-1] + graph.least_last
    if parents or len(durations) > len(begun):
        floors[Floor.ANCESTOR_START] = max(map(add, offsets, sorted(graph.rests, reverse=True)))
    if workers == 1 and limit is not None:
        floors[Floor.SERIAL_START] = _serial_start(durations, offsets, limit.gap_ns)
    most = _approximation(durations, sum(weights), workers, limit)
    return _highest(floors, approximation_ns=most)


def _highest(floors: Mapping[Floor, int], *, approximation_ns: int) -> Bound:
    ordered = _ordered(floors)
    binding = max(ordered, key=ordered.__getitem__, default=Floor.LONGEST)
    return Bound(
        ns=ordered.get(binding, 0),
        binding=binding,
        floors=ordered,
        approximation_ns=approximation_ns,
    )


def _ordered(floors: Mapping[Floor, int]) -> Mapping[Floor, int]:
    return MappingProxyType({floor: floors[floor] for floor in Floor if floor in floors})


def _offsets(limit: StartLimit | None, weights: Sequence[int]) -> list[int]:
    """Return the earliest offset of each start; the first has index 0.

    By the k-th start, whichever jobs came first, no less has been taken from the limit than the
    k lightest take, and what is taken at one instant counts as that many starts.

    Args:
        limit: On starts.
        weights: Of all starts, the lightest first.
    """
    if limit is None:
        return [0] * len(weights)
    return [limit.earliest_offset_ns(taken) for taken in accumulate(weights)]


def _approximation(
    durations: Sequence[int], weight: int, workers: int, limit: StartLimit | None
) -> int:
    terms = [_share(sum(durations), workers), max(durations)]
    if limit is not None:
        per_start_ns = 10**9 * Fraction(limit.per_s) / Fraction(limit.count)
        terms.append(round(weight * per_start_ns))
    return max(terms)


def _share(total: int, parts: int) -> int:
    """Return ``total / parts``, rounded up."""
    return -(-total // parts)


def _plain(up: Sequence[int], offsets: Sequence[int], workers: int) -> dict[Floor, int]:
    """Return the floors that ask for nothing but durations, ascending, and starts."""
    n = len(up)
    down = up[::-1]
    least = [0, *accumulate(up)]  # least[m]: the work of the m shortest attempts
    most = [0, *accumulate(down)]
    return {
        Floor.LONGEST: down[0],
        Floor.START: offsets[-1] + up[0],
        Floor.WORK: _share(least[n], workers),
        Floor.START_TAIL: max(map(add, offsets, down)),
        Floor.RAMPED_WORK: _ramped_work(least, offsets, workers),
        Floor.PIGEONHOLE: max(
            (most[k * workers + 1] - most[k * workers - k] for k in range(1, _share(n, workers))),
            default=0,
        ),
        Floor.SUFFIX_PIGEONHOLE: max(
            offset + least[_share(n - k, workers)] for k, offset in enumerate(offsets)
        ),
    }


def _ramped_work(least: Sequence[int], offsets: Sequence[int], workers: int) -> int:
    """Return the highest M at which, for some k, the starts from the k-th on can end by M.

    Their work is no less than that of as many shortest attempts, and of the w workers that carry
    it out the i-th begins no earlier than the (k + i)-th start. So M solves
    ``sum(max(0, M - offsets[k + i]) for i in range(w)) == work``. Without the max, M is a mean of
    offsets plus ``work / w``. Where that is more, because not all w find work, it lies below the
    last of these offsets, and so below the M of a later k: the highest is the same.
    """
    n = len(offsets)
    before = [0, *accumulate(offsets)]
    highest = 0
    for k in range(n):
        w = min(workers, n - k)
        highest = max(highest, _share(least[n - k] + before[k + w] - before[k], w))
    return highest


def _serial_start(durations: Sequence[int], offsets: Sequence[int], gap_ns: int) -> int:
    """Return what one worker needs at least, given that the limit forgets within an attempt.

    Shorten an attempt to the gap and move all that follows forward: the limit is still obeyed.
    Chains and dependencies have no place here, because moving shortens waits as well.
    """
    shortened = _plain(sorted(min(d, gap_ns) for d in durations), offsets, 1)
    return max(shortened.values()) + sum(max(0, d - gap_ns) for d in durations)


class _NoGraph:
    """Jobs that wait for none but their own retries.

    `pace_ns` is how far apart the limit keeps any two starts: no attempt begins sooner than that
    after the start of the one before it.
    """

    def __init__(self, jobs: Mapping[J, Chain], pace_ns: int) -> None:
        chains = jobs.values()
        self.rests = [rest for chain in chains for rest in _rests(chain, pace_ns, None)]
        # The last to start is an attempt that nothing follows.
        self.least_last = min(chain.durations_ns[-1] for chain in chains)
        self._chain = max(chain.extent_ns for chain in chains)

    def floors(self, workers: int) -> dict[Floor, int]:
        return {Floor.CHAIN: self._chain}


class _Graph:
    """The jobs that have begun, numbered parents first, and the edges between them."""

    def __init__(
        self, jobs: Mapping[J, Chain], parents: Mapping[J, Collection[J]], pace_ns: int
    ) -> None:
        order = _parents_first(jobs, parents)
        number = {job: i for i, job in enumerate(order)}
        self._chains = [jobs[job] for job in order]
        self._up = [[number[p] for p in parents.get(job, ()) if p in number] for job in order]
        self._down: list[list[int]] = [[] for _ in order]
        for child, above in enumerate(self._up):
            for parent in above:
                self._down[parent].append(child)
        self._pace = pace_ns
        self.rests: list[int] = []
        self._rest = [0] * len(order)  # of the first attempt of each job
        for job in reversed(range(len(order))):
            below = self._down[job]
            onward = max([self._rest[child] for child in below]) if below else None
            mine = _rests(self._chains[job], pace_ns, onward)
            self._rest[job] = mine[-1]
            self.rests += mine
        ends = [chain for chain, below in zip(self._chains, self._down, strict=True) if not below]
        self.least_last = min(chain.durations_ns[-1] for chain in ends)

    def floors(self, workers: int) -> dict[Floor, int]:
        """Return the floors that edges raise or add."""
        longest = [max(chain.durations_ns) for chain in self._chains]
        extents = [chain.extent_ns for chain in self._chains]
        after, before = self._work_around(workers)
        return {
            Floor.LONGEST: max(map(add, self._heads(longest), longest)),
            Floor.CHAIN: max(map(add, self._heads(extents), extents)),
            Floor.AFTER_WORK: after,
            Floor.BEFORE_WORK: before,
        }

    def _work_around(self, workers: int) -> tuple[int, int]:
        """Return the floors made of a job and the work of its descendants, or its ancestors."""
        heads = self._heads([_rests(chain, self._pace, 0)[-1] for chain in self._chains])
        own = [_rests(chain, self._pace, None)[-1] for chain in self._chains]
        ends = list(map(add, heads, own))
        work = [sum(chain.durations_ns) for chain in self._chains]
        after = before = 0
        for job, found in _search(self._down, ends):
            after = max(after, ends[job] + _share(sum(work[c] for c in found), workers))
        for job, found in _search(self._up, self._rest):
            before = max(before, _share(sum(work[p] for p in found), workers) + self._rest[job])
        return after, before

    def _heads(self, steps: Sequence[int]) -> list[int]:
        """Return for each job the longest path of steps that leads to it."""
        heads: list[int] = []
        for above in self._up:
            heads.append(max([heads[p] + steps[p] for p in above]) if above else 0)
        return heads


def _rests(chain: Chain, pace_ns: int, onward: int | None) -> list[int]:
    """Return the least time from each attempt's start to the end of it and all that follows.

    The last attempt comes first. `onward` is the same for the child with the most to come, None
    where there is no child.
    """
    *others, last = chain.durations_ns
    rest = last if onward is None else max(last, pace_ns) + onward
    rests = [rest]
    if others:
        waits = [*chain.waits_ns[: len(others)], *[0] * (len(others) - len(chain.waits_ns))]
        for duration, wait in zip(reversed(others), reversed(waits), strict=True):
            rest += max(duration + wait, pace_ns)
            rests.append(rest)
    return rests


def _parents_first(jobs: Mapping[J, Chain], parents: Mapping[J, Collection[J]]) -> list[J]:
    edges = {job: [p for p in parents.get(job, ()) if p in jobs] for job in jobs}
    seen: set[J] = set()
    for job, above in edges.items():
        if not seen.issuperset(above):
            break
        seen.add(job)
    else:  # a child is mostly submitted after its parents, and sorting is what costs most here
        return list(edges)
    try:
        return list(TopologicalSorter(edges).static_order())
    except CycleError as error:
        circle = " -> ".join(map(str, error.args[1]))
        raise UsageError(f"dependencies go in a circle, {circle}: take one edge away") from None


def _search(
    edges: Sequence[Sequence[int]], heights: Sequence[int]
) -> Iterator[tuple[int, set[int]]]:
    """Yield jobs, each with all that can be reached from it, the highest first.

    A floor over some of the jobs is a floor, so it may stop early: when its budget is spent.
    """
    steps = 0
    for job in sorted(range(len(heights)), key=heights.__getitem__, reverse=True):
        if steps > REACH_BUDGET:
            return
        found: set[int] = set()
        todo = [job]
        while todo:
            onward = edges[todo.pop()]
            steps += 1 + len(onward)
            todo += [other for other in onward if other not in found]
            found.update(onward)
        yield job, found
