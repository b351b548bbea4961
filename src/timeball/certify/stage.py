"""Where a scenario is played: a database, worker processes, stepped sessions and three logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from uuid import UUID

from timeball.certify.boot import Boot
from timeball.certify.effects import Effects, disagreements
from timeball.certify.fleet import Fleet
from timeball.certify.history import History
from timeball.certify.kinds import LOADER, PREFIX
from timeball.certify.queries import query
from timeball.certify.scenario import Check, Profile, Stalled
from timeball.certify.schedules import Dice
from timeball.certify.sessions import Rows, Session, until
from timeball.certify.told import Told
from timeball.client.specs import agenda_of
from timeball.core.audit import Report, Violation, audit, audit_schedules, stray_violations
from timeball.core.history import ScheduleRecord
from timeball.core.limits import limit_violations
from timeball.core.permits import rate_violations
from timeball.core.records import JobSpec
from timeball.core.states import TERMINAL
from timeball.core.upkeep import Keep
from timeball.store.postgres import PostgresStore
from timeball.worker.child import Load
from timeball.worker.config import WorkerConfig
from timeball.worker.supervisor import SupervisorConfig

_Lent = TypeVar("_Lent")
_LEASE_S: Final = 2.0
_SHOWN: Final = 5
_LOOK_S: Final = 0.01
"""Workers want the machine too, and most of what is looked at is asked of the database."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Under what terms a scenario is played."""

    seed: int = 1
    profile: Profile = Profile.QUICK
    boots: tuple[Boot, ...] = ()
    """Changes made in every process that is started: see `boot`."""

    deadline_s: float = 120.0
    own_server: Path | None = None
    """The folder of the server, where it is one of our own and may be stopped."""


@dataclass(slots=True)
class Phases:
    """How long each phase took."""

    spent_s: dict[str, float] = field(default_factory=dict)
    _since: float = field(default_factory=time.monotonic)

    def done(self, name: str) -> None:
        """Note the end of a phase, which is the beginning of the next one."""
        now = time.monotonic()
        self.spent_s[name] = self.spent_s.get(name, 0.0) + now - self._since
        self._since = now


