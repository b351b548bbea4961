"""Every decision of the in-process engine: which job starts, and what follows when one ends.

Nothing here locks, waits, or runs foreign code, and the clock is an argument: the kernel calls in
one at a time, under its lock. `Work.state` is the one truth. The counters move with it, in the
same method; queues and heap hold jobs that may have left them since, and are asked again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from timeball.core.limiter import Limiter
from timeball.core.makespan import Cause
from timeball.core.outcomes import Raised, Snoozed, Stopped
from timeball.core.rate import NS_PER_S
from timeball.core.records import CancelAnswer
from timeball.core.retry import RetryBudget
from timeball.core.states import FINAL_STATE, TERMINAL, Ending, State
from timeball.engine.calls import settlement_of
from timeball.engine.due import Due
from timeball.engine.handles import NEVER_NS, SUCCESS, Attempt, End, Work
from timeball.engine.idleness import Idleness
from timeball.engine.kinship import Kinship
from timeball.engine.lanes import Lanes
from timeball.engine.runner import Done, Ended, Lost, Spawning
from timeball.engine.tally import Tally

_PENDING: Final = State.PENDING
_SCHEDULED: Final = State.SCHEDULED
_WAITING: Final = State.WAITING
_RUNNING: Final = State.RUNNING
_SUCCEEDED: Final = State.SUCCEEDED
_AGAIN: Final = frozenset({Ending.RETRIED, Ending.SNOOZED, Ending.RELEASED, Ending.LOST})


class Agenda(Kinship):
    """The jobs of one scheduler.

    Args:
        slots: W, the most attempts that may run at once.
        lanes: The order of those that may start.
        limiter: Who allows starts; None for no limit.
        draw: Gives a number in ``[0, 1)``, for jitter.
        budget: Which retries are granted; None: all.
        on_end: Told of each job that has ended.
    """

    def __init__(
        self,
        slots: int,
        *,
        lanes: Lanes,
        limiter: Limiter | None,
        draw: Callable[[], float],
        budget: RetryBudget | None,
        on_end: Callable[[Work], None] | None,
    ) -> None:
        self.inbox: deque[Work | Callable[[Agenda, int], object]] = deque()
        """What came from outside the lock: jobs, and what is to be done in here."""
        self.jobs: dict[int | str, Work] = {}
        """Those that have been taken in, by their ids."""
        self.free = list(range(slots - 1, -1, -1))
        self.on_slot: list[Attempt | None] = [None] * slots
        self.outbox: list[Callable[[], Any]] = []
        """What is to be called once the lock is released."""
        self.idleness = Idleness()
        self.watched: dict[Work, list[Callable[[], None]]] = {}
        self.when_idle: list[Callable[[], None]] = []
        """Called once nothing is left to do."""
        self.on_stop: Callable[[Attempt], None] = lambda attempt: attempt.sign().raise_()
        """Asks a running attempt to stop."""
        self.on_room: Callable[[], None] | None = None
        """Called when a job has left the queue for the first time."""
        self.on_spawn: Callable[[int], None] | None = None
        """Told how many jobs come in that were spawned, which do not wait for room."""
        self.refuses = self.ends = False
        """Whether what comes in is cancelled at once, and whether no attempt follows another."""
        self.wake_ns = NEVER_NS
        """When to be asked again, unless something happens before."""
        self.tally = Tally()
        self._decided: list[Work] = []
        self._lanes, self._limiter, self._budget = lanes, limiter, budget
        self._draw = draw
        self._on_end = on_end
        self._due = Due()
        self.starts = 0
        self._refused, self._permit_ns, self._loop_only = False, 0, False

    # The critical section calls this one, once per job.

    def round(self, done: Attempt | None, said: Ended | None, now_ns: int) -> Attempt | None:
        """End `done` as `said`, take in what has come, and return the next one to begin."""
        if done is not None:
            assert said is not None
            self.finish(done, said, now_ns)
        if self.inbox:
            self.drain(now_ns)
        if self._due.next_ns <= now_ns:
            self._promote(now_ns)
        attempt = self._claim(now_ns)
        # Most rounds of a busy scheduler change nothing about why the other slots are idle.
        if attempt is None or not self._lanes.size or not self.idleness.is_dispatch:
            self._note_idleness(now_ns)
        return attempt

    def round_on_loop(
        self, done: Attempt | None, said: Ended | None, now_ns: int
    ) -> Attempt | None:
        """Do the same, but return an attempt only if it runs on the event loop."""
        self._loop_only = True
        attempt = self.round(done, said, now_ns)
        self._loop_only = False
        return attempt

    @property
    def more(self) -> bool:
        """Whether somebody else could begin an attempt now, as far as can be told cheaply."""
        return self._lanes.size > 0 and not self._refused and bool(self.free)

    def drain(self, now_ns: int) -> None:
        """Take in all that has come."""
        inbox = self.inbox
        if not self.refuses and isinstance(inbox[0], Work):
            self.idleness.arrived(inbox[0].ready_ns)
        jobs, add, tally = self.jobs, self._lanes.add, self.tally
        while inbox:
            item = inbox.popleft()
            if not isinstance(item, Work):
                item(self, now_ns)
                continue
            tally.open += 1
            jobs[item.id] = item
            if item.more is None and not self.refuses:
                add(item)
            else:
                self._take(item, now_ns)
        if self.when_idle and not tally.open:
            self._tell_idle()

    def _take(self, work: Work, now_ns: int) -> None:
        more = work.more
        self.tally.scheduled += work.state is _SCHEDULED
        self.tally.waiting += work.state is _WAITING
        if self.refuses:
            self._close(work, Ending.CANCELLED, "the scheduler was shut down", now_ns)
        elif more is not None and more.after:
            self._link(work, now_ns)
        elif work.state is _SCHEDULED and more is not None:
            self._due.add(more.due_ns, work)
        else:
            self._lanes.add(work)

    def _admit(self, work: Work, now_ns: int) -> None:
        # What runs while all is brought to its end may spawn as before.
        refuses, self.refuses = self.refuses, False
        self._take(work, now_ns)
        self.refuses = refuses

    # Starting

    def _claim(self, now_ns: int) -> Attempt | None:
        free, lanes = self.free, self._lanes
        if not free:
            self.wake_ns = NEVER_NS
            return None
        self.wake_ns = self._due.next_ns
        self._refused = False
        line = lanes.front()
        if line is None:
            return None
        work = line[0]
        if self._loop_only and not work.form.is_async:
            return None
        if self._limiter is not None:
            wait_ns = self._limiter.admit(now_ns, work.form.weight)
            if wait_ns:
                self._refused, self._permit_ns = True, now_ns + wait_ns
                self.wake_ns = min(self.wake_ns, self._permit_ns)
                return None
        lanes.size -= 1
        line.popleft()
        slot = free.pop()
        assert self.on_slot[slot] is None
        attempt = work if work.slot is None else work.begins()
        self.on_slot[slot] = attempt
        self.starts = attempt.seq = self.starts + 1
        attempt.slot = slot
        attempt.granted_ns = attempt.started_ns = now_ns
        work.state = _RUNNING
        if work.key is not None or work.form.signs or self.on_room is not None:
            self._note_start(work, attempt)
        return attempt

    def _note_start(self, work: Work, attempt: Attempt) -> None:
        if work.key is not None:
            self._lanes.begin(work.key)
        if work.form.signs:
            attempt.sign()
        if self.on_room is not None and attempt is work:
            self.outbox.append(self.on_room)

    def _unschedule(self, work: Work) -> None:
        self.tally.scheduled -= 1
        self.tally.retrying -= work.at_turn > 1

    def _promote(self, now_ns: int) -> None:
        for work in self._due.take(now_ns):
            self._unschedule(work)
            self._enter(work, now_ns)

    def _enter(self, work: Work, now_ns: int) -> None:
        work.state = _PENDING
        if work.slot is None:
            work.ready_ns = now_ns
        else:
            work.with_more().ready_ns = now_ns
        self._lanes.add(work)

    # Ending

    def finish(self, attempt: Attempt, said: Ended, now_ns: int) -> None:
        """Note how an attempt ended, and free its slot.

        One that was given up before is not heard: its job has gone another way.
        """
        slot, work, tally, on_slot = attempt.slot, attempt.work, self.tally, self.on_slot
        assert slot is not None
        if on_slot[slot] is not attempt or attempt.end is not None:
            tally.stale += 1
            return
        on_slot[slot] = None
        self.free.append(slot)
        if work.key is not None:
            self._lanes.end(work.key)
        if type(said) is Done:
            tally.succeeded += 1
            tally.open -= 1
            attempt.end = SUCCESS
            work.outcome = said.value
            work.state = _SUCCEEDED
            if work.more is not None or self.watched or self._on_end or not tally.open:
                self._tell(work, now_ns)
        elif isinstance(said, Spawning):
            unwanted = self.ends or work.cancel_requested
            refused = Stopped("cancelled") if unwanted else self._await(attempt, said, now_ns)
            if refused is not None:
                self._settle(attempt, refused, now_ns)
        else:
            self._settle(attempt, said, now_ns)

    def _settle(self, attempt: Attempt, said: Ended, now_ns: int) -> None:
        work = attempt.work
        more = work.with_more()
        settlement = settlement_of(attempt, said, self._draw())
        ending, reason = settlement.ending, settlement.reason
        if ending in _AGAIN and (more.cancel_ns is not None or self.ends):
            ending, reason = Ending.CANCELLED, reason or "cancelled"
        if ending is Ending.RETRIED and not (
            self._budget is None or self._budget.grant(self.starts)
        ):
            ending, reason = Ending.FAILED, "retry-budget"
        if isinstance(said, Raised):
            more.failures += 1
            work.outcome = said
        more.crashes += isinstance(said, Lost)
        more.snoozes += isinstance(said, Snoozed)
        more.delay_s = settlement.delay_s
        attempt.end = End(ending, reason, settlement.delay_s)
        if ending not in _AGAIN:
            self._end(work, FINAL_STATE[ending], now_ns)
            return
        more.turn += 1
        if settlement.delay_s > 0:
            more.due_ns = attempt.ended_ns + -int(-settlement.delay_s * NS_PER_S // 1)
            work.state = _SCHEDULED
            self.tally.scheduled += 1
            self.tally.retrying += 1
            self._due.add(more.due_ns, work)
        else:
            self._enter(work, max(now_ns, attempt.ended_ns))

    def _close(self, work: Work, ending: Ending, reason: str, now_ns: int) -> None:
        """End a job that does not run, for good."""
        attempt = work.begins()
        attempt.seq, attempt.end = int(work.state is _PENDING), End(ending, reason)
        attempt.granted_ns = attempt.started_ns = attempt.ended_ns = now_ns
        if work.state is _SCHEDULED:
            self._unschedule(work)
        self.tally.waiting -= work.state is _WAITING
        if self.on_room is not None and attempt is work:
            self.outbox.append(self.on_room)
        self._end(work, FINAL_STATE[ending], now_ns)

    def _end(self, work: Work, state: State, now_ns: int) -> None:
        work.state = state
        self.tally.ends(state)
        self._tell(work, now_ns)

    def _tell_idle(self) -> None:
        if not self.inbox:
            self.outbox += self.when_idle
            self.when_idle = []

    def _tell(self, work: Work, now_ns: int) -> None:
        """Pass on that a job has ended."""
        if self.watched and (watching := self.watched.pop(work, None)):
            for hit in watching:
                hit()
        if self._on_end is not None:
            self._on_end(work)
        if work.more is not None and work.more.children:
            self._decided.append(work)
            if len(self._decided) == 1:
                self._release(now_ns)
        if not self.tally.open and self.when_idle:
            self._tell_idle()

    # From outside, under the lock

    def cancel(self, work: Work, now_ns: int) -> CancelAnswer:
        """Keep a job from starting, or ask it to stop; its sign is raised by the outbox."""
        if work.state in TERMINAL:
            return CancelAnswer.FINISHED
        if work.state is not _RUNNING:
            self._close(work, Ending.CANCELLED, "cancelled", now_ns)
            return CancelAnswer.CANCELLED
        more = work.with_more()
        if more.cancel_ns is None:
            more.cancel_ns = now_ns
            self.outbox.append(partial(self.on_stop, work.attempts[-1]))
        return CancelAnswer.REQUESTED

    def give_up(self, attempt: Attempt, now_ns: int) -> None:
        """End an attempt that runs on and is not waited for; its slot stays taken."""
        more = attempt.work.with_more()
        if more.cancel_ns is None:
            more.cancel_ns = now_ns
        attempt.end, attempt.ended_ns = End(Ending.CANCELLED, "given up"), now_ns
        self._end(attempt.work, State.CANCELLED, now_ns)

    def restamp(self, attempt: Attempt, now_ns: int) -> int:
        """Move the start of an attempt to now and return 0, or return how long to wait."""
        if self._limiter is None:
            return 0
        wait_ns = self._limiter.restamp(attempt.started_ns, now_ns, attempt.work.form.weight)
        if not wait_ns:
            attempt.started_ns = now_ns
        return wait_ns

    def _note_idleness(self, now_ns: int) -> None:
        mark = self.idleness.mark
        if not self.free:
            mark(now_ns, Cause.DISPATCH)
        elif self._refused:
            mark(now_ns, Cause.LIMITER, self._permit_ns)
        elif self._lanes.size:
            mark(now_ns, Cause.DISPATCH)
        elif self._lanes.blocked:
            mark(now_ns, Cause.LIMITER)
        elif self.tally.retrying:
            mark(now_ns, Cause.RETRY, self._due.next_ns)
        elif self.tally.waiting:
            mark(now_ns, Cause.DEPENDENCY)
        elif self.tally.scheduled:
            mark(now_ns, Cause.SCHEDULE, self._due.next_ns)
        else:
            mark(now_ns, Cause.QUEUE)
