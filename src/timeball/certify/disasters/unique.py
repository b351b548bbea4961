"""X18: many sessions submit the same unique jobs, each in an order of its own."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Barrier
from typing import Final
from uuid import uuid4

from timeball.certify.scenario import Outcome, Profile, Scenario
from timeball.certify.schedules import Dice
from timeball.certify.stage import Stage
from timeball.certify.verbs import KIND
from timeball.core.records import JobSpec
from timeball.core.uniqueness import Unique
from timeball.errors import StoreUnavailable
from timeball.store.postgres import PostgresStore

INSERTS: Final = {Profile.QUICK: 4_000, Profile.FULL: 100_000, Profile.SOAK: 100_000}
SESSIONS: Final = 8
_BATCH: Final = 100
_PATIENCE_S: Final = 60.0
"""So long those who are there wait for the others; then all of them fail."""


class Session:
    """One of those who submit, with an order and a store of its own.

    Args:
        dsn: Of the database.
        keys: Of its jobs, in its order.
    """

    def __init__(self, dsn: str, keys: Sequence[str]) -> None:
        self._dsn = dsn
        self._keys = keys
        self.met = 0
        """How many of its jobs were another session's already."""

        self.refused = ""
        """What the store said when it failed."""

    def run(self, start: Barrier) -> None:
        """Submit all once everybody is there."""
        with closing(PostgresStore(self._dsn)) as store:
            start.wait(_PATIENCE_S)
            try:
                for at in range(0, len(self._keys), _BATCH):
                    self._submit(store, self._keys[at : at + _BATCH])
            except StoreUnavailable as error:  # among others a deadlock
                self.refused = str(error)

    def _submit(self, store: PostgresStore, keys: Sequence[str]) -> None:
        specs = [JobSpec(uuid=uuid4(), kind=KIND, unique=Unique(key=key)) for key in keys]
        given = store.submit(specs)
        self.met += sum(spec.uuid != job.uuid for spec, job in zip(specs, given, strict=True))


def run(stage: Stage) -> Outcome:
    """Let all sessions submit at once, and count jobs, errors and deadlocks."""
    inserts = INSERTS[stage.terms.profile]
    keys = [f"key-{number}" for number in range(inserts // SESSIONS)]
    stage.store.ensure_lanes([("default", 5)])
    sessions = [
        Session(stage.dsn, Dice(stage.dice.throw(1 << 30)).shuffled(keys)) for _ in range(SESSIONS)
    ]
    start = Barrier(SESSIONS)
    with ThreadPoolExecutor(SESSIONS) as pool:
        for done in [pool.submit(each.run, start) for each in sessions]:
            done.result()
    refused = sorted({each.refused for each in sessions} - {""})
    return Outcome(
        expected={"jobs": len(keys), "deadlocks": 0, "refused": []},
        observed={
            "jobs": sum(stage.store.counts().values()),
            "deadlocks": stage.ask("deadlocks")[0][0],
            "refused": refused,
        },
        witness={"met another session's job": sum(each.met for each in sessions)},
        measured={"submissions": inserts},
    )


X18: Final = Scenario(
    id="X18",
    title="the same unique jobs from eight sessions, each in an order of its own",
    run=run,
    invariants=("I1", "I6"),
)
