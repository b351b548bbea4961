"""The part of a store that limits what is under way at once, and what starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from timeball.core.limits import Holding, Limit, Scope, StartRate
from timeball.core.permits import Start
from timeball.core.rate import Rate

RATE_SPENT: Final = "rate"  # why a turn is given back, and held, that got no permit to start


class Ask(NamedTuple):
    """A wish for permits to start."""

    names: Sequence[str]
    """Of the limits that must all grant, such as ``queue:mail``, ``kind:a``, ``key:tenant-7``."""

    want: int
    waited: bool = True
    """Whether it is for turns that have come out of the line of those that wait for a rate: these
    are waited for no longer."""


class Part(NamedTuple):
    """Permits that hold from one instant on."""

    permits: int
    numbers: tuple[int, ...]
    """Of the grant at each limit, in the order of `names`; 0 where there is no limit any more."""

    wait_s: float
    """From when on they may be used: so long after `Grants.at`, `AHEAD_S` at most."""


class Granted(NamedTuple):
    """What an `Ask` got."""

    parts: tuple[Part, ...]
    """In the order in which they may be used."""

    @property
    def permits(self) -> int:
        """How many permits these are."""
        return sum(part.permits for part in self.parts)


class Grants(NamedTuple):
    """The answer to some asks."""

    at: float
    """When they were given, in epoch seconds on the store's clock."""

    granted: list[Granted]
    wait_s: float | None
    """Until it is worth asking one of the limits for more, by what is known now; None where none
    is limited."""


class Spent(NamedTuple):
    """What became of the permits of one grant."""

    name: str
    number: int
    used: int
    late_us: int
    """The last start by it: microseconds after the question was sent and `Part.wait_s` was over,
    by the worker's clock."""


class Limiting(Protocol):
    """What a store must do about limits; see `timeball.store.base.Store` for what holds of all."""

    def limit(self, scope: Scope, name: str, at_once: int | None) -> None:
        """Set how many of a queue or a key may be under way at once; None: as if never set.

        A name of a key that ends in * stands for each key that begins so. A queue has no limit
        of itself, a key has 1. Those under way go on where it is lowered.
        """
        ...

    def limit_starts(self, scope: Scope, name: str, rate: Rate | None) -> None:
        """Set how many of a queue, a kind or a key may start in a time; None: any number.

        It holds for turns that are granted `timeball.core.permits.SETTLING_S` later or after that.
        """
        ...

    def limits(self) -> list[Limit]:
        """Return every limit that was set, by scope and name."""
        ...

    def rates(self) -> list[StartRate]:
        """Return every limit on starts that holds now, by scope and name."""
        ...

    def permits(self, asks: Sequence[Ask], spent: Sequence[Spent]) -> Grants:
        """Grant permits to start, as far as the limits allow, in the order of `asks`.

        A permit is good for `timeball.core.permits.TTL_S` from its instant on, and that is at most
        `AHEAD_S` after the moment in which the question was sent. Asking again after a lost answer
        is safe: permits that nobody knows of run out.

        Args:
            asks: All limits of one grant the same number, or none does.
            spent: What became of earlier grants; of each the first word counts.
        """
        ...

    def holdings(self, since: datetime | None = None) -> Iterator[Holding]:
        """Return who counted against which limit (`since` an instant): see `limit_violations`."""
        ...

    def starts(self, since: datetime | None = None) -> Iterator[Start]:
        """Return the starts on record that a rate's limit is about, by name of the limit.

        Args:
            since: Leave out the turns that were granted before then.
        """
        ...
