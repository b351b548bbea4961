"""The law of the bound: never above the best schedule, and mostly equal to it.

The best schedule is found by branch and bound over the orders of starts. In a given order each
attempt starts as early as slots, limit, parents and backoff allow, which no schedule of that order
beats. The limits are simulated here from their definitions and know nothing of `core.floors`.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.core.floors import Chain, bound
from timeball.core.rate import Rate

S = 10**9

INSTANCES = 420
SHARE = 0.85


@dataclass(frozen=True)
class Instance:
    chains: tuple[Chain, ...]
    workers: int
    limit: Rate | None
    parents: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def bound_ns(self) -> int:
        jobs = dict(enumerate(self.chains))
        return bound(jobs, workers=self.workers, limit=self.limit, parents=self.parents).ns


def permitted_ns(limit: Rate | None, starts: tuple[int, ...], weight: int) -> int:
    """Return the earliest instant that the limit allows after `starts`, the first being at 0.

    A start of some weight is so many starts at one instant.
    """
    if limit is None:
        return 0
    if limit.burst is None and not limit.spread:
        place = len(starts) + weight - 1 - limit.count
        return starts[place] + int(limit.per_s * S) if place >= 0 else 0
    burst, rate = limit.burst or 1, limit.count / limit.per_s / S
    permits, last = Fraction(burst), 0
    for at in starts:
        permits = min(Fraction(burst), permits + (at - last) * rate) - 1
        last = at
    return last + max(0, math.ceil((weight - permits) / rate))


class Search:
    """Every order of starts, except where it cannot beat what has been found."""

    def __init__(self, instance: Instance) -> None:
        self._it = instance
        chains = instance.chains
        self._rest = [  # what follows the n-th attempt of a job, itself included, at least
            [sum(c.durations_ns[n:]) + sum(c.waits_ns[n:]) for n in range(len(c.durations_ns) + 1)]
            for c in chains
        ]
        self.best = sum(c.extent_ns for c in chains) + 10**12

    def run(self) -> int:
        n = len(self._it.chains)
        self._go((), (0,) * self._it.workers, (0,) * n, (0,) * n)
        return self.best

    def _go(
        self, starts: tuple[int, ...], free: tuple[int, ...], done: tuple[int, ...], ends
    ) -> None:
        chains = self._it.chains
        if all(n == len(c.durations_ns) for n, c in zip(done, chains, strict=True)):
            self.best = min(self.best, max(ends))
            return
        floor = max(free[0], starts[-1] if starts else 0)
        tried = set()
        for job, chain in enumerate(chains):
            n = done[job]
            if n == len(chain.durations_ns) or not self._parents_done(job, done):
                continue
            ready = max((ends[p] for p in self._it.parents.get(job, ())), default=0)
            if n:
                ready = ends[job] + chain.waits_ns[n - 1]
            at = max(floor, ready, permitted_ns(self._it.limit, starts, chain.weight))
            # Two jobs alone in the world with equal futures are one choice, not two.
            future = (self._rest[job][n], tuple(chain.durations_ns[n:]), chain.weight)
            same = (at, future, self._relatives(job))
            if same in tried or at + self._rest[job][n] >= self.best:
                continue
            tried.add(same)
            end = at + chain.durations_ns[n]
            self._go(
                (*starts, *[at] * chain.weight),
                tuple(sorted((end, *free[1:]))),
                (*done[:job], n + 1, *done[job + 1 :]),
                (*ends[:job], end, *ends[job + 1 :]),
            )

    def _parents_done(self, job: int, done: tuple[int, ...]) -> bool:
        return all(
            done[p] == len(self._it.chains[p].durations_ns) for p in self._it.parents.get(job, ())
        )

    def _relatives(self, job: int) -> tuple[object, ...]:
        children = tuple(c for c, above in self._it.parents.items() if job in above)
        alone = not children and len(self._it.chains[job].durations_ns) == 1
        return children if alone else (job,)


def optimum_ns(instance: Instance) -> int:
    return Search(instance).run()


# --- the search itself, on cases done by hand ---------------------------------------------------


def alone(*seconds: float, workers: int, limit: Rate | None = None) -> Instance:
    chains = tuple(Chain([round(d * S)]) for d in seconds)
    return Instance(chains, workers, limit)


@pytest.mark.parametrize(
    ("instance", "seconds"),
    [
        (alone(2, 2, 2, 2, 2, workers=2), 6),
        (alone(0.1, 0.1, 0.1, 5, workers=2, limit=Rate(0.5, spread=True)), 6.1),
        (alone(3, 0.3, 0.3, 0.1, 0.3, workers=1, limit=Rate(1)), 6.1),
        (alone(0, 0, 0, 0, 0, 0, 0, workers=7, limit=Rate(3)), 2),
        (alone(0, 0, 0, 0, 0, workers=5, limit=Rate(3, burst=2)), 1),
        (alone(0, 0, 0, workers=5, limit=Rate(1, 2)), 4),
        (Instance((Chain([0], weight=2), Chain([0]), Chain([0], weight=2)), 3, Rate(3)), 1),
        (Instance((Chain([0], weight=2),) * 2, 2, Rate(1, burst=2)), 2),
        (Instance((Chain([S, S], [S // 2]),), 1, None), 2.5),
        (Instance((Chain([S, S], [S]), Chain([S])), 1, None), 3),
        (Instance((Chain([S]), Chain([2 * S]), Chain([S])), 2, None, {2: (0, 1)}), 3),
    ],
)
def test_the_search_finds_what_was_found_by_hand(instance: Instance, seconds: float) -> None:
    assert optimum_ns(instance) == round(seconds * S)


# --- the law ------------------------------------------------------------------------------------

TENTHS = st.integers(0, 40).map(lambda d: d * S // 10)
RATES = st.fractions(Fraction(1, 2), 4, max_denominator=3)
LIMITS = st.one_of(
    st.none(),
    st.builds(Rate, st.integers(1, 3), st.integers(1, 2)),
    st.builds(Rate, RATES, burst=st.integers(1, 3)),
    st.builds(Rate, RATES, spread=st.just(True)),
)


@st.composite
def instances(draw: st.DrawFn) -> Instance:
    lengths = draw(st.sampled_from([(1,), (1,) * 3, (1,) * 5, (2, 1, 1), (2, 2), (3, 1, 1)]))
    limit = draw(LIMITS)
    weights = st.integers(1, 3 if limit is None else limit.capacity)
    chains = tuple(
        Chain(
            draw(st.lists(TENTHS, min_size=n, max_size=n)),
            draw(st.lists(TENTHS, min_size=n - 1, max_size=n - 1)),
            draw(weights),
        )
        for n in lengths
    )
    parents = {
        child: tuple(sorted(draw(st.sets(st.integers(0, child - 1), max_size=2))))
        for child in range(1, len(chains))
    }
    return Instance(chains, draw(st.integers(1, 3)), limit, parents)


@pytest.mark.slow
@given(instance=instances())
@settings(max_examples=250, deadline=None)
def test_no_schedule_beats_the_bound(instance: Instance) -> None:
    assert instance.bound_ns <= optimum_ns(instance)


def random_instance(seed: int) -> Instance:
    """Return a batch of 3 to 6 attempts; a third have edges, a third retries with backoff."""
    r = random.Random(seed)
    attempts = r.randint(3, 6)
    lengths = [1] * attempts
    if seed % 3 == 1:
        while sum(lengths) > attempts or max(lengths) == 1:
            lengths = [r.randint(1, 3) for _ in range(r.randint(2, max(2, attempts - 1)))]
    chains = tuple(
        Chain(
            [r.randint(1, 8) * S // 2 for _ in range(n)],
            [r.randint(1, 4) * S // 2 for _ in range(n - 1)],
        )
        for n in lengths
    )
    parents = {}
    if seed % 3 == 2:
        parents = {
            child: tuple(p for p in range(child) if r.random() < 0.35)
            for child in range(1, len(chains))
        }
    limit = r.choice(
        [
            None,
            Rate(r.randint(1, 3), r.randint(1, 2)),
            Rate(r.randint(1, 8) / 2, burst=r.randint(2, 3)),
            Rate(r.choice([0.5, 1, 2, 4]), spread=True),
        ]
    )
    return Instance(chains, r.randint(1, 4), limit, parents)


@pytest.mark.slow
def test_the_bound_is_the_optimum_in_85_of_100_random_batches() -> None:
    equal: Counter[str] = Counter()
    every: Counter[str] = Counter()
    ratios = []
    for seed in range(INSTANCES):
        instance = random_instance(seed)
        at_least, best = instance.bound_ns, optimum_ns(instance)
        assert at_least <= best, f"seed {seed}"
        for group in ("all", ("plain", "retries", "edges")[seed % 3]):
            every[group] += 1
            equal[group] += at_least == best
        ratios.append(best / at_least)
    shares = {group: equal[group] / every[group] for group in every}
    print({group: f"{share:.1%}" for group, share in shares.items()}, end=" ")
    print(f"of {INSTANCES} equal; mean optimum / bound {sum(ratios) / INSTANCES:.4f}")
    assert shares["all"] >= SHARE
