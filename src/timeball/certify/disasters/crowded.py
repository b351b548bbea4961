"""X10: far more who ask than sessions to ask in: a pool of two, and a server that takes no more."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import Any, Final
from uuid import uuid4

from timeball.certify.disasters.workload import seen
from timeball.certify.kinds import HOLD, NOTE
from timeball.certify.pooler import Pooler, pooled
from timeball.certify.queries import query
from timeball.certify.scenario import THOROUGH, Outcome, Scenario, Skipped
from timeball.certify.sessions import Session
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
from timeball.errors import StoreUnavailable
from timeball.store.postgres import PostgresStore

CLIENTS: Final = 50
_POOL: Final = 2
_EACH: Final = 10
_HELD: Final = 4
_LEASE_S: Final = 2.0
_LEASES: Final = 2
_BEATS: Final = 2 * _LEASES
"""The least that must come; three times as many are due."""

_FILLS: Final = 10
"""How often in a lease."""

_CALM_LEASE_S: Final = 20.0
_GATE: Final = "go"
_LOCKED: Final = "entry"
"""The table that a claim reads."""

_SESSIONS_MAX: Final = 1_000


def run(stage: Stage) -> Outcome:
    """Have fifty threads share two sessions; then have no session be left for anybody."""
    if stage.terms.own_server is None:
        raise Skipped("only certify's own server is filled: leave --dsn out")
    left_out: dict[str, str] = {}
    waited: dict[str, int] = {}
    jobs = _HELD + 1
    try:
        with pooled(stage.dsn, _POOL) as proxy:
            waited = {"clients that waited for the pool": _shared(stage, proxy)}
            jobs += CLIENTS * _EACH
    except Skipped as skipped:
        left_out = {f"a pool of {_POOL}": str(skipped)}
    told, met = _full(stage)
    stage.drain()
    return Outcome(
        expected={
            "jobs": jobs,
            "succeeded": jobs,
            "attempts of each": {"1": jobs},
            "a client without a session": "refused",
            "workers given up": 0,
            "beats go on": True,
        },
        observed={**seen(stage), **told},
        witness={**waited, **met},
        left_out=left_out,
    )


def _shared(stage: Stage, proxy: Pooler) -> int:
    """Have clients and a worker share a pool; return how many clients waited for it at once."""
    fleet = stage.workers(slots=CLIENTS, lease_s=_CALM_LEASE_S, dsn=proxy.dsn)
    stage.until(stage.store.pulses, "the worker is there")
    gates = [Session(proxy.dsn, stage.watcher).begin() for _ in range(_POOL)]
    with closing(PostgresStore(proxy.dsn)) as store, ThreadPoolExecutor(CLIENTS) as threads:
        try:
            sent = [threads.submit(_send, stage, store) for _ in range(CLIENTS)]
            stage.until(lambda: proxy.waiting() >= CLIENTS, "all wait for the pool")
            waited = sum(not each.done() for each in sent)
        finally:
            for gate in gates:
                gate.commit()
                gate.close()
        for each in sent:
            each.result()
    stage.drain()
    fleet.stop()
    return waited


def _send(stage: Stage, store: PostgresStore) -> None:
    """Submit some jobs as a client that sends again what was not answered."""
    specs = [JobSpec(uuid=uuid4(), kind=NOTE) for _ in range(_EACH)]
    _sent(stage, store, specs)


def _sent(stage: Stage, store: PostgresStore, specs: Sequence[JobSpec]) -> None:
    with stage.history.calling("submit", jobs=len(specs)):
        store.submit(specs)
    stage.accepted.update(spec.uuid for spec in specs)


def _full(stage: Stage) -> tuple[dict[str, Any], dict[str, int]]:
    """Leave no session to anybody, and have a worker wait in the one that it has for its claims.

    Returns:
        What was seen; and how often faults were met.
    """
    stage.workers(slots=_HELD + 1, lease_s=_LEASE_S)
    args = f'{{"gate": "{_GATE}"}}'
    held = [JobSpec(uuid=uuid4(), kind=HOLD, args=args) for _ in range(_HELD)]
    stage.submit(held)
    wanted = {spec.uuid for spec in held}
    stage.until(lambda: wanted <= stage.effects.began().keys(), "they have begun")
    late = [JobSpec(uuid=uuid4(), kind=NOTE)]
    gate = stage.session().begin()
    gate.run(query("gate").format(table=_LOCKED))
    with ExitStack() as exits:
        sessions = _fill(stage, exits)
        before = {pulse.worker: pulse.beat for pulse in stage.store.pulses()}
        stage.until(lambda: stage.ask("held_up", pid=gate.pid)[0][0], "its claim waits")
        waiting = stage.ask("held_up", pid=gate.pid)[0][0]
        answer = "accepted" if _try(stage, late) else "refused"
        for _ in range(_LEASES * _FILLS):  # what becomes free is taken too
            sessions += _fill(stage, exits)
            _wait(stage, _LEASE_S / _FILLS)
        after = {pulse.worker: pulse.beat for pulse in stage.store.pulses()}
    gate.commit()
    stage.until(lambda: _try(stage, late), "the client is answered")
    (stage.folder / _GATE).touch()
    told = {
        "a client without a session": answer,
        "workers given up": len(before.keys() - after.keys()),
        "beats go on": all(
            after.get(worker, 0) >= beat + _BEATS for worker, beat in before.items()
        ),
    }
    return told, {"sessions that fill the server": sessions, "claims held up": waiting}


def _fill(stage: Stage, exits: ExitStack) -> int:
    """Take sessions until there are no more; return how many those are."""
    for taken in range(_SESSIONS_MAX):
        store = PostgresStore(stage.dsn)
        exits.callback(store.close)
        try:
            store.now()
        except StoreUnavailable:
            return taken
    raise Skipped(f"the server takes more than {_SESSIONS_MAX} sessions")


def _wait(stage: Stage, seconds: float) -> None:
    """Wait for a part of a lease to pass."""
    until_s = time.monotonic() + seconds
    stage.until(lambda: time.monotonic() > until_s, "a part of a lease passes")


def _try(stage: Stage, specs: Sequence[JobSpec]) -> bool:
    """Submit as a client that has no session yet; return whether it was answered."""
    with closing(PostgresStore(stage.dsn)) as store:
        try:
            _sent(stage, store, specs)
        except StoreUnavailable:
            return False
    return True


X10: Final = Scenario(
    id="X10",
    title="fifty threads share two sessions; then the server takes no more sessions",
    run=run,
    invariants=("I3", "I5", "I6"),
    own_server=True,
    profiles=THOROUGH,
)
