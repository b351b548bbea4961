"""From what somebody submits to a job: checks, options, and what jobs of one form share."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Hashable, Mapping
from contextvars import copy_context
from datetime import datetime
from enum import StrEnum
from itertools import count
from typing import Any, Final, TypeVar

from timeball import chance
from timeball.action.job_call import JobCall
from timeball.action.kind import PRIORITY_MAX, Kind
from timeball.action.parameters import Parameters
from timeball.action.registry import DEFAULT
from timeball.core.callbacks import CALLBACK
from timeball.core.dependencies import OURS, Rule, RuledOut
from timeball.core.rate import COUNT_MAX, NS_PER_S, Rate
from timeball.core.records import MAX_CRASHES_DEFAULT, PRIORITY_DEFAULT, Delivery
from timeball.core.retry import Retry
from timeball.core.states import State
from timeball.engine.handles import Form, Home, Work
from timeball.engine.options import Options
from timeball.engine.runner import Runner
from timeball.errors import UsageError

OPTIONS: Final = frozenset(
    {
        *("after", "delay_s", "id", "key", "priority", "retry", "rule", "ruled_out", "run_at"),
        *("timeout_s", "weight"),
    }
)
_OF_FORM: Final = frozenset({"priority", "retry", "timeout_s", "weight"})
_Word = TypeVar("_Word", bound=StrEnum)
_FORMS_MAX: Final = 256
"""Remembered forms; more than that are lambdas, each submitted once."""


class Submission:
    """Makes the jobs of one engine.

    Args:
        engine: Whose jobs they are.
        handle: What a job is made as.
        options: Of the scheduler.
        runner: Where callables run that are no coroutines; None for threads of this process.
    """

    def __init__(
        self, engine: Home, handle: type[Work], *, options: Options, runner: Runner | None
    ) -> None:
        self._engine = engine
        self._handle = handle
        self._retry = options.retry
        self._check_weight = (options.limit or Rate(COUNT_MAX)).check_weight
        self._runner = runner
        self._forms: dict[Hashable, Form] = {}
        self._own: dict[Callable[..., Any], Kind] = {}
        """The kinds of job values, by what they call."""
        self._numbers = count(1)

    def work(
        self, call: Callable[..., Any] | JobCall, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Work:
        """Return a new job that nobody else knows yet.

        Raises:
            UsageError: Something that can never work, and what to write instead.
        """
        options: Mapping[str, Any] = {}
        try:
            form = None if kwargs else self._forms.get(call)
        except TypeError:  # it has no hash
            form = None
        if form is None:
            form, kwargs, options = self._read(call, args, kwargs)
        work = self._handle(form, next(self._numbers), args, kwargs or None)
        variables = copy_context()
        if len(variables):
            work.context = variables
        if options:
            self._apply(work, options)
        return work

    def _read(
        self, call: Callable[..., Any] | JobCall, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Form, dict[str, Any], Mapping[str, Any]]:
        """Return the form of a job, its own arguments by name, and its options."""
        if isinstance(call, JobCall):
            if call.kind.name == CALLBACK:
                raise UsageError(
                    "nobody can call this process: submit a callback by a client of tb.connect()"
                )
            job, call = call, call.kind.call
            if args or kwargs.keys() - OPTIONS:
                raise UsageError(f"{job.kind.name} has its arguments already: pass only options")
            self._own[call] = job.kind
            kwargs = {**job.args, **job.options, **kwargs}
        options = {name: kwargs.pop(name) for name in OPTIONS & kwargs.keys()}
        return self._form(call, options), kwargs, options

    def _form(self, call: Callable[..., Any], options: Mapping[str, Any]) -> Form:
        own = {name: options[name] for name in _OF_FORM & options.keys()}
        try:
            known = (call, *sorted(own.items())) if own else call
            form = self._forms.get(known)
        except TypeError:  # the callable, or what is meant to be a number, has no hash
            return self._new_form(call, own)
        if form is None:
            form = self._new_form(call, own)
            if len(self._forms) >= _FORMS_MAX:
                self._forms.clear()
            self._forms[known] = form
        return form

    def _new_form(self, call: Callable[..., Any], own: Mapping[str, Any]) -> Form:
        if not callable(call):
            raise UsageError(f"{call!r} cannot be called: submit a function, then its arguments")
        name = getattr(call, "__qualname__", None) or type(call).__qualname__
        form = Form(self._engine, call, name)
        form.retry, form.priority = self._retry, PRIORITY_DEFAULT
        form.max_crashes = MAX_CRASHES_DEFAULT
        form.is_async = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
            getattr(call, "__call__", None)  # noqa: B004 - its own, if it is an object
        )
        kind = self._own.get(call) or _kind_of(call) if self._own else _kind_of(call)
        if kind is not None:
            form.name, form.retry, form.timeout_s = kind.name, kind.retry, kind.timeout_s
            form.priority, form.max_crashes = kind.priority, kind.max_crashes
            form.once = kind.delivery is Delivery.AT_MOST_ONCE
        form.context = kind.parameters.context if kind else _context_of(call)
        for option, value in own.items():
            setattr(form, option, value)
        _check(form)
        self._check_weight(form.weight)
        runner = None if form.is_async else self._runner
        if runner is not None:
            if form.context:
                raise UsageError(
                    f"{name} asks for a Context, which cannot leave this process: leave "
                    "the parameter out, or use runner='threads'"
                )
            runner.check(call)
        form.signs = form.context is not None or runner is not None
        return form

    def _apply(self, work: Work, options: Mapping[str, Any]) -> None:
        job_id, key = options.get("id"), options.get("key")
        if job_id is not None:
            if not (isinstance(job_id, str) and job_id):
                raise UsageError(f"id is {job_id!r}: write a text, or leave it out for a number")
            work.id = str.__str__(job_id)  # of a word of an enumeration too
        if key is not None and not isinstance(key, str):
            raise UsageError(f"key is {key!r}: write a text")
        work.key = key
        delay_s = _delay_s(options)
        if delay_s > 0:
            now_ns = self._engine.clock_ns()
            more = work.with_more()
            more.due_ns = more.first_due_ns = now_ns + math.ceil(delay_s * NS_PER_S)
            work.state = State.SCHEDULED
        ruled_out = _word(RuledOut, "ruled_out", options.get("ruled_out", RuledOut.SKIP))
        rule = options.get("rule", Rule.ALL_SUCCESS)
        after = self.parents_of(work, options.get("after") or (), rule)
        if after:
            more = work.with_more()
            more.after, more.ruled_out = after, ruled_out
            work.state = State.WAITING

    def parents_of(self, work: Work, given: Collection[Any], rule: object) -> dict[Work, Rule]:
        """Return the parents that a job is to have, each with its rule.

        Args:
            work: The job.
            given: Handles, ids, or pairs of one and its rule.
            rule: For those that have none of their own.

        Raises:
            UsageError: What is wrong, and what to write instead.
        """
        rule = _word(Rule, "rule", rule)
        if isinstance(given, str | Work):
            raise UsageError("after is one job: write a list, after=[job]")
        after: dict[Work, Rule] = {}
        for each in given:
            own, word = each if isinstance(each, tuple) else (each, rule)
            parent, chosen = self._parent(work, own), _word(Rule, "the rule in after", word)
            if after.setdefault(parent, chosen) is not chosen:
                raise UsageError(f"after names job {parent.id} with two rules: choose one")
        return after

    def _parent(self, work: Work, parent: Any) -> Work:
        if parent == work.id:
            raise UsageError(f"job {work.id} would wait for itself, a cycle: take it out of after")
        found = parent if isinstance(parent, Work) else self._engine.submitted(parent)
        if found is None:
            raise UsageError(f"after names {parent!r}, which is not here: submit parents first")
        if found.form.engine is not self._engine:
            raise UsageError(f"after names {found!r} of another scheduler: submit both to one")
        return found


def _kind_of(call: Callable[..., Any]) -> Kind | None:
    try:
        return DEFAULT.kind_of(call)
    except (TypeError, UsageError):  # UnknownKind is one, and so is a lambda without a name
        return None


def _context_of(call: Callable[..., Any]) -> str | None:
    # Most have no annotations at all; to read a signature costs more than all the rest.
    if not getattr(inspect.unwrap(call), "__annotations__", None):
        return None
    try:
        return Parameters.of(call).context
    except UsageError:
        return None


def _check(form: Form) -> None:
    timeout_s = form.timeout_s
    if timeout_s is not None and not (math.isfinite(timeout_s) and timeout_s > 0):
        raise UsageError(f"timeout_s is {timeout_s!r}: write seconds above 0, or None")
    if not (type(form.priority) is int and 0 <= form.priority <= PRIORITY_MAX):
        raise UsageError(f"priority is {form.priority!r}: write 0 to 9; 9 starts first")
    if not isinstance(form.retry, Retry):
        raise UsageError(f"retry is {form.retry!r}: write Retry({form.retry!r})")
    if form.once and form.retry.max_retries:
        raise UsageError("at_most_once allows no second attempt: write retry=Retry(0)")


def _word(kind: type[_Word], name: str, given: object) -> _Word:
    words = [word for word in kind if word not in OURS]
    if given in words:
        return kind(str(given))
    told = " or ".join(f"'{word}'" for word in words)
    raise UsageError(f"{name} is {given!r}: write {told}")


def _delay_s(options: Mapping[str, Any]) -> float:
    run_at, delay_s = options.get("run_at"), options.get("delay_s")
    if run_at is None:
        delay = 0.0 if delay_s is None else delay_s
        if not (isinstance(delay, int | float) and math.isfinite(delay) and delay >= 0):
            raise UsageError(f"delay_s is {delay_s!r}: write seconds, 0 or more")
        return float(delay)
    if delay_s is not None:
        raise UsageError("run_at and delay_s exclude each other: write one of them")
    if not isinstance(run_at, datetime) or run_at.tzinfo is None:
        raise UsageError(f"run_at is {run_at!r}: write an aware datetime, such as one in UTC")
    return (run_at - chance.now()).total_seconds()
