"""A job of the in-process engine: what is kept of it, and what its submitter holds."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextvars import Context as Variables
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from timeball.action.context import StopSign
from timeball.core.dependencies import Needs, Rule, RuledOut, Sentence, is_met
from timeball.core.notes import Progress
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
    def heard(self) -> dict[Work, Progress]:
        """How far jobs say that they are."""
        ...

    @property
    def carry_out(self) -> Callable[[Attempt], Ended]:
        """Carries out an attempt in this thread; never raises."""
        ...

    @property
    def carry_out_async(self) -> Callable[[Attempt], Coroutine[Any, Any, Ended]]:
        """Carries out an attempt on this event loop; never raises."""
        ...

    @property
    def new_job(self) -> Callable[..., Work]:
        """Makes a job that nobody else knows yet."""
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
        "after", "cancel_ns", "children", "crashes", "delay_s", "due_ns", "failures",
        "first_due_ns", "kept", "later", "needs", "ready_ns", "ruled_out", "snoozes", "spawned",
        "turn",
    )  # fmt: skip

    def __init__(self) -> None:
        self.after: Mapping[Work, Rule] = {}
        self.ruled_out = RuledOut.SKIP
        self.needs: Needs | None = None
        """What a waiting job still waits for."""
        self.children: list[Work] = []
        """Those that come after it, and who has spawned it."""
        self.spawned: tuple[Work, ...] = ()
        self.kept: Any = None
        """What it returned, where it waits for those."""
        self.due_ns = self.first_due_ns = 0
        self.delay_s = 0.0
        self.failures = 0
        self.crashes = 0
        self.snoozes = 0
        self.cancel_ns: int | None = None
        self.turn = 1
        """At which it is now."""
        self.later: tuple[Attempt, ...] = ()
        """The turns after the first."""
        self.ready_ns = 0
        """Since when the present turn might start, where that is not the first."""

    def told(self, parent: Work) -> Sentence:
        """Return what follows for a waiting job from how one of its parents has ended."""
        assert self.needs is not None, "it was never linked"
        rule = self.after.get(parent, Rule.ALL_DONE)  # it has spawned the others
        self.needs = self.needs.after(rule, met=is_met(rule, parent.state))
        return self.needs.sentence(self.ruled_out)


class End(NamedTuple):
    """How a turn ended."""

    ending: Ending
    reason: str | None = None
    delay_s: float = 0.0
    """Until the next turn may start, where there is one."""


SUCCESS: Final = End(Ending.SUCCEEDED)


class Attempt:
    """One turn of a job that was granted a slot, or that ended before; the engine's own record.

    The first turn of a job is the job itself, which most jobs end with; these are the others.
    """

    __slots__ = (
        "end", "ended_ns", "granted_ns", "is_async", "lock_ns", "ready_ns", "seq", "slot",
        "started_ns", "stop", "turn", "work",
    )  # fmt: skip

    def __init__(self, work: Work) -> None:
        more = work.with_more()
        self.work = work
        self.is_async = work.form.is_async
        """Whether it runs on the event loop."""
        self.turn = more.turn
        self.ready_ns = more.ready_ns
        self.granted_ns: int
        self.started_ns: int
        """The start that the limiter knows: that of the grant, unless it was moved since."""
        self.slot: int | None = None
        self.seq: int
        self.lock_ns = 0
        self.end: End | None = None
        self.stop: StopSign | None = None
        self.ended_ns: int

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


class Work(Attempt):
    """A job. `state` is the one truth about where it is; everything else follows it.

    It is its own first turn, so that a job which succeeds at once is one object, for the
    allocator and for the garbage collector.

    Attributes:
        id: Given by the submitter, else 1, 2, 3 …
        state: Where it is, now.
    """

    __slots__ = ("args", "context", "form", "id", "key", "kwargs", "more", "outcome", "state")

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
        self.outcome: Any = None
        """The result of one that succeeded, what is kept of the exception of one that failed."""
        self.more: More | None = None
        # Its first turn; the engine sets ready_ns before anybody else sees it.
        self.work = self
        self.is_async = form.is_async
        self.turn = 1
        self.slot = self.end = self.stop = None
        self.lock_ns = 0

    def __repr__(self) -> str:
        return f"<job {self.id}: {self.form.name}, {self.state}>"

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """One record per turn that was granted a slot or has ended."""
        if self.slot is None and self.end is None:
            return ()
        return (self,) if self.more is None else (self, *self.more.later)

    @property
    def last(self) -> Attempt | None:
        """The newest of them."""
        attempts = self.attempts
        return attempts[-1] if attempts else None

    def begins(self) -> Attempt:
        """Return the record of the present turn, made where it is not the first."""
        if self.slot is None:
            return self
        attempt, more = Attempt(self), self.with_more()
        more.later += (attempt,)
        return attempt

    @property
    def at_turn(self) -> int:
        """1 at first; each retry, snooze or return to the queue begins the next."""
        return 1 if self.more is None else self.more.turn

    @property
    def at_ready_ns(self) -> int:
        """Since when that turn might start."""
        more = self.more
        return self.ready_ns if more is None or more.turn == 1 else more.ready_ns

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
        last = self.last
        return last.end.reason if self.done and last is not None and last.end is not None else None

    @property
    def progress(self) -> Progress | None:
        """How far it says that it is, by `Context.progress`; None while it has said nothing."""
        return self.form.engine.heard.get(self)

    @property
    def retry_count(self) -> int:
        """How often it was tried again after a failure."""
        ends = (attempt.end for attempt in self.attempts)
        return sum(end is not None and end.ending is Ending.RETRIED for end in ends)

    @property
    def cancel_requested(self) -> bool:
        """Whether somebody asked for its end while it ran."""
        return self.more is not None and self.more.cancel_ns is not None

    @property
    def overdue(self) -> bool:
        """Whether it runs in a thread for longer than it should: a thread cannot be stopped."""
        timeout_s, last = self.form.timeout_s, self.last
        if timeout_s is None or self.state is not State.RUNNING or last is None:
            return False
        ran_ns = self.form.engine.clock_ns() - last.started_ns
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
