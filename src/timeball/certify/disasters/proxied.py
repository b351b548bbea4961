"""X9: workers and a client that reach the database through a pooling proxy only."""

from __future__ import annotations

from contextlib import closing
from typing import Final
from uuid import uuid4

from timeball.certify.disasters.workload import once, seen
from timeball.certify.kinds import NOTE
from timeball.certify.pooler import pooled
from timeball.certify.scenario import THOROUGH, Outcome, Scenario, Skipped
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
from timeball.store.postgres import PostgresStore

_JOBS: Final = 100
_WORKERS: Final = 2
_SAID: Final = "polling: a pooling proxy"


def run(stage: Stage) -> Outcome:
    """Submit, run and end jobs behind PgBouncer in transaction mode."""
    if stage.terms.own_server is None:
        raise Skipped("a proxy is put before certify's own server only: leave --dsn out")
    with pooled(stage.dsn) as dsn:
        specs = [JobSpec(uuid=uuid4(), kind=NOTE) for _ in range(_JOBS)]
        with closing(PostgresStore(dsn)) as store:
            store.submit(specs)
        stage.accepted.update(spec.uuid for spec in specs)
        fleet = stage.workers(_WORKERS, dsn=dsn)
        stage.drain()
        stage.until(lambda: fleet.log.read_text().count(_SAID) == _WORKERS, "it is noticed")
        fleet.stop()
        noticed = fleet.log.read_text().count(_SAID)
    return Outcome(
        expected={**once(_JOBS), "workers that noticed": _WORKERS},
        observed={**seen(stage), "workers that noticed": noticed},
        witness={"workers behind the proxy": noticed},
    )


X9: Final = Scenario(
    id="X9",
    title="everything through a pooling proxy in transaction mode",
    run=run,
    invariants=("I3", "I6"),
    profiles=THOROUGH,
)
