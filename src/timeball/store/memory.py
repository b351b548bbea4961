"""A store in this process's memory: the executable specification of `Store`.

One lock makes every verb one step; under it there are only dictionaries. The two
promises that matter most are keys, as they are in PostgreSQL: a job has at most one
lease per turn in `grants` (a turn is granted once) and at most one row per turn in
`endings` (a turn ends once, and whoever comes second changes nothing).

What becomes pending by one call lines up in the order of the jobs' ids, behind all
that was pending before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from uuid import UUID

from timeball.core.dependencies import SPAWNED
from timeball.core.history import EntryRecord, StaleRecord
from timeball.core.invariants import CRASH_REASONS
from timeball.core.limits import Scope
from timeball.core.overlap_runs import OVERLAP
from timeball.core.records import (
    AGING_DEFAULT_S,
    CancelAnswer,
    Expired,
    JobSpec,
    Promoted,
    Settlement,
    Turn,
    Verdict,
)
from timeball.core.states import FINAL_STATE, TERMINAL, Ending, Event, State
from timeball.core.uniqueness import Submitted
from timeball.errors import UsageError, WorkerExpired
from timeball.store.base import CLAIM_MAX, KEY_BUSY, NO_WORKER, NO_WORKER_REST
from timeball.store.graph import LINK_MAX, check_cancel, comes_after, links_of
from timeball.store.limiting import RATE_SPENT
from timeball.store.memory_batches import MemoryBatches
from timeball.store.memory_calls import MemoryCalls
from timeball.store.memory_graph import MemoryGraph
from timeball.store.memory_keys import Key, Taken
from timeball.store.memory_limits import MemoryLimits
from timeball.store.memory_reading import MemoryReading
from timeball.store.memory_rows import (
    SAID,
    Ended,
    Lane,
    Lease,
    Row,
    Tally,
    Worker,
    crash,
    move,
    repeats,
    told,
    turn_of,
)
from timeball.store.memory_schedules import MemorySchedules


class MemoryStore(MemoryLimits, MemoryBatches, MemoryCalls, MemorySchedules, MemoryReading):
    """Jobs that live and die with the process. `Store` says what each verb promises."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        """Make an empty store.

        Args:
            now: The store's clock, aware. It must be quick, and must not call the store.
        """
        MemorySchedules.__init__(self, now)
        MemoryLimits.__init__(self)
        MemoryGraph.__init__(self)
        self._numbers = count(1)
        self._keys: dict[Key, Taken] = {}
        self._held: dict[int, Row] = {}
        self._lanes: dict[tuple[str, int], Lane] = {}
        self._workers: dict[int, Worker] = {}
        self._leases: list[Lease] = []
        self._requests: dict[tuple[int, UUID], list[Turn]] = {}

    # Submitting

    def submit(self, specs: Sequence[JobSpec]) -> list[Submitted]:
        """See `Store.submit`."""
        with self._lock:
            return self._submit(specs)

    def cancel(self, uuid: UUID) -> CancelAnswer:
        """See `Store.cancel`."""
        with self._lock:
            if uuid not in self._ids:
                return CancelAnswer.NOT_FOUND
            row = self._rows[self._ids[uuid]]
            check_cancel(row.spec)
            answer = self._stop(row)
            if answer is CancelAnswer.CANCELLED:
                self._go_on([row], {row.spec.key} if row.spec.key else set())
            return answer

    # Working

    def register(
        self, name: str, *, kinds: Collection[str], queues: Sequence[str], lease_s: float
    ) -> int:
        """See `Store.register`."""
        with self._lock:
            new = Worker(len(self._workers) + 1, name, frozenset(kinds), tuple(queues), lease_s)
            self._workers[new.id] = new
            self._line_up(self._waiting_for(new.kinds))
            return new.id

    def claim(  # noqa: PLR0913 - one question, all of it named
        self,
        worker: int,
        *,
        limit: int,
        request: UUID,
        floors: Mapping[int, int],
        newest: Mapping[int, int] | None = None,
        aging_s: float = AGING_DEFAULT_S,
        permits: Mapping[str, int] | None = None,
    ) -> list[Turn]:
        """See `Store.claim`."""
        if not 1 <= limit <= CLAIM_MAX:
            raise UsageError(f"limit is {limit}: claim 1 to {CLAIM_MAX:,} turns at a time")
        with self._lock:
            holder = self._workers.get(worker)
            if holder is None or holder.gone:
                raise WorkerExpired(f"worker {worker} was given up for dead: register anew")
            turns = self._requests.setdefault((worker, request), [])
            if not turns and newest is not None:
                turns += self._unknown(worker, newest)
            fresh, lows = not turns, dict(floors)
            left = {**dict.fromkeys(self._rated_queues(), 0), **(permits or {})}
            while (
                fresh
                and (room := limit - len(turns))
                and (lane := self._lane_for(holder, aging_s, left))
            ):
                lane.seq += 1
                floor = lows.setdefault(lane.id, lane.seq)
                lease = Lease(lane.id, lane.seq, worker, floor, [], self._clock())
                room = self._room(Scope.QUEUE, lane.queue, min(room, left.get(lane.queue, room)))
                granted = self._grant(lease, lane, room)
                if lane.queue in left:
                    left[lane.queue] -= len(granted)
                turns += granted
            return list(turns)

    def settle(self, worker: int, settlements: Sequence[Settlement]) -> list[Verdict]:
        """See `Store.settle`."""
        assert all(said.ending in SAID for said in settlements), "not for a worker to say"
        with self._lock:
            verdicts = [self._record(worker, said) for said in settlements]
            judged = zip(settlements, verdicts, strict=True)
            accepted = [said for said, verdict in judged if verdict is Verdict.ACCEPTED]
            accepted.sort(key=lambda said: said.job_id)
            rows = [self._rows[said.job_id] for said in accepted]
            keys = {key for row in rows for key in self._free(row)}
            for row, said in zip(rows, accepted, strict=True):
                how = row.endings[said.turn].how
                crashed = how.ending is Ending.LOST or how.reason in CRASH_REASONS
                self._follow(row, how, SAID[how.ending], crashed=crashed)
            self._go_on(rows, keys)
            return verdicts

    def promote(self, limit: int) -> Promoted:
        """See `Store.promote`."""
        with self._lock:
            now = self._clock()
            times = sorted((row.run_at, row.id) for row in self._held.values() if row.run_at)
            due = [self._held[job_id] for run_at, job_id in times if run_at <= now]
            kinds = {kind for w in self._workers.values() if not w.gone for kind in w.kinds}
            known = [
                row
                for row in self._waiting_for(kinds)
                if row.endings[row.turn - 1].at <= now - NO_WORKER_REST
            ]
            chosen = [*due, *known][:limit]
            most = limit - len(chosen)
            self._line_up(row for row in chosen if self._is_rated(row))  # into its line
            chosen = [row for row in chosen if not row.line] + self._out_of_line(most)
            ripe = {row.spec.key for row in chosen if row.spec.key}
            moved = self._line_up(chosen, ripe | self._waiting_keys(), limit)
            later = min((row.run_at for row in self._held.values() if row.run_at), default=None)
            times_s = [max(0.0, (later - now).total_seconds())] if later else []
            if (opening_s := self._next_opening_s()) is not None:
                times_s.append(opening_s)
            next_s = min(times_s, default=None)
            return Promoted(moved, next_s, self._rated_queues(), lined=bool(self._rated_kinds()))

    # Staying alive

    def expire(
        self, worker: int, *, beat: int | None, begun: Collection[tuple[int, int]] | None
    ) -> Expired | None:
        """See `Store.expire`."""
        with self._lock:
            dead = self._workers.get(worker)
            if dead is None or dead.gone or beat not in {None, dead.beat}:
                return None
            return self._give_up(dead, begun)

    def retire(self, worker: int) -> None:
        """See `Store.retire`."""
        with self._lock:
            leaver = self._workers.get(worker)
            if leaver is not None and not leaver.gone:
                self._give_up(leaver, ())

    # The rest runs under the lock. First: how jobs come to be pending, and to be granted.

    def _submit(self, specs: Sequence[JobSpec]) -> list[Submitted]:
        self._check_parents(specs)
        self._check_depth(specs)
        uuids = self._take_keys(specs)
        self._add_all(specs, uuids)
        self._line_up((), {spec.key for spec in specs if spec.key})
        for _ in links_of(specs):
            self._link(LINK_MAX)
        return [Submitted(self._ids[uuid], uuid) for uuid in uuids]

    def _add(self, spec: JobSpec, *, queued: bool = False) -> int:
        if spec.uuid in self._ids:
            return self._ids[spec.uuid]
        now = self._clock()
        wait = None if spec.delay_s is None else timedelta(seconds=spec.delay_s)
        first_at = spec.run_at if wait is None else now + wait
        row = Row(next(self._numbers), spec, now, first_at, spec.expires_at)
        self._rows[row.id] = row
        self._ids[spec.uuid] = row.id
        if comes_after(spec):
            return row.id  # whose parents are to be found yet
        if first_at is not None and first_at > now:
            row.state = State.SCHEDULED
            self._hold(row, run_at=first_at)
        elif queued:
            self._hold(row, reason=OVERLAP)
        else:
            self._line_up([row])
        return row.id

    def _stop(self, row: Row) -> CancelAnswer:
        """Keep a job from starting, or ask its attempt to stop."""
        if row.state in TERMINAL:
            return CancelAnswer.FINISHED
        if row.state is State.RUNNING:
            if not row.unwanted:
                row.unwanted = True
                row.cancels.append(self._clock().timestamp())
            return CancelAnswer.REQUESTED
        self._cancel(row, Event.CANCEL)
        return CancelAnswer.CANCELLED

    def _go_on(self, rows: Sequence[Row], keys: set[str]) -> None:
        """After the turns of some jobs have ended: line up what follows, by one call."""
        freed = self._tell(row.id for row in rows)
        again = [row for row in rows if row.on_its_way]
        self._line_up([*again, *freed], keys | {row.spec.key for row in freed if row.spec.key})

    def _hold(self, row: Row, *, run_at: datetime | None = None, reason: str | None = None) -> None:
        row.run_at, row.held_for, row.line = run_at, reason, None
        row.held_at = row.lined_at or self._clock()
        self._held[row.id] = row

    def _let_go(self, row: Row) -> None:
        self._held.pop(row.id, None)
        row.run_at = row.held_for = row.line = None

    def _line_up(self, rows: Iterable[Row], keys: Iterable[str] = (), most: int = CLAIM_MAX) -> int:
        """Put jobs at the back of their lanes, and those that `keys` have room for.

        Those with a key wait until it has; those of a kind whose starts are limited until they
        leave its line.
        """
        free: list[Row] = []
        for row in rows:
            if row.state is State.SCHEDULED:
                move(row, Event.DUE, State.PENDING)
            if row.line is not None:
                row.lined_at = row.held_at
            if row.spec.key is not None:
                self._hold(row, reason=KEY_BUSY)
            elif self._is_rated(row):
                self._hold(row, reason=RATE_SPENT)
                row.line = f"kind:{row.spec.kind}"
            else:
                free.append(row)
        free += self._let_in(keys, most)
        for row in sorted(free, key=lambda row: row.id):
            self._let_go(row)
            self._lane(row.place).pending[row.id] = row
            row.entries.append(EntryRecord(row.turn, self._clock().timestamp()))
        return len(free)

    def _grant(self, lease: Lease, lane: Lane, limit: int) -> list[Turn]:
        self._leases.append(lease)
        for row in list(lane.pending.values())[:limit]:
            if self._is_late(row):
                self._lapse(row)
                continue
            self._take(Scope.QUEUE, lane.queue, row)
            del lane.pending[row.id]
            move(row, Event.CLAIM, State.RUNNING)
            assert row.turn not in row.grants
            row.grants[row.turn] = lease
            rates = self._rates_of(row, row.queue)
            lease.turns.append(turn_of(row, lease, rates, self._awaited(row)))
        return lease.turns

    # How turns end.

    def _record(self, worker: int, said: Settlement) -> Verdict:
        """Write down how a turn ended, if it is for this worker to say and nobody has."""
        row = self._rows.get(said.job_id)
        lease = row.grants.get(said.turn) if row else None
        if row and lease and (lease.lane, lease.seq, lease.worker) == (said.lane, said.seq, worker):
            ended = row.endings.get(said.turn)
            if ended is None:
                row.endings[said.turn] = Ended(told(row, said), self._clock(), worker)
                return Verdict.ACCEPTED
            if ended.said_by == worker and repeats(ended.how, said):
                return Verdict.ALREADY
        if row:
            row.stale.append(StaleRecord(said.turn, worker, self._clock().timestamp()))
        return Verdict.STALE

    def _follow(self, row: Row, end: Settlement, event: Event, *, crashed: bool = False) -> None:
        """Bring a job to where the ending of its turn leads."""
        failed = end.ending in {Ending.RETRIED, Ending.FAILED} and not crashed
        before = row.tally
        row.tally = Tally(
            attempts=before.attempts + (end.began_at is not None),
            failures=before.failures + failed,
            crashes=before.crashes + crashed,
            delay_s=end.delay_s,
        )
        if end.began_at is not None:
            row.deadline = row.lined_at = None
        if end.ending in FINAL_STATE:
            move(row, event, FINAL_STATE[end.ending])
            return
        ended_at = row.endings[row.turn].at
        row.turn += 1
        if row.unwanted:
            self._cancel(row, event)
        elif event in {Event.RETRY, Event.SNOOZE}:
            move(row, event, State.SCHEDULED)
            self._hold(row, run_at=ended_at + timedelta(seconds=end.delay_s))
        elif event is Event.AWAIT:
            move(row, event, State.WAITING)
            self._hold(row, reason=SPAWNED)
        else:
            move(row, event, State.PENDING)
            if end.reason == NO_WORKER:
                self._hold(row, reason=NO_WORKER)
            elif end.reason == RATE_SPENT and (line := self._line_of(row)):
                self._hold(row, reason=RATE_SPENT)
                row.line = line

    def _cancel(self, row: Row, event: Event) -> None:
        self._rule_out(row, event, Ending.CANCELLED, "requested")

    def _rule_out(self, row: Row, event: Event, ending: Ending, reason: str) -> None:
        """End a turn that has not been granted, and the job with it."""
        move(row, event, FINAL_STATE[ending])
        self._let_go(row)
        self._lane(row.place).pending.pop(row.id, None)
        self._free(row)
        end = Settlement(0, 0, row.id, row.turn, ending, reason)
        row.endings[row.turn] = Ended(end, self._clock(), None)

    def _give_up(self, worker: Worker, begun: Collection[tuple[int, int]] | None) -> Expired:
        """End every open turn of a worker, for good or so that another one may follow."""
        worker.gone = True
        fates: Counter[Ending] = Counter()
        keys: set[str] = set()
        turns = sorted(self._open_turns(worker), key=lambda turn: turn.job_id)
        for turn in turns:
            row = self._rows[turn.job_id]
            keys |= self._free(row)
            began = begun is None or (turn.job_id, turn.turn) in begun
            ending, reason = crash(row, began=began)
            # Nobody can say when it began; not before it was granted.
            began_at = turn.granted_at if began else None
            if began and isinstance(begun, Mapping):
                began_at = begun[turn.job_id, turn.turn] or began_at
            end = Settlement(*turn[:4], ending, reason, began_at=began_at)
            row.endings[row.turn] = Ended(end, self._clock(), None)
            self._follow(row, end, Event.EXPIRE, crashed=began)
            fates[Ending.CANCELLED if row.state is State.CANCELLED else ending] += 1
        self._go_on([self._rows[turn.job_id] for turn in turns], keys)
        kinds = (Ending.RELEASED, Ending.LOST, Ending.FAILED, Ending.CANCELLED)
        return Expired(*(fates[ending] for ending in kinds))
