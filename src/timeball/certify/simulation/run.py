"""One simulation: load and faults under a seed, then everything is well again and must converge."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from timeball.certify.simulation import others
from timeball.certify.simulation.oracle import Broken
from timeball.certify.simulation.workers import worker
from timeball.certify.simulation.world import Event, World
from timeball.core.audit import audit, audit_schedules
from timeball.core.limits import limit_violations
from timeball.core.states import TERMINAL
from timeball.store.memory import MemoryStore

STEPS: Final = 2_000
"""Of one simulation, before all is well again."""

_AUDIT_EVERY: Final = 500
_SETTLES_WITHIN: Final = 20_000
_TAIL: Final = 30

PROBES: Final = frozenset(
    {
        "a cancel is answered cancelled",
        "a cancel is answered finished",
        "a cancel is answered requested",
        "a claim is answered again",
        "a deadline passes",
        "a death is certain",
        "a job is deleted",
        "a job is revived",
        "a queue is paused",
        "a request is sent twice",
        "a schedule fires",
        "a settlement is refused",
        "a settlement is said again",
        "a silent worker is given up",
        "a ticker comes second",
        "a turn had not begun",
        "a unique job is there already",
        "a worker comes back too late",
        "a worker crashes",
        "a worker died in the middle",
        "a worker lies",
        "an answer is lost",
        "an attempt is stopped",
        "an outage",
        "lost, at most once",
        "quarantined",
        "the clock is set back",
        "the clock is set forward",
        "what was to stop is not tried again",
    }
)
"""Rare situations: together the simulations must have met all of them."""

Make = Callable[[Callable[[], datetime]], MemoryStore]


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """How one simulation went."""

    seed: int
    steps: int
    jobs: int
    probes: Mapping[str, int]
    events: Sequence[Event]
    check: str | None = None
    """Which promise was broken; None: none."""

    text: str = ""

    def story(self) -> str:
        """Return the seed, what was broken, and what happened last."""
        last = "\n".join(str(event) for event in self.events[-_TAIL:])
        return f"seed {self.seed}, step {self.steps}: {self.text}\n{last}"


def simulate(seed: int, *, steps: int = STEPS, store: Make = MemoryStore) -> Simulated:
    """Play one simulation; the same seed gives the same events.

    Args:
        seed: Decides everything.
        steps: How many there are before all is well again.
        store: Makes the store; another one than the memory store has a defect.
    """
    world = World(seed, store)
    _populate(world)
    check, text = None, ""
    with _quiet():
        try:
            _under_faults(world, steps)
            _converge(world)
        except Broken as broken:
            check, text = broken.check, str(broken)
        except AssertionError as failed:
            check, text = "assertion", f"assertion: {failed}"
    return Simulated(
        seed=seed, steps=world.steps, jobs=len(world.oracle.jobs), probes=world.probes,
        events=world.events, check=check, text=text,
    )  # fmt: skip


def simulations(
    first: int, steps: int, *, store: Make = MemoryStore
) -> tuple[list[Simulated], Counter[str]]:
    """Play one seed after the other until there were so many steps, or a promise is broken.

    Returns:
        What was played, the broken one last; and how often each rare situation was met.
    """
    played: list[Simulated] = []
    probes: Counter[str] = Counter()
    done = 0
    while done < steps:
        one = simulate(first + len(played), store=store)
        played.append(one)
        probes.update(one.probes)
        done += one.steps
        if one.check is not None:
            break
    return played, probes


def _populate(world: World) -> None:
    others.declare(world)
    for n in range(3):
        world.join(f"worker {n}", worker(world, f"worker {n}"))
    for n in range(2):
        world.join(f"client {n}", others.client(world, f"client {n}"), guest=True)
        world.join(f"ticker {n}", others.ticker(world, f"ticker {n}"), guest=True)
        world.join(f"sweeper {n}", others.sweeper(world, f"sweeper {n}"))
    world.join("promoter", others.promoter(world, "promoter"))
    world.join("operator", others.operator(world, "operator"), guest=True)


def _under_faults(world: World, steps: int) -> None:
    for n in range(1, steps + 1):
        world.step()
        if n % _AUDIT_EVERY == 0:
            _audit(world, quiesced=False)


def _converge(world: World) -> None:
    """Heal everything and let who is left come to an end with the work."""
    world.heal()
    upto = world.steps + _SETTLES_WITHIN
    while set(world.store.counts()) - TERMINAL:
        for _ in range(50):
            world.step()
        if world.steps > upto:
            raise Broken("I6", f"it does not converge: {world.store.counts()}")
    _audit(world, quiesced=True)


def _audit(world: World, *, quiesced: bool) -> None:
    store = world.store
    slack_s = world.set_back_s + 0.001
    report = audit(store.histories(), quiesced=quiesced, slack_s=slack_s)
    if not world.set_back_s:  # spans of a clock that went back are no spans
        report = report.including(limit_violations(store.holdings()))
    schedules = audit_schedules(store.schedule_histories(), lambda _: ())
    report = report.including(each for each in schedules if each.invariant == "I16")
    for violation in report.violations[:1]:
        raise Broken(violation.invariant, str(violation))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the sweeper from telling people of workers that there are not."""
    log = logging.getLogger("timeball.worker.sweeper")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)
