"""The in-process engine on trial: copies of its modules under the stepper, and what must hold."""

from __future__ import annotations

import atexit
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pkgutil import iter_modules
from typing import Any, Final

from timeball import engine
from timeball.certify import modelled
from timeball.certify.looped import ASYNCIO
from timeball.certify.overlay import Overlay, Patch
from timeball.certify.stepper import Chooser, Stepper, check, here, switch_point
from timeball.certify.story import Outcome
from timeball.core.rate import Rate, violations
from timeball.core.states import State

COPIED: Final = (
    "timeball.core.limiter",
    "timeball.core.makespan",
    "timeball.core.report",
    *(f"timeball.engine.{module.name}" for module in iter_modules(engine.__path__)),
)
STEPPED: Final = ("agenda", "doorbell", "engine", "gate", "room", "section", "threads", "waits")
"""Modules of the engine in which every line is a switch point, unless a scenario says others."""
RAN: Final = (State.SUCCEEDED, State.FAILED)


class Trial:
    """One scheduler in a scenario, and a record of its own of what the jobs did.

    Args:
        copies: Of the modules of the engine.
        workers: W.
        **options: Of the scheduler.
    """

    def __init__(self, copies: Overlay, workers: int, **options: Any) -> None:
        self.copies = copies
        self.workers = workers
        self.scheduler: Any = self._make(workers, **options)
        self.agenda = self.scheduler._engine.agenda  # noqa: SLF001 - what is on trial is its inside
        self.jobs: list[Any] = []
        self.calls: Counter[str] = Counter()
        self.ends: dict[str, State] = {}
        """How the last call ended."""
        self.stamps_ns: list[int] = []
        """When callables were called, as they themselves saw it."""
        self._inside = 0

    def _make(self, workers: int, **options: Any) -> Any:
        return self.copies["timeball.engine.scheduler"].Scheduler(workers, **options)

    @contextmanager
    def called(self, name: str) -> Iterator[None]:
        """Observe a call of the job of that name."""
        again = self.ends.pop(name, State.FAILED) is State.FAILED
        self.calls[name] += 1
        check("once", again, f"{name} was called {self.calls[name]} times")
        self.ends[name] = State.RUNNING
        self.stamps_ns.append(here().stepper.now_ns)
        self._inside += 1
        check("slots", self._inside <= self.workers, f"{self._inside} jobs run at once")
        switch_point()
        try:
            yield
            self.ends[name] = State.SUCCEEDED
        finally:
            if self.ends[name] is State.RUNNING:
                self.ends[name] = State.FAILED
            self._inside -= 1

    def submit(self, name: str, body: Callable[[], Any] = lambda: None, **options: Any) -> Any:
        """Submit a job that is observed, and return its handle."""

        def observed() -> Any:
            with self.called(name):
                return body()

        job = self.scheduler.submit(observed, id=name, **options)
        self.jobs.append(job)
        return job

    def wait(self, *jobs: Any) -> None:
        """Wait for jobs, or for all."""
        self.scheduler.wait(jobs or None)
        left = [job for job in jobs or self.jobs if not job.done]
        check("wait", not left, f"the wait was over before {left}")

    def look(self) -> None:
        """Check that the counts add up, now."""
        counts, submitted = self.scheduler.counts(), len(self.jobs)
        fine = sum(counts.values()) == submitted and min(counts.values()) >= 0
        check("sums", fine, f"{submitted} jobs were submitted, and these counted: {shown(counts)}")
        check("slots", counts[State.RUNNING] <= self.workers, f"counted: {shown(counts)}")

    def check_rate(self, rate: Rate, stamps_ns: Sequence[int] | None = None) -> None:
        """Check that starts kept to the rate: those given, else the recorded ones."""
        if stamps_ns is None:
            stamps_ns = [record.started_ns for record in self.scheduler.records()]
        early = violations(stamps_ns, rate)
        seconds = [stamp / 1e9 for stamp in sorted(stamps_ns)]
        check("cap", not early, f"{rate}, and starts at {seconds} s")

    def check_end(self) -> None:
        """Check what must hold once all jobs have ended."""
        for job in self.jobs:
            end = self.ends.get(job.id)
            fine = end in (job.state, None) and (end or job.state not in RAN)
            check("outcome", bool(fine), f"{job.id} {end or 'was not called'}, and is {job.state}")
        ends, counts = Counter(job.state for job in self.jobs), self.scheduler.counts()
        fine = all(counts[state] == ends[state] for state in State)
        check("sums", fine, f"of {shown(ends)} were counted {shown(counts)}")
        free = sorted(self.agenda.free)
        check("slots", free == [*range(self.workers)], f"of {self.workers} slots are free: {free}")
        broken = [str(violation) for violation in self.scheduler.violations()]
        check("audit", not broken, "; ".join(broken))


def shown(counts: Any) -> str:
    """Return counts by state, without those that are 0."""
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count) or "none"


@dataclass(frozen=True, slots=True)
class Scenario:
    """What a few threads, or callbacks of a loop, do to an engine, and what is checked."""

    play: Callable[[Overlay], None]
    opcodes: tuple[str, ...] = ()
    delays: bool = True
    """Whether any thread may be late; where not, promises about times can be checked."""

    stepped: tuple[str, ...] = STEPPED
    """Modules of the engine in which every line is a switch point."""

    @property
    def name(self) -> str:
        """What happens in it."""
        return self.play.__name__.replace("_", "-")

    def run(
        self, copies: Overlay, chooser: Chooser, functions: Collection[str] | None = None
    ) -> Outcome:
        """Run it once; with switch points in these functions only, and where there are waits."""
        for module in ("scheduler", "async_scheduler", "kernel"):
            copies[f"timeball.engine.{module}"]  # makes the copies outside of the run
        stepped = {f"timeball.engine.{name}" for name in self.stepped}
        files = [file for name, file in copies.files.items() if name in stepped]
        stepper = Stepper(
            chooser, files=files, functions=functions, opcodes=self.opcodes, delays=self.delays
        )
        return stepper.run(lambda: self.play(copies))


def engine_copies(patches: Sequence[Patch] = (), label: str = "patched") -> Overlay:
    """Return copies of the engine, with patches, for trials under the stepper."""
    # What a copy would have the interpreter call at its end, or at a fork, is none of its business.
    unhooked = {
        "asyncio": ASYNCIO,
        "atexit": modelled.module(atexit, register=lambda call: call),
        "os": modelled.module(os, register_at_fork=lambda **_: None),
    }
    substitutes = modelled.MODULES | unhooked
    copies = Overlay(COPIED, patches=patches, substitutes=substitutes, label=label)
    # One shows what all the others would: each of them multiplies the schedules there are.
    vars(copies["timeball.engine.locks"])["YIELDS"] = 1
    return copies
