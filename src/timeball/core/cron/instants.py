"""A strictly increasing row of instants, asked forwards and backwards."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, takewhile

from timeball.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Instants:
    """What can be asked of any row of instants; whoever has one says `first` and `last`."""

    __slots__ = ()

    def first(self, at: int) -> int | None:
        """Return the first instant not before `at`, both in epoch seconds."""
        raise NotImplementedError

    def last(self, at: int) -> int | None:
        """Return the last instant not after `at`, both in epoch seconds."""
        raise NotImplementedError

    def next(self, after: datetime) -> datetime | None:
        """Return the first instant after `after` (aware), in UTC; None when there is no more."""
        found = self.first(epoch(after) + 1)
        return None if found is None else datetime.fromtimestamp(found, UTC)

    def previous(self, before_or_at: datetime) -> datetime | None:
        """Return the last instant not after `before_or_at` (aware), in UTC, or None."""
        found = self.last(epoch(before_or_at))
        return None if found is None else datetime.fromtimestamp(found, UTC)

    def following(self, after: datetime) -> Iterator[datetime]:
        """Yield every instant after `after`, in order."""
        found = self.first(epoch(after) + 1)
        while found is not None:
            yield datetime.fromtimestamp(found, UTC)
            found = self.first(found + 1)

    def between(self, after: datetime, until: datetime, limit: int | None = None) -> list[datetime]:
        """Return the instants after `after` up to and including `until`, at most `limit`."""
        within = takewhile(lambda at: at <= until, self.following(after))
        return list(islice(within, limit))


def epoch(instant: datetime) -> int:
    """Return whole seconds since the epoch, rounded down."""
    if instant.tzinfo is None:
        raise UsageError(
            f"{instant!r} has no time zone, so it is no instant; write datetime.now(UTC), or "
            "add tzinfo="
        )
    since = instant - _EPOCH
    return since.days * 86_400 + since.seconds
