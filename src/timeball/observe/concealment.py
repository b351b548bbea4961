"""What must not be shown: the values of secrets that this process has revealed to jobs.

A value is known here from the moment in which somebody is given it. `concealed` then puts its
reference in its place, in whatever way it is likely to be written.
"""

from __future__ import annotations

import json
import logging
from base64 import b64encode
from collections.abc import Iterator
from threading import Lock
from typing import Any, Final
from urllib.parse import quote, quote_plus

from timeball.core.payload import storable
from timeball.core.redaction import redacted

VALUES_MAX: Final = 10_000
"""Values that are remembered; of more, those that were revealed longest ago are forgotten."""

_FAR: Final = 1 << 20
_LINE_MIN: Final = 8
_TOLD: Final = 3  # so many first characters of a secret tell nothing, and are in any text
_lock: Final = Lock()
_spellings: dict[str, str] = {}
_ordered: tuple[tuple[str, str], ...] = ()


def conceal(value: str, reference: str) -> None:
    """Have `value` replaced by its reference from now on, wherever `concealed` is asked.

    Args:
        value: The secret.
        reference: What is shown for it, such as ``env:TOKEN``.
    """
    global _ordered  # noqa: PLW0603 - readers take one tuple and need no lock
    with _lock:
        if value in _spellings:
            return
        # Each of its lines too: some outputs are looked at line by line.
        lines = [line for line in map(str.strip, value.splitlines()) if len(line) >= _LINE_MIN]
        for spelling in (way for part in (value, *lines) for way in _ways(part)):
            _spellings.setdefault(spelling, f"[secret {reference}]")
        while len(_spellings) > VALUES_MAX:
            del _spellings[next(iter(_spellings))]
        # The longest first: one secret may be a part of another.
        _ordered = tuple(sorted(_spellings.items(), key=lambda pair: -len(pair[0])))


def concealed_value(value: Any) -> Any:
    """Return what JSON can hold with `concealed` applied to every text in it."""
    match value:
        case str():
            return concealed(value)
        case dict():
            return {concealed(key): concealed_value(inner) for key, inner in value.items()}
        case list():
            return [concealed_value(inner) for inner in value]
        case _:
            return value


def without_secrets(text: str, limit: int) -> str:
    """Return text that can be stored and shown: secrets replaced, then cut to `limit` characters.

    Whatever is cut is cut so far out at first that no part of a secret is left at the end.
    """
    near = storable(concealed(storable(text, _FAR)), 4 * limit)
    return storable(redacted(near), limit)


def concealed_start(text: str) -> str:
    """Return the beginning of a longer text, `concealed`, and no beginning of a secret behind."""
    text = concealed(text)
    for spelling, shown in _ordered:
        for size in range(min(len(spelling) - 1, len(text)), _TOLD, -1):
            if text.endswith(spelling[:size]):
                return text[:-size] + shown
    return text


def concealed(text: str) -> str:
    """Return `text` with every secret value that this process has revealed replaced."""
    for spelling, shown in _ordered:
        if spelling in text:
            text = text.replace(spelling, shown)
    return text


class ConcealingFormatter(logging.Formatter):
    """Makes lines for people that show no secret."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as text."""
        return concealed(super().format(record))


def _ways(value: str) -> Iterator[str]:
    """Yield the ways in which a value is written in requests, JSON and Python."""
    yield value
    yield json.dumps(value)[1:-1]
    yield json.dumps(value, ensure_ascii=False)[1:-1]
    yield repr(value)[1:-1]
    yield quote(value, safe="")
    yield quote_plus(value)
    yield b64encode(value.encode(errors="surrogateescape")).decode().rstrip("=")
