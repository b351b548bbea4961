"""What the dashboard reads stays bounded, however much has ended."""

from __future__ import annotations

from contextlib import closing
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.store.postgres.plans import Explained, seed
from tests.store.postgres.sessions import submit, worker_of

from timeball.core.limits import Scope
from timeball.core.permits import proofs
from timeball.core.rate import Rate
from timeball.core.records import Settlement
from timeball.core.states import Ending, State
from timeball.store.base import JobFilter
from timeball.store.postgres import PostgresStore, panorama
from timeball.store.postgres.panorama import Panorama

PAGE = {"queue": None, "kind": None, "before_id": None, "from_id": None, "limit": 50}
READS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("recent_endings", {"most": 500}),
    ("recent_failures", {"most": 500, "kinds": 8}),
    ("recent_starts", {"most": 500, "seconds": 60}),
    ("recent_permitted", {"scope": "kind", "name": "a", "most": 500, "seconds": 3_600}),
    ("workers", {"most": 500, "gone": 20, "turns": 500}),
    ("schedules_ahead", {"most": 100}),
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


@pytest.fixture
def rated(store: PostgresStore, direct: str) -> PostgresStore:
    """Three turns began under rates that hold for long, each lease with one of them."""
    for scope, name in ((Scope.QUEUE, "q"), (Scope.KIND, "a"), (Scope.KEY, "t-*")):
        store.limit_starts(scope, name, Rate(2))
    store.limit_starts(Scope.KEY, "t-vip", Rate(9))
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute("UPDATE timeball.limiter SET since = since - interval '1 hour'")
    worker, first = worker_of(store, "q"), store.now().timestamp()
    for key in ("t-1", "t-2", "t-vip"):
        submit(store, queue="q", key=key)
    for n in range(3):
        (turn,) = store.claim(worker, limit=1, request=uuid4(), floors={}, permits={"q": 1})
        where = (turn.lane, turn.seq, turn.job_id, turn.turn)
        ended = Settlement(*where, Ending.SUCCEEDED, began_at=first + n / 100)
        store.settle(worker, [ended])
    return store


def test_what_began_lately_is_proven_as_the_whole_record_is(rated: PostgresStore) -> None:
    whole = {proof.name: proof for proof in proofs(rated.starts())}
    looking = Panorama(rated.connections)
    for scope, name, names in (
        (Scope.QUEUE, "q", {"queue:q"}),
        (Scope.KIND, "a", {"kind:a"}),
        (Scope.KEY, "t-*", {"key:t-1", "key:t-2"}),
        (Scope.KEY, "t-vip", {"key:t-vip"}),
    ):
        found = looking.proven(scope, name)
        assert found is not None
        assert {proof.name: proof for proof in found.proofs} == {
            each: whole[each] for each in names
        }
    assert whole["queue:q"].most == 3
    assert looking.proven(Scope.QUEUE, "other") is None


def test_what_is_looked_at_no_more_is_said(
    rated: PostgresStore, direct: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a record that is longer a part is proven, from an instant on that is told."""
    monkeypatch.setattr(panorama, "PROVEN_MAX", 2)
    found = Panorama(rated.connections).proven(Scope.QUEUE, "q")
    assert found is not None
    (proof,) = found.proofs
    assert (proof.starts, proof.early) == (2, ())
    with psycopg.connect(direct) as connection:
        ((left_out,),) = connection.execute(
            "SELECT min(at) FROM timeball.lease WHERE job_ids <> '{}'"
        )
    assert found.since == left_out
