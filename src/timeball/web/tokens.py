"""Tokens: who may ask for what. Only their hashes are kept, so that a file of them lets nobody in.

A token is 256 random bits, so one round of SHA-256 is enough: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from timeball.errors import UsageError
from timeball.web.scopes import GRANTABLE, Scope

PREFIX: Final = "tb_"
"""Makes a token easy to find where it should not be."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}")
_NONE: Final = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """Whom a token speaks for, and what it allows."""

    name: str
    scopes: frozenset[Scope]
    hash: str = field(repr=False)
    """``sha256:`` and 64 hexadecimal digits."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageError(f"token {self.name!r}: a name is letters, digits and any of . _ @ -")
        if not _HASH.fullmatch(self.hash):
            raise UsageError(
                f"token {self.name!r}: write its hash, sha256: and 64 hexadecimal digits; "
                "`timeball serve --new-token NAME` makes one"
            )
        if not self.scopes or not self.scopes <= set(GRANTABLE):
            raise UsageError(f"token {self.name!r}: give it some of {', '.join(GRANTABLE)}")

    @classmethod
    def new(cls, name: str, scopes: Iterable[Scope]) -> tuple[Self, str]:
        """Return a token and its text, which is kept nowhere."""
        text = PREFIX + secrets.token_urlsafe(32)
        return cls(name=name, scopes=frozenset(scopes), hash=hashed(text)), text

    @property
    def line(self) -> str:
        """How a token file names it."""
        return f"{self.name} {','.join(sorted(self.scopes))} {self.hash}"


class Tokens:
    """All tokens of one application."""

    def __init__(self, tokens: Iterable[Token] = ()) -> None:
        self._tokens = tuple(tokens)
        names = [token.name for token in self._tokens]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UsageError(f"two tokens are called {twice[0]!r}: give each its own name")

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def of(self, text: str) -> Token | None:
        """Return whose text this is. Takes the same time whichever it is, and if it is none."""
        given, found = hashed(text), None
        for token in self._tokens:
            if hmac.compare_digest(token.hash, given):
                found = token
        if not self._tokens:
            hmac.compare_digest(_NONE, given)
        return found


def hashed(text: str) -> str:
    """Return what is kept of a token."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"


def read_tokens(path: Path) -> list[Token]:
    """Return the tokens of a file: a line each of name, scopes with commas between, and hash.

    Raises:
        UsageError: A line is no such thing, or the file holds none; it is never shown.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({type(error).__name__})") from None
    found = []
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            name, scopes, hash_ = words
            given = frozenset(Scope(scope) for scope in scopes.split(","))
        except ValueError:
            raise UsageError(
                f"{path}, line {number}: write NAME SCOPE,SCOPE sha256:HASH, with scopes of "
                f"{', '.join(GRANTABLE)}"
            ) from None
        found.append(Token(name=name, scopes=given, hash=hash_))
    if not found:
        raise UsageError(f"{path}: holds no token; `timeball serve --new-token NAME` makes one")
    return found
