"""What running jobs say of themselves: how far they are, and lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final, NamedTuple

LINES_MAX: Final = 200
BYTES_MAX: Final = 65_536
"""Of the newest lines of a job so many are kept."""

LINE_MAX: Final = 4_000
REMARK_MAX: Final = 500
"""Characters of a line, and of the remark on how far a job is."""


class Progress(NamedTuple):
    """How far a job says that it is."""

    done: float
    total: float | None
    note: str | None
    turn: int
    """Which attempt says so."""

    at: datetime


class LogLine(NamedTuple):
    """One line that an attempt has logged."""

    turn: int
    at: datetime
    text: str


class Line(NamedTuple):
    """A line on its way to the store."""

    n: int
    """Goes up, so that a line that is sent again is known."""

    age_s: float
    """How long ago it was said."""

    text: str


class Note(NamedTuple):
    """What one attempt has said lately."""

    job_id: int
    turn: int
    progress: tuple[float, float | None, str | None] | None
    """`done`, `total` and `note` of `Progress`; None: nothing new."""

    lines: Sequence[Line]


def newest(lines: Iterable[tuple[tuple[int, int], LogLine]]) -> dict[tuple[int, int], LogLine]:
    """Return the lines that are kept of a job, by turn and number, in order."""
    kept: dict[tuple[int, int], LogLine] = {}
    size = 0
    for key, line in sorted(lines, reverse=True)[:LINES_MAX]:
        size += len(line.text.encode())
        if size > BYTES_MAX:
            break
        kept[key] = line
    return dict(reversed(kept.items()))
