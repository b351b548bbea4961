"""What the dashboard reads stays bounded, however much has ended."""

from __future__ import annotations

from contextlib import closing
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.store.postgres.plans import Explained, seed
from tests.store.postgres.sessions import submit, worker_of

from timeball.core.records import Settlement
from timeball.core.states import Ending, State
from timeball.store.base import JobFilter
from timeball.store.postgres import PostgresStore

PAGE = {"queue": None, "kind": None, "before_id": None, "from_id": None, "limit": 50}
READS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("recent_endings", {"most": 500}),
    ("recent_failures", {"most": 500, "kinds": 8}),
    ("recent_starts", {"most": 500, "seconds": 60}),
    ("workers", {"most": 500, "gone": 20}),
    ("job_turns", {"job": 5_000, "limit": 200}),
    ("job_events", {"job": 5_000, "limit": 200}),
    ("jobs_ended", {**PAGE, "state": "failed"}),
    ("jobs_held", {**PAGE, "state": "scheduled"}),
    ("jobs_running", {**PAGE, "state": "running"}),
    ("jobs", {**PAGE, "state": None}),
    ("marks", {}),
    ("operations", {"before_id": None, "limit": 50}),
)
LARGE = {"job", "entry", "ended", "event", "held"}


@pytest.mark.slow
def test_no_look_reads_a_large_table_from_its_beginning(direct: str) -> None:
    """About a second: one seeded database for all of them."""
    seed(direct, 10_000)
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute("ANALYZE")
    with closing(Explained(direct)) as explained, explained.connection.transaction():
        explained.run("begin_reading", {"timeout_ms": 60_000})
        found = {name: explained.run(name, params)[1] for name, params in READS}
    scanned = {
        (name, table) for name, plans in found.items() for plan in plans for table in plan.scanned()
    }
    assert {pair for pair in scanned if pair[1] in LARGE} == set()


@pytest.mark.parametrize("skipped", [0, 3])
def test_a_list_of_one_state_holds_each_job_of_it_once(store: PostgresStore, skipped: int) -> None:
    """By whatever index it was found: also one that has failed twice."""
    jobs = submit(store, 8)
    worker = worker_of(store)
    for ending in (Ending.FAILED, Ending.FAILED, Ending.SUCCEEDED, Ending.SNOOZED):
        (turn,) = store.claim(worker, limit=1, request=uuid4(), floors={})
        settled = Settlement(turn.lane, turn.seq, turn.job_id, turn.turn, ending, delay_s=60.0)
        store.settle(worker, [settled])
    store.cancel(jobs[7].uuid)
    store.revive([jobs[0].uuid])
    store.claim(worker, limit=3, request=uuid4(), floors={})
    every = store.jobs(JobFilter(limit=100))
    floor = every[skipped - 1].id if skipped else None
    for state in State:
        found = store.jobs(JobFilter(state=state, before_id=floor))
        wanted = [job for job in every[skipped:] if job.state is state]
        assert [job.id for job in found] == [job.id for job in wanted], state
    assert len({job.state for job in every}) == 6
