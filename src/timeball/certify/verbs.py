"""What the statements of the store take, for sessions that are stepped through them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from timeball.core.records import JobSpec, Turn
from timeball.store.base import Store

KIND = "a"
"""The kind of jobs that nobody carries out: sessions settle them by hand."""


def submit(store: Store, count: int = 1, **fields: Any) -> list[JobSpec]:
    """Submit some jobs of kind `a`."""
    specs = [JobSpec(uuid=uuid4(), kind=KIND, **fields) for _ in range(count)]
    store.submit(specs)
    return specs


def worker_of(store: Store, *queues: str) -> int:
    """Return a new worker that knows kind `a`."""
    return store.register("w", kinds=[KIND], queues=queues or ["default"], lease_s=30.0)


def claim_all(store: Store, worker: int) -> list[Turn]:
    """Claim until nothing is left."""
    turns: list[Turn] = []
    while more := store.claim(worker, limit=1_000, request=uuid4(), floors={}):
        turns += more
    return turns


def jobs_json(count: int, uuids: Sequence[UUID] = (), **fields: object) -> str:
    """Return a JSON array of jobs, as `timeball.submit` takes it."""
    ids = uuids or [uuid4() for _ in range(count)]
    return json.dumps([{"uuid": str(uuid), "kind": KIND, **fields} for uuid in ids])


def claim_of(worker: int, limit: int = 1_000, request: UUID | None = None) -> dict[str, object]:
    """Return what the statement `claim` takes."""
    ask = request or uuid4()
    return {
        "worker": worker,
        "limit": limit,
        "request": ask,
        "lanes": [],
        "floors": [],
        "newest": None,
        "aging_s": 10.0,
        "permits": "{}",
    }


def expire_of(worker: int, beat: int | None = None, reason: str = "expired") -> dict[str, object]:
    """Return what the statement `expire` takes, where nothing is known of what had begun."""
    unknown = {"begun_jobs": None, "begun_turns": None, "began": None}
    return {"worker": worker, "beat": beat, **unknown, "reason": reason}


def settle_of(
    worker: int, turn: Turn, event: str = "succeeded", delay_s: float = 0.0
) -> dict[str, Any]:
    """Return what the statement `settle` takes for one turn that began."""
    return {
        "worker": worker,
        "lanes": [turn.lane],
        "seqs": [turn.seq],
        "job_ids": [turn.job_id],
        "turns": [turn.turn],
        "events": [event],
        "reasons": [],
        "delays_s": [delay_s],
        "began": [turn.granted_at],
        "ran_s": [0.0],
        "results": [],
        "error_types": [],
        "errors": [],
    }
