"""Unique keys under several connections at once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from threading import Barrier
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.store.postgres.sessions import Session, jobs_json

from timeball.core.records import JobSpec
from timeball.core.states import State
from timeball.core.uniqueness import Unique
from timeball.store.postgres import PostgresStore

Make = Callable[[], Session]


def of(key: str, uuid: UUID, **fields: object) -> dict[str, object]:
    return {"jobs": jobs_json(1, [uuid], unique_key=key, **fields)}


@pytest.fixture(autouse=True)
def _lane(ledger: PostgresStore) -> None:
    ledger.ensure_lanes([("default", 5)])


@pytest.mark.parametrize("commits", [True, False])
def test_of_two_submits_at_once_the_second_waits_for_the_first(
    ledger: PostgresStore, session: Make, *, commits: bool
) -> None:
    first, second = uuid4(), uuid4()
    one, two = session().begin(), session()
    one.verb("submit", **of("k", first))
    two.verb_blocks("submit", **of("k", second))
    one.run("COMMIT" if commits else "ROLLBACK")
    assert two.answer()[0][1] == (first if commits else second)
    assert ledger.counts() == {State.PENDING: 1}


def test_of_two_that_take_a_key_over_one_gets_it(ledger: PostgresStore, session: Make) -> None:
    old, first, second = uuid4(), uuid4(), uuid4()
    one, two = session(), session()
    one.verb("submit", **of("k", old))
    ledger.cancel(old)
    one.begin().verb("submit", **of("k", first))
    two.verb_blocks("submit", **of("k", second))
    one.commit()
    assert two.answer()[0][1] == first
    assert ledger.counts() == {State.PENDING: 1, State.CANCELLED: 1}


def test_a_takeover_beside_a_revival_leaves_one_of_them(
    ledger: PostgresStore, session: Make
) -> None:
    old, new = uuid4(), uuid4()
    one, two = session(), session()
    one.verb("submit", **of("k", old))
    ledger.cancel(old)
    one.begin().verb("submit", **of("k", new))
    two.verb_blocks("revive", uuids=[old])
    one.commit()
    assert two.answer() == [(old, "default", "clashed")]
    ledger.cancel(new)
    one.begin().verb("revive", uuids=[old])
    two.verb_blocks("submit", **of("k", uuid4()))
    one.commit()
    assert two.answer()[0][1] == old


def test_a_deletion_waits_for_no_key(ledger: PostgresStore, session: Make) -> None:
    old, new = uuid4(), uuid4()
    one, two = session(), session()
    one.verb("submit", **of("k", old))
    ledger.cancel(old)
    one.begin().verb("submit", **of("k", new))
    assert two.verb("delete_jobs", uuids=[old]) == [(old, "deleted")]
    one.commit()
    assert two.verb("submit", **of("k", uuid4()))[0][1] == new


def test_a_job_that_is_falling_due_is_not_replaced(ledger: PostgresStore, session: Make) -> None:
    old, new = uuid4(), uuid4()
    one, two = session(), session()
    one.verb("submit", **of("k", old, delay_s=60.0))
    for table in ("held", "job"):
        one.run(f"UPDATE timeball.{table} SET run_at = run_at - interval '2 minutes'")
    one.begin().verb("promote", limit=10, after="")
    two.verb_blocks("submit", **of("k", new, on_clash="replace"))
    one.commit()
    with pytest.raises(psycopg.Error, match="holds the unique key k"):
        two.answer()
    assert ledger.counts() == {State.PENDING: 1}


def insert(store: PostgresStore, connections: int, jobs: int, batch: int) -> None:
    """Submit unique jobs from several connections, each with the keys in an order of its own."""
    start = Barrier(connections)

    def submit(seed: int) -> None:
        keys = [f"key-{n}" for n in range(jobs // connections)]
        Random(seed).shuffle(keys)
        start.wait(60)
        for at in range(0, len(keys), batch):
            part = [Unique(key=key) for key in keys[at : at + batch]]
            store.submit([JobSpec(uuid=uuid4(), kind="a", unique=unique) for unique in part])

    with ThreadPoolExecutor(connections) as pool:
        list(pool.map(submit, range(connections)))  # a deadlock would raise


def test_keys_in_any_order_do_not_deadlock(ledger: PostgresStore) -> None:
    insert(ledger, 4, 400, 20)
    assert ledger.counts() == {State.PENDING: 100}


@pytest.mark.slow
def test_many_unique_inserts_of_many_connections_do_not_deadlock(ledger: PostgresStore) -> None:
    insert(ledger, 8, 8_000, 100)
    assert ledger.counts() == {State.PENDING: 1_000}
