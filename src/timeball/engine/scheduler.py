"""`Scheduler`: run callables in this process, so many at a time, so many a second."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import nullcontext
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack, overload
from weakref import WeakSet

from timeball.action.draft import Draft
from timeball.action.job_call import JobCall
from timeball.engine.crews import ThreadCrew
from timeball.engine.handles import Handle, Work
from timeball.engine.options import Options, SchedulerOptions
from timeball.engine.progress import Progress
from timeball.engine.views import Mode, Views, check_mode

R = TypeVar("R")

_RUNNER_CLOSE_S: Final = 1.0


class Scheduler(Views):
    """Runs callables in threads or processes of this program; coroutines on an event loop.

    Use it as a context manager: its end waits for all jobs, or, if an exception ends it, for
    those that have begun. All methods may be called from any thread; `submit` and `shutdown`
    from signal handlers, finalizers and jobs too.

    Args:
        workers: W, the most attempts at a time.
        **options: `rate`, `runner`, `aging_s`, `key_limits`, `fair_share`, `keep_results`,
            `max_pending`, `retry`, `retry_budget`, `strict`: see `Options`.

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
        super().__init__(Options(workers=workers, **options), Handle)
        engine = self._engine
        self._crew = ThreadCrew(engine.section, workers, engine.carry_out, engine.breaks)
        engine.staff(self._crew)
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

    @overload
    def submit(
        self, call: Callable[..., Coroutine[Any, Any, R]], /, *args: Any, **kwargs: Any
    ) -> Handle[R]: ...

    @overload
    def submit(self, call: Callable[..., R], /, *args: Any, **kwargs: Any) -> Handle[R]: ...

    @overload
    def submit(self, call: JobCall, /, **kwargs: Any) -> Handle[Any]: ...

    def submit(
        self, call: Callable[..., Any] | JobCall, /, *args: Any, **kwargs: Any
    ) -> Handle[Any]:
        """Add a job and return its handle.

        Args:
            call: A function, with or without `@tb.job`, any other callable, or what
                `tb.http` gives.
            *args: Its arguments.
            **kwargs: Its arguments by name, and these options: `retry`, `priority` 0 … 9 (9
                starts first), `key` (for key limits and fair shares), `weight` (as how many starts
                each attempt counts for the scheduler's rate), `after` (handles or ids that must
                end first, or pairs of one and its rule), `rule` ("all_success", "all_done",
                "none_failed", "always", "one_success", "one_failed"), `ruled_out` ("skip",
                "fail", "run"), `timeout_s` for one attempt, `run_at` (aware) or `delay_s`, and
                `id` (a text, unique). An argument that is named like an option is given through
                `functools.partial`.

        Raises:
            UsageError: Something that can never work, and what to write instead.
            SchedulerClosed: After `shutdown`.
        """
        engine = self._engine
        handle: Handle[Any]
        if engine.room is None:
            handle = engine.submit(call, args, kwargs)
            return handle
        engine.enter_room()
        with engine.room.held():
            handle = engine.submit(call, args, kwargs)
        return handle

    def submit_many(
        self, call: Callable[..., R], each: Iterable[Mapping[str, Any]], /, **options: Any
    ) -> list[Handle[R]]:
        """Add one job for each mapping of arguments, with the same options; return handles."""
        return [self.submit(call, **arguments, **options) for arguments in each]

    def submit_all(self, drafts: Iterable[Draft]) -> list[Handle[Any]]:
        """Add different jobs, with edges among them, all or none; return their handles in order.

        Args:
            drafts: Of `tb.draft`, or what `tb.chain`, `tb.group` and `tb.chord` make of them; at
                most 10,000. Each may name handles, ids, and drafts before it, in its `after`.

        Raises:
            UsageError: One of them can never work, and what to write instead.
            SchedulerClosed: After `shutdown`.
        """
        engine = self._engine
        engine.enter_room()
        with nullcontext() if engine.room is None else engine.room.held():
            handles: list[Handle[Any]] = engine.submit_all(drafts)
        return handles

    def map(
        self, call: Callable[..., R], /, *iterables: Iterable[Any], **options: Any
    ) -> Iterator[R]:
        """Call it with the first of each iterable, the second of each …, and yield the results.

        All are submitted at once; the results come in their order. Where it is the turn of one
        that failed, raises what `Handle.result` raises.
        """
        handles = [self.submit(call, *args, **options) for args in zip(*iterables, strict=False)]
        return (handle.result() for handle in handles)

    def get(self, job_id: int | str) -> Handle[Any]:
        """Return the handle of a job; raise JobNotFound where there is none."""
        work = self._engine.find(job_id)
        assert isinstance(work, Handle)
        return work

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
        works = self._works(handles)
        if not progress:
            self._engine.wait(works, timeout_s)
            return
        shown = Progress(sys.stderr, lambda: self._progress(works))
        shown.follow(lambda step_s: self._engine.wait(works, step_s), timeout_s)

    def shutdown(self, mode: Mode = "drain", *, deadline_s: float | None = 5.0) -> None:
        """Take in no more jobs and end; after it returns nothing starts.

        From a job it only gives the order, and returns at once.

        Args:
            mode: "drain" runs all that has been submitted, "cancel" only what has begun, "abort"
                stops that too.
            deadline_s: After so many seconds what has not started is cancelled, and what still
                runs is given up and named on stderr. None: no limit.
        """
        check_mode(mode)
        engine = self._engine
        if engine.forked:
            return
        engine.close(mode)
        if engine.section.mine or self._crew.current() is not None:
            return
        try:
            engine.wait(None, deadline_s)
        except TimeoutError:
            self._give_up()
        self._crew.close()
        self._crew.join()
        if engine.runner is not None:
            engine.runner.close(_RUNNER_CLOSE_S)
        _LIVE.discard(self)


_LIVE: Final[WeakSet[Scheduler]] = WeakSet()
"""Those that have not been shut down."""


def _at_exit() -> None:
    for scheduler in list(_LIVE):
        scheduler.shutdown("drain")


atexit.register(_at_exit)
