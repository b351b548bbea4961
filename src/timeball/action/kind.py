"""What a kind of job is: its name, what it calls, and the options its jobs have by default."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from timeball.action.parameters import Parameters
from timeball.action.secret import referring
from timeball.core.misfire import OCCURRENCE_ARG
from timeball.core.payload import encode_args
from timeball.core.records import MAX_CRASHES_DEFAULT, PRIORITY_DEFAULT, Delivery
from timeball.core.retry import Retry
from timeball.errors import UsageError

NAME_MAX: Final = 256
"""Bytes of a name."""

PRIORITY_MAX: Final = 9

RunsIn = Literal["thread", "process"]
"""Where a worker carries out a function: in a thread of its own process, or in a process apart,
which it can kill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CronSpec:
    """One schedule of a kind, checked."""

    expression: str
    tz: str
    name: str
    gap: str
    overlap: str
    dst: str = "auto"
    catchup: str = "last"
    args: str = "{}"
    """The job's arguments, as the text of a JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What jobs of one name run, and how.

    Args:
        name: Unique among all programs on one store.
        call: Called with the job's arguments by name.
        parameters: What it may be called with.
        is_async: Whether calling it gives a coroutine.
        retry: When an attempt that failed is followed by another.
        timeout_s: Seconds for one attempt; None is no limit. A coroutine is cancelled; a
            function in a thread sees `Context.cancelled`; one in a process apart is killed.
        queue: Where its jobs line up.
        priority: 0 … 9, 9 first.
        max_crashes: Workers that may die in it before it is quarantined.
        delivery: Whether another attempt follows the death of a worker.
        runner: "process": a worker carries it out in a process apart, which it kills with all that
            it started once the time is up or a cancel is requested. None: as the worker does by
            default. A `Scheduler` has one runner for all, and does not look here.
        key: Of the jobs with the same key only so many are under way at once as its limit
            says, else one; `{argument}` in it stands for what the job has as that argument.
        transactional: Each attempt has a database connection, `Context.connection`, and what it
            writes there is kept iff its success is accepted. It runs in a thread or on the event
            loop of its worker.
        exclusive: No second attempt begins while the first may still run: it runs in a process
            apart, which its worker kills before anybody else could take that worker for dead.
        schedules: When a job of this kind is made by the clock.
        place: Where it is defined, for people.
        check: Called with the arguments of a job when it is submitted; raises `UsageError`.
    """

    name: str
    call: Callable[..., Any]
    parameters: Parameters
    is_async: bool = False
    retry: Retry = field(default_factory=Retry)
    timeout_s: float | None = None
    queue: str = "default"
    priority: int = PRIORITY_DEFAULT
    max_crashes: int = MAX_CRASHES_DEFAULT
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    runner: RunsIn | None = None
    key: str | None = None
    transactional: bool = False
    exclusive: bool = False
    schedules: tuple[CronSpec, ...] = ()
    place: str = ""
    check: Callable[[Mapping[str, Any]], object] | None = None

    def __post_init__(self) -> None:
        _check_name("name", self.name)
        _check_name("queue", self.queue)
        if self.key is not None:
            _check_name("key", self.key)
        if self.timeout_s is not None and not (
            math.isfinite(self.timeout_s) and self.timeout_s > 0
        ):
            raise UsageError(f"timeout_s is {self.timeout_s!r}: write seconds above 0, or None")
        if not (type(self.priority) is int and 0 <= self.priority <= PRIORITY_MAX):
            raise UsageError(f"priority is {self.priority!r}: write 0 to 9; 9 starts first")
        if not (type(self.max_crashes) is int and self.max_crashes > 0):
            raise UsageError(f"max_crashes is {self.max_crashes!r}: write 1 or more")
        self._check_runner()
        self._check_transactional()
        self._check_exclusive()
        if self.delivery is Delivery.AT_MOST_ONCE and self.retry.max_retries:
            raise UsageError("at_most_once allows no second attempt: write retry=Retry(0)")

    def _check_runner(self) -> None:
        if self.runner not in (None, *get_args(RunsIn)):
            raise UsageError(f"runner is {self.runner!r}: write 'thread' or 'process'")
        if self.is_async and self.runner == "process":
            raise UsageError(
                f"{self.name} is async, and a process apart runs plain functions: write it with "
                "def, or leave out runner"
            )

    def _check_transactional(self) -> None:
        if not self.transactional:
            return
        if self.parameters.context is None:
            raise UsageError(
                f"{self.name} is transactional and takes no Context, by which it would reach its "
                "connection: add a parameter `ctx: tb.Context`"
            )
        if self.runner == "process":
            raise UsageError(
                f"{self.name} is transactional, and a connection cannot be handed to a process "
                "apart: leave out runner"
            )

    def _check_exclusive(self) -> None:
        if not self.exclusive:
            return
        words = {"async": self.is_async, "transactional": self.transactional}
        words |= {"to run in a thread": self.runner == "thread"}
        if any(words.values()):
            why = " and ".join(word for word, so in words.items() if so)
            raise UsageError(
                f"{self.name} is exclusive and {why}: what is exclusive must be killed when its "
                "worker is cut off, so write a plain def that may run in a process apart"
            )

    def runs_apart(self, default: RunsIn) -> bool:
        """Return whether a worker whose functions run there by default runs it apart."""
        return self.exclusive or (self.runner or default) == "process"

    @property
    def context_parameter(self) -> str | None:
        """The parameter annotated `Context`, if there is one."""
        return self.parameters.context

    def encode(self, args: Mapping[str, Any]) -> str:
        """Return a job's arguments as JSON text, checked against what is called.

        Raises:
            UsageError: An argument is missing, unknown or reserved.
            InvalidPayload: A value cannot be stored.
        """
        if OCCURRENCE_ARG in args:
            raise UsageError(f"{OCCURRENCE_ARG} is reserved for schedules: use another name")
        complaint = self.parameters.complaint(args)
        if complaint is not None:
            raise UsageError(f"{self.name} cannot be called like this: {complaint}")
        text = encode_args(dict(args))  # first, for it bounds the depth of what is checked
        if self.check is not None:
            self.check(referring(dict(args)))
        return text


def _check_name(what: str, name: object) -> None:
    if not isinstance(name, str):
        raise UsageError(f"{what} is {name!r}: write a text")
    size = len(name.encode(errors="replace"))
    if not (name.strip() and name.isprintable() and size <= NAME_MAX):
        raise UsageError(f"{what} is {name[:80]!r}: write 1 to {NAME_MAX} bytes of printable text")
