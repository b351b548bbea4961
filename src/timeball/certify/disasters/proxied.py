"""X5, X9: workers that reach the database through a proxy only, which works or swallows all."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from typing import Any, Final
from uuid import uuid4

from timeball.certify.disasters.workload import once, seen
from timeball.certify.founding import zombies
from timeball.certify.kinds import NOTE
from timeball.certify.link import Way, linked
from timeball.certify.pooler import pooled
from timeball.certify.scenario import THOROUGH, Outcome, Scenario, Skipped
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
from timeball.store.postgres import PostgresStore

_JOBS: Final = 100
_WORKERS: Final = 2
_SAID: Final = "polling: a pooling proxy"
_ONE: Final = "one way"
_BOTH: Final = "both ways"

Seen = tuple[dict[str, Any], int]
"""What became of the job, and how many settlements were refused."""


def _own(stage: Stage) -> str:
    """Return the address of the database, where a proxy may be put before its server."""
    if stage.terms.own_server is None:
        raise Skipped("a proxy is put before certify's own server only: leave --dsn out")
    return stage.dsn


def _both_ways(stage: Stage) -> Seen:
    """Have a pooling proxy swallow all that a worker says and hears."""
    with pooled(_own(stage)) as proxy:
        told = zombies.given_up(
            stage,
            dsn=proxy.dsn,
            gate=_BOTH,
            cut=lambda _: os.kill(proxy.pid, signal.SIGSTOP),
            back=lambda: os.kill(proxy.pid, signal.SIGCONT),
        )
        for fleet in stage.fleets:
            fleet.stop()
    return told


def _one_way(stage: Stage) -> Seen:
    """Have what a worker says arrive, and nothing of what it is answered."""
    with linked(_own(stage)) as link:
        told = zombies.given_up(
            stage,
            dsn=link.dsn,
            gate=_ONE,
            cut=lambda _: link.turn(Way.MUTE),
            back=lambda: link.turn(Way.PASS),
        )
        for fleet in stage.fleets:
            fleet.stop()
    return told


def run_partition(stage: Stage) -> Outcome:
    """Cut a worker off until its job has run elsewhere, in both ways and in one."""
    found, left_out = {_ONE: _one_way(stage)}, {}
    try:
        found[_BOTH] = _both_ways(stage)
    except Skipped as skipped:
        left_out[_BOTH] = str(skipped)
    return Outcome(
        expected=dict.fromkeys(found, zombies.expected_frozen()),
        observed={name: told for name, (told, _) in found.items()},
        witness={f"stale_refused, {name}": refused for name, (_, refused) in found.items()},
        left_out=left_out,
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
