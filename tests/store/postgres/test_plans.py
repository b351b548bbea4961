"""What the hot statements read: through their indexes, and no more where more has ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.postgres import empty
from tests.store.postgres.plans import Explained, Plan, seed
from tests.store.postgres.sessions import (
    claim_all,
    claim_of,
    expire_of,
    jobs_json,
    settle_of,
    submit,
    worker_of,
)

from timeball.core.records import Turn
from timeball.store.base import JobFilter
from timeball.store.postgres import PostgresStore

FEW, MANY = 1_000, 20_000
GROWING = {"job", "entry", "ended", "held", "lease", "event"}
TURNS = 30
pytestmark = pytest.mark.slow


def emptied(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        empty(connection)


def analyze(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("ANALYZE")


def early(dsn: str, jobs: int) -> None:
    """Statistics from when the tables were all but empty."""
    seed(dsn, 20)
    analyze(dsn)
    emptied(dsn)
    seed(dsn, jobs)


def fresh(dsn: str, jobs: int) -> None:
    """Statistics of the tables as they are."""
    seed(dsn, jobs)
    analyze(dsn)


def settlement(worker: int, turns: list[Turn], event: str, delay_s: float = 0.0) -> dict[str, Any]:
    columns: dict[str, Any] = settle_of(worker, turns[0], event, delay_s)
    each = [settle_of(worker, turn, event, delay_s) for turn in turns]
    for name, value in columns.items():
        if isinstance(value, list) and value:
            columns[name] = [one[name][0] for one in each]
    return columns


def carried_out(dsn: str) -> Iterator[tuple[str, list[Plan]]]:
    """Send each hot statement once; yield a word for it, and its plans."""
    store, explained = PostgresStore(dsn), Explained(dsn)
    worker, specs = worker_of(store), submit(store, 4 * TURNS)
    due = submit(store, 5, delay_s=0.0001)
    assert due

    def run(word: str, name: str, params: dict[str, Any]) -> list[tuple[Any, ...]]:
        rows, plans = explained.run(name, params)
        found.append((word, plans))
        return rows

    found: list[tuple[str, list[Plan]]] = []
    run("submit", "submit", {"jobs": jobs_json(TURNS)})
    ((lane, seq, _),) = run("claim", "claim", claim_of(worker, 3 * TURNS))
    rows = run("read", "lease_turns", {"lane": lane, "seq": seq, "worker": worker})
    turns = [Turn(lane, seq, *row) for row in rows]
    assert len(turns) == 3 * TURNS
    run("succeed", "settle", settlement(worker, turns[:10], "succeeded"))
    run("succeed again", "settle", settlement(worker, turns[:10], "succeeded"))
    for ten, event in enumerate(("retried", "released", "lost"), 1):
        run(event, "settle", settlement(worker, turns[10 * ten :][:10], event))
    run("cancels", "cancels", {"job_ids": [turn.job_id for turn in turns[40:50]]})
    run("promote", "promote", {"limit": 1_000, "after": ""})
    run("promote nothing", "promote", {"limit": 1_000, "after": ""})
    run("cancel pending", "cancel", {"uuid": specs[-1].uuid})
    run("cancel running", "cancel", {"uuid": turns[-1].uuid})
    run("get running", "get", {"uuid": turns[-1].uuid})
    run("get ended", "get", {"uuid": turns[0].uuid})
    run("expire", "expire", expire_of(worker))
    run("list", "jobs", asdict(JobFilter(limit=20)))
    explained.close()
    claim_all(store, worker_of(store))
    store.close()
    yield from found


@pytest.mark.parametrize("statistics", [early, fresh])
def test_no_hot_statement_reads_a_growing_table_from_its_beginning(
    dsn: str, statistics: Callable[[str, int], None]
) -> None:
    statistics(dsn, MANY)
    for word, plans in carried_out(dsn):
        for plan in plans:
            assert not plan.scanned() & GROWING, f"{word}: {plan.query}"
            assert plan.most_rows() <= 5 * TURNS, f"{word}: {plan.query}"


@pytest.mark.parametrize("statistics", [early, fresh])
def test_twenty_times_as_many_ended_jobs_cost_nothing(
    dsn: str, statistics: Callable[[str, int], None]
) -> None:
    costs = []
    for jobs in (FEW, MANY):
        emptied(dsn)
        statistics(dsn, jobs)
        costs.append({word: plans[-1].blocks for word, plans in carried_out(dsn)})
    few, many = costs
    # A deeper index is a block more per probe; what grows with the table is twenty times more.
    dearer = {word: (few[word], many[word]) for word in few if many[word] > 2 * few[word] + 20}
    assert not dearer


@pytest.mark.parametrize("statistics", [early, fresh])
def test_who_revives_a_few_does_not_make_out_the_state_of_every_job(
    dsn: str, statistics: Callable[[str, int], None]
) -> None:
    statistics(dsn, MANY)
    explained = Explained(dsn)
    failed, _ = explained.ask(
        "UPDATE timeball.ended SET event = 'failed' FROM timeball.job"
        " WHERE job.id = job_id AND job_id <= 11 AND event = 'succeeded' RETURNING job.uuid"
    )
    rows, plans = explained.run("revive", {"uuids": [uuid for (uuid,) in failed]})
    explained.close()
    assert [answer for _, _, answer in rows] == ["revived"] * 11
    for plan in plans:
        assert not plan.scanned() & GROWING, plan.query
        assert plan.most_rows() <= 5 * TURNS, plan.query


@pytest.mark.parametrize("statistics", [early, fresh])
def test_who_has_a_retry_does_not_read_what_was_asked_of_other_jobs(
    dsn: str, statistics: Callable[[str, int], None]
) -> None:
    statistics(dsn, MANY)
    store, explained = PostgresStore(dsn), Explained(dsn)
    explained.ask(
        "INSERT INTO timeball.event (kind, job_id, turn)"
        " SELECT 'cancel_requested', id, 1 FROM timeball.job"
    )
    worker = worker_of(store)
    submit(store, 20 * TURNS)
    turns = claim_all(store, worker)
    assert len(turns) == 20 * TURNS
    _, plans = explained.run("settle", settlement(worker, turns, "retried"))
    explained.close()
    store.close()
    for plan in plans:
        assert plan.most_rows() <= 100 * TURNS, plan.query


def test_a_job_that_has_run_for_long_is_found_among_many_leases(dsn: str) -> None:
    store, explained = PostgresStore(dsn), Explained(dsn)
    worker, turns = worker_of(store), []
    for _ in range(9):
        submit(store)
        turns += claim_all(store, worker)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO timeball.lease"
            " (lane, seq, prev, cur, pos_xid, pos_id, job_ids, turns)"
            " SELECT lane, seq + n, prev, cur, pos_xid, pos_id, '{}', '{}'"
            " FROM timeball.lease, generate_series(1, 5000) AS n WHERE seq = 9"
        )
    for turn in turns:
        _, plans = explained.run("get", {"uuid": turn.uuid})
        assert plans[-1].blocks <= 400
        job = store.get(turn.uuid)
        assert job.began_at is not None
        assert (job.worker, job.began_at.timestamp()) == (worker, turn.granted_at)
    explained.close()
    store.close()


def test_a_claim_finds_the_few_among_a_hundred_lanes(dsn: str) -> None:
    store, explained = PostgresStore(dsn), Explained(dsn)
    store.ensure_lanes([(f"q{n}", 5) for n in range(100)])
    worker = worker_of(store, *(f"q{n}" for n in range(100)))
    submit(store, 3, queue="q77")
    rows, _ = explained.run("claim", claim_of(worker))
    turns = store.connections.run("lease_turns", lane=rows[0][0], seq=rows[0][1], worker=worker)
    assert len(turns) == 3
    assert store.claim(worker, limit=1, request=uuid4(), floors={}) == []
    explained.close()
    store.close()


def test_jobs_keep_their_order_however_many_lanes_there_are(dsn: str) -> None:
    store = PostgresStore(dsn)
    store.ensure_lanes([(f"q{n}", 5) for n in range(500)])
    analyze(dsn)
    specs = submit(store, 40, queue="q3")
    turns = claim_all(store, worker_of(store, "q3"))
    assert [turn.uuid for turn in turns] == [spec.uuid for spec in specs]
    store.close()
