"""What a run under the stepper came to, told so that a reader can follow it."""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import NamedTuple


class Step(NamedTuple):
    """Who came to which line; without a line, what happened instead."""

    actor: int
    file: str
    line: int
    what: str

    def __str__(self) -> str:
        if not self.line:
            return self.what
        text = linecache.getline(self.file, self.line).strip()
        return f"{PurePath(self.file).name}:{self.line:<4} {text}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended."""

    check: str | None
    """The check that found a promise broken; None if all were kept."""

    text: str
    """What it found."""

    names: Sequence[str]
    """Of the threads, by their number."""

    steps: Sequence[Step]
    now_ns: int
    """How far virtual time had come."""

    schedule: str = ""
    """Replays this run; see `schedules.Replay`."""

    def story(self, *, edge: int = 3) -> str:
        """Return the schedule, one block for each stretch that a thread ran undisturbed.

        Args:
            edge: Of a longer stretch, only so many first and last lines.
        """
        lines = [f"{self.check or 'all promises kept'}: {self.text}".rstrip(": ")]
        for actor, stretch in groupby(self.steps, key=lambda step: step.actor):
            lines += _block(self.names[actor] if actor >= 0 else "(time)", list(stretch), edge)
        return "\n".join([*lines, f"replay: {self.schedule or 'nobody was interrupted'}"])


def _block(name: str, stretch: list[Step], edge: int) -> Iterator[str]:
    # Opcodes of one line are told as that line.
    texts = [text for text, _ in groupby(str(step) for step in stretch)]
    if len(texts) > 2 * edge + 1:
        texts[edge:-edge] = [f"… {len(texts) - 2 * edge} lines"]
    for text in texts:
        yield f"  {name:16} {text}"
        name = ""
