"""What ending and reading a batch costs: its own edges, and of a large one few."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from tests.store.batches import batch, job
from tests.store.postgres.plans import Explained
from tests.store.postgres.sessions import claim_all, settle_of, submit, worker_of
from tests.store.postgres.test_dependency_plans import OTHERS, busy
from tests.store.postgres.test_plans import GROWING, early, fresh, settlement

from timeball.store.postgres import PostgresStore

MANY = 1_500
FEW = 40
pytestmark = pytest.mark.slow


@pytest.mark.parametrize("event", ["succeeded", "failed"])
def test_who_ends_some_members_of_many_reads_little_of_the_batch(
    store: PostgresStore, dsn: str, event: str
) -> None:
    busy(store, dsn)
    members = [job() for _ in range(MANY)]
    store.submit([*members, batch(*members)])
    worker = worker_of(store)
    turns = claim_all(store, worker)
    explained = Explained(dsn)
    _, plans = explained.run("settle", settlement(worker, turns[:FEW], event))
    explained.close()
    for plan in plans:
        assert not plan.scanned() & (GROWING | {"dependency"}), plan.query
        assert plan.most_rows() <= 5 * FEW, plan.query


def test_the_last_member_reads_the_edges_of_its_batch_once(store: PostgresStore, dsn: str) -> None:
    busy(store, dsn)
    members = [job() for _ in range(FEW)]
    store.submit([*members, batch(*members)])
    worker = worker_of(store)
    turns = claim_all(store, worker)
    store.connections.run("settle", **settlement(worker, turns[1:], "failed"))
    explained = Explained(dsn)
    _, plans = explained.run("settle", settle_of(worker, turns[0]))
    explained.close()
    for plan in plans:
        assert not plan.scanned() & (GROWING | {"dependency"}), plan.query
        assert plan.most_rows() <= 5 * FEW, plan.query


@pytest.mark.parametrize("name", ["batch", "batch_left", "batch_members"])
def test_a_batch_is_read_through_its_own_edges(store: PostgresStore, dsn: str, name: str) -> None:
    busy(store, dsn)
    members = [job() for _ in range(FEW)]
    whole = batch(*members)
    store.submit([*members, whole])
    submit(store, 300)
    worker = worker_of(store)
    turns = claim_all(store, worker)
    store.connections.run("settle", **settlement(worker, turns[: FEW // 2], "failed"))
    explained = Explained(dsn)
    rows, plans = explained.run(name, {"batch": whole.uuid})
    explained.close()
    assert rows
    for plan in plans:
        assert plan.most_rows() <= 300 + 5 * FEW < OTHERS, plan.query


@pytest.mark.parametrize("statistics", [early, fresh])
def test_who_reopens_a_batch_does_not_make_out_the_state_of_every_job(
    store: PostgresStore, dsn: str, statistics: Callable[[str, int], None]
) -> None:
    statistics(dsn, 20_000)
    members = [job() for _ in range(8 * FEW)]
    store.submit([*members, batch(*members)])
    worker = worker_of(store)
    turns = claim_all(store, worker)
    store.connections.run("settle", **settlement(worker, turns, "failed"))
    explained = Explained(dsn)
    jobs = {"jobs": [turn.job_id for turn in turns], "turns": [turn.turn for turn in turns]}
    rows, plans = explained.run("reopen", jobs)
    explained.close()
    assert rows == [("done",)]
    for plan in plans:
        assert plan.most_rows() <= 40 * FEW, plan.query


def test_who_holds_an_edge_holds_one_of_the_last_and_not_always_the_same(
    store: PostgresStore, dsn: str
) -> None:
    members = [job() for _ in range(200)]
    store.submit([*members, batch(*members)])
    held = set()
    for _ in range(4):
        with psycopg.connect(dsn) as connection:
            assert connection.execute("SELECT timeball.is_left(201)").fetchone() == (True,)
            row = connection.execute(
                "SELECT parent FROM timeball.dependency WHERE xmax = pg_current_xact_id()::xid"
            ).fetchone()
            assert row is not None
            held.add(row[0])
            connection.rollback()
    assert len(held) > 1
    assert min(held) > 136
