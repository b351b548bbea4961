"""`@every 90m`: elapsed time, counted from 1970 on every machine alike and by no wall clock."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from timeball.core.cron.parse import TEXT_LENGTH_MAX, shown
from timeball.core.cron.walltime import BEGINNING_S, END_S, WEEK_S
from timeball.errors import InvalidSchedule

EVERY: Final = "@every"
INTERVAL_S_MAX: Final = 10 * 366 * 86_400
_UNITS: Final = {"w": WEEK_S, "d": 86_400, "h": 3600, "m": 60, "s": 1}
_DURATION: Final = re.compile("".join(rf"(?:(\d{{1,9}}){unit})?" for unit in _UNITS), re.ASCII)


@dataclass(frozen=True, slots=True)
class Every:
    """Every `interval_s` seconds, `phase_s` after the multiples of it since the epoch."""

    interval_s: int
    phase_s: int = 0

    def canonical(self) -> str:
        """Return the rule as text, the largest units first."""
        phase = f" {_text(self.phase_s)}" if self.phase_s else ""
        return f"{EVERY} {_text(self.interval_s)}{phase}"

    def prose(self) -> str:
        """Return the rule in words."""
        phase = f", {_text(self.phase_s)} after its multiples since 1970" if self.phase_s else ""
        return f"every {_text(self.interval_s)} of elapsed time{phase}"

    def first(self, at: int) -> int | None:
        """Return the first such instant not before `at`, in epoch seconds; None after 2999."""
        at = max(at, BEGINNING_S)
        found = at + (self.phase_s - at) % self.interval_s
        return found if found < END_S else None

    def last(self, at: int) -> int | None:
        """Return the last such instant not after `at`, in epoch seconds; None before 1900."""
        at = min(at, END_S - 1)
        found = at - (at - self.phase_s) % self.interval_s
        return found if found >= BEGINNING_S else None


def parse_every(text: str) -> Every:
    """Return what `@every INTERVAL [PHASE]` means, as in `@every 1h30m 5m`.

    Raises:
        InvalidSchedule: The text is no such rule.
    """
    words = text[:TEXT_LENGTH_MAX].lower().split()
    seconds = [_seconds(word) for word in words[1:]]
    match seconds:
        case [interval] | [interval, _] if 0 < interval <= INTERVAL_S_MAX:
            phase = seconds[1] if seconds[1:] else 0
            if phase < interval:
                return Every(interval, phase)
    raise InvalidSchedule(
        f"{shown(text)} is no interval; write '@every 90m', or '@every 1h30m 5m' for five minutes "
        "past each (w, d, h, m, s; from 1s to ten years; the second one shorter than the first)"
    )


def _seconds(word: str) -> int:
    """Return the length of a duration; -1 for what is none."""
    found = _DURATION.fullmatch(word)
    if found is None:
        return -1
    return sum(
        int(count or 0) * unit for count, unit in zip(found.groups(), _UNITS.values(), strict=True)
    )


def _text(seconds: int) -> str:
    parts = []
    for name, unit in _UNITS.items():
        count, seconds = divmod(seconds, unit)
        parts.append(f"{count}{name}" if count else "")
    return "".join(parts)
