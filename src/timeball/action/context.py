"""What a job may ask about itself while it runs, and what it may return to steer itself."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from uuid import UUID, uuid5

from timeball.action.draft import Draft, draft, renamed, together
from timeball.action.notebook import Key, Notebook
from timeball.action.parents import ParentJob
from timeball.core.records import Turn
from timeball.core.retry import WAIT_LIMIT_S
from timeball.errors import UsageError

if TYPE_CHECKING:  # it has a kind, which knows contexts
    from timeball.action.job_call import JobCall

_log = logging.getLogger("timeball.job")


@dataclass(frozen=True, slots=True)
class Snooze:
    """Return this from a job to be run again after `delay_s` seconds; costs no retry.

    Raises:
        UsageError: Not a number of seconds from 0 to ten years.
    """

    delay_s: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.delay_s) and 0 <= self.delay_s <= WAIT_LIMIT_S):
            raise UsageError(f"Snooze({self.delay_s!r}): write seconds, 0 to ten years")


@dataclass(frozen=True, slots=True)
class Cancel:
    """Return this from a job to end it as cancelled, for good."""

    reason: str = "cancelled by the job itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOccurrence:
    """Which occurrence of which schedule a job is."""

    schedule: str
    nominal_at: datetime
    """The instant of the occurrence, aware; the job may have started later."""

    nominal_local: str
    """The wall time there, such as ``2026-03-08T03:00:00-04:00``."""

    fold: int
    shifted: bool
    catchup: bool
    """Whether it is late, or stands for others that were missed."""

    missed_count: int

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> Self:
        """Return the occurrence that a schedule wrote into its job's arguments.

        Raises:
            KeyError, TypeError, ValueError: It is not in the form in which schedules write it.
        """
        return cls(
            schedule=told["schedule"],
            nominal_at=datetime.fromisoformat(told["nominal_at"]),
            nominal_local=told["nominal_local"],
            fold=told["fold"],
            shifted=told["shifted"],
            catchup=told["catchup"],
            missed_count=told["missed_count"],
        )


class StopSign:
    """The wish that one attempt stop. Whoever wants it raises it; the attempt may look at it."""

    __slots__ = ("_callbacks", "raised")

    def __init__(self) -> None:
        self.raised = False
        self._callbacks: tuple[Callable[[], None], ...] = ()

    def raise_(self) -> None:
        """Ask the attempt to stop, now and for good. From any thread, as often as you like."""
        self.raised = True
        for callback in self._callbacks:
            callback()

    def when_raised(self, callback: Callable[[], None]) -> None:
        """Call `callback` once the sign is raised, from whatever thread does it, maybe twice."""
        self._callbacks = (*self._callbacks, callback)
        # Looked at after that: whoever raised it meanwhile may have missed the callback.
        if self.raised:
            callback()


class Lent(NamedTuple):
    """What a worker lends to an attempt for as long as it runs."""

    connection: Any = None
    """In which the job's writes are kept iff its success is."""

    parents: Callable[[], list[ParentJob]] | None = None
    """Reads what the job comes after."""

    notebook: Notebook | None = None
    """Where it is kept what the job says."""

    spawn: Callable[[Draft], None] | None = None
    """Takes a job that is to be added once this one has succeeded."""

    hear: Callable[[Any, Any, Any], None] | None = None
    """Told how far the job is, where there is no notebook."""


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """A job's logger. Call it, as in ``ctx.log("halfway")``, and the line is kept with the job."""

    def __init__(self, facts: dict[str, object], notebook: Notebook | None, key: Key) -> None:
        super().__init__(_log, facts)
        self._notebook = notebook
        self._key = key

    def __call__(self, text: object) -> None:
        """Keep a line with the job: `Client.logs` and ``timeball jobs show`` tell the newest.

        The newest 200 lines and 64 KiB are kept. Never waits, and never fails. In a `Scheduler`
        it is a record of level INFO.
        """
        if self._notebook is None:
            self.info("%s", text)
        else:
            self._notebook.log(self._key, text)


NOTHING_LENT: Final = Lent()


