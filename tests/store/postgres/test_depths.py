"""How much waits, read cheaply: the same numbers as the exact count, up to their bound."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random
from uuid import uuid4

import psycopg
import pytest
from tests.store.postgres.sessions import submit, worker_of
from tests.store.world import end

from timeball.core.records import JobSpec
from timeball.core.states import Ending, State
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.depths import cron_lag_s, depths

WAITING = (State.PENDING, State.SCHEDULED)


def waiting(store: PostgresStore, queue: str = "default") -> dict[State, int]:
    found = dict.fromkeys(WAITING, 0)
    for depth in depths(store.connections, [queue]):
        found[depth.state] += depth.jobs
    return found


def counted(store: PostgresStore, queue: str = "default") -> dict[State, int]:
    counts = store.counts(queue)
    return {state: counts.get(state, 0) for state in WAITING}


def claim(store: PostgresStore, worker: int, limit: int) -> list:
    return store.claim(worker, limit=limit, request=uuid4(), floors={})


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_depths_are_those_of_the_exact_count_whatever_happens(
    store: PostgresStore, seed: int
) -> None:
    chance, worker = Random(seed), worker_of(store)
    for _ in range(25):
        specs = [
            JobSpec(uuid=uuid4(), kind="a", priority=chance.choice([1, 5]), delay_s=delay)
            for delay in chance.choices([None, 3_600.0], k=chance.randint(1, 6))
        ]
        store.submit(specs)
        turns = claim(store, worker, chance.randint(1, 5))
        endings = chance.choices([Ending.SUCCEEDED, Ending.RELEASED, Ending.RETRIED], k=len(turns))
        ended = zip(turns, endings, strict=True)
        store.settle(worker, [end(turn, ending, delay_s=3_600.0) for turn, ending in ended])
        store.cancel(chance.choice(specs).uuid)
        assert waiting(store) == counted(store)


def test_what_an_open_transaction_will_add_is_counted_once_it_has_committed(
    store: PostgresStore,
) -> None:
    worker = worker_of(store)
    submit(store, 1)
    with psycopg.connect(store.connections.dsn) as open_one:
        store.submit_within(open_one, [JobSpec(uuid=uuid4(), kind="a") for _ in range(2)])
        submit(store, 3)
        assert len(claim(store, worker, 2)) == 2
        assert waiting(store)[State.PENDING] == 2
        open_one.commit()
    assert waiting(store)[State.PENDING] == 4


def test_only_the_queues_that_were_asked_for_are_told(store: PostgresStore) -> None:
    store.submit([JobSpec(uuid=uuid4(), kind="a", queue="other")])
    assert depths(store.connections, ["default"]) == []
    (depth,) = depths(store.connections, ["other", "default"])
    assert (depth.queue, depth.state, depth.jobs) == ("other", State.PENDING, 1)
    assert depth.oldest_s is not None
    assert depth.oldest_s >= 0


def test_counting_ends_at_its_bound(store: PostgresStore) -> None:
    submit(store, 8)
    rows = store.connections.run("depths", queues=["default"], most=5)
    assert [row[2] for row in rows] == [5]


def test_many_may_look_while_others_claim(store: PostgresStore) -> None:
    worker = worker_of(store)
    submit(store, 40)
    with ThreadPoolExecutor(2) as pool:
        looks = [pool.submit(waiting, store) for _ in range(10)]
        while claim(store, worker, 5):
            pass
    seen = [look.result()[State.PENDING] for look in looks]
    assert all(0 <= number <= 40 for number in seen)
    assert waiting(store)[State.PENDING] == 0


def test_the_lag_is_that_of_the_most_overdue_schedule(store: PostgresStore) -> None:
    assert cron_lag_s(store.connections) == 0.0
