"""APScheduler: the jobs that a Python file adds, read off its text. Nothing is imported or run.

Read are `add_job`, `add_schedule` and `@scheduler.scheduled_job`, also in loops over what is
written out, and the settings of the schedulers that change what they mean.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from timeball.errors import UsageError
from timeball.importers.apscheduler_options import JobOptions, job_options
from timeball.importers.apscheduler_trigger import (
    TRIGGER_ARGUMENTS,
    trigger_call,
    trigger_timing,
)
from timeball.importers.found import Findings, Found, KindCall, Options, Origin
from timeball.importers.gathering import Gathering, Timing, needs, unnamed
from timeball.importers.python_calls import called_kind, local_functions
from timeball.importers.python_source import read_python
from timeball.importers.python_values import Scope, walk

_JOB_ORDER: Final = (
    *("trigger", "args", "kwargs", "id", "name", "misfire_grace_time", "coalesce"),
    *("max_instances", "next_run_time", "jobstore", "executor", "replace_existing"),
)
_ADDING: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "add_job": ("func", *_JOB_ORDER),
        "add_schedule": ("func", "trigger"),
        "scheduled_job": _JOB_ORDER,
    }
)
_SETTING: Final = frozenset({"timezone", "job_defaults"})


class _Adding(NamedTuple):
    """One place where a job is added."""

    call: ast.Call
    scope: Scope
    given: dict[str, ast.expr]
    function: str | None
    """The function below the decorator, if it is one."""


class _Scheduler(NamedTuple):
    """What the file says about its schedulers."""

    tz: str | None
    defaults: Mapping[str, Any]


def apscheduler_findings(text: str, *, source: str) -> Findings:
    """Return what the schedulers of a program run.

    Args:
        text: The Python file.
        source: Its path; the kind of a function in it is named after it.

    Raises:
        UsageError: It cannot be read at all.
    """
    return _Reading(text, source).findings()


class _Reading:
    """The walk through a file: the settings first, because they may stand below."""

    def __init__(self, text: str, source: str) -> None:
        self._source = read_python(text)
        self._stem = PurePath(source).stem
        self._out = Gathering(Origin.APSCHEDULER, source)
        self._functions = local_functions(self._source.tree, self._stem)
        self._zones: dict[str | None, int] = {}
        self._defaults: dict[str, Any] = {}
        self._added: list[_Adding] = []
        self._warned = False
        for node, scope in walk(self._source):
            self._take(node, scope)

    def findings(self) -> Findings:
        """Return what it all means."""
        if len(self._zones) > 1:
            named = ", ".join(sorted(map(str, self._zones)))
            text = f"its schedulers have several zones ({named}): say which one counts with --tz"
            self._out.lose(max(self._zones.values()), "", text)
        tz = next(iter(self._zones)) if len(self._zones) == 1 else None
        self._scheduler = _Scheduler(tz, self._defaults)
        for adding in self._added:
            with self._out.losing(self._line(adding), self._name(adding)):
                self._add(adding)
        return self._out.findings(default_tz=tz)

    def _take(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                for each in node.decorator_list:
                    self._take_call(each, scope, name)
            case ast.Call(func=ast.Attribute(attr=verb)) if verb in {"add_job", "add_schedule"}:
                self._take_call(node, scope, None)
            case ast.Call(func=function):
                name = scope.dotted(function).rpartition(".")[2]
                if name.endswith("Scheduler") or name == "configure":
                    self._configured(node, scope)

    def _take_call(self, node: ast.expr, scope: Scope, function: str | None) -> None:
        match node:
            case ast.Call(func=ast.Attribute(attr=verb)) if verb in _ADDING:
                with self._out.losing(node.lineno, ""):
                    given = {each.key: each.value for each in scope.keywords(node)}
                    given |= dict(zip(_ADDING[verb], node.args, strict=False))
                    self._added.append(_Adding(node, scope, given, function))

    def _configured(self, call: ast.Call, scope: Scope) -> None:
        with self._out.losing(call.lineno, ""):
            for pair in scope.keywords(call):
                if pair.key == "timezone":
                    self._zones.setdefault(scope.zone(pair.value), pair.line)
                elif pair.key == "job_defaults":
                    self._defaults |= scope.literal(pair.value)

    def _add(self, adding: _Adding) -> None:
        scope, given = adding.scope, adding.given
        if "trigger" not in given:
            raise UsageError("it has no trigger and runs once: submit the job instead")
        kind, trigger = trigger_call(given["trigger"], scope)
        beside = {name: given[name] for name in given.keys() & TRIGGER_ARGUMENTS}
        timing = trigger_timing(kind, trigger | beside, scope, tz=self._scheduler.tz)
        if trigger and "timezone" not in trigger and timing.interval_s is None:
            self._warn_of_zone(adding)
        own = {"func", "trigger", "args", "kwargs", "id", "name"} | TRIGGER_ARGUMENTS
        said = {name: scope.literal(given[name]) for name in given.keys() - own}
        self._out.add(
            self._found(adding, timing, job_options({**self._scheduler.defaults, **said}))
        )

    def _found(self, adding: _Adding, timing: Timing, options: JobOptions) -> Found:
        kind, name, line = self._kind(adding), self._name(adding), self._line(adding)
        name = name or kind
        placed = self._placed(adding)
        args = dict(zip(self._functions.get(kind) or (), placed, strict=False))
        complete = len(args) == len(placed)
        remarks = [*timing.needs, *options.needs]
        if not complete:
            args = {}
            remarks.append(unnamed(self._source.text_of(adding.given["args"])))
        bounds = {"start_at": timing.start_at, "end_at": timing.end_at, "jitter_s": timing.jitter_s}
        return Found(
            name=name,
            expression=timing.expression,
            tz=timing.tz,
            runs=KindCall(kind=kind, args=args | self._named(adding)),
            options=Options(day_rule=timing.day_rule, **{**bounds, **options.values}),
            line=line,
            text=self._source.text_of(adding.call),
            comment=self._source.comment_at(line, line),
            guard=options.guard,
            interval_s=timing.interval_s,
            defaulted=timing.defaulted | options.defaulted,
            notes=(*timing.notes, *options.notes),
            needs=needs(line, name, remarks),
            holds=complete,
        )

    def _placed(self, adding: _Adding) -> list[Any]:
        given = adding.given.get("args")
        return list(adding.scope.literal(given) or ()) if given is not None else []

    def _named(self, adding: _Adding) -> dict[str, Any]:
        given = adding.given.get("kwargs")
        return dict(adding.scope.literal(given) or {}) if given is not None else {}

    def _kind(self, adding: _Adding) -> str:
        if adding.function is not None:
            return f"{self._stem}.{adding.function}"
        if "func" not in adding.given:
            raise UsageError("it names no function: write one")
        scope = adding.scope
        return called_kind(scope.resolve(adding.given["func"]), scope, self._stem).kind

    def _name(self, adding: _Adding) -> str:
        """Return the id, or else the name; "" where neither is known."""
        for key in ("id", "name"):
            if key in adding.given:
                try:
                    return str(adding.scope.literal(adding.given[key]))
                except UsageError:
                    continue
        return ""

    def _line(self, adding: _Adding) -> int:
        """Return the line of the trigger where a loop goes over triggers, else of the call."""
        trigger = adding.given.get("trigger")
        if isinstance(trigger, ast.Name) and trigger.id in adding.scope.names:
            return getattr(adding.scope.resolve(trigger), "lineno", adding.call.lineno)
        return adding.call.lineno

    def _warn_of_zone(self, adding: _Adding) -> None:
        if self._scheduler.tz is None or self._warned:
            return
        self._warned = True
        tz = self._scheduler.tz
        self._out.lose(
            self._line(adding),
            "",
            "a CronTrigger(…) without timezone runs in the machine's zone in APScheduler 3, not in "
            f"the {tz} of its scheduler: it is written with {tz}; check that this is meant, here "
            "and in those below",
        )
