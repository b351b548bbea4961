"""One entry of a Celery beat: what it runs, with which options, and what is to be looked at."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from timeball.errors import UsageError
from timeball.importers.celery_schedule import RELATIVE, celery_timing
from timeball.importers.found import Found, KindCall, Options
from timeball.importers.gathering import needs, seconds, unnamed
from timeball.importers.python_values import Scope

_PRIORITY_MAX: Final = 9
# About publishing, which Timeball does in one transaction; or what it always does.
_WITHOUT_MEANING: Final = frozenset(
    {
        "ignore_result",
        "retry",
        "retry_policy",
        "compression",
        "serializer",
        "delivery_mode",
    }
    | {"mandatory", "immediate", "connection", "producer", "publisher"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CeleryEntry:
    """An entry as it stands in its file."""

    name: str
    kind: str
    line: int
    last_line: int
    text: str
    parts: Mapping[str, ast.expr]
    """``schedule``, ``args``, ``kwargs``, ``options``, …"""

    parameters: Sequence[str] | None
    """Of its function, where that is in the same file."""


@dataclass(slots=True)
class _Said:
    """What an entry's options come to."""

    values: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)


def celery_found(entry: CeleryEntry, scope: Scope) -> Found:
    """Return what an entry schedules.

    Raises:
        UsageError: It cannot be said here; the text says what to do.
    """
    timing = celery_timing(entry.parts["schedule"], scope)
    said = _Said(notes=list(timing.notes))
    for name, value in _options(entry, scope).items():
        _take(said, name, value)
    args, complete = _arguments(entry, scope, said)
    return Found(
        name=entry.name,
        expression=timing.expression,
        tz=timing.tz,
        runs=KindCall(kind=entry.kind, args=args),
        options=Options(day_rule=timing.day_rule, **said.values),
        line=entry.line,
        text=entry.text,
        comment=scope.source.comment_at(entry.line, entry.last_line),
        interval_s=timing.interval_s,
        defaulted=timing.defaulted,
        notes=tuple(said.notes),
        needs=needs(entry.line, entry.name, said.needs),
        holds=complete,
    )


def _options(entry: CeleryEntry, scope: Scope) -> dict[str, Any]:
    """Return the options; those of `add_periodic_task` stand beside the arguments."""
    own = {"task", "schedule", "args", "kwargs", "options"}
    found = {name: scope.literal(value) for name, value in entry.parts.items() if name not in own}
    if "options" in entry.parts:
        found |= scope.literal(entry.parts["options"]) or {}
    return found


def _arguments(entry: CeleryEntry, scope: Scope, said: _Said) -> tuple[dict[str, Any], bool]:
    """Return the arguments by name, and whether all of them have one."""
    named = scope.literal(entry.parts["kwargs"]) if "kwargs" in entry.parts else None
    placed = scope.literal(entry.parts["args"]) if "args" in entry.parts else None
    args = dict(named or {})
    if not placed:
        return args, True
    parameters = entry.parameters
    if parameters is not None and len(placed) <= len(parameters):
        return dict(zip(parameters, placed, strict=False)) | args, True
    said.needs.append(unnamed(scope.source.text_of(entry.parts["args"])))
    return args, False


def _take(said: _Said, name: str, value: Any) -> None:
    """Let one option take effect."""
    if value is None or name in _WITHOUT_MEANING:
        return
    rule = _RULES.get(name)
    if rule is None:
        said.needs.append(f"the option {name} has no counterpart here: decide whether it matters")
        return
    rule(said, value)


def _queue(said: _Said, value: Any) -> None:
    if not isinstance(value, str):
        raise UsageError(f"queue {value!r} is no name: write a text")
    said.values["queue"] = value


def _priority(said: _Said, value: Any) -> None:
    if type(value) is int and 0 <= value <= _PRIORITY_MAX:
        said.values["priority"] = value
        said.needs.append(
            f"priority {value}: here 9 starts first, as with RabbitMQ; with Redis 0 does, so turn "
            "it round there"
        )
        return
    said.needs.append(f"priority {value!r}: here it goes from 0 to 9, and 9 starts first")


def _expires(said: _Said, value: Any) -> None:
    if isinstance(value, int | float) and value > 0:
        said.values["catchup_window_s"] = float(value)
        said.notes.append(
            f"expires {value:g}: an occurrence that is found more than {value:g} s late does not "
            "run; a job that is in its queue does not expire"
        )
        return
    said.needs.append(f"expires {value}: write seconds; here no job expires at one instant")


def _time_limit(said: _Said, value: Any) -> None:
    said.values["timeout_s"] = seconds("time_limit", value)


def _soft_time_limit(said: _Said, value: Any) -> None:
    said.values.setdefault("timeout_s", seconds("soft_time_limit", value))
    said.notes.append(f"soft_time_limit {value}: the job sees Context.cancelled at its timeout")


def _relative(_said: _Said, value: Any) -> None:
    if value:
        raise UsageError(RELATIVE)


def _enabled(said: _Said, value: Any) -> None:
    if not value:
        said.values["paused"] = True


_RULES: Final[Mapping[str, Callable[[_Said, Any], None]]] = MappingProxyType(
    {
        "queue": _queue,
        "priority": _priority,
        "expires": _expires,
        "time_limit": _time_limit,
        "soft_time_limit": _soft_time_limit,
        "relative": _relative,
        "enabled": _enabled,
    }
)
