"""Limits on what is under way at once, over all workers."""

from __future__ import annotations

from timeball.client.specs import checked_name
from timeball.core.limits import AT_ONCE_MAX, Limit, Scope
from timeball.errors import UsageError
from timeball.store.base import Store


class Limits:
    """The part of a client that limits what runs at once."""

    store: Store

    def limit(
        self, *, at_once: int | None, key: str | None = None, queue: str | None = None
    ) -> None:
        """Let at most so many jobs of a queue, or of a key, be under way at once.

        Over all workers, however many there are; from now on, for jobs that were submitted
        before too. Those under way go on where more are than that.

        Args:
            at_once: 1 or more; None takes the limit away: then a queue has none, and of a
                key one job is under way at once.
            key: Jobs with this key; ``"tenant-*"`` is for each key that begins so.
            queue: Jobs in this queue.

        Raises:
            UsageError: What is wrong, and what to write instead.
        """
        scope, name = Scope.KEY, key
        if key is None:
            scope, name = Scope.QUEUE, queue
        if name is None or (key is not None and queue is not None):
            raise UsageError("write either key= or queue=: a limit is about one of them")
        checked_name(str(scope), name)
        if at_once is not None and not (type(at_once) is int and 1 <= at_once <= AT_ONCE_MAX):
            raise UsageError(
                f"at_once is {at_once!r}: write 1 to {AT_ONCE_MAX:,}, or None for no limit"
            )
        self.store.limit(scope, name, at_once)

    def limits(self) -> list[Limit]:
        """Return every limit that was set, with how many jobs count against it."""
        return self.store.limits()
