"""G, first half: a client that stops reading, or a frozen worker, keeps nobody from claiming."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, Final
from uuid import uuid4

from timeball.certify.databases import conninfo
from timeball.certify.faults import at_statement
from timeball.certify.fleet import processes
from timeball.certify.kinds import NOTE
from timeball.certify.queries import query
from timeball.certify.stage import Stage
from timeball.certify.verbs import claim_of
from timeball.core.records import JobSpec, Settlement
from timeball.core.states import Ending
from timeball.errors import StoreUnavailable
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import Connections

ALLOWED: Final = frozenset({"AccessShareLock", "RowShareLock", "RowExclusiveLock"})
"""How a claim may lock relations."""

_JOBS: Final = 120
_LARGE: Final = 50
_BYTES: Final = 100_000
_PROBES: Final = 5
_PROBES_MAX: Final = 100
NEXT_CLAIM_S: Final = 0.05
_PATIENCE_MS: Final = 10_000
_LEASE_S: Final = 60.0


class Lane:
    """One lane full of jobs with long arguments, and claims of it."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        args = f'{{"text": "{"x" * _BYTES}"}}'
        specs = [JobSpec(uuid=uuid4(), kind=NOTE, queue="long", args=args) for _ in range(_JOBS)]
        stage.store.submit(specs)

    def worker(self, queue: str = "long") -> int:
        """Return a new worker that is carried out by hand."""
        store = self.stage.store
        return store.register("by hand", kinds=[NOTE], queues=[queue], lease_s=_LEASE_S)

    def next_claim_ms(self, queue: str = "long") -> float:
        """Return how long a claim takes: the best of a few, for the machine may be busy.

        The longer it is busy, the more are tried: a lane that is held would hold up all of them.
        One that has to wait for a lock until patience is at its end stands for all.
        """
        worker, spent = self.worker(queue), list[float]()
        patient = conninfo(self.stage.dsn, options=f"-c lock_timeout={_PATIENCE_MS}")
        with closing(PostgresStore(patient)) as store:
            while len(spent) < _PROBES or (len(spent) < _PROBES_MAX and min(spent) > NEXT_CLAIM_S):
                began = time.monotonic()
                try:
                    turns = store.claim(worker, limit=1, request=uuid4(), floors={})
                except StoreUnavailable:
                    return _PATIENCE_MS
                spent.append(time.monotonic() - began)
                back = [Settlement(*turn[:4], ending=Ending.RELEASED) for turn in turns]
                store.settle(worker, back)
            store.retire(worker)
        return round(min(spent) * 1e3, 3)

    def modes(self) -> list[str]:
        """Return how a claim has locked relations, in its middle."""
        one = self.stage.session().begin()
        one.verb("claim", **claim_of(self.worker(), limit=2))
        modes = [mode for (mode,) in self.stage.ask("relation_locks", pid=one.pid)]
        one.rollback()
        return modes

    def unread_claim(self) -> tuple[dict[str, Any], float]:
        """Have a client not read the answer to its claim; return what it holds, and a claim."""
        params = [b"%d" % self.worker(), b"10", str(uuid4()).encode()]
        with self._deaf("deaf_claim", params) as pid:
            self.stage.until(lambda: self._has_ended(pid, "deaf_claim"), "the claim has let go")
            return self._holds(pid), self.next_claim_ms()

    def unread_turns(self) -> tuple[dict[str, Any], float, int]:
        """Have a client not read what it has claimed, which is more than any buffer holds.

        Returns:
            What it holds, how long the next claim takes, and whether the server waits for it.
        """
        worker = self.worker()
        lane, seq, _ = self.stage.session().verb("claim", **claim_of(worker, limit=_LARGE))[0]
        params = [b"%d" % lane, b"%d" % seq, b"%d" % worker]
        with self._deaf("deaf_turns", params) as pid:
            self.stage.until(lambda: self._waits_for_client(pid), "nobody reads")
            holds, took_ms = self._holds(pid), self.next_claim_ms()
            return holds, took_ms, self._waits_for_client(pid)

    def frozen_worker(self) -> tuple[float, int]:
        """Freeze a worker process between its claim and what follows.

        Returns:
            How long the next claim takes; and whether the process stood still all the while.
        """
        boots = [at_statement("lease_turns")]
        fleet = self.stage.workers(slots=2, lease_s=_LEASE_S, boots=boots)
        self.stage.submit([JobSpec(uuid=uuid4(), kind=NOTE) for _ in range(_PROBES)])

        def frozen() -> bool:
            return any(state == "T" for _, parent, state in processes() if parent == fleet.pid)

        self.stage.until(frozen, "the worker stands still with what it has claimed")
        took_ms, still = self.next_claim_ms("default"), frozen()
        self.stage.heal()
        return took_ms, still

    def _waits_for_client(self, pid: int) -> bool:
        _, wait, _ = self.stage.ask("backend_state", pid=pid)[0]
        return bool(wait == "ClientWrite")

    def _has_ended(self, pid: int, name: str) -> bool:
        """Return whether a backend is done with a statement; before it has come it is idle too."""
        state, _, text = self.stage.ask("backend_state", pid=pid)[0]
        return bool(state == "idle" and text == query(name))

    def _holds(self, pid: int) -> dict[str, Any]:
        return {"lanes": self.stage.ask("advisory_locks", pid=pid)[0][0]}

    @contextmanager
    def _deaf(self, name: str, params: list[bytes]) -> Iterator[int]:
        """Send a statement, read nothing, and lend the id of the backend."""
        connection: Any = Connections(self.stage.dsn).connect()
        try:
            connection.pgconn.send_query_params(query(name).encode(), params)
            connection.pgconn.flush()
            yield connection.info.backend_pid
        finally:
            connection.close()
