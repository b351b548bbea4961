"""X12: one in five statements fails, as one does that met another transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

from timeball.certify.disasters.workload import once, seen
from timeball.certify.faults import CODES, Misfortune, failing, failures
from timeball.certify.kinds import NOTE
from timeball.certify.scenario import THOROUGH, Outcome, Scenario
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
from timeball.errors import StoreUnavailable
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import Connections

STATEMENTS: Final = ("submit", "register", "beat", "promote", "claim", "lease_turns", "settle")
"""Of a job's life; each must have failed, though not these alone do."""

_BATCHES: Final = 30
_BATCH: Final = 5
_LATE: Final = 20
_LATER: Final = timedelta(seconds=0.3)


class _Struck(Connections):
    """Connections whose statements fail now and then."""

    def __init__(self, dsn: str, misfortune: Misfortune) -> None:
        super().__init__(dsn)
        self._misfortune = misfortune

    def _rows(self, connection: Any, name: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
        self._misfortune.strike(name, connection)
        return super()._rows(connection, name, params)


class _StruckStore(PostgresStore):
    """A client's store over such connections."""

    def __init__(self, dsn: str, misfortune: Misfortune) -> None:
        super().__init__(dsn)
        self.connections = _Struck(dsn, misfortune)
        self._run = self.connections.run


def run(stage: Stage) -> Outcome:
    """Have statements of a client and of a worker fail while jobs come, wait and end."""
    seed = stage.terms.seed
    stage.workers(boots=[failing(stage.folder, seed)])
    later = stage.store.now() + _LATER
    unanswered = 0
    with closing(_StruckStore(stage.dsn, Misfortune(str(stage.folder), seed))) as store:
        for _ in range(_BATCHES):
            specs = [JobSpec(uuid=uuid4(), kind=NOTE) for _ in range(_BATCH)]
            unanswered += _insisted(stage, store, specs)
        specs = [JobSpec(uuid=uuid4(), kind=NOTE, run_at=later) for _ in range(_LATE)]
        unanswered += _insisted(stage, store, specs)
    stage.drain()
    met = failures(stage.folder)
    return Outcome(
        expected=once(_BATCHES * _BATCH + _LATE),
        observed=seen(stage),
        witness={
            **{name: sum(met[name, code] for code in CODES) for name in STATEMENTS},
            **{each: sum(met[name, code] for name, code in met if code == each) for each in CODES},
        },
        measured={"failures": met.total(), "submissions sent again": unanswered},
    )


def _insisted(stage: Stage, store: PostgresStore, specs: Sequence[JobSpec]) -> int:
    """Submit as a client that sends again what was not answered; return how often it did."""
    again = 0

    def answered() -> bool:
        nonlocal again
        try:
            with stage.history.calling("submit", jobs=len(specs)):
                store.submit(specs)
        except StoreUnavailable:
            again += 1
            return False
        return True

    stage.until(answered, "the client is answered")
    stage.accepted.update(spec.uuid for spec in specs)
    return again


X12: Final = Scenario(
    id="X12",
    title="one in five statements meets a serialization failure or a deadlock",
    run=run,
    invariants=("I3", "I4", "I6"),
    profiles=THOROUGH,
)
