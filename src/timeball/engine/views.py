"""What both schedulers tell about their jobs; each answer is of one instant."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, Literal, cast
from weakref import WeakSet

from timeball.core.audit import Violation
from timeball.core.dependencies import EdgesAnswer, Rule
from timeball.core.makespan import AttemptRecord
from timeball.core.rate import Rate
from timeball.core.records import CancelAnswer
from timeball.core.report import SETS, BatchReport
from timeball.core.states import State
from timeball.engine.engine import Engine
from timeball.engine.gate import JobLimiter
from timeball.engine.handles import Work
from timeball.engine.options import Options
from timeball.engine.runner import Runner
from timeball.errors import UsageError

Mode = Literal["drain", "cancel", "abort"]
MODES: Final = ("drain", "cancel", "abort")

_NAMED_MAX: Final = 20


class Views:
    """A scheduler, as far as neither waiting nor submitting is concerned."""

    def __init__(self, options: Options, handle: type[Work]) -> None:
        self._engine = Engine(options, handle, _runner(options))
        self._limiters: dict[str, JobLimiter] = {}
        _ENGINES.add(self._engine)

    def limiter(self, name: str, rate: Rate | str | None = None) -> JobLimiter:
        """Return the limiter of that name, for use inside jobs: ``with s.limiter("api"): …``.

        Args:
            name: What it is for.
            rate: What it allows; needed where it is named for the first time.

        Raises:
            UsageError: It has no rate yet, or another one.
        """
        wanted = Rate.parse(rate) if isinstance(rate, str) else rate
        known = self._limiters.get(name)
        if known is None:
            if wanted is None:
                raise UsageError(f"no limiter {name!r} yet: write limiter({name!r}, Rate(10))")
            known = self._limiters.setdefault(name, JobLimiter(wanted, self._engine.clock_ns))
        if wanted is not None and known.rate != wanted:
            raise UsageError(f"limiter {name!r} allows {known.rate} already: write another name")
        return known

    def cancel(self, job: Work | int | str) -> CancelAnswer:
        """Keep a job from starting, or ask it to stop if it runs.

        After the answer "cancelled" it never starts. After "requested" it ends once, and is not
        tried again: a coroutine is cancelled, a process is killed, a thread cannot be stopped
        and is told by `Context.cancelled`.
        """
        return self._engine.cancel(self._work(job))

    def add_edges(
        self,
        job: Work | int | str,
        after: Collection[Any],
        *,
        rule: Rule | str = Rule.ALL_SUCCESS,
    ) -> EdgesAnswer:
        """Have a job that waits for others wait for more of them: for all of these, or none.

        Args:
            job: The child; it was submitted with `after`, and waits for that still.
            after: The parents: handles, ids, or pairs such as (job, "all_done").
            rule: For those that have none of their own.

        Returns:
            ADDED; or REFUSED, where the job waits for no parent, or has begun or ended before.

        Raises:
            UsageError: One of them waits for the job itself, by whatever way, which the text
                names; one is not here; or one has another rule there already.
            JobNotFound: There is no such child.
        """
        engine, work = self._engine, self._work(job)
        edges = engine.parents_of(work, after, rule)
        with engine.section.visit() as now_ns:
            return engine.agenda.add_edges(work, edges, now_ns)

    def counts(self) -> dict[State, int]:
        """Return how many jobs are in each state."""
        return self._engine.counts()

    def sets(self, *, split: bool = False) -> dict[str, set[int | str]]:
        """Return the ids of the jobs in each of the four sets.

        Args:
            split: By state instead: scheduled, waiting and pending apart, and failed,
                cancelled and skipped.
        """
        states = self._engine.states()
        members = {s.value: frozenset({s}) for s in State} if split else SETS
        return {
            name: {job for job, state in states.items() if state in chosen}
            for name, chosen in members.items()
        }

    def records(self) -> list[AttemptRecord[int | str]]:
        """Return a record of every attempt that has started, with its instants in nanoseconds."""
        return self._engine.records()

    def report(self) -> BatchReport:
        """Return how the batch went: makespan, its lower bound, success, latencies, idle time."""
        return self._engine.report()

    def violations(self) -> list[Violation]:
        """Return everything on record that breaks the contract: nothing, unless there is a bug."""
        return self._engine.violations()

    def _work(self, job: Work | int | str) -> Work:
        return job if isinstance(job, Work) else self._engine.find(job)

    def _works(self, jobs: Iterable[Work | int | str] | None) -> list[Work] | None:
        return None if jobs is None else [self._work(job) for job in jobs]

    def _progress(self, works: Sequence[Work] | None) -> tuple[int, int]:
        """Return how many jobs have ended, and of how many."""
        if works is not None:
            return sum(work.done for work in works), len(works)
        tally = self._engine.agenda.tally
        return tally.ended, tally.ended + tally.open + len(self._engine.agenda.inbox)

    def _give_up(self) -> None:
        """End whatever has not ended, and name what still ran on stderr."""
        works = self._engine.abandon()
        if works:
            named = ", ".join(f"{work.id} ({work.name})" for work in works[:_NAMED_MAX])
            more = f" and {len(works) - _NAMED_MAX} more" if len(works) > _NAMED_MAX else ""
            sys.stderr.write(f"timeball: given up, since they did not end in time: {named}{more}\n")


def check_mode(mode: str) -> Mode:
    """Return how to shut down; raise UsageError where there is no such mode."""
    if mode not in MODES:
        raise UsageError(f"mode is {mode!r}: write {', '.join(map(repr, MODES))}")
    return cast("Mode", mode)


def _runner(options: Options) -> Runner | None:
    if options.runner == "threads":
        return None
    if options.runner == "processes":
        from timeball.engine.processes import Processes

        return Processes()
    assert not isinstance(options.runner, str)
    return options.runner


_ENGINES: Final[WeakSet[Engine]] = WeakSet()


def _in_forked_child() -> None:
    # Neither its threads nor, perhaps, an open lock came along: it can only refuse.
    for engine in list(_ENGINES):
        engine.forked = engine.closed = True


os.register_at_fork(after_in_child=_in_forked_child)
