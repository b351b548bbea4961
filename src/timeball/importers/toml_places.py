"""Where things stand in a TOML text: the line of each table and each key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

_OPENING: Final = re.compile(r'"""|\'\'\'|"|\'|#|[\[{]|[\]}]')
_CLOSING: Final = {
    '"""': re.compile(r'(?:[^"\\]|\\.|"(?!""))*"""'),
    "'''": re.compile(r"(?:[^']|'(?!''))*'''"),
    '"': re.compile(r'(?:[^"\\]|\\.)*"'),
    "'": re.compile(r"[^']*'"),
}


def toml_lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line of each table and key of a text that `tomllib` has read."""
    found: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for line, statement in _statements(text):
        if statement.startswith("["):
            table = _path(statement)
            found.setdefault(table, line)
            continue
        key = _key_path(statement)
        for length in range(1, len(key) + 1):
            found.setdefault((*table, *key[:length]), line)
    return found


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Give the first line of each statement; the others belong to a value."""
    depth, quote = 0, ""
    for number, line in enumerate(text.split("\n"), start=1):
        if depth == 0 and not quote and line.strip() and not line.lstrip().startswith("#"):
            yield number, line.strip()
        depth, quote = _after(line, depth, quote)


def _after(line: str, depth: int, quote: str) -> tuple[int, str]:
    """Return how deep in brackets and in which quotes a line ends."""
    at = 0
    while True:
        if quote:
            end = _CLOSING[quote].match(line, at)
            if end is None:
                return depth, quote if len(quote) == len('"""') else ""
            at, quote = end.end(), ""
        opening = _OPENING.search(line, at)
        if opening is None or opening[0] == "#":
            return depth, ""
        at = opening.end()
        if opening[0] in "[{":
            depth += 1
        elif opening[0] in "]}":
            depth -= 1
        else:
            quote = opening[0]


def _path(header: str) -> tuple[str, ...]:
    try:
        return _keys(tomllib.loads(header))
    except tomllib.TOMLDecodeError:
        return ()


def _key_path(statement: str) -> tuple[str, ...]:
    for end in (each.start() for each in re.finditer("=", statement)):
        try:
            return _keys(tomllib.loads(f"{statement[:end]} = 0"))
        except tomllib.TOMLDecodeError:
            continue
    return ()


def _keys(document: Any) -> tuple[str, ...]:
    """Return the one path through nested tables of one key each."""
    path = []
    while isinstance(document, list | dict) and document:
        if isinstance(document, list):
            document = document[0]
            continue
        key, document = next(iter(document.items()))
        path.append(key)
    return tuple(path)
