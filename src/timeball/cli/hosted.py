"""One job carried out by this process: a worker of its own, which knows nothing else.

The job lines up in a queue that nobody else serves, and a command is a kind of its own that only
this worker has; so nothing that others submit can run here, and nobody else runs this.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from timeball.action.addresses import ALLOW_VARIABLE
from timeball.action.command import Command
from timeball.action.command_kind import command_kind
from timeball.action.job_call import JobCall
from timeball.action.registry import Registry
from timeball.chance import new_uuid
from timeball.cli.database import opened
from timeball.client import Client, Handle
from timeball.core.records import Job
from timeball.core.states import TERMINAL
from timeball.errors import TimeballError
from timeball.store.postgres.store import PostgresStore
from timeball.worker.child import Load
from timeball.worker.config import WorkerConfig
from timeball.worker.supervisor import Supervisor, SupervisorConfig

LOADER: Final = f"{__name__}:load"
"""How the worker names `load`."""

_LOOK_S: Final = 0.5
_STOP_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosted:
    """What is to be run: a job value, or a command."""

    call: JobCall | None = None
    command: Mapping[str, Any] | None = None
    """The facts of `load`, but for the name."""

    max_retries: int = 0
    http_allow: Sequence[str] = ()
    """What this worker lets HTTP jobs call that is not public."""


def left_to_workers(call: JobCall, *, dsn: str | None, max_retries: int) -> str:
    """Submit a job for any worker; return its id."""
    with opened(dsn) as client:
        return str(client.submit(call, max_retries=max_retries).uuid)


def carried_out(hosted: Hosted, *, dsn: str | None) -> Job:
    """Submit a job, carry it out and return it once it has ended.

    Where this is interrupted, the job is cancelled, and what it has started is ended.
    """
    if hosted.http_allow:
        os.environ[ALLOW_VARIABLE] = ",".join(hosted.http_allow)  # the child inherits it
    uuid = new_uuid()
    name = f"run-{uuid}"
    with opened(dsn) as client:
        store = client.store
        assert isinstance(store, PostgresStore)
        what = name if hosted.call is None else hosted.call
        handle = client.submit(what, uuid=uuid, queue=name, max_retries=hosted.max_retries)
        facts = {"name": name, **(hosted.command or {})}
        load = Load(target=name, loader=LOADER, options={"commands": [facts]})
        config = SupervisorConfig(
            dsn=store.connections.dsn,
            loads=(load,) if hosted.command else (),
            worker=WorkerConfig(name=f"run-{os.getpid()}", queues=(name,), slots=1),
        )
        return _watched(client, handle, Supervisor(config))


def _watched(client: Client, handle: Handle, supervisor: Supervisor) -> Job:
    # That its worker stops when all is done is no news.
    logging.getLogger(Supervisor.__module__).setLevel(logging.ERROR)
    supervisor.start()
    try:
        while (job := handle.job()).state not in TERMINAL:
            if supervisor.wait(0) is not None:
                raise TimeballError(f"the worker could not start: {supervisor.failure.strip()}")
            with suppress(TimeoutError):
                handle.wait(_LOOK_S)
        return job
    finally:
        client.cancel(handle)
        supervisor.stop(now=True)
        supervisor.wait(_STOP_S)


def load(target: str, *, commands: Sequence[Mapping[str, Any]]) -> Registry:
    """Return the kinds of some commands.

    Args:
        target: Where they come from, for people.
        commands: Name, argv, env, cwd and timeout_s of each.
    """
    registry = Registry()
    for facts in commands:
        command = Command(argv=tuple(facts["argv"]), env=dict(facts["env"]), cwd=facts["cwd"])
        kind = command_kind(facts["name"], command, place=target, timeout_s=facts["timeout_s"])
        registry.add(kind)
    return registry
