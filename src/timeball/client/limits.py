"""Limits over all workers: on what is under way at once, and on what starts in a time."""

from __future__ import annotations

from types import EllipsisType

from timeball.action.job_specs import checked_name
from timeball.core.limits import AT_ONCE_MAX, Limit, Scope
from timeball.core.permits import Law, Proof, proofs
from timeball.core.rate import Rate
from timeball.errors import UsageError
from timeball.store.base import Store


class Limits:
    """The part of a client that limits what runs at once, and what starts."""

    store: Store

    def limit(
        self,
        *,
        at_once: int | EllipsisType | None = ...,
        rate: Rate | str | EllipsisType | None = ...,
        key: str | None = None,
        kind: str | None = None,
        queue: str | None = None,
    ) -> None:
        """Limit the jobs of a queue, of a kind or of a key, over all workers.

        From now on, for jobs that were submitted before too. Those under way go on. What is left
        out stays as it is.

        Args:
            at_once: At most so many under way at once, 1 or more; None takes the limit away:
                then a queue has none, and of a key one job is under way at once. Not for kinds.
            rate: At most so many starts in a time, such as ``"5/s"`` or ``Rate(5)``; each key of
                a pattern has its own. Every attempt is a start. None takes the limit away.
            key: Jobs with this key; ``"tenant-*"`` is for each key that begins so.
            kind: Jobs of the kind of this name.
            queue: Jobs in this queue.

        Raises:
            UsageError: What is wrong, and what to write instead.
        """
        scope, name = _about(key=key, kind=kind, queue=queue)
        if isinstance(at_once, EllipsisType) and isinstance(rate, EllipsisType):
            raise UsageError("write at_once=, rate= or both; None takes a limit away")
        if isinstance(rate, str):
            rate = Rate.parse(rate)
        if isinstance(rate, Rate):
            Law.of(rate)
        elif rate not in {None, ...}:
            raise UsageError(f"rate is {rate!r}: write '5/s', Rate(5), or None for no limit")
        if not isinstance(at_once, EllipsisType):
            _check_at_once(scope, at_once)
            self.store.limit(scope, name, at_once)
        if not isinstance(rate, EllipsisType):
            self.store.limit_starts(scope, name, rate)

    def limits(self) -> list[Limit]:
        """Return every limit that was set, with how many jobs count against it."""
        return self.store.limits()

    def prove_rates(
        self, *, key: str | None = None, kind: str | None = None, queue: str | None = None
    ) -> list[Proof]:
        """Return for each limit on starts what the record says: the most starts in any window.

        Reads all that has ended since the limit holds, a second after it was set. An attempt
        that has not ended, or whose worker died, is not on record with its start.

        Args:
            key: Only this key.
            kind: Only the kind of this name.
            queue: Only this queue.

        Raises:
            UsageError: More than one of them is given.
        """
        found = proofs(self.store.starts())
        if key is None and kind is None and queue is None:
            return list(found)
        wanted = ":".join(_about(key=key, kind=kind, queue=queue))
        return [proof for proof in found if proof.name == wanted]


def _about(**names: str | None) -> tuple[Scope, str]:
    """Return what a limit is about."""
    given = [(Scope(scope), name) for scope, name in names.items() if name is not None]
    if len(given) != 1:
        raise UsageError("write one of key=, kind= and queue=: a limit is about one of them")
    ((scope, name),) = given
    return scope, checked_name(str(scope), name)


def _check_at_once(scope: Scope, at_once: int | None) -> None:
    if scope is Scope.KIND:
        raise UsageError("a kind has no at_once: give its jobs a key or a queue, and limit that")
    if at_once is not None and not (type(at_once) is int and 1 <= at_once <= AT_ONCE_MAX):
        raise UsageError(
            f"at_once is {at_once!r}: write 1 to {AT_ONCE_MAX:,}, or None for no limit"
        )