class Stage:
    """What one scenario is given. All that it lends is ended with it.

    Args:
        dsn: Of a migrated, empty database of the scenario's own.
        folder: A folder of its own.
        terms: Under what terms.
        name: The id of the scenario.
    """

    def __init__(self, dsn: str, folder: Path, terms: Terms, name: str) -> None:
        self.dsn = dsn
        self.folder = folder
        self.terms = terms
        self.dice = Dice(terms.seed)
        self.phases = Phases()
        self.effects = Effects(folder)
        self.fleets: list[Fleet] = []
        self.accepted: set[UUID] = set()
        """The jobs that `submit` was told of: by the client's own account."""

        self.lost: set[UUID] = set()
        """Jobs of those that the record need not know: the scenario has proved them lost."""

        self.drained = False
        """Whether every job must have ended, so that the audit may ask for it."""

        self.checks: list[Check] = []
        """What was found on the way, beside what the scenario tells."""

        self._travels = False
        self._sessions: list[Session] = []
        self._exits = ExitStack()
        self.history = History(folder / "history.jsonl", name)
        self._exits.callback(self.history.close)

    # What a scenario is lent

    @cached_property
    def store(self) -> PostgresStore:
        """The store of the database, as a client has it; its calls are noted in the history."""
        store = PostgresStore(self.dsn)
        self._exits.callback(store.close)
        return cast("PostgresStore", Told(store, self.history))

    @cached_property
    def watcher(self) -> Any:
        """A connection in autocommit mode, for questions about what the others do."""
        connection = self.store.connections.connect()
        self._exits.callback(connection.close)
        return connection

    def reconnect(self) -> None:
        """Let go of the harness's own connections; new ones are made when something is asked."""
        for name in ("store", "watcher"):
            lent = self.__dict__.pop(name, None)
            if lent is not None:
                lent.close()

    def move(self, dsn: str) -> None:
        """Have the database be at another address from here on."""
        self.dsn = dsn
        self.reconnect()

    def lend(self, context: AbstractContextManager[_Lent]) -> _Lent:
        """Enter what must be there until all has been checked, and leave it with the stage."""
        return self._exits.enter_context(context)

    def ask(self, name: str, **params: Any) -> Rows:
        """Return the rows of a statement of ``certify/sql``."""
        cursor = self.watcher.execute(query(name), params or None)
        return cursor.fetchall() if cursor.description else []

    def session(self) -> Session:
        """Return a connection that is stepped."""
        self._sessions.append(Session(self.dsn, self.watcher, self.history))
        return self._sessions[-1]

    def submit(self, specs: Sequence[JobSpec]) -> None:
        """Submit jobs as a client does, and remember them."""
        self.store.submit(specs)
        self.accepted.update(spec.uuid for spec in specs)

    def workers(
        self,
        children: int = 1,
        *,
        slots: int = 4,
        boots: Sequence[Boot] = (),
        loads: Sequence[Load] = (),
        dsn: str | None = None,
        **worker: Any,
    ) -> Fleet:
        """Start worker processes, which know the kinds of `kinds`.

        Args:
            children: How many.
            slots: Of each.
            boots: Changes made in these processes only.
            loads: Other kinds that they know.
            dsn: By which they reach the database, where it is another way.
            **worker: Other fields of `WorkerConfig`.
        """
        settings: dict[str, Any] = {"lease_s": _LEASE_S, "poll_s": 0.2, **worker}
        config = SupervisorConfig(
            dsn=dsn or self.dsn,
            loads=(Load(target=str(self.folder), loader=LOADER), *loads),
            worker=WorkerConfig(name="certify", slots=slots, **settings),
            children=children,
            keep=Keep(succeeded_s=None, others_s=None),  # the logs must agree for ten years
        )
        log = self.folder / f"workers-{len(self.fleets)}.log"
        fleet = Fleet(config, log, (*self.terms.boots, *boots))
        self.fleets.append(fleet)
        return fleet

    def travel(self, at: datetime) -> None:
        """Set the database's clock, which stands still from the first time on."""
        if not self._travels:
            self.ask("virtual_clock")
            self._travels = True
        self.ask("set_clock", at=at)

    def until(self, true: Callable[[], object], what: str) -> None:
        """Look until something is so.

        Raises:
            Stalled: It has not come true by the scenario's deadline.
        """
        until(true, what, self.terms.deadline_s, look_s=_LOOK_S)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Note how long the block takes, under that name."""
        self.phases.done("load and faults")
        try:
            yield
        finally:
            self.phases.done(name)

    # What follows the faults

    def heal(self) -> None:
        """Let everything go on: frozen processes, and locks that stepped sessions hold."""
        with self.phase("heal"):
            for fleet in self.fleets:
                fleet.thaw()
            self._end_sessions()

    def drain(self) -> None:
        """Wait until every job is in a terminal state; by the deadline it is a promise broken."""
        with self.phase("drain"):
            self.drained = True
            try:
                self.until(lambda: not set(self.store.counts()) - TERMINAL, "every job has ended")
            except Stalled as stalled:
                counts = {str(state): count for state, count in self.store.counts().items()}
                self.checks.append(Check("progress", holds=False, text=f"{stalled}: {counts}"))

    def quiesce(self) -> list[Check]:
        """End the workers in order, and say whether they did."""
        with self.phase("quiesce"):
            self._end_sessions()
            codes = [fleet.stop() for fleet in self.fleets]
            return [Check("clean end", codes == [0] * len(codes), f"exit codes {codes}")]

    def audit(self) -> list[Check]:
        """Hold the record against the contract, and the three logs against each other."""
        with self.phase("audit"):
            checks = [audited(self.store, quiesced=self.drained)]
            histories = list(self.store.histories())
            noting = (each for each in histories if each.kind.startswith(PREFIX))
            noted = (each for each in self.effects.read() if each.job not in self.lost)
            apart = list(disagreements(noting, noted))
            checks.append(Check("effects", not apart, "; ".join(apart[:_SHOWN])))
            lost = self.accepted.difference(self.lost, (each.uuid for each in histories))
            text = f"accepted, and not on record: {sorted(lost, key=str)[:_SHOWN]}"
            checks.append(Check("accepted", not lost, text if lost else ""))
            return checks

    def leaks(self) -> list[Check]:
        """Say whether a process or a session is left."""
        with self.phase("leak check"):
            processes = [pid for fleet in self.fleets for pid in fleet.left()]
            try:
                self.until(lambda: not self._strangers(), "no session of the workers is left")
            except Stalled as stalled:
                return [Check("leaks", holds=False, text=str(stalled))]
            return [Check("leaks", not processes, f"processes {processes} are left")]

    def close(self) -> None:
        """End all that was lent, whatever state it is in."""
        ends = (*(fleet.discard for fleet in self.fleets), *(each.close for each in self._sessions))
        for end in ends:  # the last one first; all of them, although one may fail
            self._exits.callback(end)
        self._exits.close()

    def _end_sessions(self) -> None:
        while self._sessions:
            self._sessions.pop().close()

    def _strangers(self) -> int:
        """Return how many sessions there are but for the watcher's: the store's are closed."""
        self.store.close()
        count: int = self.ask("sessions", own=[self.watcher.info.backend_pid])[0][0]
        return count


def audited(store: PostgresStore, *, quiesced: bool) -> Check:
    """Return whether the record of a store keeps the contract."""
    report: Report = audit(store.histories(), quiesced=quiesced)
    report = report.including(limit_violations(store.holdings()))
    report = report.including(rate_violations(store.starts()))
    report = report.including(stray_violations(store.strays()))
    report = report.including(_misfired(store))
    texts = [str(violation) for violation in report.violations[:_SHOWN]]
    return Check("audit", report.clean, "; ".join(texts))


def _misfired(store: PostgresStore) -> Iterator[Violation]:
    """Yield what is wrong with the record of the schedules that there are."""
    tables = {each.spec.name: agenda_of(each.spec) for each in store.schedules()}

    def expected(record: ScheduleRecord) -> Iterator[datetime]:
        return (due.at for due in tables[record.name].occurrences(record.activated_at))

    known = (each for each in store.schedule_histories() if each[0].name in tables)
    return audit_schedules(known, expected)
