"""How a worker tells the store of turns that have ended, where some of them spawn jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from timeball.action.python import failure
from timeball.action.registry import Registry
from timeball.core.outcomes import Run, decide
from timeball.core.records import Settlement, Turn, Verdict
from timeball.core.retry import Retry
from timeball.errors import SchemaMismatch, StoreUnavailable, TimeballError, WorkerExpired
from timeball.store.base import Store
from timeball.worker.telling import Told


class Settler:
    """Settles turns of one worker.

    Args:
        store: Where.
        registry: The kinds of the worker.
        draw: Gives a number in ``[0, 1)``, for jitter.
    """

    def __init__(self, store: Store, registry: Registry, draw: Callable[[], float]) -> None:
        self._store = store
        self._registry = registry
        self._draw = draw

    def __call__(self, worker: int, ended: Sequence[tuple[Turn, Settlement]]) -> list[Told]:
        """Settle turns, those that spawn one by one; return what was settled, with the verdicts.

        Where the store is away in the middle of it, all of it may be sent again.
        """
        batch = [said for _, said in ended]
        if not any(said.spawned for said in batch):
            return _told(ended, batch, self._store.settle(worker, batch))
        known: dict[int, Verdict] = {}
        for at, (turn, said) in enumerate(ended):
            if said.spawned:
                try:
                    known[at] = self._store.spawn(worker, said)
                except (SchemaMismatch, StoreUnavailable, WorkerExpired):
                    raise
                except TimeballError as error:
                    batch[at] = self._refused(turn, error, said)
        rest = [said for at, said in enumerate(batch) if at not in known]
        others = iter(self._store.settle(worker, rest))
        verdicts = [known[at] if at in known else next(others) for at in range(len(batch))]
        return _told(ended, batch, verdicts)

    def _refused(self, turn: Turn, error: TimeballError, said: Settlement) -> Settlement:
        """Return the settlement of an attempt whose jobs cannot be added: as if it had raised."""
        kind = self._registry.get(turn.kind)
        retry = Retry() if kind is None else kind.retry
        run = Run(said.began_at, said.ran_s)
        return decide(turn, failure(error, retry), run, retry, self._draw())


def _told(
    ended: Sequence[tuple[Turn, Settlement]], batch: list[Settlement], verdicts: list[Verdict]
) -> list[Told]:
    return list(zip([turn for turn, _ in ended], batch, verdicts, strict=True))
