"""A job of the in-process engine: what is kept of it, and what its submitter holds."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextvars import Context as Variables
from typing import Any, Final, Generic, Protocol, TypeVar
from uuid import UUID

from timeball.action.context import StopSign
from timeball.core.outcomes import Raised
from timeball.core.records import CancelAnswer
from timeball.core.retry import Retry
from timeball.core.states import TERMINAL, Ending, State
from timeball.engine.runner import Ended

NEVER_NS: Final = 1 << 62
_PENDING: Final = State.PENDING

R = TypeVar("R")


class Home(Protocol):
    """What a job asks of the engine whose job it is."""

    @property
    def uuid(self) -> UUID:
        """Of the engine; those of its jobs are made from it."""
        ...

    @property
    def clock_ns(self) -> Callable[[], int]:
        """Its monotonic clock."""
        ...

    @property
    def carry_out(self) -> Callable[[Attempt], Ended]:
        """Carries out an attempt in this thread; never raises."""
        ...

    @property
    def carry_out_async(self) -> Callable[[Attempt], Coroutine[Any, Any, Ended]]:
        """Carries out an attempt on this event loop; never raises."""
        ...

    def submitted(self, job_id: int | str) -> Work | None:
        """Return a job by its id."""
        ...

    def cancel(self, work: Work) -> CancelAnswer:
        """Keep a job from starting, or ask it to stop."""
        ...

    def wait(self, works: Sequence[Work] | None, timeout_s: float | None) -> None:
        """Wait for some jobs, or for all."""
        ...

    async def wait_async(self, works: Sequence[Work] | None, timeout_s: float | None) -> None:
        """Wait as `wait` does, on the event loop."""
        ...

    def result_of(self, work: Work) -> Any:
        """Return what a job that has ended returned, or raise what became of it."""
        ...


class Form:
    """What all jobs have in common that are submitted in the same way."""

    __slots__ = (
        "call", "carry_out", "carry_out_async", "clock_ns", "context", "engine", "is_async",
        "max_crashes", "name", "once", "priority", "retry", "signs", "timeout_s", "weight",
    )  # fmt: skip

    def __init__(self, engine: Home, call: Callable[..., Any], name: str) -> None:
        self.engine = engine
        # Looked up once per form and not once per attempt.
        self.carry_out = engine.carry_out
        self.carry_out_async = engine.carry_out_async
        self.clock_ns = engine.clock_ns
        self.call = call
        self.name = name
        self.is_async = False
        self.context: str | None = None
        """The parameter that receives the `Context`."""
        self.retry = Retry(0)
        self.timeout_s: float | None = None
        self.priority = 0
        self.weight = 1
        """As how many starts each attempt counts for the scheduler's rate."""
        self.max_crashes = 0
        self.once = False
        self.signs = False
        """Whether its attempts need a sign that says stop."""


class More:
    """What few jobs have."""

    __slots__ = (
        "after", "all_done", "cancel_ns", "children", "crashes", "delay_s", "due_ns", "failures",
        "first_due_ns", "snoozes", "unmet",
    )  # fmt: skip

    def __init__(self) -> None:
        self.after: Sequence[Work] = ()
        self.all_done = False
        self.children: list[Work] = []
        self.unmet = 0
        self.due_ns = self.first_due_ns = 0
        self.delay_s = 0.0
        self.failures = 0
        self.crashes = 0
        self.snoozes = 0
        self.cancel_ns: int | None = None


class Attempt:
    """One turn of a job that was granted a slot, or that ended before; the engine's own record."""

    __slots__ = (
        "delay_s", "ended_ns", "ending", "granted_ns", "is_async", "lock_ns", "ready_ns",
        "reason", "seq", "slot", "started_ns", "stop", "turn", "value", "work",
    )  # fmt: skip

    def __init__(self, work: Work, now_ns: int, slot: int | None, seq: int) -> None:
        self.work = work
        self.is_async = work.form.is_async
        """Whether it runs on the event loop."""
        self.turn = work.turn
        self.ready_ns = work.ready_ns
        self.granted_ns = now_ns
        self.started_ns = now_ns
        """The start that the limiter knows: that of the grant, unless it was moved since."""
        self.slot = slot
        self.seq = seq
        self.lock_ns = 0
        self.ending: Ending | None = None
        self.value: Any = None
        self.stop: StopSign | None = None
        self.reason: str | None = None
        self.delay_s = 0.0
        self.ended_ns = 0

    @property
    def variables(self) -> Variables | None:
        """The context variables as they were when it was submitted, a copy for each attempt."""
        variables = self.work.context
        return None if variables is None else variables.copy()

    def run(self) -> Ended:
        """Carry it out in this thread, and return how it ended."""
        return self.work.form.carry_out(self)

    def run_async(self) -> Coroutine[Any, Any, Ended]:
        """Return what carries it out on this event loop, and returns how it ended."""
        return self.work.form.carry_out_async(self)

    def sign(self) -> StopSign:
        """Return the sign by which this attempt is asked to stop."""
        if self.stop is None:
            self.stop = StopSign()
        return self.stop


