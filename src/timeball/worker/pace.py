"""How much to claim: what can begin now, and what will begin before the next claim."""

from __future__ import annotations

from typing import Final, NamedTuple

from timeball.store.base import CLAIM_MAX

WINDOWS_PER_PREFETCH: Final = 5
_ROUNDS_AHEAD: Final = 1.5
_AHEAD_MAX_S: Final = 0.5
_FORGOTTEN: Final = 0.8  # of the longest round, with each that is shorter


class Load(NamedTuple):
    """The slots of a worker at one instant."""

    running: int
    waiting: int
    """Turns that were claimed and have not begun."""

    finished: int
    """Attempts that have ended since the worker started."""


class Pace:
    """Batch sizes that follow the work.

    The rate is that at which attempts *end*: attempts that begin together in idle slots
    say nothing about how fast room for more of them will come.

    Args:
        slots: Attempts that may run at once.
        prefetch_s: How far ahead to claim, in seconds; further where the store is slow, up to half
            a second. 0: not at all.
        now_s: A monotonic clock's reading.
    """

    def __init__(self, slots: int, prefetch_s: float, now_s: float) -> None:
        self._slots = slots
        self._prefetch_s = prefetch_s
        self._since_s = now_s
        self._finished = 0
        self._ahead = 0
        self._round_s = 0.0

    @property
    def low_water(self) -> int:
        """Where so few turns are ready, it is time to claim more."""
        return self._ahead // 2

    def took(self, round_s: float) -> None:
        """Note how long a round with the store took: the next one comes no sooner."""
        self._round_s = max(round_s, _FORGOTTEN * self._round_s)

    def lacking(self, load: Load, now_s: float) -> int:
        """Return how many turns to claim now: 0, where that is not worth a claim, to 1,000."""
        window_s = now_s - self._since_s
        if window_s * WINDOWS_PER_PREFETCH >= self._prefetch_s:
            rate = (load.finished - self._finished) / window_s if window_s > 0 else 0.0
            self._ahead = min(CLAIM_MAX, int(rate * self._ahead_s()))
            self._since_s, self._finished = now_s, load.finished
        lacking = self._slots + self._ahead - load.running - load.waiting
        if load.running == self._slots and load.waiting > self.low_water:
            return 0
        return max(0, min(CLAIM_MAX, lacking))

    def _ahead_s(self) -> float:
        slow_s = min(_AHEAD_MAX_S, _ROUNDS_AHEAD * self._round_s)
        return max(self._prefetch_s, slow_s) if self._prefetch_s > 0 else 0.0
