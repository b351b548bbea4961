"""Secrets in commands and arguments, made unreadable before anything is shown.

What is recognised: values of names that speak of passwords, tokens and keys (settings, options,
headers, query parameters), passwords in addresses, and the shapes of well-known access tokens. A
variable in place of a value (`--password "$DB_PASSWORD"`) is no secret and stays. All patterns
have bounded repetitions, so a text costs time in proportion to its length.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

HIDDEN: Final = "…"

_DEPTH_MAX: Final = 100  # deeper than anybody reads; a stack holds about 1,000

_WORD = (
    r"(?:passw(?:or)?d|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key"
    r"|private[_-]?key|credentials?)"
)
_VALUE = r"""(?!["']?[$…])("[^"\n]{1,4096}"|'[^'\n]{1,4096}'|[^\s"'&;|)]{1,4096})"""
_PATTERNS: Final = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"""({_WORD}[\w-]{{0,40}}["']?\s{{0,3}}[=:]\s{{0,3}}){_VALUE}""",
        rf"((?<![\w-])--?[\w-]{{0,40}}{_WORD}[\w-]{{0,40}}[ \t]{{1,3}}){_VALUE}",
        rf"([?&](?:key|sig|signature|auth)=){_VALUE}",
        rf"(authorization:\s{{0,3}}(?:(?:bearer|basic|token|digest)\s{{1,3}})?){_VALUE}",
        rf"(\bsshpass\s{{1,3}}-p\s{{0,3}}){_VALUE}",
        rf"(\b(?:docker|podman)\s{{1,3}}login\b[^|;&\n]{{0,200}}\s-p\s{{0,3}}){_VALUE}",
        rf"(\bmysql\w{{0,10}}\b[^|;&\n]{{0,200}}\s-p){_VALUE}",
        rf"""(\s(?:-u|--user)[ =]{{0,2}}["']?[^\s:"'$]{{1,128}}:){_VALUE}""",
        r"""(\b[a-z][a-z0-9+.-]{0,20}://[^\s/:@"']{0,256}:)([^\s@/"'$…][^\s@/"']{0,255})(?=@)""",
        r"(hooks\.slack\.com/services/)(\S{1,512})",
        r"\b(AKIA|gh[pousr]_|github_pat_|sk-|xox[abprs]-|eyJ)([\w.-]{12,4096})",
    )
)
_REFERENCE: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}:(?!//)[!-~]{1,256}")
_TELLING_NAME: Final = re.compile(_WORD, re.IGNORECASE)


def redacted(text: str) -> str:
    """Return `text` with an ellipsis for every secret in it."""
    for pattern in _PATTERNS:
        text = pattern.sub(rf"\1{HIDDEN}", text)
    return text


def holds_secret(text: str) -> bool:
    """Return whether `redacted` would change `text`."""
    return redacted(text) != text


def redacted_value(name: str, value: Any, depth: int = 0) -> Any:
    """Return a named value, or what to show in its place; what is nested too deep is left out.

    Args:
        name: Of the argument, the key or the variable that holds it.
        value: What JSON can hold.
        depth: How many others it is in.
    """
    telling = _TELLING_NAME.search(name)
    match value:
        case str() | bytes() | bytearray() | memoryview():
            return HIDDEN if telling else redacted(_text(value))
        case Mapping() | list() | tuple() | set() | frozenset() if depth >= _DEPTH_MAX:
            return HIDDEN
        case Mapping():
            return _redacted_items(name if telling else None, value, depth + 1)
        case list() | tuple() | set() | frozenset():
            return [redacted_value(name, inner, depth + 1) for inner in value]
        case int() | float() if telling and telling.end() == len(name):
            return value if isinstance(value, bool) else HIDDEN  # a PIN; `max_tokens` is none
    return value


def _redacted_items(name: str | None, items: Mapping[Any, Any], depth: int) -> dict[str, Any]:
    """Return items; `name` is a telling one around them, which makes secrets of all inside."""
    match items:
        case {"$secret": str() as reference} if len(items) == 1 and _REFERENCE.fullmatch(reference):
            return {"$secret": reference}  # which tells nothing
    found: dict[str, Any] = {}
    for key, inner in items.items():
        text = _text(key)
        found[redacted(text)] = redacted_value(name or text, inner, depth)
    return found


def _text(value: object) -> str:
    match value:
        case bytes() | bytearray() | memoryview():
            return bytes(value).decode("utf-8", "backslashreplace")
        case _:
            return str(value)
