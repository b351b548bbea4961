"""X2: what a worker or a client has asked for is carried out, and the answer is lost."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final
from uuid import uuid4

from timeball.certify.disasters.workload import once, seen
from timeball.certify.faults import lost_answers, unanswered
from timeball.certify.kinds import NOTE
from timeball.certify.scenario import Outcome, Scenario
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
from timeball.errors import StoreUnavailable
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import Connections

STATEMENTS: Final = ("register", "claim", "lease_turns", "settle", "promote")
"""Of workers: what they send again."""

_TIMES: Final = 1
_JOBS: Final = 60
_LEASE_S: Final = 15.0
"""Longer than a busy machine may stand still: nobody is to be given up here."""


class Deaf(Connections):
    """Connections whose answers are lost, for a while."""

    losses = 0

    def run(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        """See `Connections.run`; the first answer to each is lost."""
        rows = super().run(name, **params)
        if name == "submit" and self.losses < _TIMES:
            self.losses += 1
            raise StoreUnavailable("certify has lost this answer")
        return rows


class DeafStore(PostgresStore):
    """A client's store over such connections."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self.connections = self.deaf = Deaf(dsn)
        self._run = self.deaf.run


def _submit(stage: Stage) -> int:
    """Submit as a client that sends again what was not answered; return how often it was not."""
    specs = [JobSpec(uuid=uuid4(), kind=NOTE) for _ in range(_JOBS)]
    with closing(DeafStore(stage.dsn)) as store:
        while not _answered(stage, store, specs):
            pass
    stage.accepted.update(spec.uuid for spec in specs)
    return store.deaf.losses


def _answered(stage: Stage, store: DeafStore, specs: list[JobSpec]) -> bool:
    try:
        with stage.history.calling("submit", jobs=len(specs)):
            store.submit(specs)
    except StoreUnavailable:
        return False
    return True


def run(stage: Stage) -> Outcome:
    """Lose answers to a client that submits and to the workers."""
    losses = _submit(stage)
    boots = [unanswered(stage.folder, STATEMENTS, _TIMES)]
    stage.workers(2, slots=2, lease_s=_LEASE_S, boots=boots)
    stage.drain()
    stage.until(
        lambda: not {*STATEMENTS} - {*lost_answers(stage.folder)}, "an answer to each is lost"
    )
    lost = lost_answers(stage.folder)
    return Outcome(
        expected=once(_JOBS),
        observed=seen(stage),
        witness={"submit": losses, **{name: lost.get(name, 0) for name in STATEMENTS}},
    )


X2: Final = Scenario(
    id="X2",
    title="submit, claim, settle and promote are carried out, and not answered",
    run=run,
    invariants=("I3", "I4", "I6"),
)