class Work:
    """A job. `state` is the one truth about where it is; everything else follows it.

    Attributes:
        id: Given by the submitter, else 1, 2, 3 …
        state: Where it is, now.
        turn: 1 at first; each retry, snooze or return to the queue begins the next.
    """

    __slots__ = (
        "args", "context", "earlier", "form", "id", "key", "kwargs", "last", "more", "outcome",
        "ready_ns", "state", "turn",
    )  # fmt: skip

    def __init__(
        self, form: Form, job_id: int | str, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None
    ) -> None:
        self.form = form
        self.id = job_id
        self.args = args
        self.kwargs = kwargs
        self.key: str | None = None
        self.context: Variables | None = None
        self.state = _PENDING
        self.turn = 1
        self.earlier: tuple[Attempt, ...] = ()
        self.last: Attempt | None = None
        """The newest attempt, apart from those before it, of which most jobs have none."""
        self.outcome: Any = None
        """The result of one that succeeded, what is kept of the exception of one that failed."""
        self.more: More | None = None
        # Set by the engine before anybody else sees it: ready_ns.
        self.ready_ns: int

    def __repr__(self) -> str:
        return f"<job {self.id}: {self.form.name}, {self.state}>"

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """One record per turn that was granted a slot or has ended."""
        return self.earlier if self.last is None else (*self.earlier, self.last)

    @property
    def done(self) -> bool:
        """Whether it has reached a terminal state."""
        return self.state in TERMINAL

    @property
    def name(self) -> str:
        """What it runs."""
        return self.form.name

    @property
    def error(self) -> str | None:
        """The text and traceback of the exception that it failed with; None if it has not."""
        return self.outcome.error if isinstance(self.outcome, Raised) else None

    @property
    def reason(self) -> str | None:
        """A short word on why it ended as it did; None where there is nothing to say."""
        return self.last.reason if self.done and self.last is not None else None

    @property
    def retry_count(self) -> int:
        """How often it was tried again after a failure."""
        return sum(attempt.ending is Ending.RETRIED for attempt in self.attempts)

    @property
    def cancel_requested(self) -> bool:
        """Whether somebody asked for its end while it ran."""
        return self.more is not None and self.more.cancel_ns is not None

    @property
    def overdue(self) -> bool:
        """Whether it runs in a thread for longer than it should: a thread cannot be stopped."""
        timeout_s = self.form.timeout_s
        if timeout_s is None or self.state is not State.RUNNING or self.last is None:
            return False
        ran_ns = self.form.engine.clock_ns() - self.last.started_ns
        return ran_ns > timeout_s * 1e9

    def cancel(self) -> CancelAnswer:
        """Keep it from starting, or ask it to stop if it runs. Final if the answer is so."""
        return self.form.engine.cancel(self)

    def with_more(self) -> More:
        """Return what few jobs have, made where it has none yet."""
        if self.more is None:
            self.more = More()
        return self.more


class Handle(Work, Generic[R]):
    """A job of a `Scheduler`."""

    __slots__ = ()

    def result(self, timeout_s: float | None = None) -> R:
        """Wait for it and return what it returned.

        Raises:
            JobFailed: It ended without a result; the text says how.
            TimeoutError: It has not ended within `timeout_s` seconds.
            DeadlockError: Called by a job that this one waits for, in whatever way.
        """
        self.form.engine.wait([self], timeout_s)
        value: R = self.form.engine.result_of(self)
        return value


class AsyncHandle(Work, Generic[R]):
    """A job of an `AsyncScheduler`; ``await handle`` is ``await handle.result()``."""

    __slots__ = ()

    async def result(self, timeout_s: float | None = None) -> R:
        """Wait for it and return what it returned. See `Handle.result`."""
        await self.form.engine.wait_async([self], timeout_s)
        value: R = self.form.engine.result_of(self)
        return value

    def __await__(self) -> Generator[Any, None, R]:
        return self.result().__await__()
