"""Of a thousand jobs that run when their worker dies, one is guilty: it alone is quarantined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
from tests.worker.supervision import assert_clean, configured, in_state, submit, until

from timeball.core.records import JobSpec
from timeball.core.states import TERMINAL, State
from timeball.store.base import JobFilter
from timeball.store.postgres import PostgresStore
from timeball.worker.child import Load

INNOCENT = 999
APP = f"""
import asyncio, os, time
import timeball as tb

begun = 0

@tb.job(name="innocent")
async def innocent(ctx: tb.Context):
    global begun
    begun += 1
    if ctx.attempt == 1:
        await asyncio.Event().wait()

@tb.job(name="guilty")
def guilty(ctx: tb.Context):
    while ctx.attempt == 1 and begun < {INNOCENT}:
        time.sleep(0.01)
    os._exit(9)
"""


@pytest.mark.slow
def test_of_a_thousand_turns_of_a_worker_that_dies_only_the_guilty_job_is_quarantined(
    dsn: str, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    (folder / "deadly.py").write_text(APP)
    guilty = submit(store, "guilty")
    store.submit([JobSpec(uuid=uuid4(), kind="innocent") for _ in range(INNOCENT)])
    config = configured(dsn, folder, slots=INNOCENT + 1, lease_s=30.0)
    supervise(replace(config, loads=(Load(target=str(folder / "deadly.py")),)))
    until(in_state(store, guilty, State.FAILED), "the guilty one is given up")
    until(lambda: set(store.counts()) <= TERMINAL, "the others have ended")
    assert (store.get(guilty).reason, store.get(guilty).crashes) == ("quarantined", 3)
    assert store.counts() == {State.FAILED: 1, State.SUCCEEDED: INNOCENT}
    crashes = Counter(job.crashes for job in store.jobs(JobFilter(kind="innocent", limit=1_000)))
    assert crashes == {1: INNOCENT}
    assert_clean(store, INNOCENT + 1)
