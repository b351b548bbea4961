"""`schedules.toml` read: strictly, all problems at once, each with its line.

A table of `schedules` names when (`cron`, `tz`), what (`kind` and `args`, `command` and what it
needs, or the `jobs` of a graph), and any option of a schedule. What is not known is refused, with
the nearest thing that is.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from timeball.core.cron.every import Every
from timeball.core.cron.expression import read
from timeball.core.redaction import redacted
from timeball.errors import InvalidSchedule
from timeball.importers.found import (
    GRAPH,
    CommandCall,
    Findings,
    Found,
    KindCall,
    Needs,
    Options,
    Origin,
)
from timeball.importers.toml_places import toml_lines

SOURCE_MAX: Final = 1 << 20
"""Characters of a file that is read."""

_TABLE: Final = "schedules"
_SHOWN_MAX: Final = 60
_AT_LINE = re.compile(r"\(at line (\d+)")


class _Type(NamedTuple):
    """What a value has to be: a test, the words for it, and what is made of it."""

    fits: Callable[[Any], bool]
    words: str
    made: Callable[[Any], Any] = lambda value: value


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _table_of_texts(value: Any) -> bool:
    return isinstance(value, dict) and _texts(list(value.values()))


def _is_object(value: Any) -> bool:
    if not isinstance(value, str):
        return isinstance(value, dict)
    try:
        return isinstance(json.loads(value), dict)
    except (ValueError, RecursionError):
        return False


_TEXT: Final = _Type(lambda value: isinstance(value, str), "a text in quotes")
_WHOLE: Final = _Type(lambda value: type(value) is int, "a whole number")
_SECONDS: Final = _Type(_number, "a number of seconds", float)
_LIST: Final = _Type(_texts, "a list of texts", tuple)
_INSTANT: Final = _Type(
    lambda value: isinstance(value, datetime) and value.tzinfo is not None,
    "an instant with its offset, such as 2026-01-05T09:00:00+01:00",
)
_TYPES: Final[Mapping[str, _Type]] = MappingProxyType(
    {
        "cron": _TEXT,
        "tz": _TEXT,
        "kind": _TEXT,
        "args": _Type(
            _is_object,
            "a table, or the text of a JSON object",
            lambda value: json.loads(value) if isinstance(value, str) else value,
        ),
        "command": _Type(
            lambda value: isinstance(value, str) or (_texts(value) and bool(value)),
            "a text for the shell, or a list of the program and its arguments",
        ),
        "shell": _TEXT,
        "cwd": _TEXT,
        "env": _Type(_table_of_texts, "a table of texts"),
        "user": _TEXT,
        "stdin": _TEXT,
        "jobs": _Type(lambda value: isinstance(value, dict), "a table of jobs by their names"),
        **dict.fromkeys(("queue", "delivery", "key", "overlap_runs", "catchup"), _TEXT),
        **dict.fromkeys(("on_excluded", "day_rule", "dst", "gap", "overlap"), _TEXT),
        **dict.fromkeys(("priority", "max_retries", "max_crashes", "catchup_limit"), _WHOLE),
        **dict.fromkeys(("max_runs", "jitter_s"), _WHOLE),
        **dict.fromkeys(("timeout_s", "catchup_window_s", "grace_s"), _SECONDS),
        **dict.fromkeys(("any_of", "exclude"), _LIST),
        **dict.fromkeys(("start_at", "end_at"), _INSTANT),
        "paused": _Type(lambda value: isinstance(value, bool), "true or false"),
    }
)
_OF_COMMAND: Final = ("shell", "cwd", "env", "user", "stdin")
_NOT_OPTIONS: Final = frozenset({"cron", "tz", "kind", "args", "command", "jobs", *_OF_COMMAND})


def toml_findings(text: str, *, source: str) -> Findings:
    """Return the schedules of a file; its `needs` are all that is wrong in it.

    A schedule with a problem is not among those found. Whether its options fit together is for
    whoever declares it to say.

    Args:
        text: The file.
        source: Its path.
    """
    reading = _Reading(text)
    found = reading.schedules()
    needs = sorted(reading.problems, key=lambda each: each.line)
    return Findings(origin=Origin.TOML, source=source, found=tuple(found), needs=tuple(needs))


class _Reading:
    """The walk through a file: what was found and all that is wrong."""

    def __init__(self, text: str) -> None:
        self.problems: list[Needs] = []
        self._text = text
        self._lines: Mapping[tuple[str, ...], int] = {}

    def schedules(self) -> list[Found]:
        """Return the schedules that are in order."""
        document = self._document()
        for key in document.keys() - {_TABLE}:
            self._refuse((key,), "", _unknown(key, [_TABLE], "write it below [schedules.NAME]"))
        tables = document.get(_TABLE, {})
        if not isinstance(tables, dict):
            self._refuse((_TABLE,), "", f"{_TABLE} is no table: write [schedules.NAME]")
            return []
        found = (self._schedule(name, table) for name, table in tables.items())
        return [each for each in found if each is not None]

    def _document(self) -> dict[str, Any]:
        if len(self._text) > SOURCE_MAX:
            self._refuse((), "", f"it is longer than {SOURCE_MAX:,} characters: split it")
            return {}
        try:
            document = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            at = _AT_LINE.search(str(error))
            line = int(at[1]) if at else 1
            self.problems.append(Needs(line=line, name="", text=f"it is not TOML: {error}"))
            return {}
        except RecursionError:
            self._refuse((), "", "it is nested too deep: write plain values")
            return {}
        self._lines = toml_lines(self._text)
        return document

    def _schedule(self, name: str, table: Any) -> Found | None:
        path, before = (_TABLE, name), len(self.problems)
        if not isinstance(table, dict):
            self._refuse(path, name, "it is no table: write [schedules.NAME] and its keys below")
            return None
        values = {key: self._value(path, key, value) for key, value in table.items()}
        self._check_what(path, table)
        interval = self._check_when(path, table)
        if len(self.problems) > before:
            return None
        options = {key: value for key, value in values.items() if key not in _NOT_OPTIONS}
        line = self._line(path)
        return Found(
            name=name,
            expression=values["cron"],
            tz=values.get("tz"),
            runs=_runs(values),
            options=Options(**options),
            line=line,
            text=redacted(self._text.split("\n")[line - 1].strip()),
            interval_s=interval,
        )

    def _value(self, path: tuple[str, ...], key: str, value: Any) -> Any:
        wanted = _TYPES.get(key)
        if wanted is None:
            there_are = f"there are {', '.join(_TYPES)}"
            self._refuse((*path, key), path[-1], _unknown(key, _TYPES, there_are))
            return None
        if not wanted.fits(value):
            shown = redacted(str(value))[:_SHOWN_MAX]
            text = f"{key} is {shown!r}: write {wanted.words}"
            self._refuse((*path, key), path[-1], text)
            return None
        return wanted.made(value)

    def _check_what(self, path: tuple[str, ...], table: Mapping[str, Any]) -> None:
        both = [key for key in ("kind", "command", "jobs") if key in table]
        if len(both) != 1:
            text = "it runs nothing" if not both else "it runs two things"
            self._refuse(path, path[-1], f"{text}: write one of kind, command and jobs")
            return
        strangers = {"command": ("args",), "kind": _OF_COMMAND, "jobs": ("args", *_OF_COMMAND)}
        for key in strangers[both[0]]:
            if key in table:
                self._refuse((*path, key), path[-1], f"{key} does not go with {both[0]}")
        if isinstance(table.get("command"), list) and "shell" in table:
            self._refuse((*path, "shell"), path[-1], "a list of words needs no shell: take it out")

    def _check_when(self, path: tuple[str, ...], table: Mapping[str, Any]) -> float | None:
        """Return the seconds between runs, where it is an interval."""
        text = table.get("cron")
        if "cron" not in table:
            self._refuse(path, path[-1], 'it has no cron: write such as cron = "30 2 * * *"')
        if not isinstance(text, str):
            return None
        try:
            expression = read(text, name=path[-1], day_rule=str(table.get("day_rule", "cron")))
        except InvalidSchedule as error:
            self._refuse((*path, "cron"), path[-1], str(error))
            return None
        return float(expression.interval_s) if isinstance(expression, Every) else None

    def _refuse(self, path: tuple[str, ...], name: str, text: str) -> None:
        self.problems.append(Needs(line=self._line(path), name=name, text=redacted(text)))

    def _line(self, path: tuple[str, ...]) -> int:
        """Return the line of the innermost part of a path that has one."""
        while path and path not in self._lines:
            path = path[:-1]
        return self._lines.get(path, 1)


def _runs(values: Mapping[str, Any]) -> KindCall | CommandCall:
    if "jobs" in values:
        return KindCall(kind=GRAPH, args={"jobs": values["jobs"]})
    if "kind" in values:
        return KindCall(kind=values["kind"], args=values.get("args", {}))
    given = {key: values[key] for key in _OF_COMMAND if key in values}
    if isinstance(values["command"], str):
        return CommandCall(shell_text=values["command"], **given)
    return CommandCall(argv=tuple(values["command"]), **given)


def _unknown(key: str, known: Iterable[str], otherwise: str) -> str:
    near = difflib.get_close_matches(key, list(known), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else otherwise
    return f"{redacted(key)[:_SHOWN_MAX]} is not known: {hint}"
