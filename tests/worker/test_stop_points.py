"""Wherever under load a supervisor is stopped: what ended has ended, the rest costs no retry."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen
from uuid import UUID

import pytest
from tests.worker.supervision import (
    PATIENCE_S,
    assert_clean,
    configured,
    submit,
    until,
)

from timeball.core.records import Job
from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.worker.supervisor import SupervisorConfig

POINTS = 10
"""Three for each way to stop, and one; from the seventh on a job has begun that goes on."""

LONG, KILL = 6, 8
NOTES = 20
"""Jobs that are added before each point."""


def stop(process: Popen[bytes], how: int) -> None:
    """Send SIGTERM; then nothing, a second one, or SIGKILL as those do whose grace is over."""
    process.send_signal(signal.SIGTERM)
    if how == 1:
        process.send_signal(signal.SIGTERM)
    if how == 2:
        process.kill()
    assert process.wait(PATIENCE_S) == (-signal.SIGKILL if how == 2 else 0)


def assert_given_back(job: Job, *, killed: bool) -> None:
    """Whoever was killed has it until the lease is over, and it has cost one crash then."""
    assert job.state in ({State.PENDING, State.RUNNING} if killed else {State.PENDING})
    assert job.crashes <= killed


@pytest.mark.slow
def test_wherever_it_is_stopped_no_ending_is_undone_and_no_retry_is_spent(
    config: SupervisorConfig, store: PostgresStore, folder: Path, launch: Callable
) -> None:
    draw = random.Random(10)
    brief = configured(config.dsn, folder, drain_s=0.3)
    uuids: list[UUID] = []
    ended: dict[UUID, int] = {}
    notes = folder / "notes"
    notes.touch()
    for point in range(POINTS):
        process = launch(brief)
        uuids += [submit(store, "note", f'{{"text": "{point}-{n}"}}') for n in range(NOTES)]
        if point == LONG:
            uuids.append(long := submit(store, "hold", '{"number": 1}'))
        enough = len(notes.read_text().split()) + draw.randrange(1, NOTES)
        until(lambda enough=enough: len(notes.read_text().split()) >= enough, "it works")
        how = point % 3
        stop(process, how)
        jobs = {uuid: store.get(uuid) for uuid in uuids}
        assert {job.failures for job in jobs.values()} == {0}
        if point >= LONG:
            assert_given_back(jobs[long], killed=point >= KILL)
        if point < 2:
            assert {job.crashes for job in jobs.values()} == {0}
            assert {job.state for job in jobs.values()} <= {State.SUCCEEDED, State.PENDING}
        for uuid, job in jobs.items():
            if job.state is State.SUCCEEDED:
                assert ended.setdefault(uuid, job.turn) == job.turn
    (folder / "go").touch()
    last = launch(brief)
    until(lambda: store.counts() == {State.SUCCEEDED: len(uuids)}, "all have ended")
    stop(last, 0)
    assert all(store.get(uuid).turn == turn for uuid, turn in ended.items())
    assert max(store.get(uuid).failures for uuid in uuids) == 0
    assert_clean(store, len(uuids))
