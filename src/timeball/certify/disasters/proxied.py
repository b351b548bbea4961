"""X5, X9: workers that reach the database through a proxy only, which works or swallows all."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from typing import Final
from uuid import uuid4

from timeball.certify.disasters.workload import once, seen
from timeball.certify.founding import zombies
from timeball.certify.kinds import NOTE
from timeball.certify.pooler import pooled
from timeball.certify.scenario import THOROUGH, Outcome, Scenario, Skipped
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
from timeball.store.postgres import PostgresStore

_JOBS: Final = 100
_WORKERS: Final = 2
_SAID: Final = "polling: a pooling proxy"


def _own(stage: Stage) -> str:
    """Return the address of the database, where a proxy may be put before its server."""
    if stage.terms.own_server is None:
        raise Skipped("a proxy is put before certify's own server only: leave --dsn out")
    return stage.dsn


def run_partition(stage: Stage) -> Outcome:
    """Have a proxy swallow all that a worker says and hears until its job has run elsewhere."""
    with pooled(_own(stage)) as proxy:
        told, refused = zombies.given_up(
            stage,
            dsn=proxy.dsn,
            cut=lambda _: os.kill(proxy.pid, signal.SIGSTOP),
            back=lambda: os.kill(proxy.pid, signal.SIGCONT),
        )
        stage.fleets[0].stop()
    return Outcome(
        expected=zombies.expected_frozen(), observed=told, witness={"stale_refused": refused}
    )


def run(stage: Stage) -> Outcome:
    """Submit, run and end jobs behind PgBouncer in transaction mode."""
    with pooled(_own(stage)) as proxy:
        dsn = proxy.dsn
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


X5: Final = Scenario(
    id="X5",
    title="a worker that is alive is cut off until another one has run its job",
    run=run_partition,
    invariants=("I4", "I5"),
    profiles=THOROUGH,
)
X9: Final = Scenario(
    id="X9",
    title="everything through a pooling proxy in transaction mode",
    run=run,
    invariants=("I3", "I6"),
    profiles=THOROUGH,
)
