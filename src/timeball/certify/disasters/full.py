"""X11: the disk is full, and then it is not."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final
from uuid import uuid4

from timeball.certify.databases import carry_out, conninfo
from timeball.certify.disasters.full_log import log_full
from timeball.certify.disasters.workload import once, seen
from timeball.certify.kinds import HOLD, NOTE
from timeball.certify.queries import query
from timeball.certify.scenario import THOROUGH, Outcome, Scenario, Skipped
from timeball.certify.stage import Stage
from timeball.certify.volume import Volume, volume
from timeball.core.records import JobSpec
from timeball.errors import StoreUnavailable
from timeball.store.postgres.server import DATA

_SIZE_MB: Final = 64
_LEASE_S: Final = 2.0
_LEASES: Final = 2
_HELD: Final = 2
_JOBS: Final = 2_000
_BATCH: Final = 500
_GATE: Final = "go"
_SAID: Final = "No space left"
"""By the operating system, in its words for ENOSPC."""


def run(stage: Stage) -> Outcome:
    """Have the log's disk be full, then that of the data: jobs come and end meanwhile."""
    own = stage.terms.own_server
    if own is None:
        raise Skipped("only the disk of certify's own server is filled: leave --dsn out")
    log_wanted, log_seen, log_met = log_full(stage, own)
    disk = stage.lend(volume(_SIZE_MB, (own / DATA).stat()))
    stage.lend(_placed(stage, disk))
    fleet = stage.workers(lease_s=_LEASE_S)
    _begin(stage)
    before = {pulse.worker for pulse in stage.store.pulses()}
    gate = stage.session().begin()
    gate.run(query("lock_lane"), {"queue": "default"})
    stage.submit([JobSpec(uuid=uuid4(), kind=NOTE) for _ in range(_JOBS)])
    filled = disk.fill()
    refused = _refused(stage)
    jobs = len(stage.accepted) + len(refused)
    gate.commit()
    stage.until(lambda: _SAID in fleet.log.read_text(), "a worker has no room")
    until_s = time.monotonic() + _LEASES * _LEASE_S
    stage.until(lambda: time.monotonic() > until_s, "leases pass")
    (stage.folder / _GATE).touch()
    after = {pulse.worker for pulse in stage.store.pulses()}
    disk.free()
    stage.submit(refused)
    stage.drain()
    return Outcome(
        expected={"log": log_wanted, "data": {**once(jobs), "workers given up": 0}},
        observed={
            "log": log_seen,
            "data": {**seen(stage), "workers given up": len(before - after)},
        },
        witness={
            **log_met,
            "bytes that filled it": filled,
            "jobs that a client had no room for": len(refused),
            "answers to workers without room": fleet.log.read_text().count(_SAID),
        },
    )


@contextmanager
def _placed(stage: Stage, disk: Volume) -> Iterator[None]:
    """Have the database of a stage be on a disk, until it is dropped."""
    ((name,),) = stage.ask("database")
    stage.reconnect()
    elsewhere = conninfo(stage.dsn, dbname="postgres")
    place = f"{name}_disk"
    carry_out(elsewhere, query("create_tablespace").format(name=place, folder=disk.data))
    try:
        carry_out(elsewhere, query("move_database").format(name=name, place=place))
        yield
    finally:
        carry_out(elsewhere, query("drop_database").format(name=name))
        carry_out(elsewhere, query("drop_tablespace").format(name=place))


def _begin(stage: Stage) -> None:
    """Have jobs run that go on."""
    args = f'{{"gate": "{_GATE}"}}'
    held = [JobSpec(uuid=uuid4(), kind=HOLD, args=args) for _ in range(_HELD)]
    stage.submit(held)
    wanted = {spec.uuid for spec in held}
    stage.until(lambda: wanted <= stage.effects.began().keys(), "they have begun")


def _refused(stage: Stage) -> Sequence[JobSpec]:
    """Submit as long as that is accepted; return the jobs that were not."""
    while True:
        specs = [JobSpec(uuid=uuid4(), kind=NOTE) for _ in range(_BATCH)]
        try:
            stage.submit(specs)
        except StoreUnavailable as error:
            if _SAID not in str(error):
                raise
            return specs


X11: Final = Scenario(
    id="X11",
    title="the disk is full while jobs come and end; then it is not",
    run=run,
    invariants=("I3", "I5", "I6"),
    own_server=True,
    profiles=THOROUGH,
)
