"""One registration of a worker: its number, and which of its leases have open turns."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from timeball.core.records import Settlement, Turn


class Tenure:
    """What a worker holds from its registration until it is given up or retires."""

    def __init__(self, worker: int) -> None:
        self.worker = worker
        self._open: defaultdict[int, dict[int, int]] = defaultdict(dict)
        """Per lane and lease the turns not yet settled; leases in the order they came."""
        self.newest: dict[int, int] = {}
        """Per lane the newest lease that we have heard of."""
        self.lost: set[tuple[int, int]] = set()
        """Leases, as (lane, seq), that a failover has lost."""

    def add(self, turns: Iterable[Turn]) -> None:
        """Take over what a claim has granted."""
        for lane, seq, *_ in turns:
            leases = self._open[lane]
            leases[seq] = leases.get(seq, 0) + 1
            self.newest[lane] = seq

    def close(self, settlement: Settlement) -> None:
        """Let a turn go whose settlement the store has answered."""
        if (settlement.lane, settlement.seq) in self.lost:
            return
        leases = self._open[settlement.lane]
        leases[settlement.seq] -= 1
        if not leases[settlement.seq]:
            del leases[settlement.seq]

    def leases(self) -> set[tuple[int, int]]:
        """Return those that have open turns, as (lane, seq)."""
        return {(lane, seq) for lane, leases in self._open.items() for seq in leases}

    def lose(self, leases: set[tuple[int, int]]) -> None:
        """Let leases go that the store does not know any more."""
        self.lost |= leases
        for lane, seq in leases:
            del self._open[lane][seq]

    def floors(self) -> dict[int, int]:
        """Return per lane the oldest lease that has open turns, else the one to come."""
        return {
            lane: next(iter(self._open[lane]), newest + 1) for lane, newest in self.newest.items()
        }
