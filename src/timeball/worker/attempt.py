"""One attempt of a worker: from its turn to its settlement."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from threading import BoundedSemaphore
from typing import Any, Final, NamedTuple

from timeball.action.brood import Brood
from timeball.action.context import NOTHING_LENT, Lent, StopSign
from timeball.action.kind import Kind, RunsIn
from timeball.action.notebook import Notebook
from timeball.action.parents import parent_jobs
from timeball.action.python import carry_out, carry_out_async, failure
from timeball.core.dependencies import Awaited, Parent
from timeball.core.outcomes import (
    UNCOMMITTED,
    Outcome,
    Raised,
    Returned,
    Run,
    Snoozed,
    Stopped,
    Unbegun,
    decide,
    finished,
)
from timeball.core.records import Settlement, Turn
from timeball.core.states import Ending
from timeball.engine.runner import Lost, Runner
from timeball.errors import StoreUnavailable
from timeball.store.limiting import RATE_SPENT
from timeball.store.postgres.within import JobTransaction, Transactions
from timeball.worker.apart import run_apart
from timeball.worker.begun import BegunTable
from timeball.worker.exclusive import Guard
from timeball.worker.permits import Batch
from timeball.worker.telling import Herald
from timeball.worker.tenure import Tenure

_UNBEGUN = Run(None, 0.0)
_SUSPECTS: Final = BoundedSemaphore(8)
"""At most so many of a thousand that have begun in a worker that died run apart at once."""

_REST_S: Final = 1.0
"""How long a job waits that could not begin because its worker is cut off; that costs nothing."""

_ROUNDED_NS: Final = 1_000  # more than a float of seconds loses in a century

_NO_DATABASE: Final = "it is transactional, and this worker's store is no PostgreSQL"


class Bench(NamedTuple):
    """What all attempts of a worker share."""

    draw: Callable[[], float]
    begun: BegunTable | None
    herald: Herald | None = None
    apart: Runner | None = None
    """Where attempts run that are to run in a process of their own; None: there is no such place,
    and they run in threads."""

    runner: RunsIn = "thread"
    """Where those run whose kind does not say."""

    transactions: Transactions | None = None
    """For transactional jobs."""

    notebook: Notebook | None = None
    """Where it is collected what attempts say."""

    guard: Guard | None = None
    """For exclusive jobs."""

    alone: Runner | None = None
    """Where those run."""

    parents: Callable[[int], list[Parent]] | None = None
    """Reads what a job comes after, by its number."""


class TurnAttempt:
    """Carries out one turn. Neither form raises; each returns the turn's settlement.

    Args:
        turn: What was granted.
        kind: What to run.
        tenure: Under which registration.
        arrived_s: When the grant arrived, by the monotonic clock: `turn.granted_at` and that
            one are taken to be the same instant, so that an attempt is told to begin no
            later than it did, and never before it was granted.
        bench: What all attempts share.
        permits: Of each it uses one when it starts.
    """

    __slots__ = (
        "_apart", "_arrived_s", "_began_s", "_bench", "_brood", "_permits", "accepted",
        "is_async", "kind", "lock_ns", "not_before_ns", "stop", "tenure", "turn", "unwanted",
    )  # fmt: skip

    def __init__(
        self, turn: Turn, kind: Kind, tenure: Tenure, *, arrived_s: float, bench: Bench,
        permits: Sequence[Batch] = (),
    ) -> None:  # fmt: skip
        self.turn = turn
        self.kind = kind
        self.tenure = tenure
        suspect = turn.crashes > 0 and bench.apart is not None and not kind.transactional
        self.is_async = kind.is_async and not suspect
        self.lock_ns = 0
        self.stop = StopSign()
        self.accepted = False
        """Whether the store has accepted its success, in the transaction of its own writes."""

        self.unwanted = False
        """Whether a cancel was requested: who has been interrupted then is not to run again."""
        self._apart = bench.apart if suspect or kind.runs_apart(bench.runner) else None
        self._arrived_s = arrived_s
        self._began_s: float | None = None
        self._bench = bench
        self._brood: Brood | None = None
        self._permits = permits
        begins_s = max((batch.begins_s for batch in permits), default=0.0)
        self.not_before_ns = math.ceil(begins_s * 1e9) + _ROUNDED_NS if permits else 0
        """When its permits hold, by the monotonic clock."""

    @property
    def variables(self) -> None:
        """No context variables to start with: what another job has set, it must not see."""

    def run(self) -> Settlement:
        """Carry it out in this thread."""
        if self.turn.awaited is not None:
            return self._finish(self.turn.awaited)
        if self.kind.transactional:
            return self._run_within()
        if self.kind.exclusive:
            return self._run_alone()
        if self._apart is None:
            if not self._begin():
                return self.unbegun(RATE_SPENT)
            said = carry_out(self.kind, self.turn, self.stop, self._lent())
            return self._end(said if self._brood is None else self._brood.joined(said))
        # What has begun when a worker dies may be what kills it: next time it can kill itself only.
        with _SUSPECTS if self.turn.crashes else nullcontext():
            return self._run_apart(self._apart)

    async def run_async(self) -> Settlement:
        """Carry it out on this event loop."""
        if self.stop.raised:  # before its task had taken a step, so nothing has cancelled that
            return self.unbegun()
        if self.turn.awaited is not None:
            return self._finish(self.turn.awaited)
        if self.kind.transactional:
            return await self._run_within_async()
        if not self._begin():
            return self.unbegun(RATE_SPENT)
        said = await carry_out_async(self.kind, self.turn, self.stop, self._lent())
        return self._end(said if self._brood is None else self._brood.joined(said))

    def _lent(self, connection: Any = None) -> Lent:
        read = self._bench.parents
        if self.kind.parameters.context is None:
            return NOTHING_LENT
        parents = None if read is None else lambda: parent_jobs(read(self.turn.job_id))
        if connection is not None or self.turn.at_most_once:
            return Lent(connection, parents, self._bench.notebook)
        self._brood = Brood()
        return Lent(connection, parents, self._bench.notebook, self._brood.add)

    def _finish(self, awaited: Awaited) -> Settlement:
        """End a job that has waited for those it spawned: nothing is called again."""
        if not self._begin():
            return self.unbegun(RATE_SPENT)
        return self._end(finished(awaited))

    def _run_apart(self, runner: Runner) -> Settlement:
        """Carry it out in a process that has no store: what it may ask for goes along."""
        read = self._bench.parents
        if self.kind.parameters.context is None:
            read = None
        try:
            parents = [] if read is None else read(self.turn.job_id)
        except StoreUnavailable:
            return self._put_off()
        if not self._begin():
            return self.unbegun(RATE_SPENT)
        return self._end(run_apart(runner, self.kind, self.turn, self.stop, parents))

    def _run_alone(self) -> Settlement:
        """Carry it out where it can be killed, unless its worker has been cut off too long."""
        guard, alone = self._bench.guard, self._bench.alone
        assert guard is not None
        assert alone is not None
        if not guard.admit(self.stop, self.tenure.worker):
            return self._put_off()
        try:
            return self._run_apart(alone)
        finally:
            guard.leave(self.stop)

    def _run_within(self) -> Settlement:
        """Carry it out in a transaction that is committed with its success, or not at all."""
        transactions = self._bench.transactions
        if transactions is None:
            return self._without_database()
        try:
            with transactions.begin() as own:
                if not self._begin():
                    return self.unbegun(RATE_SPENT)
                outcome = carry_out(self.kind, self.turn, self.stop, self._lent(own.connection))
                if isinstance(outcome, Returned):
                    own.settle(self.tenure.worker, self._settlement(outcome))
        except StoreUnavailable:
            return self._put_off()
        return self._end_within(outcome, own)

    async def _run_within_async(self) -> Settlement:
        transactions = self._bench.transactions
        if transactions is None:
            return self._without_database()
        stack = AsyncExitStack()
        try:
            own = await stack.enter_async_context(transactions.begin_async())
        except StoreUnavailable:
            return self._put_off()
        except asyncio.CancelledError:
            return self.unbegun()
        if not self._begin():
            await _to_its_end(stack.aclose())
            return self.unbegun(RATE_SPENT)
        lent = self._lent(own.connection)
        outcome = await carry_out_async(self.kind, self.turn, self.stop, lent)

        async def finish() -> None:
            async with stack:
                if isinstance(outcome, Returned):
                    await own.settle_async(self.tenure.worker, self._settlement(outcome))

        await _to_its_end(finish())
        return self._end_within(outcome, own)

    def _end_within(self, outcome: Outcome, own: JobTransaction) -> Settlement:
        if own.fault is not None and isinstance(outcome, Returned):
            kept = failure(own.fault, self.kind.retry)
            outcome = replace(kept, again=kept.again or own.passing, reason=UNCOMMITTED)
        self.accepted = isinstance(outcome, Returned)
        return self._end(outcome)

    def _put_off(self) -> Settlement:
        self._give_back()
        return decide(self.turn, Snoozed(_REST_S), _UNBEGUN, self.kind.retry, 0.0)

    def _without_database(self) -> Settlement:
        if not self._begin():
            return self.unbegun(RATE_SPENT)
        return self._end(Raised(error_type="UsageError", error=_NO_DATABASE, again=False))

    def unbegun(self, reason: str = "stopped") -> Settlement:
        """Return the settlement that gives the turn back before it has begun, and its permits."""
        self._give_back()
        return decide(self.turn, Unbegun(reason), _UNBEGUN, self.kind.retry, 0.0)

    def _give_back(self) -> None:
        for batch in self._permits:
            batch.give_back(1)
        self._permits = ()

    def cancel(self) -> None:
        """Ask it to stop, for good: its cancel was requested."""
        self.unwanted = True
        self.stop.raise_()

    def interrupted(self) -> Settlement:
        """Return the settlement for an attempt that has not ended and is not waited for."""
        return self._settlement(Unbegun("stopped"))

    def _begin(self) -> bool:
        """Use its permits, right before the call, and begin; False: one has run out."""
        now_s = time.monotonic()
        if not all(batch.use(now_s) for batch in self._permits):
            self._permits = ()
            return False
        if self._bench.begun is not None:
            self._bench.begun.mark(self.turn.job_id, self.turn.turn, self._began_at(now_s))
        self._began_s = now_s
        herald = self._bench.herald
        if herald is not None:
            herald(self.tenure.worker, self.turn, self._began_at(now_s), self.lock_ns)
        return True

    def _began_at(self, began_s: float) -> float:
        began_at = self.turn.granted_at + (began_s - self._arrived_s)
        for batch in self._permits:  # no start is told to come before the grant of its permit
            began_at = max(began_at, batch.began_at(began_s))
        return began_at

    def _end(self, outcome: Outcome | Lost) -> Settlement:
        if self.unwanted and isinstance(outcome, Unbegun):
            outcome = Stopped("requested")
        settlement = self._settlement(outcome)
        # At most once means that no second attempt is granted even if this process dies now,
        # before it has settled: such a turn stays marked until then.
        if self._bench.begun is not None and not self.turn.at_most_once:
            self._bench.begun.clear(self.turn.job_id, self.turn.turn)
        return settlement

    def _settlement(self, outcome: Outcome | Lost) -> Settlement:
        began_s = self._began_s
        if began_s is None:
            return self.unbegun()
        run = Run(self._began_at(began_s), time.monotonic() - began_s)
        if isinstance(outcome, Lost):
            return Settlement(
                *self.turn[:4],
                Ending.LOST,
                reason="process died",
                began_at=run.began_at,
                ran_s=run.ran_s,
                error_type="Lost",
                error=outcome.text,
            )
        return decide(self.turn, outcome, run, self.kind.retry, self._bench.draw())


async def _to_its_end(work: Coroutine[None, None, None]) -> None:
    """Await something that is not to be interrupted, however often this task is cancelled."""
    task = asyncio.ensure_future(work)
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            continue  # a commit that is broken off would leave nobody knowing what it did
    task.result()
