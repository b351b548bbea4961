"""`schedules.toml` as text: always the same text for the same schedules, made to be read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from typing import Any, Final

from timeball.importers.crontab_line import harmless
from timeball.importers.found import DEFAULT_SHELL, CommandCall, Findings, Found, KindCall, Needs

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_COMMENT_MAX: Final = 300
_MINUTE: Final = timedelta(minutes=1)
_WHOLE_MAX: Final = 2**53


def toml_text(findings: Findings, *, default_tz: str | None = None) -> str:
    """Return the file that `timeball up` runs; `toml_findings` reads the same out of it.

    What needs a person stands in comments, with the line of the source. A schedule that does
    not hold is a comment as a whole.

    Args:
        findings: What an importer found, or a reader read.
        default_tz: The zone of what names none; None leaves it unnamed.
    """
    name = PurePath(findings.source).name
    blocks = [list(_head(findings, name))]
    blocks += [list(_block(each, name, default_tz)) for each in findings.found]
    return "\n".join("\n".join(block) + "\n" for block in blocks if block)


def _head(findings: Findings, name: str) -> Iterator[str]:
    yield _comment(f"Schedules from {name} ({findings.origin}); run them with: timeball up FILE")
    yield from (_comment(text) for text in findings.notes)
    yield from _needs(findings.needs, name)


def _needs(remarks: Iterable[Needs], name: str) -> Iterator[str]:
    for each in remarks:
        about = f" {each.name}:" if each.name else ""
        yield _comment(f"needs you, {name}:{each.line}:{about} {each.text}")


def _block(found: Found, name: str, default_tz: str | None) -> Iterator[str]:
    if found.line:
        yield _comment(f"{name}:{found.line}: {found.text}")
    yield from (_comment(line) for line in found.comment.split("\n") if line)
    yield from (_comment(f"note: {text}") for text in found.notes)
    yield from _needs(found.needs, name)
    mark = "" if found.holds else "# "
    yield f"{mark}[schedules.{_key(found.name)}]"
    for key, value in _facts(found, default_tz):
        yield f"{mark}{key} = {value}"


def _facts(found: Found, default_tz: str | None) -> Iterator[tuple[str, str]]:
    yield "cron", _string(found.expression)
    tz = default_tz if found.tz is None else found.tz
    if tz is not None:
        yield "tz", _string(tz)
    match found.runs:
        case KindCall(kind=kind, args=args):
            yield "kind", _string(kind)
            if args:
                yield "args", _args(args)
        case CommandCall():
            yield from _command(found.runs)
    for key, value in found.options.given().items():
        yield key, _value(value)


def _command(call: CommandCall) -> Iterator[tuple[str, str]]:
    text = call.shell_text
    yield "command", _value(list(call.argv)) if text is None else _string(text)
    if call.shell != DEFAULT_SHELL:
        yield "shell", _string(call.shell)
    if call.cwd is not None:
        yield "cwd", _string(call.cwd)
    if call.env:
        yield "env", _value(call.env)
    if call.user is not None:
        yield "user", _string(call.user)
    if call.stdin:
        yield "stdin", _string(call.stdin)


def _args(args: Mapping[str, Any]) -> str:
    # TOML knows no null: such arguments are the text of a JSON object.
    if _holds_none(args):
        return _string(json.dumps(args))
    return _value(args)


def _holds_none(value: Any) -> bool:
    match value:
        case Mapping():
            return any(map(_holds_none, value.values()))
        case list() | tuple():
            return any(map(_holds_none, value))
    return value is None


def _value(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _string(value)
        case int() | float():
            return _number(value)
        case datetime():
            odd = (value.utcoffset() or _MINUTE) % _MINUTE  # TOML writes offsets in minutes
            return (value.astimezone(UTC) if odd else value).isoformat()
        case Mapping():
            inner = ", ".join(f"{_key(key)} = {_value(each)}" for key, each in value.items())
            return f"{{ {inner} }}" if inner else "{}"
    return f"[{', '.join(map(_value, value))}]"


def _number(value: float) -> str:
    whole = abs(value) < _WHOLE_MAX and value == int(value)
    return str(int(value)) if whole else repr(value)


def _key(text: str) -> str:
    return text if _BARE_KEY.fullmatch(text) else _quoted(text)


def _string(text: str) -> str:
    """Return a TOML string: a literal one where that spares escapes."""
    if ('"' in text or "\\" in text) and "'" not in text and text.isprintable():
        return f"'{text}'"
    return _quoted(text)


def _quoted(text: str) -> str:
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    return f"\\u{code:04x}" if code < 1 << 16 else f"\\U{code:08x}"


def _comment(text: str) -> str:
    return f"# {harmless(text, _COMMENT_MAX)}"
