"""Keeps child processes at work, beats for them, and gives them up when they die.

No user code runs in this process, so nothing a job does can stop the beat. One thread, the loop,
starts the children, hears them and waits for them; beat, sweeper and ticker have a thread each,
and share a connection as far as they can wait for it. All that is asked of the loop comes as a
byte through a socket, which a signal handler may send as well as a thread.

Stopping goes in steps, each at the next signal or when the one before has taken too long: drain,
give back, kill. It takes at most `drain_s` and 5 seconds, whatever children and database do.
"""

from __future__ import annotations

import logging
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from queue import SimpleQueue
from threading import Event, Thread
from typing import Final, NamedTuple

from timeball.core.upkeep import Keep
from timeball.errors import SchemaMismatch, TimeballError
from timeball.observe.transitions import LogFormat
from timeball.store.postgres.store import PostgresStore
from timeball.worker.beat import Beat
from timeball.worker.child import EX_SCHEMA, EX_TEMPFAIL, Load
from timeball.worker.config import WorkerConfig
from timeball.worker.exclusive import STOP_AT
from timeball.worker.place import Place
from timeball.worker.process import ChildProcess
from timeball.worker.retention import Retention
from timeball.worker.rounds import deadlines, linking
from timeball.worker.sweeper import Deaths, Sweeper
from timeball.worker.telemetry import Crew, Telemetry
from timeball.worker.ticker import Ticker

GIVE_BACK_S: Final = 2.0
"""From "stop now" to SIGKILL."""

FAREWELL_S: Final = 2.0
"""For writing what the dead have left."""

STILLBORN_MAX: Final = 3
"""So many children that never registered, and none that did: the fault is in what they load."""

_LOOK_S = 0.25
_LOOK_DYING_S = 0.01
_DUTIES_S = 1.0
_ASK_NEXT, _ASK_NOW = b"+", b"!"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorConfig:
    """What a supervisor runs."""

    dsn: str
    loads: tuple[Load, ...]
    """Where the kinds come from; loaded by each child."""

    worker: WorkerConfig
    """How each child works; a number is added to the name."""

    children: int = 1
    keep: Keep = field(default_factory=Keep)
    """How long jobs are kept that have ended."""

    metrics: tuple[str, int] | None = None
    """Host and port where /metrics, /live and /ready are served; None: nowhere."""

    log: LogFormat = LogFormat.TEXT
    """How the children write their log."""


class Step(IntEnum):
    """How far a supervisor is on its way out."""

    RUN = 0
    DRAIN = 1  # children finish what has begun
    GIVE_BACK = 2  # they give back what has not ended
    KILL = 3


_STEPS: Final = {
    Step.DRAIN: "what has begun has {:g} s to end; once more gives it back",
    Step.GIVE_BACK: "what has not ended is given back; once more kills the workers",
    Step.KILL: "the workers are killed",
}


class Child(NamedTuple):
    """A living child, for people and tests."""

    pid: int
    workers: frozenset[int]


