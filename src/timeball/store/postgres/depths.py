"""How much there is to do, read cheaply enough for every few seconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from timeball.core.states import State
from timeball.store.postgres.connections import Connections

DEPTH_MAX: Final = 10_000
"""Counting ends here, in each lane."""


class Depth(NamedTuple):
    """The jobs of one queue that wait in one state."""

    queue: str
    state: State
    jobs: int
    oldest_s: float | None
    """How long the first has waited; known of pending jobs only."""


def depths(connections: Connections, queues: Iterable[str]) -> list[Depth]:
    """Return what waits in some queues.

    Raises:
        StoreUnavailable: Ask again later.
    """
    rows = connections.run("depths", queues=sorted(queues), most=DEPTH_MAX)
    return [Depth(queue, State(state), jobs, oldest_s) for queue, state, jobs, oldest_s in rows]


def cron_lag_s(connections: Connections) -> float:
    """Return for how long the most overdue schedule has been due, in seconds."""
    return float(connections.run("cron_lag")[0][0])
