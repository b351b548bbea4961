"""Long lists by name, a part at a time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import urlencode

from starlette.requests import Request

PART: Final = 100
"""Rows of a page."""

_Row = TypeVar("_Row")


class Part(NamedTuple):
    """One page of a list."""

    rows: list[Any]
    first: bool
    more: str | None
    """The query of the page that follows; None: there is none."""


def part_of(request: Request, rows: Iterable[_Row], name: Callable[[_Row], str]) -> Part:
    """Return the rows after the one that a request names, in the order of their names.

    Args:
        request: Its `after` is the last name of the page before.
        rows: All of them.
        name: Tells a row's.
    """
    after = request.query_params.get("after", "")
    every = sorted(rows, key=name)
    begin = bisect_right(every, after, key=name) if after else 0
    found = every[begin : begin + PART]
    more = urlencode({"after": name(found[-1])}) if begin + PART < len(every) else None
    return Part(found, begin == 0, more)
