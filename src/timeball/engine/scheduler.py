"""`Scheduler`: run callables in this process, so many at a time, so many a second."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Literal, Self, TypeVar, Unpack
from weakref import WeakSet

from timeball.core.audit import Violation
from timeball.core.makespan import AttemptRecord
from timeball.core.records import CancelAnswer
from timeball.core.report import SETS, BatchReport
from timeball.core.states import State
from timeball.engine.crews import ThreadCrew
from timeball.engine.engine import Engine
from timeball.engine.handles import Handle, Work
from timeball.engine.options import Options, SchedulerOptions
from timeball.engine.progress import Progress
from timeball.engine.runner import Runner
from timeball.errors import UsageError

R = TypeVar("R")

Mode = Literal["drain", "cancel", "abort"]
MODES: Final = ("drain", "cancel", "abort")
_RUNNER_CLOSE_S: Final = 1.0
_NAMED_MAX: Final = 20


class Scheduler:
    """Runs callables in threads or processes of this program; coroutines on an event loop.

    Use it as a context manager: its end waits for all jobs, or, if an exception ends it, for
    those that have begun. All methods may be called from any thread; `submit` and `shutdown`
    from signal handlers, finalizers and jobs too.

    Args:
        workers: W, the most attempts at a time.
        **options: `rate`, `runner`, `aging_s`, `key_limits`, `fair_share`, `keep_results`,
            `max_pending`, `retry`, `strict`: see `Options`.

    Raises:
        UsageError: An option is wrong.

    Example:
        >>> with Scheduler(workers=4, rate="100/s") as s:
        ...     handles = [s.submit(pow, 2, n) for n in range(10)]
        ...     s.wait()
        >>> handles[9].result()
        512
    """

    def __init__(self, workers: int = 8, **options: Unpack[SchedulerOptions]) -> None:
        chosen = Options(workers=workers, **options)
        self._engine = Engine(chosen, Handle, _runner(chosen))
        self._engine.crew = self._crew = ThreadCrew(
            self._engine.section, workers, self._engine.breaks
        )
        _LIVE.add(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self.shutdown("drain", deadline_s=None)
        else:
            self.shutdown("cancel")

    # Submitting

    def submit(self, call: Callable[..., R], /, *args: Any, **kwargs: Any) -> Handle[R]:
        """Add a job and return its handle.

        Args:
            call: A function, with or without `@tb.job`, or any other callable.
            *args: Its arguments.
            **kwargs: Its arguments by name, and these options: `retry`, `priority` 0 … 9 (9
                starts first), `key` (for key limits and fair shares), `after` (handles or ids
                that must end first), `rule` ("all_success": skipped unless all of them
                succeed; "all_done"), `timeout_s` for one attempt, `run_at` (aware) or
                `delay_s`, and `id` (a text, unique). An argument that is named like an option
                is given through `functools.partial`.

        Raises:
            UsageError: Something that can never work, and what to write instead.
            SchedulerClosed: After `shutdown`.
        """
        if self._engine.room is not None:
            self._engine.enter_room()
        work = self._engine.submit(call, args, kwargs)
        assert isinstance(work, Handle)
        return work

    def submit_many(
        self, call: Callable[..., R], each: Iterable[Mapping[str, Any]], /, **options: Any
    ) -> list[Handle[R]]:
        """Add one job for each mapping of arguments, with the same options; return handles."""
        return [self.submit(call, **arguments, **options) for arguments in each]

    def map(
        self, call: Callable[..., R], /, *iterables: Iterable[Any], **options: Any
    ) -> Iterator[R]:
        """Call it with the first of each iterable, the second of each …, and yield the results.

        All are submitted at once; the results come in their order. Where it is the turn of one
        that failed, raises what `Handle.result` raises.
        """
        handles = [self.submit(call, *args, **options) for args in zip(*iterables, strict=False)]
        return (handle.result() for handle in handles)

    # Looking

    def wait(
        self,
        handles: Iterable[Work | int | str] | None = None,
        timeout_s: float | None = None,
        *,
        progress: bool = False,
    ) -> None:
        """Wait until some jobs have ended, or all.

        Args:
            handles: Handles or ids; None for all jobs.
            timeout_s: Seconds to wait at most.
            progress: Show on stderr how far it is: a bar on a terminal, else lines.

        Raises:
            TimeoutError: They have not ended in time.
            DeadlockError: Called by a job that they, in whatever way, wait for.
        """
        works = None if handles is None else [self._work(each) for each in handles]
        if not progress:
            self._engine.wait(works, timeout_s)
            return
        shown = Progress(sys.stderr, lambda: _done(self._engine, works))
        shown.follow(lambda step_s: self._engine.wait(works, step_s), timeout_s)

    def get(self, job_id: int | str) -> Handle[Any]:
        """Return the handle of a job; raise JobNotFound where there is none."""
        work = self._engine.find(job_id)
        assert isinstance(work, Handle)
        return work

    def cancel(self, job: Work | int | str) -> CancelAnswer:
        """Keep a job from starting, or ask it to stop if it runs.

        After the answer "cancelled" it never starts. After "requested" it ends once, and is not
        tried again: a coroutine is cancelled, a process is killed, a thread cannot be stopped
        and is told by `Context.cancelled`.
        """
        return self._engine.cancel(self._work(job))

    def counts(self) -> dict[State, int]:
        """Return how many jobs are in each state, all of one instant."""
        return self._engine.counts()

    def sets(self, *, split: bool = False) -> dict[str, set[int | str]]:
        """Return the ids of the jobs in each of the four sets, all of one instant.

        Args:
            split: By state instead: scheduled, waiting and pending apart, and failed,
                cancelled and skipped.
        """
        return _sets(self._engine, split=split)

    def records(self) -> list[AttemptRecord[int | str]]:
        """Return a record of every attempt that has started, with its instants in nanoseconds."""
        return self._engine.records()

    def report(self) -> BatchReport:
        """Return how the batch went: makespan, its lower bound, success, latencies, idle time."""
        return self._engine.report()

    def violations(self) -> list[Violation]:
        """Return everything on record that breaks the contract: nothing, unless there is a bug."""
        return self._engine.violations()

    # Ending

    def shutdown(self, mode: Mode = "drain", *, deadline_s: float | None = 5.0) -> None:
        """Take in no more jobs and end; after it returns nothing starts.

        From a job it only gives the order, and returns at once.

        Args:
            mode: "drain" runs all that has been submitted, "cancel" only what has begun, "abort"
                stops that too.
            deadline_s: After so many seconds what has not started is cancelled, and what still
                runs is given up and named on stderr. None: no limit.
        """
        if mode not in MODES:
            raise UsageError(f"mode is {mode!r}: write {', '.join(map(repr, MODES))}")
        engine = self._engine
        if engine.forked:
            return
        engine.close(mode)
        if engine.section.mine or self._crew.current() is not None:
            return
        try:
            engine.wait(None, deadline_s)
        except TimeoutError:
            _name_on_stderr(engine.abandon())
        self._crew.close()
        self._crew.join()
        if engine.runner is not None:
            engine.runner.close(_RUNNER_CLOSE_S)
        _LIVE.discard(self)

    def _work(self, job: Work | int | str) -> Work:
        return job if isinstance(job, Work) else self._engine.find(job)


def _runner(options: Options) -> Runner | None:
    if options.runner == "threads":
        return None
    if options.runner == "processes":
        from timeball.engine.processes import Processes

        runner: Runner = Processes()
        return runner
    assert not isinstance(options.runner, str)
    return options.runner


def _name_on_stderr(works: Sequence[Work]) -> None:
    if works:
        named = ", ".join(f"{work.id} ({work.name})" for work in works[:_NAMED_MAX])
        more = f" and {len(works) - _NAMED_MAX} more" if len(works) > _NAMED_MAX else ""
        sys.stderr.write(f"timeball: given up, since they did not end in time: {named}{more}\n")


def _done(engine: Engine, works: Sequence[Work] | None) -> tuple[int, int]:
    if works is not None:
        return sum(work.done for work in works), len(works)
    return engine.agenda.tally.ended, engine.agenda.tally.accepted + len(engine.agenda.inbox)


def _sets(engine: Engine, *, split: bool) -> dict[str, set[int | str]]:
    states = engine.states()
    if split:
        return {s.value: {job for job, state in states.items() if state is s} for s in State}
    return {
        name: {job for job, state in states.items() if state in members}
        for name, members in SETS.items()
    }


_LIVE: Final[WeakSet[Scheduler]] = WeakSet()
"""Those that have not been shut down."""


def _at_exit() -> None:
    for scheduler in list(_LIVE):
        scheduler.shutdown("drain")


def _in_forked_child() -> None:
    # Neither its threads nor, perhaps, an open lock came along: it can only refuse.
    for scheduler in list(_LIVE):
        engine = scheduler._engine  # noqa: SLF001 - of the same module
        engine.forked = engine.closed = True


atexit.register(_at_exit)
os.register_at_fork(after_in_child=_in_forked_child)
