"""Tokens: who may ask for what. Only their hashes are kept, so that a file of them lets nobody in.

A token is 256 random bits, so one round of SHA-256 is enough: there is nothing to guess.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Self

from timeball.chance import now
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

    created_at: datetime | None = None
    """None: nobody has said."""

    expires_at: datetime | None = None
    """From when on it lets nobody in; None: never."""

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
        for at in (self.created_at, self.expires_at):
            if at is not None and at.tzinfo is None:
                raise UsageError(f"token {self.name!r}: {at} lacks an offset: write …Z, or +01:00")

    @classmethod
    def new(
        cls, name: str, scopes: Iterable[Scope], *, expires_s: float | None = None
    ) -> tuple[Self, str]:
        """Return a token and its text, which is kept nowhere.

        Args:
            name: Whom it speaks for.
            scopes: What it allows.
            expires_s: It lets somebody in for so many seconds from now; None: for ever.

        Raises:
            UsageError: The name or the scopes are none, or it would expire after all calendars.
        """
        text = PREFIX + secrets.token_urlsafe(32)
        made_at = now().astimezone(UTC).replace(microsecond=0)
        try:
            over_at = None if expires_s is None else made_at + timedelta(seconds=expires_s)
        except OverflowError:
            raise UsageError(
                f"token {name!r}: it would end beyond all calendars: give it a sooner end"
            ) from None
        given = frozenset(scopes)
        return cls(
            name=name, scopes=given, hash=hashed(text), created_at=made_at, expires_at=over_at
        ), text

    @property
    def is_over(self) -> bool:
        """Whether it has expired."""
        return self.expires_at is not None and self.expires_at <= now()

    @property
    def line(self) -> str:
        """How a token file names it."""
        dates = (("created", self.created_at), ("expires", self.expires_at))
        known = [f"{word}={at.isoformat()}" for word, at in dates if at is not None]
        return " ".join([self.name, ",".join(sorted(self.scopes)), self.hash, *known])


class Tokens:
    """All tokens of one application."""

    def __init__(self, tokens: Iterable[Token] = ()) -> None:
        self._tokens = tuple(tokens)
        self._used_at: dict[str, datetime] = {}
        names = [token.name for token in self._tokens]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise UsageError(f"two tokens are called {twice[0]!r}: give each its own name")

    def __bool__(self) -> bool:
        return bool(self._tokens)

    def __iter__(self) -> Iterator[Token]:
        return iter(self._tokens)

    def of(self, text: str) -> Token | None:
        """Return whose text this is; None where there is none of it, or it has expired.

        Takes the same time whichever it is, and if it is none.
        """
        given, found = hashed(text), None
        for token in self._tokens:
            if hmac.compare_digest(token.hash, given):
                found = token
        if not self._tokens:
            hmac.compare_digest(_NONE, given)
        return None if found is None or found.is_over else found

    def use(self, token: Token) -> None:
        """Remember that a token was used just now."""
        self._used_at[token.name] = now()

    def used_at(self, token: Token) -> datetime | None:
        """Return when a token was last used; None: not since this process has begun."""
        return self._used_at.get(token.name)


def hashed(text: str) -> str:
    """Return what is kept of a token."""
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"


def read_tokens(path: Path) -> list[Token]:
    """Return the tokens of a file: a line each of name, scopes with commas between, and hash.

    After them may follow `created=` and `expires=`, each with an instant.

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
            facts = _facts_of(words)
        except ValueError:
            raise UsageError(
                f"{path}, line {number}: write NAME SCOPE,SCOPE sha256:HASH, with scopes of "
                f"{', '.join(GRANTABLE)}, and perhaps created=INSTANT expires=INSTANT"
            ) from None
        found.append(Token(**facts))
    if not found:
        raise UsageError(f"{path}: holds no token; `timeball serve --new-token NAME` makes one")
    return found


def _facts_of(words: list[str]) -> dict[str, Any]:
    """Return the fields of the token of a line; a ValueError where it is none."""
    name, scopes, hash_, *more = words
    dates = {word: text for word, _, text in (each.partition("=") for each in more)}
    if len(dates) != len(more) or not dates.keys() <= {"created", "expires"}:
        raise ValueError(more)
    given = frozenset(Scope(scope) for scope in scopes.split(","))
    known = {f"{word}_at": datetime.fromisoformat(text) for word, text in dates.items()}
    return {"name": name, "scopes": given, "hash": hash_, **known}
