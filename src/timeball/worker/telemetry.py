"""What a supervisor tells of its workers: the pages /metrics, /live and /ready, and log lines.

Numbers come from boards in shared memory, one a child, so that a child that dies takes none
with it, and no child ever waits for who reads. What waits in the database is asked for by a
thread of its own, and left out where the answer takes too long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import timedelta
from threading import Lock, Thread
from typing import Final, NamedTuple, Self

from timeball.chance import now
from timeball.core.records import Decision, Expired
from timeball.core.states import State
from timeball.errors import StoreUnavailable
from timeball.observe import families
from timeball.observe.board import Board, Key
from timeball.observe.endpoint import Answer, Endpoint
from timeball.observe.exposition import CONTENT_TYPE, exposition
from timeball.observe.totals import Totals, include
from timeball.observe.transitions import Happening, Transition, tell, warn
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.depths import cron_lag_s, depths
from timeball.worker.begun import rows
from timeball.worker.process import ChildProcess
from timeball.worker.pulse import Stall, Stuck

LOOP_MAX_S: Final = 10.0
"""A supervisor whose loop has not come round for so long is not alive."""

_STORE_S: Final = 2.0
_FRESH_S: Final = 1.0
_JOBS_MAX: Final = 10
_ADVICE: Final = {
    Stuck.INTERPRETER: 'a job keeps the interpreter\'s lock: give its kind runner="process"',
    Stuck.EVENT_LOOP: "a coroutine blocks: have it await, or make its function a plain def",
}
_AWAY: Final[dict[Key, list[int]]] = {(families.STORE_UP.name, ()): [0]}


class Crew(NamedTuple):
    """The children of a supervisor at an instant."""

    children: int
    ready: int
    """Of them, those that have registered."""

    slots: int
    running: int
    seen_at: float
    """When the supervisor's loop last came round, on this process's stopwatch."""

    stopping: bool

    @classmethod
    def of(cls, living: Collection[ChildProcess], seen_at: float, *, stopping: bool) -> Self:
        """Return the crew of these children."""
        return cls(
            children=len(living),
            ready=sum(child.ready for child in living),
            slots=sum(child.slots for child in living),
            running=sum(child.running for child in living),
            seen_at=seen_at,
            stopping=stopping,
        )


class Telemetry:
    """Counts what happens to workers, and keeps the boards of their processes.

    Args:
        at: Host and port to serve on; None: nothing is counted or served.
        crew: Gives the children as they are now.
        connections: To the database, which is asked what waits.
        queues: Whose jobs are counted.

    Raises:
        OSError: The port is taken.
    """

    def __init__(
        self,
        at: tuple[str, int] | None,
        crew: Callable[[], Crew],
        connections: Connections,
        queues: Collection[str],
    ) -> None:
        self._crew = crew
        self._waiting = Waiting(connections, queues)
        self._totals = Totals()
        self._own: Board | None = None
        self._endpoint: Endpoint | None = None
        if at is not None:
            pages = {
                "/metrics": self._metrics,
                "/live": lambda: _live(crew()),
                "/ready": lambda: _ready(crew(), self._waiting),
            }
            self._endpoint = Endpoint(*at, pages)
            self._own = self._totals.board()
            self._count_from_zero(self._own)

    # Counting; any thread

    def board(self, slots: int) -> Board | None:
        """Return a board for a new child with so many slots, if anybody wants to know."""
        return None if self._own is None else self._totals.board(rows(slots))

    def retire(self, board: Board | None) -> None:
        """Keep what the board of a child says that has ended."""
        if board is not None:
            self._totals.retire(board)

    def child_died(self) -> None:
        """Note that a child has ended unasked."""
        if self._own is not None:
            self._own.add(families.DEATHS)

    def expired(self, cause: str, worker: int, expired: Expired) -> None:
        """Note that a worker was given up here.

        Args:
            cause: "died" or "silent".
            worker: Its number.
            expired: What became of its open turns.
        """
        tell(
            Transition(
                Happening.WORKER_EXPIRED, worker=worker, reason=cause, turns=expired._asdict()
            )
        )
        if self._own is None:
            return
        self._own.add(families.LEASES_EXPIRED, cause)
        for outcome, turns in expired._asdict().items():
            self._own.add(families.TURNS_EXPIRED, outcome, by=turns)

    def watch(self, living: Iterable[ChildProcess], now: float) -> None:
        """Note which children stand still because of their jobs, and which do so no more.

        Args:
            living: The children.
            now: This process's stopwatch.
        """
        for child in living:
            for stall in child.stalls(now):
                self._stalled(child, stall)

    def _stalled(self, child: ChildProcess, stall: Stall) -> None:
        line = Transition(
            Happening.WORKER_GOES_ON if stall.over else Happening.WORKER_STALLED,
            worker=max(child.workers, default=None),
            reason=stall.stuck,
            stalled_s=round(stall.for_s, 2),
        )
        if not stall.over:
            line = line._replace(jobs=child.jobs[:_JOBS_MAX], advice=_ADVICE[stall.stuck])
            if self._own is not None:
                self._own.add(families.STALLS, stall.stuck)
        warn(line)

    def decided(self, schedule: str, decision: Decision, count: int) -> None:
        """Note that so many occurrences of a schedule were fired, or skipped, here."""
        if self._own is not None:
            self._own.add(families.CRON_DECISIONS, schedule, decision, by=count)

    # Serving

    def start(self) -> None:
        """Serve from now on, where an address was given."""
        if self._endpoint is not None:
            self._endpoint.start()

    @property
    def url(self) -> str | None:
        """Where the pages are; None while they are nowhere."""
        return None if self._endpoint is None else self._endpoint.url

    def close(self) -> None:
        """Serve no more, and give the boards back."""
        if self._endpoint is not None:
            self._endpoint.close()
        self._totals.close()

    def _count_from_zero(self, board: Board) -> None:
        """Make the series that are there before anything has happened, so that rates are right."""
        board.at(families.DEATHS)
        for stuck in Stuck:
            board.at(families.STALLS, stuck)
        for cause in ("died", "silent"):
            board.at(families.LEASES_EXPIRED, cause)
        for outcome in Expired._fields:
            board.at(families.TURNS_EXPIRED, outcome)

    def _metrics(self) -> Answer:
        samples = self._totals.read()
        include(samples, _of_crew(self._crew()))
        include(samples, self._waiting.latest())
        return Answer(200, exposition(samples), CONTENT_TYPE)


class Waiting:
    """What waits in the database, asked for at most once a second, and never waited for long."""

    def __init__(self, connections: Connections, queues: Collection[str]) -> None:
        self._connections = connections
        self._queues = queues
        self._lock = Lock()
        self._found: dict[Key, list[int]] = {}
        self._found_at = float("-inf")
        self._thread: Thread | None = None

    def latest(self) -> dict[Key, list[int]]:
        """Return what was found a moment ago; only that nothing was, where the store is away."""
        with self._lock:
            busy = self._thread is not None and self._thread.is_alive()
            if not busy and time.monotonic() - self._found_at > _FRESH_S:
                self._thread = Thread(target=self._read, name="timeball-waiting", daemon=True)
                self._thread.start()
            thread = self._thread
        if thread is not None:
            thread.join(_STORE_S)
        fresh = time.monotonic() - self._found_at <= _FRESH_S + _STORE_S
        return self._found if fresh else _AWAY

    def _read(self) -> None:
        with suppress(StoreUnavailable):
            found = _of_queues(self._connections, self._queues)
            self._found, self._found_at = found, time.monotonic()


def _of_queues(connections: Connections, queues: Collection[str]) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = {(families.STORE_UP.name, ()): [1]}
    for queue in queues:
        found[families.OLDEST.name, (queue,)] = [0]
        for state in (State.PENDING, State.SCHEDULED):
            found[families.JOBS.name, (queue, state)] = [0]
    for depth in depths(connections, queues):
        key = (families.JOBS.name, (depth.queue, depth.state))
        found[key] = [found.get(key, [0])[0] + depth.jobs]
        if depth.oldest_s is not None:
            found[families.OLDEST.name, (depth.queue,)] = [_ns(depth.oldest_s)]
    found[families.CRON_LAG.name, ()] = [_ns(cron_lag_s(connections))]
    found[families.CLOCK_SKEW.name, ()] = [_ns(_skew_s(connections))]
    return found


def _skew_s(connections: Connections) -> float:
    """Return how far this machine's clock is ahead of the store's, in seconds.

    Half of what the question took is how exact that is.
    """
    asked_at = now()
    ((store_at,),) = connections.run("now")
    ahead: timedelta = asked_at + (now() - asked_at) / 2 - store_at
    return ahead.total_seconds()


def _of_crew(crew: Crew) -> dict[Key, list[int]]:
    slots = families.SLOTS.name
    return {
        (families.CHILDREN.name, ()): [crew.children],
        (slots, ("running",)): [crew.running],
        (slots, ("free",)): [max(0, crew.slots - crew.running)],
    }


def _live(crew: Crew) -> Answer:
    silent_s = time.monotonic() - crew.seen_at
    if silent_s > LOOP_MAX_S:
        return Answer(503, f"the supervisor has stood still for {silent_s:.0f} s\n")
    return Answer(200, "alive\n")


def _ready(crew: Crew, waiting: Waiting) -> Answer:
    if crew.stopping:
        return Answer(503, "stopping\n")
    if not crew.ready:
        return Answer(503, "no worker has registered yet\n")
    if waiting.latest() == _AWAY:
        return Answer(503, "the database does not answer\n")
    return Answer(200, f"{crew.ready} of {crew.children} worker processes have registered\n")


def _ns(seconds: float) -> int:
    return int(seconds * families.NS_PER_S)
