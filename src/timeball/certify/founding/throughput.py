"""G, second half: more workers are no fewer jobs a second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from timeball.certify.fleet import Fleet, processes
from timeball.certify.kinds import NOTE
from timeball.certify.queries import query
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec

LEVELS: Final = (1, 2, 4, 8)
SHARE: Final = 0.8
"""So much of the best rate must be left with the most workers."""

_JOBS: Final = 6_000
"""With fewer, how soon the processes wake up is most of what is measured."""

_ROUNDS: Final = 8
_SLOTS: Final = 4
_LEASE_S: Final = 60.0


class Course:
    """Eight worker processes, of which some stand still while the others run."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.fleet: Fleet = stage.workers(max(LEVELS), slots=_SLOTS, lease_s=_LEASE_S)
        self.rounds: list[dict[int, float]] = []
        """Jobs a second, by the number of workers, of every round."""

        self.held_up = 0
        """How many claims were waiting when the gate was opened, over all runs."""

        known = len(stage.store.pulses())
        stage.until(lambda: len(stage.store.pulses()) >= known + max(LEVELS), "all have registered")

    @property
    def share(self) -> float:
        """Return what the most workers do, as a share of the best, in the best round."""
        return max(map(_share, self.rounds))

    def run(self) -> None:
        """Run every level once a round, until the share is there or patience is at its end.

        A machine that is busy with something else makes one run slow and not the next one, so
        levels are compared within a round, and one round that shows the share is enough. That is
        lenient, and so all rounds are told.
        """
        for number in range(_ROUNDS):
            levels = LEVELS if number % 2 else LEVELS[::-1]
            self.rounds.append({level: self._rate(level) for level in levels})
            if self.share >= SHARE:
                return

    def told(self) -> dict[str, Any]:
        """Return the figures for people, of each round."""
        return {
            "jobs_per_s": [
                {str(level): round(rate) for level, rate in sorted(rates.items())}
                for rates in self.rounds
            ],
            "share of 8": [round(_share(rates), 3) for rates in self.rounds],
        }

    def _rate(self, level: int) -> float:
        """Return the jobs a second of so many workers, from one gate to the last end."""
        stage = self.stage
        self._stand_still(max(LEVELS) - level)
        gate = stage.session().begin()
        gate.run(query("lock_lane"), {"queue": "default"})
        stage.submit([JobSpec(uuid=uuid4(), kind=NOTE) for _ in range(_JOBS)])
        stage.until(lambda: self._waiting(gate.pid) == level, f"{level} workers wait")
        self.held_up += level
        since = stage.ask("instant")[0][0]
        gate.commit()
        stage.until(lambda: self._ended(since)[0] >= _JOBS, f"{_JOBS} jobs have ended")
        _, took_s = self._ended(since)
        stage.heal()
        return _JOBS / float(took_s)

    def _stand_still(self, count: int) -> None:
        """Have some workers stand still, none of them in the middle of a statement."""
        pids = sorted(self.fleet.children())[:count]
        self.fleet.freeze(*pids)
        own = [self.stage.watcher.info.backend_pid]

        def quiet() -> bool:
            states = {pid: state for pid, _, state in processes()}
            active: int = self.stage.ask("active_sessions", own=own)[0][0]
            return all(states[pid] == "T" for pid in pids) and active == 0

        self.stage.until(quiet, "those that stand still are at nothing")

    def _waiting(self, gate: int) -> int:
        count: int = self.stage.ask("held_up", pid=gate)[0][0]
        return count

    def _ended(self, since: Any) -> tuple[int, float]:
        count, took_s = self.stage.ask("ended_since", since=since)[0]
        return count, took_s


def _share(rates: Mapping[int, float]) -> float:
    return rates[max(LEVELS)] / max(rates.values())
