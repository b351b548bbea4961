"""Ways to go through the schedules of a scenario: bounded search, random walk, PCT, replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from math import inf
from typing import Final, TypeVar

from timeball.certify.stepper import CLOCK, Chooser
from timeball.certify.story import Outcome

Run = Callable[[Chooser], Outcome]
"""Runs a scenario from the start, under one chooser."""

_Thing = TypeVar("_Thing")
_SWITCH_ONE_IN: Final = 8
_MASK: Final = (1 << 64) - 1


class Dice:
    """A small generator that throws the same on every Python, so that a seed replays a run.

    The SplitMix64 of Steele, Lea and Flood, "Fast splittable pseudorandom number generators",
    OOPSLA 2014.
    """

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def throw(self, sides: int) -> int:
        """Return a number from 0 to `sides` - 1."""
        self._state = self._state + 0x9E3779B97F4A7C15 & _MASK
        mixed = (self._state ^ self._state >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _MASK
        return (mixed ^ mixed >> 31) % sides

    def shuffled(self, things: Iterable[_Thing]) -> list[_Thing]:
        """Return things in an order that is thrown."""
        left = list(things)
        return [left.pop(self.throw(len(left))) for _ in range(len(left))]


class _Noting:
    """A chooser that notes what it chose, for the replay."""

    def __init__(self) -> None:
        self.forks: list[tuple[bool, ...]] = []
        """Of each decision: for each that could go on, whether somebody else had to be held up."""
        self.ways: dict[int, int] = {}
        """Decision -> place, where it was not the first."""

    def choose(self, options: Sequence[int], *, preempts: bool) -> int:
        way = self._way(len(self.forks), options, preempts=preempts)
        if way:
            self.ways[len(self.forks)] = way
        self.forks.append((False, *(preempts or number == CLOCK for number in options[1:])))
        return way

    def _way(self, fork: int, options: Sequence[int], *, preempts: bool) -> int:
        raise NotImplementedError

    def branches(self, first: int) -> Iterator[tuple[int, int, bool]]:
        """Yield what else could have been chosen from that decision on, and whether it costs."""
        for fork in range(first, len(self.forks)):
            for way, costs in enumerate(self.forks[fork]):
                if way:
                    yield fork, way, costs

    def play(self, run: Run) -> Outcome:
        outcome = run(self)
        return replace(outcome, schedule=" ".join(f"{at}:{way}" for at, way in self.ways.items()))


class _Prescribed(_Noting):
    """Takes the first way everywhere, but where another one is prescribed."""

    def __init__(self, prescribed: Iterable[tuple[int, int]]) -> None:
        super().__init__()
        self._prescribed = dict(prescribed)

    def _way(self, fork: int, options: Sequence[int], *, preempts: bool) -> int:
        return self._prescribed.get(fork, 0)


class _Walk(_Noting):
    """Goes on mostly, and lets anybody run now and then."""

    def __init__(self, dice: Dice) -> None:
        super().__init__()
        self._dice = dice

    def _way(self, fork: int, options: Sequence[int], *, preempts: bool) -> int:
        if preempts and self._dice.throw(_SWITCH_ONE_IN):
            return 0
        return self._dice.throw(len(options))


class _Priorities(_Noting):
    """Lets the highest priority run; at some decisions the one that runs becomes the lowest."""

    def __init__(self, dice: Dice, *, decisions: int, depth: int) -> None:
        super().__init__()
        self._dice = dice
        self._drops = {dice.throw(max(1, decisions)) for _ in range(depth - 1)}
        self._low = count(-1, -1)
        # The clock is the lowest of all, for else a thread may starve while time runs away.
        self._ranks: dict[int, float] = {CLOCK: -inf}

    def _way(self, fork: int, options: Sequence[int], *, preempts: bool) -> int:
        for number in options:
            if number not in self._ranks:
                self._ranks[number] = self._dice.throw(1 << 30)
        if fork in self._drops:
            if options[-1] == CLOCK and self._dice.throw(2):
                return len(options) - 1
            self._ranks[options[0]] = next(self._low)
        return max(range(len(options)), key=lambda place: self._ranks[options[place]])


def bounded(run: Run, *, preemptions: int = 2, seed: int = 0) -> Iterator[Outcome]:
    """Yield the outcome of every schedule with at most so many preemptions, the fewest first.

    That time passes while somebody could go on counts as one.

    Among those with equally many the order is shuffled, so that a search that is cut short has not
    seen the end of the scenario only. Most races need one or two: Musuvathi and Qadeer,
    "Iterative context bounding for systematic testing of multithreaded programs", PLDI 2007.
    """
    stacks: list[list[tuple[tuple[int, int], ...]]] = [[] for _ in range(preemptions + 1)]
    stacks[0].append(())
    dice = Dice(seed)
    while any(stacks):
        spent = next(number for number, stack in enumerate(stacks) if stack)
        stack = stacks[spent]
        drawn = dice.throw(len(stack))
        stack[drawn], stack[-1] = stack[-1], stack[drawn]
        prescribed = stack.pop()
        chooser = _Prescribed(prescribed)
        yield chooser.play(run)
        first = prescribed[-1][0] + 1 if prescribed else 0
        for fork, way, costs in chooser.branches(first):
            if spent + costs <= preemptions:
                stacks[spent + costs].append((*prescribed, (fork, way)))


def walks(run: Run, *, seed: int = 0) -> Iterator[Outcome]:
    """Yield outcomes of random schedules, without end, the same for the same seed."""
    dice = Dice(seed)
    while True:
        yield _Walk(Dice(dice.throw(1 << 63))).play(run)


def pct(run: Run, *, seed: int = 0, depth: int = 3) -> Iterator[Outcome]:
    """Yield outcomes of schedules by random priorities that change `depth` - 1 times, without end.

    A defect of that depth is hit with a probability of at least 1 / (threads * steps^(depth-1)):
    Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding bugs",
    ASPLOS 2010.
    """
    dice, decisions = Dice(seed), 1
    while True:
        chooser = _Priorities(Dice(dice.throw(1 << 63)), decisions=decisions, depth=depth)
        yield chooser.play(run)
        decisions = max(decisions, len(chooser.forks))


def mixed(run: Run, *, seed: int = 0) -> Iterator[Outcome]:
    """Yield outcomes of all three ways in turn, without end: what one misses another one finds."""
    ways = [bounded(run, seed=seed), walks(run, seed=seed), pct(run, seed=seed)]
    while True:
        for way in ways:
            outcome = next(way, None)  # the bounded search ends
            if outcome is not None:
                yield outcome


def replay(run: Run, schedule: str) -> Outcome:
    """Return the outcome of the run that had this `Outcome.schedule`."""
    pairs = (pair.split(":") for pair in schedule.split())
    return _Prescribed((int(fork), int(way)) for fork, way in pairs).play(run)


def first_failure(outcomes: Iterable[Outcome]) -> Outcome | None:
    """Return the first outcome in which a promise was broken; None if all were kept."""
    return next((outcome for outcome in outcomes if outcome.check), None)
