"""X13: somebody keeps an old snapshot open, so that no row that has died is ever removed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from math import inf
from statistics import median, quantiles
from typing import Final
from uuid import UUID, uuid4

from timeball.certify.queries import query
from timeball.certify.scenario import THOROUGH, Check, Outcome, Scenario
from timeball.certify.stage import Stage
from timeball.certify.verbs import KIND, claim_of, worker_of
from timeball.core.records import JobSpec, Settlement, Turn
from timeball.core.states import Ending, State
from timeball.store.postgres import PostgresStore

RATIO: Final = 3.0
"""So many times as long may a claim take, and so many times the pages may it read."""

_JOBS: Final = 10_000
_RETRIES: Final = 3
"""Each leaves a dead row: as many as 500 jobs a second do that fail once, in 60 seconds, which so
need not be waited for."""

_WARM: Final = 1_000
_WAVE: Final = 1_000
_BEATS: Final = 2
"""In each wave: six a lease of 30 s would be fewer."""

_CLAIMS: Final = 200
_TURNS: Final = 10
_ROUNDS: Final = 5
_EXPLAINED: Final = 9


class Ledger:
    """A client and a worker by hand, who are as quick as the database is.

    Args:
        stage: Where.
        store: Their store.
    """

    def __init__(self, stage: Stage, store: PostgresStore) -> None:
        self.stage = stage
        self.store = store
        self.worker = worker_of(store)
        self.jobs = 0

    def load(self, jobs: int) -> None:
        """Run jobs, each of which fails some times, waits, and succeeds."""
        for _ in range(0, jobs, _WAVE):
            self._submit(_WAVE)
            for _ in range(_RETRIES):
                self._settle(self._claim(_WAVE), Ending.RETRIED)
                while self.store.promote(_WAVE).moved:
                    pass
            self._settle(self._claim(_WAVE), Ending.SUCCEEDED)
            for _ in range(_BEATS):
                self.store.beat([self.worker])

    def p99_ms(self) -> float:
        """Return what a claim takes in the middle of jobs that come and end, but for one in 100."""
        took_ms = []
        for _ in range(_CLAIMS):
            self._submit(_TURNS)
            began_s = time.perf_counter()
            turns = self._claim(_TURNS)
            took_ms.append((time.perf_counter() - began_s) * 1e3)
            self._settle(turns, Ending.SUCCEEDED)
        return quantiles(took_ms, n=100)[-1]

    def pages(self) -> float:
        """Return how many pages a claim reads: no machine is too busy for that."""
        seen: list[int] = []
        for _ in range(_EXPLAINED):
            self._submit(_TURNS)
            request = uuid4()
            with self.store.connections.borrowed() as connection:
                asked = query("explain_claim").encode()
                ((told,),) = connection.execute(
                    asked, claim_of(self.worker, _TURNS, request)
                ).fetchall()
            self._settle(self._claim(_TURNS, request), Ending.SUCCEEDED)
            plan = told[0]["Plan"]
            seen.append(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])
        return float(median(seen))

    def _submit(self, count: int) -> None:
        specs = [JobSpec(uuid=uuid4(), kind=KIND, max_retries=_RETRIES) for _ in range(count)]
        self.store.submit(specs)
        self.stage.accepted.update(spec.uuid for spec in specs)
        self.jobs += count

    def _claim(self, count: int, request: UUID | None = None) -> list[Turn]:
        return self.store.claim(self.worker, limit=count, request=request or uuid4(), floors={})

    def _settle(self, turns: list[Turn], ending: Ending) -> None:
        self.store.settle(
            self.worker,
            [Settlement(*turn[:4], ending, began_at=turn.granted_at) for turn in turns],
        )


@contextmanager
def snapshot(stage: Stage) -> Iterator[None]:
    """Have somebody see the database as it is now, as long as the block runs."""
    old = stage.session()
    old.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    old.run(query("database"))  # a snapshot is taken by the first statement
    yield
    old.rollback()


def run(stage: Stage) -> Outcome:
    """Keep a snapshot while as much is written as in a minute, and claim as before."""
    with closing(PostgresStore(stage.dsn)) as store:
        ledger = Ledger(stage, store)
        ledger.load(_WARM)
        stage.ask("vacuum")
        before_ms, before = ledger.p99_ms(), ledger.pages()
        with snapshot(stage):
            ledger.load(_JOBS)
            stage.ask("vacuum")  # which may remove nothing
            ((kept,),) = stage.ask("dead_rows")
            rounds_ms: list[float] = []
            while len(rounds_ms) < _ROUNDS and min(rounds_ms, default=inf) > RATIO * before_ms:
                rounds_ms.append(ledger.p99_ms())
            after = ledger.pages()
        store.retire(ledger.worker)
    stage.drain()
    counts = stage.store.counts()
    slow, wide = min(rounds_ms) / before_ms, after / before
    return Outcome(
        expected={"succeeded": ledger.jobs},
        observed={"succeeded": counts.get(State.SUCCEEDED, 0)},
        witness={"rows that died and are kept": kept},
        checks=(
            Check("p99 of a claim", slow <= RATIO, f"{slow:.1f} times as long"),
            Check("pages of a claim", wide <= RATIO, f"{wide:.1f} times as many"),
        ),
        measured={
            "before_ms": round(before_ms, 2),
            "rounds_ms": [round(each, 2) for each in rounds_ms],
            "pages": [before, after],
        },
    )


X13: Final = Scenario(
    id="X13",
    title="an old snapshot is kept open under load",
    run=run,
    invariants=("I3", "I6"),
    profiles=THOROUGH,
)