class Context:
    """What a running job knows about itself: a parameter annotated `Context` receives it.

    Attributes:
        id: The job's uuid, the same in all its attempts.
        job_id: Its number in the store.
        turn: The fencing token of this attempt.
        attempt: 1 for the first attempt, then 2, 3 …
        kind: The name of what runs.
        timeout_s: Seconds this attempt may take, or None.
        occurrence: Which occurrence of a schedule this is, or None.
        stop: The sign that says whether this attempt should stop.
    """

    __slots__ = (
        "_deadline", "_lent", "_monotonic", "_spawned", "attempt", "id", "job_id", "kind",
        "occurrence", "stop", "timeout_s", "turn",
    )  # fmt: skip

    def __init__(
        self,
        turn: Turn,
        stop: StopSign,
        *,
        timeout_s: float | None,
        occurrence: JobOccurrence | None,
        monotonic: Callable[[], float],
        lent: Lent = NOTHING_LENT,
    ) -> None:
        self.id: UUID = turn.uuid
        self.job_id = turn.job_id
        self.turn = turn.turn
        self.attempt = turn.attempts + 1
        self.kind = turn.kind
        self.timeout_s = timeout_s
        self.occurrence = occurrence
        self.stop = stop
        self._lent = lent
        self._spawned = 0
        self._monotonic = monotonic
        self._deadline = math.inf if timeout_s is None else monotonic() + timeout_s

    @property
    def key(self) -> str:
        """An idempotency key: the same for all attempts of this job, and no other's."""
        return str(self.id)

    @property
    def connection(self) -> Any:
        """The psycopg connection of a transactional job; async where the job is a coroutine.

        What is written through it is kept if and only if this attempt's success is accepted:
        the worker commits both at once. Use ``with ctx.connection.transaction():`` for a part
        that may fail; `commit` and `rollback` are refused.

        Raises:
            UsageError: The job is not transactional, or runs without a database.
        """
        if self._lent.connection is None:
            raise UsageError(
                f"{self.kind} has no connection: write @job(transactional=True), and run it with "
                "a worker; a Scheduler has no database"
            )
        return self._lent.connection

    def parents(self) -> list[ParentJob]:
        """Return the jobs that this one comes after, with their results, in submission order.

        In a worker that is a query: in a coroutine write ``await ctx.parents_async()``.
        """
        return [] if self._lent.parents is None else self._lent.parents()

    def spawn(
        self, job: Callable[..., Any] | str | JobCall, /, *args: Any, **arguments: Any
    ) -> Draft:
        """Add a job that this one waits for, and return it as a draft, for the `after` of others.

        It is added when this attempt has succeeded, in the same commit: one that fails, or is
        stopped, or whose worker was given up for dead, adds none. This job is then waiting; no
        job that comes after it starts before all that it spawned have ended. Then it succeeds
        with what it returned, and is not called again; or it fails, if one of them has failed or
        was cancelled. What cannot be added fails the attempt.

        Its n-th job is the same one in all attempts, and after a revival: what is there is not
        added again, but waited for. Pass `uuid` where the n-th would not be the same.

        Args:
            job: As for `submit`.
            *args: Its arguments by position; in a `Scheduler` only.
            **arguments: Its arguments by name, and the options of `submit`.

        Raises:
            UsageError: Something that can never work, and what to write instead.
        """
        if self._lent.spawn is None:
            raise UsageError(
                f"{self.kind} cannot spawn: a job that is transactional or runs at most once "
                "submits by a client; the first one inside its own transaction, connection="
            )
        arguments.setdefault("uuid", uuid5(self.id, f"spawned {self._spawned}"))
        spawned = draft(job, *args, **arguments)
        self._lent.spawn(spawned)
        self._spawned += 1
        return spawned

    async def parents_async(self) -> list[ParentJob]:
        """Return what `parents` does; the event loop goes on meanwhile."""
        return [] if self._lent.parents is None else await asyncio.to_thread(self._lent.parents)

    def spawn_all(self, drafts: Iterable[Draft]) -> list[Draft]:
        """Spawn different jobs with edges among them, such as a `tb.chain`; return them in order.

        See `spawn`. What is returned, and not what was given, is for the `after` of others.

        Raises:
            UsageError: One of them can never work, and what to write instead.
        """
        spawned: dict[Hashable, Draft] = {}
        for each in together(drafts):
            arguments = dict(each.arguments)
            if "after" in arguments:
                arguments["after"] = [renamed(edge, spawned) for edge in arguments["after"]]
            spawned[each.uuid] = self.spawn(each.job, *each.args, **arguments)
        return list(spawned.values())

    @property
    def log(self) -> JobLog:
        """A logger whose records carry the job's id, kind and attempt; see `JobLog` for lines."""
        facts: dict[str, object] = {"job": str(self.id), "kind": self.kind}
        facts["attempt"] = self.attempt
        return JobLog(facts, self._lent.notebook, (self.job_id, self.turn))

    @property
    def keeps_lines(self) -> bool:
        """Whether what `log` is told is kept with the job, and not only logged."""
        return self._lent.notebook is not None

    def progress(self, done: float, total: float | None = None, note: str | None = None) -> None:
        """Say how far this attempt is; the latest word is kept, written once a second at most.

        Never waits, and never fails. `Client.get`, ``timeball jobs show`` and ``watch`` tell it;
        in a `Scheduler` the job's handle does, as `progress`, at once.

        Args:
            done: What is done, in whatever unit.
            total: What there is to do, in the same unit.
            note: A few words.
        """
        if self._lent.notebook is not None:
            self._lent.notebook.progress((self.job_id, self.turn), done, total, note)
        elif self._lent.hear is not None:
            self._lent.hear(done, total, note)

    def cancelled(self) -> bool:
        """Return whether this attempt should stop: it was asked to, or its time is up.

        A thread cannot be stopped from outside. A long job in a thread looks at this now and
        then; once it is true, raise an exception to be tried again, or return to be done.
        """
        return self.stop.raised or self._monotonic() >= self._deadline