class Supervisor:
    """Runs `children` worker processes until it is stopped. For one run only.

    `run` takes over the main thread and the signals SIGTERM, SIGINT and SIGHUP; `start`, `stop`
    and `wait` are for use within another program.
    """

    def __init__(self, config: SupervisorConfig) -> None:
        self._config = config
        self._store = PostgresStore(config.dsn, patience_s=0.1)
        self._beat_store = PostgresStore(config.dsn)
        self._beat_store.connections.answer_s = max(2.0, config.worker.lease_s / 3)
        self._places = [Place(number) for number in range(1, config.children + 1)]
        self._telemetry = Telemetry(
            config.metrics, self._crew, self._store.connections, config.worker.queues
        )
        self._deaths = Deaths(self._store, told=partial(self._telemetry.expired, "died"))
        self._lost: SimpleQueue[set[int]] = SimpleQueue()
        self._seen_at = time.monotonic()
        self._step = Step.RUN
        self._asked = Step.RUN
        self._until = 0.0
        self._stillborn = 0
        self._proven = False
        self._code = 1  # until it has come to its end
        self._thread: Thread | None = None
        self._inbox, self._outbox = socket.socketpair()
        self._outbox.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._inbox, selectors.EVENT_READ)
        self.failure = ""
        """Why it gave up, where the exit code is 1 or 6."""

    # From outside

    def run(self) -> int:
        """Supervise until a signal to stop and return the exit code; main thread only.

        A second signal has children give back what runs, a third one kills them.

        Returns:
            0 when nothing is left, 75 when something is left to the leases; with a reason on
            stderr 6 when the schema is that of another version, 1 when the children cannot start
            or a duty has crashed.
        """
        with self._signals():
            code = self._supervise()
        if self.failure:
            sys.stderr.write(self.failure.rstrip() + "\n")
        return code

    def start(self) -> None:
        """Supervise in a thread of this program."""
        self._thread = Thread(target=self._supervise, name="timeball-supervisor", daemon=True)
        self._thread.start()

    def stop(self, *, now: bool = False) -> None:
        """Ask to drain, or where it does already, for the next step; returns at once.

        Args:
            now: Have children give back what has not ended.
        """
        self._ask(_ASK_NOW if now else _ASK_NEXT)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Wait until all is stopped and return the code as `run` does; None when time is up."""
        assert self._thread is not None, "start it first"
        self._thread.join(timeout_s)
        return None if self._thread.is_alive() else self._code

    @property
    def metrics_url(self) -> str | None:
        """Where its pages are served; None where they are not."""
        return self._telemetry.url

    def children(self) -> list[Child]:
        """Return the children that live now."""
        living = [place.child for place in self._places]
        return [Child(child.pid, child.workers) for child in living if child is not None]

    def _ask(self, what: bytes) -> None:
        try:
            self._outbox.send(what)
        except OSError:
            return  # it is over, or so much has been asked that one more makes no difference

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Turn signals into requests. Set explicitly, for the kernel ignores them for PID 1."""
        numbers = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
            numbers.remove(signal.SIGHUP)  # started by nohup
        before = {
            number: signal.signal(number, lambda _number, _frame: self._ask(_ASK_NEXT))
            for number in numbers
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # The loop's own thread

    def _supervise(self) -> int:
        quiet, over = Event(), Event()
        self._telemetry.start()
        silent = partial(self._telemetry.expired, "silent")
        duties = [
            self._duty("ticker", Ticker(self._store, told=self._telemetry.decided).run, quiet),
            self._duty("deadlines", deadlines(self._store).run, quiet),
            self._duty("linking", linking(self._store).run, quiet),
            self._duty("retention", Retention(self._store, self._config.keep).run, quiet),
            self._duty("sweeper", Sweeper(self._store, told=silent).run, quiet),
            self._duty("beat", self._beat().run, over),
        ]
        while self._step is Step.RUN or self._living():
            self._seen_at = now = time.monotonic()
            if self._step is Step.KILL and now >= self._until:
                break  # the kernel cannot end it: a disk or network file system hangs
            self._advance(now)
            if self._step >= Step.DRAIN:
                quiet.set()
            for child in self._living():
                child.protect()
            self._bury(now)
            self._telemetry.watch(self._living(), now)
            self._fill(now)
            self._listen()
        clean = self._deaths.wait(FAREWELL_S) and not self._living()
        over.set()
        self._close(duties)
        if not self.failure:
            self._code = 0 if clean else EX_TEMPFAIL
        return self._code

    def _crew(self) -> Crew:
        return Crew.of(self._living(), self._seen_at, stopping=self._asked > Step.RUN)

    def _beat(self) -> Beat:
        means = (self._beat_store, self._workers, self._lost.put)
        return Beat(*means, lease_s=self._config.worker.lease_s, answered=self._answered)

    def _answered(self, alive: set[int], asked_ns: int) -> None:
        for child in self._living():
            child.answered(alive, asked_ns)

    def _workers(self) -> set[int]:
        """Return whom to beat for: every child, even a deaf one, but none that stands still.

        Nobody knows whether that one will ever go on, and its jobs must.
        """
        return {worker for child in self._living() if not child.frozen for worker in child.workers}

    def _duty(self, name: str, run: Callable[[Event], None], stop: Event) -> Thread:
        """Start a thread that runs until `stop` is set; if it crashes, all stops."""

        def guarded() -> None:
            why, code = f"the {name} has crashed", 1
            try:
                run(stop)
            except TimeballError as error:
                why = str(error)
                code = EX_SCHEMA if isinstance(error, SchemaMismatch) else 1
            finally:
                if not stop.is_set():
                    self._fail(why, code)

        thread = Thread(target=guarded, name=f"timeball-{name}", daemon=True)
        thread.start()
        return thread

    def _fail(self, why: str, code: int = 1) -> None:
        if not self.failure:
            self.failure, self._code = why, code
            self._ask(_ASK_NEXT)

    def _listen(self) -> None:
        """Rest until something is said, asked, or due."""
        dying = any(child.silent for child in self._living())
        for key, _ in self._selector.select(_LOOK_DYING_S if dying else _LOOK_S):
            if key.data is None:
                self._take_requests()
            elif not key.data.hear():
                self._selector.unregister(key.fileobj)
        while not self._lost.empty():
            self._forget(self._lost.get())

    def _forget(self, lost: set[int]) -> None:
        """Beat no more for workers that were given up; their children register anew."""
        for child in self._living():
            for worker in child.disown(lost):
                if self._step is Step.RUN:  # later they retire, which is nothing to report
                    _log.warning("worker %d was cut off for a whole lease and given up", worker)

    def _take_requests(self) -> None:
        for asked in self._inbox.recv(64):
            now = asked == _ASK_NOW[0]
            least = Step.GIVE_BACK if now else min(self._asked + 1, Step.KILL)
            self._asked = Step(max(self._asked, least))

    def _advance(self, now: float) -> None:
        """Take the steps that were asked for, and the next one when its time has come."""
        if Step.RUN < self._step < Step.KILL and now >= self._until:
            self._asked = max(self._asked, Step(self._step + 1))
        while self._step < self._asked:
            self._step = Step(self._step + 1)
            _log.warning("stopping: %s", _STEPS[self._step].format(self._config.worker.drain_s))
            for child in self._living():
                self._carry_out(child)
            self._until = now + (
                self._config.worker.drain_s if self._step is Step.DRAIN else GIVE_BACK_S
            )

    def _carry_out(self, child: ChildProcess) -> None:
        match self._step:
            case Step.DRAIN:
                child.drain()
            case Step.GIVE_BACK:
                child.hurry()
            case _:
                child.kill()

    def _living(self) -> list[ChildProcess]:
        return [place.child for place in self._places if place.child is not None]

    def _bury(self, now: float) -> None:
        """Give up at once what children that have ended held."""
        for place in self._places:
            child = place.child
            how = child.ended() if child else None
            if child is None or how is None:
                continue
            if child.fileno() in self._selector.get_map():
                self._selector.unregister(child)
            # Its minders kill what is exclusive, and may need their grace for it.
            rest_s = STOP_AT * self._config.worker.lease_s if child.exclusive else 0.0
            begun = child.bury()
            self._telemetry.retire(child.board)
            for worker in child.workers:
                self._deaths.report(worker, begun, after_s=rest_s)
            place.vacate(now, now - child.started_at)
            self._judge(child, how)

    def _judge(self, child: ChildProcess, how: str) -> None:
        """Say how a child ended, and give up where none can ever start."""
        self._proven = self._proven or child.ready
        if self._step > Step.RUN:
            return
        self._telemetry.child_died()
        _log.warning("child %d %s: %s", child.pid, how, child.failure or "another one follows")
        if child.outdated:
            self._fail(child.failure, EX_SCHEMA)
        elif not child.ready:
            self._stillborn += 1
            if self._stillborn >= STILLBORN_MAX and not self._proven:
                self._fail(child.failure or f"a child {how} before it was ready")

    def _fill(self, now: float) -> None:
        """Start the children that are missing."""
        if self._asked > Step.RUN or self.failure:
            return
        for place in self._places:
            if place.child is None and now >= place.next_at:
                self._start_child(place, now)

    def _start_child(self, place: Place, now: float) -> None:
        config = self._config
        worker = replace(config.worker, name=f"{config.worker.name}-{place.number}")
        board = None
        try:
            board = self._telemetry.board(worker.slots)
            place.child = ChildProcess(
                config.dsn, config.loads, worker, now, board=board, log=config.log
            )
        except OSError as error:  # out of processes, memory or descriptors
            _log.warning("no child can be started now: %s", error)
            self._telemetry.retire(board)
            place.vacate(now, 0.0)
            return
        self._selector.register(place.child, selectors.EVENT_READ, place.child)

    def _close(self, duties: list[Thread]) -> None:
        self._deaths.stop()
        until = time.monotonic() + _DUTIES_S
        for thread in duties:
            thread.join(max(0.0, until - time.monotonic()))
        self._telemetry.close()
        self._store.close()
        self._beat_store.close()
        self._selector.close()
        self._inbox.close()
        self._outbox.close()
