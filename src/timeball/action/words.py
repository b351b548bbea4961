"""One of a few words, as a caller writes it."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeVar

from timeball.core.dependencies import OURS
from timeball.errors import UsageError

_Word = TypeVar("_Word", bound=StrEnum)


def word(kind: type[_Word], name: str, given: object) -> _Word:
    """Return the member of `kind` that was written.

    Raises:
        UsageError: It is none; the text names all of them.
    """
    words = [each for each in kind if each not in OURS]
    if given in words:
        return kind(str(given))
    told = ", ".join(f"'{each}'" for each in words)
    raise UsageError(f"{name} is {given!r}: write one of {told}")
