"""Celery beat: the entries of a Python file, read off its text. Nothing is imported or run.

Read are `beat_schedule` in every form in which people write it (assigned, updated, entry by
entry, `CELERY_BEAT_SCHEDULE`, `CELERYBEAT_SCHEDULE`), `add_periodic_task(...)`, and the settings
that change what they mean.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any, Final, NamedTuple

from timeball.errors import UsageError
from timeball.importers.celery_entry import CeleryEntry, celery_found
from timeball.importers.found import Findings, Origin
from timeball.importers.gathering import Gathering
from timeball.importers.python_calls import called_kind, decorated_with, local_functions
from timeball.importers.python_source import read_python
from timeball.importers.python_values import Pair, Scope, walk

_SCHEDULE: Final = "beat_schedule"
_WANTED: Final = frozenset({_SCHEDULE, "timezone", "enable_utc", "task_annotations"})
_DEFAULT_TZ: Final = "UTC"


class Place(NamedTuple):
    """An expression and what its names mean there."""

    node: ast.expr
    scope: Scope


class _Entry(NamedTuple):
    pair: Pair
    scope: Scope


def celery_findings(text: str, *, source: str) -> Findings:
    """Return what the beat of a Celery program runs.

    Args:
        text: The Python file.
        source: Its path; the kind of a function in it is named after it.

    Raises:
        UsageError: It cannot be read at all.
    """
    reading = _Reading(text, source)
    return reading.findings()


class _Reading:
    """The walk through a file: first what is said, then what it means together."""

    def __init__(self, text: str, source: str) -> None:
        self._source = read_python(text)
        self._stem = PurePath(source).stem
        self._out = Gathering(Origin.CELERY, source)
        self._settings = defaultdict[str, list[Place]](list)
        self._tables = defaultdict[str, list[Place | _Entry]](list)
        self._periodic: list[tuple[ast.Call, Scope]] = []
        for node, scope in walk(self._source):
            self._take(node, scope)

    def findings(self) -> Findings:
        """Return what it all means."""
        self._functions = local_functions(self._source.tree, self._stem)
        for entry in self._entries(self._tables.get(_SCHEDULE, []), set()):
            self._add_entry(entry)
        for call, scope in self._periodic:
            self._add_periodic(call, scope)
        self._note_limits()
        return self._out.findings(default_tz=self._zone())

    # What is said ---------------------------------------------------------------------------

    def _take(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.AnnAssign(target=target, value=ast.expr() as value)
            ):
                self._assigned(target, value, scope)
            case ast.AugAssign(target=target, op=ast.BitOr(), value=value):
                self._put(_name(target), Place(value, scope))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._decorated(node, scope)
            case ast.Call(func=ast.Attribute(value=table, attr="update")):
                self._updated(node, table, scope)
            case ast.Call(func=ast.Attribute(attr="add_periodic_task")):
                self._periodic.append((node, scope))
            case ast.Call(func=ast.Name() | ast.Attribute() as function):
                if scope.dotted(function).rpartition(".")[2] == "Celery":
                    self._configured(scope.keywords(node), scope)

    def _decorated(self, function: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        for option in decorated_with(function):
            if option.arg == "rate_limit":
                self._note_limit(Pair(function.name, option.value, option.value.lineno), scope)

    def _assigned(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        self._put(_name(target), Place(value, scope))
        if isinstance(target, ast.Subscript) and _name(target) not in _WANTED:
            with self._out.losing(target.lineno, ""):
                if _name(target.value) == _SCHEDULE or isinstance(target.value, ast.Name):
                    self._put_entry(target, value, scope)

    def _put_entry(self, target: ast.Subscript, value: ast.expr, scope: Scope) -> None:
        table = _name(target.value)
        try:
            key = str(scope.literal(target.slice))
        except UsageError:
            if table == _SCHEDULE:
                raise
            return  # a table of something else
        self._tables[table].append(_Entry(Pair(key, value, target.lineno), scope))

    def _updated(self, call: ast.Call, table: ast.expr, scope: Scope) -> None:
        name = _name(table)
        with self._out.losing(call.lineno, ""):
            if name == _SCHEDULE or isinstance(table, ast.Name):
                self._tables[name] += [Place(each, scope) for each in call.args]
            if name == _SCHEDULE:
                own = scope.keywords(call)
                self._tables[name] += [_Entry(pair, scope) for pair in own]
                return
            try:
                pairs = scope.keywords(call)
                pairs += [pair for each in call.args for pair in scope.pairs(each)]
            except UsageError:
                return  # an update of something that is no table of settings
            self._configured(pairs, scope)

    def _configured(self, pairs: list[Pair], scope: Scope) -> None:
        for pair in pairs:
            self._put(_normal(pair.key), Place(pair.value, scope))

    def _put(self, name: str, place: Place) -> None:
        if name in _WANTED:
            self._settings[name].append(place)
        if name:
            self._tables[name].append(place)

    # What it means --------------------------------------------------------------------------

    def _entries(self, parts: list[Place | _Entry], seen: set[str]) -> Iterator[_Entry]:
        """Give the entries of a table that was put together from parts."""
        for part in parts:
            if isinstance(part, _Entry):
                yield part
                continue
            node, scope = part
            name = _normal(node.id) if isinstance(node, ast.Name) else ""
            if name in self._tables and name not in seen:
                yield from self._entries(self._tables[name], seen | {name})
                continue
            with self._out.losing(node.lineno, ""):
                yield from [_Entry(pair, scope) for pair in scope.pairs(node)]

    def _add_entry(self, entry: _Entry) -> None:
        pair, scope = entry
        with self._out.losing(pair.line, pair.key):
            node = scope.resolve(pair.value)
            parts = {each.key: each.value for each in scope.pairs(node)}
            if "task" not in parts or "schedule" not in parts:
                raise UsageError("an entry needs both a task and a schedule: write them")
            kind = scope.literal(parts["task"])
            if not isinstance(kind, str):
                raise UsageError(f"its task {kind!r} is no name: write it in quotes")
            self._out.add(
                celery_found(
                    CeleryEntry(
                        name=pair.key,
                        kind=kind,
                        line=pair.line,
                        last_line=pair.value.end_lineno or pair.line,
                        text=self._source.text_of(pair.value),
                        parts=parts,
                        parameters=self._functions.get(kind),
                    ),
                    scope,
                )
            )

    def _add_periodic(self, call: ast.Call, scope: Scope) -> None:
        with self._out.losing(call.lineno, ""):
            parts = {each.key: each.value for each in scope.keywords(call)}
            parts |= dict(
                zip(("schedule", "sig", "args", "kwargs", "name"), call.args, strict=False)
            )
            if "schedule" not in parts or "sig" not in parts:
                raise UsageError("add_periodic_task needs a schedule and a signature: write both")
            called = called_kind(scope.resolve(parts.pop("sig")), scope, self._stem)
            name = parts.pop("name", None)
            parts |= called.arguments
            self._out.add(
                celery_found(
                    CeleryEntry(
                        name=called.kind if name is None else str(scope.literal(name)),
                        kind=called.kind,
                        line=call.lineno,
                        last_line=call.end_lineno or call.lineno,
                        text=self._source.text_of(call),
                        parts=parts,
                        parameters=self._functions.get(called.kind),
                    ),
                    scope,
                )
            )

    def _zone(self) -> str | None:
        """Return the zone of what names none, by Celery's own rule."""
        zones = {self._value("timezone", place) for place in self._settings["timezone"]}
        utc = [self._value("enable_utc", place) for place in self._settings["enable_utc"]]
        if len(zones) > 1:
            named = ", ".join(sorted(map(str, zones)))
            line = self._settings["timezone"][-1].node.lineno
            self._out.lose(line, "", f"timezone is set to {named}: say which one counts with --tz")
            return None
        zone = zones.pop() if zones else None
        if zone is not None:
            return str(zone)
        if utc and all(value is False for value in utc):
            self._out.note("enable_utc is off and no timezone is set: Celery takes the machine's")
            return None
        self._out.note("no timezone is set here: Celery's own default is UTC")
        return _DEFAULT_TZ

    def _value(self, name: str, place: Place) -> Any:
        with self._out.losing(place.node.lineno, ""):
            if name == "timezone":
                return place.scope.zone(place.node)
            return place.scope.literal(place.node)
        return None

    def _note_limits(self) -> None:
        for place in self._settings["task_annotations"]:
            with self._out.losing(place.node.lineno, ""):
                limits = [
                    Pair(pair.key, option.value, option.line)
                    for pair in place.scope.pairs(place.node)
                    for option in place.scope.pairs(pair.value)
                    if option.key == "rate_limit"
                ]
                for each in limits:
                    self._note_limit(each, place.scope)

    def _note_limit(self, pair: Pair, scope: Scope) -> None:
        with self._out.losing(pair.line, pair.key):
            limit = scope.literal(pair.value)
            if limit is not None:
                self._out.lose(
                    pair.line,
                    pair.key,
                    f"rate_limit {limit!r} holds in each worker of Celery: give these jobs a queue "
                    "of their own and their workers few slots, or call what the limit protects "
                    "from a tb.Scheduler with a rate",
                )


def _name(target: ast.expr) -> str:
    """Return which setting, or else which table, is assigned to; "" for neither."""
    match target:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return _normal(name)
        case ast.Subscript(slice=ast.Constant(value=str() as name)) if _normal(name) in _WANTED:
            return _normal(name)
    return ""


def _normal(name: str) -> str:
    """Return a setting's name as Celery spells it today; other names stay."""
    plain = name.lower()
    if plain in {"celerybeat_schedule", "celery_beat_schedule"}:
        return _SCHEDULE
    plain = plain.removeprefix("celery_")
    plain = "task_annotations" if plain == "annotations" else plain
    return plain if plain in _WANTED else name
