"""X11, the leg of the log: what a server writes ahead has no room, so that it ends; then it has."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from timeball.certify.databases import carry_out
from timeball.certify.disasters.workload import add, answers, once, seen
from timeball.certify.kinds import HOLD, NOTE
from timeball.certify.link import linked
from timeball.certify.queries import query
from timeball.certify.stage import Stage
from timeball.certify.standby import Standby, following
from timeball.certify.volume import volume
from timeball.core.records import JobSpec
from timeball.errors import StoreUnavailable
from timeball.store.postgres.server import DATA, LOG

_SIZE_MB: Final = 128
_LEASE_S: Final = 2.0
_JOBS: Final = 40
_GATE: Final = "the log has room"
_SAID: Final = "No space left"


def log_full(stage: Stage, own: Path) -> tuple[dict[str, Any], dict[str, Any], dict[str, int]]:
    """Move to a copy of a server and have its log be full while jobs run.

    Returns:
        What must be seen, what was seen, and how often faults were met.
    """
    disk = stage.lend(volume(_SIZE_MB, (own / DATA).stat()))
    ((database,),) = stage.ask("database")
    server = stage.lend(following(own, stage.dsn, database, log=disk.data))
    server.catch_up()
    server.promote()
    link = stage.lend(linked(server.dsn))
    stage.move(link.dsn)
    fleet = stage.workers(lease_s=_LEASE_S)
    add(stage, _JOBS)
    stage.submit([JobSpec(uuid=uuid4(), kind=HOLD, args=f'{{"gate": "{_GATE}"}}')])
    stage.until(lambda: len(stage.effects.began()) == _JOBS + 1, "all have begun")
    before = {pulse.worker for pulse in stage.store.pulses()}
    filled = disk.fill()
    refused = [JobSpec(uuid=uuid4(), kind=NOTE) for _ in range(_JOBS)]
    stage.until(lambda: not _writes(stage) and not _accepts(stage, refused), "the log has no room")
    (stage.folder / _GATE).touch()
    disk.free()
    stage.reconnect()
    stage.until(lambda: _is_back(server), "the server starts again")
    link.lead(server.dsn)
    stage.until(lambda: answers(stage), "the server answers")
    after = {pulse.worker for pulse in stage.store.pulses()}
    stage.submit(refused)
    stage.drain()
    fleet.stop()
    said = (server.folder / LOG).read_text(errors="replace").count(_SAID)
    return (
        {**once(2 * _JOBS + 1), "workers given up": 0},
        {**seen(stage), "workers given up": len(before - after)},
        {"bytes that filled the log's disk": filled, "times that the log had no room": said},
    )


def _is_back(server: Standby) -> bool:
    """Return whether a server goes again, or else goes on to recover."""
    try:
        server.come_back()
    except StoreUnavailable:
        return False
    return True


def _writes(stage: Stage) -> bool:
    """Return whether the server can write a megabyte more."""
    try:
        carry_out(stage.dsn, query("write_log"))
    except StoreUnavailable:
        return False
    return True


def _accepts(stage: Stage, specs: list[JobSpec]) -> bool:
    """Return whether a client is told that its jobs are there."""
    try:
        stage.store.submit(specs)
    except StoreUnavailable:
        return False
    return True
