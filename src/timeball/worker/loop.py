"""The worker's loop: settle what has ended, promote what is due, claim, rest.

Attempts run in the kernel's threads and on its event loop; only this loop talks to the store,
one verb at a time. What it holds (`_unsettled`, `_request`, the tenure) is touched by the thread
that calls `work` alone. An attempt that ends, a notification or a request to stop only ring the
doorbell.

Whatever verb fails because the store is away is sent again as it was: settlements are kept until
they are answered, and a claim goes by its request.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import IntEnum
from itertools import groupby
from operator import itemgetter
from typing import Any, Final
from uuid import UUID

from timeball.action.registry import Registry
from timeball.chance import new_uuid
from timeball.core.outcomes import Run, Unbegun, decide
from timeball.core.records import Settlement, Turn, Verdict
from timeball.core.retry import Retry
from timeball.core.states import Ending
from timeball.engine.doorbell import Doorbell
from timeball.engine.kernel import Kernel
from timeball.errors import SchemaMismatch, StoreUnavailable, WorkerExpired
from timeball.store.base import CLAIM_MAX, NO_WORKER, Store
from timeball.store.limiting import RATE_SPENT
from timeball.worker.attempt import Bench, TurnAttempt
from timeball.worker.begun import BegunTable
from timeball.worker.config import WorkerConfig
from timeball.worker.lost_leases import abandon_lost, not_lost
from timeball.worker.pace import Load, Pace
from timeball.worker.permits import Batch, PermitDesk
from timeball.worker.spawning import Settler
from timeball.worker.telling import Herald, Teller, Told, committed
from timeball.worker.tenure import Tenure

_PROMOTE_MAX: Final = 1_000
_OUTAGE: Final = Retry(base_s=0.1, cap_s=5.0, min_s=0.02)
_TIMED: Final = frozenset({Ending.RETRIED, Ending.SNOOZED})  # the job falls due after its delay
_FLUSH_S: Final = 0.01
_INTERRUPT_S: Final = 1.0
_LEAVE_S: Final = 0.5
_FOR_EVER: Final = float("inf")

_log = logging.getLogger(__name__)


class _Stop(IntEnum):
    NO = 0
    DRAIN = 1
    NOW = 2


class Worker:
    """Runs the jobs of some queues until it is told to stop.

    `stop` and `wake` may be called from any thread and from signal handlers.

    Args:
        store: Where the jobs are. Signs of life are the supervisor's to give.
        registry: The kinds that this worker knows.
        config: How it behaves.
        draw: Gives a number in ``[0, 1)``, for jitter.
        begun: Where to mark the turns that have begun.
        on_registered: Told the worker's number, each time it has registered.
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        config: WorkerConfig,
        *,
        draw: Callable[[], float],
        begun: BegunTable | None = None,
        on_registered: Callable[[int], None] | None = None,
    ) -> None:
        self.stale = 0
        """Settlements that were refused."""
        self._store = store
        self._registry = registry
        self._config = config
        self._on_registered = on_registered
        self._bench = Bench(draw, begun, parents=store.parents)
        self._tellers: tuple[Teller, ...] = ()
        self._bell = Doorbell()
        self._kernel: Kernel[TurnAttempt] = Kernel(config.slots, self._bell.ring)
        self.ask_loop = self._kernel.ask_loop
        """See `Kernel.ask_loop`."""
        self._desk = PermitDesk(store, config.queues, self._bell.ring)
        self._pace = Pace(config.slots, config.prefetch_s, time.monotonic())
        self._stopping = _Stop.NO
        self._woken = True
        self._mismatch: SchemaMismatch | None = None
        self._tenure: Tenure | None = None
        self._unsettled: list[tuple[Tenure, Turn, Settlement]] = []
        self._settler = Settler(store, registry, draw)
        self._request: tuple[UUID, int] | None = None
        self._outages = 0
        self._doubtful = self._lossy = False  # the store may have, has forgotten what it granted
        self._poll_at = self._promote_at = self._heed_at = 0.0

    def tell(self, *tellers: Teller, herald: Herald | None = None) -> None:
        """Have these told of all that is granted and ends, and of what begins; before `work`."""
        self._tellers = tellers
        self._bench = self._bench._replace(herald=herald)

    def lend(self, **means: Any) -> None:
        """Give it the means of attempts by their names in `Bench`; before `work`.

        Places for attempts in processes apart are its to close.
        """
        self._bench = self._bench._replace(runner=self._config.runner, **means)

    def stop(self, *, now: bool = False) -> None:
        """Claim nothing more, give back what has not begun, and return from `work`.

        What runs has `drain_s` to end, or no time at all with `now`; then it is interrupted
        and given back too.
        """
        self._stopping = max(self._stopping, _Stop.NOW if now else _Stop.DRAIN)
        self._bell.ring()

    def wake(self) -> None:
        """End the loop's rest: there may be something to claim."""
        self._woken = self._desk.stirred = True
        self._bell.ring()

    def work(self) -> None:
        """Work until stopped; then end what has begun, settle it, and retire.

        Raises:
            StoreUnavailable: The store was away at the end, so that something is left to
                the lease.
            SchemaMismatch: The schema is that of another version by now, and what had begun
                has ended, as far as it could be told.
        """
        try:
            while not self._stopping:
                self._round()
                self._rest(_FOR_EVER)
            self._drain()
            if self._mismatch is not None:
                raise self._mismatch
        finally:
            self._end_apart()
            self._kernel.close()

    # One round. A verb that fails ends it; the next round sends the same again.

    def _round(self) -> None:
        assert not self._kernel.broken, "a bug has cost a slot: the log says which"
        at_s = time.monotonic()
        try:
            self._register()
            self._compare()
            self._settle()
            self._promote()
            self._heed()
            self._claim()
            self._desk.report()
            self._pace.took(time.monotonic() - at_s)
            self._outages = 0
        except StoreUnavailable as error:
            self._outages += 1
            self._doubtful = True
            _log.warning("the store is away, trying again: %s", error)
        except SchemaMismatch as error:
            _log.warning("stopping: %s", error)
            self._outages += 1  # what it has to tell may still fit, and is told until the end
            self._mismatch, self._request = error, None
            self.stop()
        except WorkerExpired as error:
            # What has not begun is somebody else's now; what runs may end, and will be too late.
            _log.warning("%s", error)
            self._kernel.withdraw()
            if self._bench.guard is not None:
                self._bench.guard.expired()
            self._tenure = self._request = None
            self._outages, self._doubtful = 0, True

    def _register(self) -> None:
        if self._tenure is not None or self._stopping:
            return
        name, queues, lease_s = self._config.name, self._config.queues, self._config.lease_s
        kinds = list(self._registry)
        asked_ns = time.monotonic_ns()
        worker = self._store.register(name, kinds=kinds, queues=queues, lease_s=lease_s)
        self._tenure = Tenure(worker)
        if self._bench.guard is not None:
            self._bench.guard.registered(worker, asked_ns)
        if self._on_registered is not None:
            self._on_registered(worker)

    def _compare(self) -> None:
        """Abandon what the store, which has been away, does not know any more."""
        if self._doubtful:
            self._gather()
            tenures = {self._tenure, *(tenure for tenure, _, _ in self._unsettled)}
            self._lossy |= abandon_lost(self._store, self._kernel, tenures)
            self._doubtful = False

    def _gather(self) -> None:
        """Take over what has ended and is to be told."""
        for attempt, said in self._kernel.take_ended():
            if attempt.accepted:
                self._answered(attempt.tenure, [(attempt.turn, said, Verdict.ACCEPTED)], 0)
            else:
                self._unsettled.append((attempt.tenure, attempt.turn, said))
        if self._lossy:
            self._unsettled = not_lost(self._unsettled, self._bench.begun)

    def _settle(self) -> None:
        self._gather()
        while self._unsettled:
            tenure = self._unsettled[0][0]
            group = list(next(groupby(self._unsettled[:CLAIM_MAX], itemgetter(0)))[1])
            asked_ns = time.monotonic_ns()
            told = self._settler(tenure.worker, [(turn, said) for _, turn, said in group])
            took_ns = time.monotonic_ns() - asked_ns
            del self._unsettled[: len(told)]
            self._answered(tenure, told, took_ns)

    def _answered(self, tenure: Tenure, told: list[Told], took_ns: int) -> None:
        """Let go of turns of which the store has said what became of them."""
        self._note(tenure, told)
        # Another one may have room now. A notification of that reaches only who listens.
        self._woken = self._woken or any(turn.limited for turn, _, _ in told)
        if self._tellers:
            told = [committed(each) for each in told]
        for teller in self._tellers:
            teller.settled(tenure.worker, told, took_ns)
            teller.locked(*self._kernel.lock_wait)

    def _note(self, tenure: Tenure, told: Sequence[Told]) -> None:
        now_s = time.monotonic()
        for _, settlement, verdict in told:
            tenure.close(settlement)
            if self._bench.begun is not None:
                self._bench.begun.clear(settlement.job_id, settlement.turn)
            if settlement.ending in _TIMED:
                self._promote_at = min(self._promote_at, now_s + settlement.delay_s)
            if verdict is Verdict.STALE:
                self.stale += 1
                self._doubtful = True
                _log.warning("too late: turn %d of job %d", settlement.turn, settlement.job_id)

    def _promote(self) -> None:
        if self._stopping or not self._desk.may_come(self._promote_at):
            return
        promoted = self._store.promote(_PROMOTE_MAX)
        self._desk.heed(promoted)
        rest_s = self._config.poll_s if promoted.next_due_s is None else promoted.next_due_s
        self._promote_at = time.monotonic() + min(self._config.poll_s, rest_s)
        self._woken = self._woken or promoted.moved > 0

    def _heed(self) -> None:
        """Ask attempts to stop whose cancel was requested."""
        now_s = time.monotonic()
        if now_s < self._heed_at:
            return
        self._heed_at = now_s + self._config.poll_s
        running = {attempt.turn[2:4]: attempt for attempt in self._kernel.begun()}
        wanted = {key for key, attempt in running.items() if not attempt.stop.raised}
        for key in self._store.cancels(wanted) if wanted else ():
            running[key].cancel()
            self._kernel.cancel(running[key])

    def _claim(self) -> None:
        self._request = self._request or self._next_request()
        if self._request is None or self._tenure is None:
            return
        tenure, (request, limit) = self._tenure, self._request
        asked_ns = time.monotonic_ns()
        turns = self._store.claim(
            tenure.worker,
            limit=limit,
            request=request,
            floors=tenure.floors(),
            newest=tenure.newest,
            aging_s=self._config.aging_s,
            permits=self._desk.stock(limit),
        )
        arrived_s = time.monotonic()
        covered = self._desk.cover([turn for turn in turns if turn.rates])
        for teller in self._tellers:
            teller.claimed(tenure.worker, turns, time.monotonic_ns() - asked_ns)
        self._request = None
        self._woken = self._woken or bool(turns)
        tenure.add(turns)
        attempts = [
            self._attempt(turn, tenure, arrived_s, covered.get(turn[2:4])) for turn in turns
        ]
        self._kernel.slots.low_water = self._pace.low_water
        self._kernel.offer(attempt for attempt in attempts if attempt is not None)

    def _next_request(self) -> tuple[UUID, int] | None:
        """Return what to ask for, where there is room and there may be something."""
        now_s = time.monotonic()
        if now_s >= self._poll_at:
            self._woken = True
            self._poll_at = now_s + self._config.poll_s
        self._woken = self._woken or self._desk.may_ask(now_s)
        if not (lacking := self._lacking()):
            return None
        # Before the question, not after the answer: a wake-up in between counts again.
        self._woken = False
        return new_uuid(), lacking

    def _lacking(self) -> int:
        """Return how many turns to claim now."""
        if self._stopping or not self._woken:
            return 0
        slots = self._kernel.slots
        load = Load(slots.running, slots.waiting, slots.finished)
        return self._pace.lacking(load, time.monotonic())

    def _attempt(
        self, turn: Turn, tenure: Tenure, arrived_s: float, permits: Sequence[Batch] | None
    ) -> TurnAttempt | None:
        """Return the attempt of a turn; None where it goes back at once."""
        kind = self._registry.get(turn.kind)
        if kind is None:
            back = Unbegun(NO_WORKER)
        elif self._stopping:
            back = Unbegun("stopped")
        elif turn.rates and permits is None:
            back = Unbegun(RATE_SPENT)
        else:
            return TurnAttempt(
                *(turn, kind, tenure), arrived_s=arrived_s, bench=self._bench, permits=permits or ()
            )
        self._unsettled.append((tenure, turn, decide(turn, back, Run(None, 0.0), Retry(), 0.0)))
        return None

    # Between rounds.

    def _rest(self, until_s: float) -> None:
        """Wait until there may be something to do, or until `until_s`."""
        until_s, stopping = min(until_s, self._rest_s() + time.monotonic()), self._stopping
        self._bell.wait(until_s - time.monotonic())
        while self._outages and stopping is self._stopping and time.monotonic() < until_s:
            self._bell.wait(until_s - time.monotonic())

    def _rest_s(self) -> float:
        """Return how long there is nothing to do unless the bell rings."""
        if self._outages:
            return _OUTAGE.delay_s(self._outages, self._bench.draw())
        if self._unsettled:
            return 0.0
        if self._stopping:
            return self._config.poll_s
        if self._tenure is None or self._lacking():
            return 0.0
        rest_s = min(self._poll_at, self._promote_at, self._desk.wake_at_s) - time.monotonic()
        # Where a slot always finds a successor, the bell does not ring for each that ends.
        return min(rest_s, _FLUSH_S) if self._kernel.slots.ready else rest_s

    # The end.

    def _drain(self) -> None:
        kernel = self._kernel
        self._unsettled += [(back.tenure, back.turn, back.unbegun()) for back in kernel.withdraw()]
        self._finish(time.monotonic() + self._config.drain_s, patience=_Stop.DRAIN)
        for attempt in kernel.begun():
            attempt.stop.raise_()
        kernel.cancel()
        self._finish(time.monotonic() + _INTERRUPT_S, patience=_Stop.NOW)
        self._end_apart()
        self._unsettled += [
            (each.tenure, each.turn, each.interrupted()) for each in kernel.abandon()
        ]
        self._round()
        if self._unsettled or self._request:
            raise self._mismatch or StoreUnavailable("away at the end: left to the lease")
        if self._tenure is not None:
            with suppress(StoreUnavailable):  # then it will be swept
                self._store.retire(self._tenure.worker)

    def _end_apart(self) -> None:
        """End the processes apart; kill what still runs there, for what is given back must end."""
        for place in (self._bench.apart, self._bench.alone):
            if place is not None:
                place.close(_LEAVE_S if self._kernel.idle else 0.0)

    def _finish(self, until_s: float, *, patience: _Stop) -> None:
        """Settle what ends, until nothing is held, or the time or the patience is over."""
        while time.monotonic() < until_s and self._stopping <= patience:
            self._round()
            if not (self._unsettled or self._request) and self._kernel.idle:
                return
            self._rest(until_s)
