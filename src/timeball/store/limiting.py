"""The part of a store that limits what is under way at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from timeball.core.limits import Holding, Limit, Scope


class Limiting(Protocol):
    """What a store must do about limits; see `timeball.store.base.Store` for what holds of all."""

    def limit(self, scope: Scope, name: str, at_once: int | None) -> None:
        """Set how many of a queue or a key may be under way at once; None: as if never set.

        A name of a key that ends in * stands for each key that begins so. A queue has no limit
        of itself, a key has 1. Those under way go on where it is lowered.
        """
        ...

    def limits(self) -> list[Limit]:
        """Return every limit that was set, by scope and name."""
        ...

    def holdings(self) -> Iterator[Holding]:
        """Return who counted against which limit, as `limit_violations` wants it."""
        ...
