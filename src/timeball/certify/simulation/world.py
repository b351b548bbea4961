"""Virtual time, a seeded order of steps, and a store that can only be reached through faults."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Generator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final, NamedTuple
from uuid import UUID

from timeball.certify.schedules import Dice
from timeball.certify.simulation.oracle import Oracle
from timeball.errors import StoreUnavailable
from timeball.store.memory import MemoryStore

NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
STEP_US: Final = 2_000
"""What each step takes, in virtual microseconds."""
SECOND: Final = 1_000_000
_CALLS, _LOST, _TWICE = 400, 8, 12
"""Of so many calls one begins an outage, and so many are lost; those up to here are sent twice."""

Steps = Generator[int, None, None]
"""What somebody does: yields after each step how long he rests, in microseconds."""


class Event(NamedTuple):
    """One thing that happened; a seed has the same ones each time."""

    step: int
    who: str
    what: str
    about: str

    def __str__(self) -> str:
        return f"{self.step:6} {self.who:12} {self.what:10} {self.about}"


class World:
    """Who there is, what time it is, and what has happened.

    Args:
        seed: Decides everything.
        store: Makes the store, given its clock; another one than the memory store has a defect.
    """

    def __init__(
        self, seed: int, store: Callable[[Callable[[], datetime]], MemoryStore] = MemoryStore
    ) -> None:
        self.dice = Dice(seed)
        self.seed = seed
        self.steps = 0
        self.at_us = 0
        """On the stopwatch that everybody has."""

        self.now = NOON
        """On the store's clock, which may be stepped."""

        self.set_back_s = 0.0
        """How far in all it has been set back."""

        self.store = store(lambda: self.now)
        self.oracle = Oracle(self)
        self.probes: Counter[str] = Counter()
        self.events: list[Event] = []
        self.faulty = True
        self.away_until_us = 0
        self._names = count(1)
        self._ready: list[tuple[str, Steps]] = []
        self._asleep: list[tuple[int, int, tuple[str, Steps]]] = []
        self._guests: set[str] = set()

    def join(self, who: str, steps: Steps, *, guest: bool = False) -> None:
        """Have somebody take part; a guest is there only as long as there are faults."""
        self._ready.append((who, steps))
        if guest:
            self._guests.add(who)

    def step(self) -> None:
        """Let one of those who are ready take a step; if nobody is, time passes first."""
        self.steps += 1
        while self._asleep and (not self._ready or self._asleep[0][0] <= self.at_us):
            at_us, _, actor = heapq.heappop(self._asleep)
            self._pass(max(0, at_us - self.at_us))
            self._ready.append(actor)
        place = self.dice.throw(len(self._ready))
        actor = self._ready[place]
        rest_us = next(actor[1], None)
        self._pass(STEP_US)
        if rest_us == 0:
            return
        self._ready[place] = self._ready[-1]
        self._ready.pop()
        if rest_us is not None:
            heapq.heappush(self._asleep, (self.at_us + rest_us, next(self._names), actor))

    def step_clock(self) -> None:
        """Set the store's clock back or forward, by up to half a minute."""
        by_s = self.dice.throw(60) - 30
        self.now += timedelta(seconds=by_s)
        self.set_back_s += max(0, -by_s)
        self.seen("the clock is set back" if by_s < 0 else "the clock is set forward")
        self.note("clock", "steps", f"{by_s} s")

    def heal(self) -> None:
        """From here on nothing fails any more, and nobody asks for anything new."""
        self.faulty = False
        self.away_until_us = 0
        self._ready = [each for each in self._ready if each[0] not in self._guests]
        self._asleep = [each for each in self._asleep if each[2][0] not in self._guests]
        heapq.heapify(self._asleep)
        for name in list(self.store.queues()):
            self.store.resume_queue(name.name)

    def name(self) -> UUID:
        """Return a new uuid: the same one for the same seed."""
        return UUID(int=self.seed << 64 | next(self._names))

    def chance(self, one_in: int) -> bool:
        """Return whether something happens that does so once in so many times, under faults."""
        return self.faulty and not self.dice.throw(one_in)

    def seen(self, probe: str) -> None:
        """Count that a rare situation has come about."""
        self.probes[probe] += 1

    def note(self, who: str, what: str, about: object) -> None:
        """Write down what has happened."""
        self.events.append(Event(self.steps, who, what, str(about)))

    def _pass(self, by_us: int) -> None:
        self.at_us += by_us
        self.now += timedelta(microseconds=by_us)


class Link:
    """The store as somebody reaches it: sometimes not, sometimes without an answer.

    What was carried out is told to the oracle, whether or not the answer arrives.
    """

    def __init__(self, world: World, who: str) -> None:
        self._world = world
        self._who = who

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            return self._call(verb, args, named)

        self.__dict__[verb] = call
        return call

    def _call(self, verb: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        world = self._world
        lost = False
        if world.faulty:
            if world.at_us < world.away_until_us:
                raise StoreUnavailable("an outage")
            fault = world.dice.throw(_CALLS)
            if fault == 0:
                self._outage()
            lost = fault < _LOST
            if _LOST <= fault < _TWICE:
                world.note(self._who, verb, "is sent twice")
                world.seen("a request is sent twice")
                self._carried_out(verb, args, named)
        answer = self._carried_out(verb, args, named)
        if lost:
            world.note(self._who, verb, "answer lost")
            world.seen("an answer is lost")
            raise StoreUnavailable("executed, then timed out")
        return answer

    def _carried_out(self, verb: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        answer = getattr(self._world.store, verb)(*args, **named)
        self._world.oracle.saw(self._who, verb, args, named, answer)
        return answer

    def _outage(self) -> None:
        world = self._world
        world.away_until_us = world.at_us + SECOND * (1 + world.dice.throw(15))
        world.seen("an outage")
        world.note("store", "is away", f"for {(world.away_until_us - world.at_us) / SECOND} s")
        raise StoreUnavailable("an outage begins")
