"""What deciding and linking edges reads: its own edges, through indexes, whatever else is there."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest
from tests.store.postgres.plans import Explained, Plan
from tests.store.postgres.sessions import claim_all, settle_of, submit, worker_of
from tests.store.postgres.test_plans import GROWING, analyze, settlement

from timeball.core.dependencies import Edge
from timeball.core.records import JobSpec
from timeball.store.postgres import PostgresStore

FAN = 60
OTHERS = 4_000
pytestmark = pytest.mark.slow


def busy(store: PostgresStore, dsn: str) -> None:
    """Many other open edges, and statistics from when there were next to none."""
    (parent,) = submit(store, delay_s=600.0)
    submit(store, 3, after=(Edge(parent.uuid),))
    analyze(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO timeball.dependency (child, parent, parent_uuid, rule, linked_at)"
            " SELECT 2000000 + n, 1000000 + n, gen_random_uuid(), 'all_done', now()"
            " FROM generate_series(1, %s) AS n",
            [OTHERS],
        )


def check(plans: list[Plan]) -> None:
    for plan in plans:
        assert not plan.scanned() & (GROWING | {"dependency"}), plan.query
        assert plan.most_rows() <= 5 * FAN, plan.query


@pytest.mark.parametrize("event", ["succeeded", "failed"])
def test_fan_in_fan_out_and_a_cascade_read_their_own_edges_only(
    store: PostgresStore, dsn: str, event: str
) -> None:
    busy(store, dsn)
    worker = worker_of(store)
    submit(store, FAN)
    turns = claim_all(store, worker)
    edges = tuple(Edge(turn.uuid) for turn in turns)
    child = JobSpec(uuid=uuid4(), kind="a", after=edges)
    fan = [JobSpec(uuid=uuid4(), kind="a", after=(Edge(child.uuid),)) for _ in range(FAN)]
    explained = Explained(dsn)
    store.submit([child, *fan])
    _, plans = explained.run("settle", settlement(worker, turns, event))
    check(plans)
    if event == "succeeded":
        (turn,) = claim_all(store, worker)
        _, plans = explained.run("settle", settle_of(worker, turn))
        check(plans)
    explained.close()


def test_linking_reads_its_own_edges_only(store: PostgresStore, dsn: str) -> None:
    busy(store, dsn)
    worker = worker_of(store)
    submit(store, FAN)
    turns = claim_all(store, worker)
    for turn in turns[: FAN // 2]:
        store.connections.run("settle", **settle_of(worker, turn))
    specs = [JobSpec(uuid=uuid4(), kind="a", after=(Edge(turn.uuid),)) for turn in turns]
    with psycopg.connect(dsn) as connection:
        store.submit_within(connection, specs)
    explained = Explained(dsn)
    rows, plans = explained.run("link", {"limit": 1_000})
    explained.close()
    assert rows == [(len(turns),)]
    check(plans)
