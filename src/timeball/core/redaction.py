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
    match value:
        case str():
            return HIDDEN if _TELLING_NAME.search(name) else redacted(value)
        case Mapping() | list() | tuple() if depth >= _DEPTH_MAX:
            return HIDDEN
        case {"$secret": str()} if len(value) == 1:
            return value  # the reference of a secret tells nothing
        case Mapping():
            return {key: redacted_value(str(key), inner, depth + 1) for key, inner in value.items()}
        case list() | tuple():
            return [redacted_value(name, inner, depth + 1) for inner in value]
        case _:
            return value
