"""What a worker does about leases that the store does not know any more.

A standby that was promoted may lack the end of what its primary had granted. The turns of those
leases are not this worker's: what has not begun never will, and what runs is granted anew to
somebody, so that how it ends here is told to nobody. Its number may be another job's by then.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from timeball.core.records import Settlement, Turn
from timeball.engine.kernel import Kernel
from timeball.store.base import Store
from timeball.worker.attempt import TurnAttempt
from timeball.worker.begun import BegunTable
from timeball.worker.tenure import Tenure

_log = logging.getLogger(__name__)


def abandon_lost(
    store: Store, kernel: Kernel[TurnAttempt], tenures: Iterable[Tenure | None]
) -> bool:
    """Compare the leases that are held with those in the store; return whether some were lost.

    Raises:
        StoreUnavailable: Compare again later. Nothing begins meanwhile.
    """
    unbegun = kernel.withdraw()
    some = False
    try:
        for tenure in {*tenures, *(each.tenure for each in (*unbegun, *kernel.begun()))}:
            some |= tenure is not None and _lose(store, tenure)
    finally:
        if kept := [each for each in unbegun if each.turn[:2] not in each.tenure.lost]:
            kernel.offer(kept)
    return some


def _lose(store: Store, tenure: Tenure) -> bool:
    asked = tenure.leases()
    lost = asked - store.leases(tenure.worker, asked) if asked else set()
    if lost:
        _log.warning("a failover has lost %d leases of worker %d", len(lost), tenure.worker)
        tenure.lose(lost)
    return bool(lost)


def not_lost(
    unsettled: Iterable[tuple[Tenure, Turn, Settlement]], begun: BegunTable | None
) -> list[tuple[Tenure, Turn, Settlement]]:
    """Return the endings that are to be told; the others cost nothing any more."""
    kept = []
    for tenure, turn, settlement in unsettled:
        if turn[:2] not in tenure.lost:
            kept.append((tenure, turn, settlement))
        elif begun is not None:
            begun.clear(turn.job_id, turn.turn)
    return kept
