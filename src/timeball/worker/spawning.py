"""How a worker tells the store of turns that have ended, where some of them spawn jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from timeball.core.records import Settlement, Turn, Verdict
from timeball.errors import SchemaMismatch, StoreUnavailable, TimeballError, WorkerExpired
from timeball.store.base import Store

Refused = Callable[[Turn, TimeballError, Settlement], Settlement]
"""Gives the settlement of an attempt whose jobs could not be added."""


def settle(
    store: Store, worker: int, ended: Sequence[tuple[Turn, Settlement]], *, refused: Refused
) -> tuple[list[Settlement], list[Verdict]]:
    """Settle turns, those that spawn one by one; return what was settled, and the verdicts.

    Where the store is away in the middle of it, all of it may be sent again.
    """
    batch = [said for _, said in ended]
    if not any(said.spawned for said in batch):
        return batch, store.settle(worker, batch)
    known: dict[int, Verdict] = {}
    for at, (turn, said) in enumerate(ended):
        if said.spawned:
            try:
                known[at] = store.spawn(worker, said)
            except (SchemaMismatch, StoreUnavailable, WorkerExpired):
                raise
            except TimeballError as error:
                batch[at] = refused(turn, error, said)
    others = iter(store.settle(worker, [said for at, said in enumerate(batch) if at not in known]))
    return batch, [known[at] if at in known else next(others) for at in range(len(batch))]
