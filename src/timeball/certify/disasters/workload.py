"""Jobs for worker processes, and what must be true of them when all is over."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from timeball.certify.kinds import HOLD, NOTE
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
from timeball.core.states import State
from timeball.errors import StoreUnavailable

CRASHES_MAX: Final = 100
"""More than any scenario costs a job."""


def add(stage: Stage, count: int, kind: str = NOTE) -> None:
    """Submit jobs that note that they ran."""
    stage.submit([JobSpec(uuid=uuid4(), kind=kind, max_crashes=CRASHES_MAX) for _ in range(count)])


def hold(stage: Stage, count: int, gate: str) -> None:
    """Have jobs be in their middle until the file of that name is in the stage's folder."""
    args = f'{{"gate": "{gate}"}}'
    held = [JobSpec(uuid=uuid4(), kind=HOLD, args=args) for _ in range(count)]
    stage.submit(held)
    wanted = {spec.uuid for spec in held}
    stage.until(lambda: wanted <= stage.effects.began().keys(), "those that stay have begun")


def once(jobs: int) -> dict[str, Any]:
    """Return what `seen` must tell where no worker has died: each job has run once."""
    return {"jobs": jobs, "succeeded": jobs, "attempts of each": {"1": jobs}}


def seen(stage: Stage) -> dict[str, Any]:
    """Return how many jobs there are, have succeeded and have begun how often."""
    began = stage.effects.began()
    times = Counter(str(count) for count in began.values())
    return {**totals(stage), "attempts of each": dict(sorted(times.items()))}


def totals(stage: Stage) -> Mapping[str, int]:
    """Return how many jobs there are, and how many of them have succeeded."""
    counts = stage.store.counts()
    return {"jobs": sum(counts.values()), "succeeded": counts.get(State.SUCCEEDED, 0)}


def answers(stage: Stage) -> bool:
    """Return whether the server answers the harness."""
    try:
        stage.store.now()
    except StoreUnavailable:
        return False
    return True
