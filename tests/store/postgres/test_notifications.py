"""Notifications are few: they take a lock of the whole database, and wake whoever is idle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from uuid import uuid4

import psycopg
import pytest
from tests.store.postgres.sessions import claim_all, submit, worker_of

from timeball.core.records import JobSpec
from timeball.core.upkeep import Keep
from timeball.store.postgres import PostgresStore
from timeball.worker.retention import Retention
from timeball.worker.rounds import deadlines, linking
from timeball.worker.sweeper import Sweeper
from timeball.worker.ticker import Ticker

FIFTY = 50
SUBMITTERS = 32
PER_MINUTE = 660
"""Statements of the duties of an idle supervisor: eleven a second, an index probe or two each."""


@pytest.fixture
def heard(ledger: PostgresStore, dsn: str) -> Iterator[Callable[[], Counter[str]]]:
    """Gives the queues that were named so far, and how often."""
    with psycopg.connect(dsn, autocommit=True) as ear:
        ear.execute("LISTEN timeball_wake")
        worker_of(ledger, "the end")
        named: Counter[str] = Counter()

        def hear() -> Counter[str]:
            ledger.wake(["the end"])
            while not named.pop("the end", 0):
                named.update(each.payload for each in ear.notifies(timeout=0.05))
            return named

        yield hear


@pytest.mark.slow
def test_what_fifty_idle_workers_do_wakes_none_of_them(
    ledger: PostgresStore, heard: Callable[[], Counter[str]]
) -> None:
    ledger.ensure_lanes([("default", 5)])
    workers = [worker_of(ledger) for _ in range(FIFTY)]
    assert ledger.beat(workers) == set(workers)
    for worker in workers:
        assert claim_all(ledger, worker) == []
        assert ledger.promote(1_000).moved == 0
    assert (ledger.lapse(100), ledger.link(100)) == (0, 0)
    Sweeper(ledger).sweep()
    Ticker(ledger).tick()
    Retention(ledger, Keep()).look()
    (beat,) = [each.beat for each in ledger.pulses() if each.worker == workers[0]]
    assert ledger.expire(workers[0], beat=beat, begun=()) is not None
    for worker in workers[1:]:
        ledger.retire(worker)
    assert heard() == {}


def test_a_queue_that_no_worker_serves_is_not_named(
    ledger: PostgresStore, heard: Callable[[], Counter[str]]
) -> None:
    submit(ledger, queue="nobody's")
    gone = worker_of(ledger, "no more")
    ledger.retire(gone)
    submit(ledger, queue="no more")
    assert heard() == {}
    worker_of(ledger, "nobody's")
    submit(ledger, queue="nobody's")
    assert heard() == {"nobody's": 1}


@pytest.mark.slow
def test_of_32_who_submit_at_once_each_names_a_queue_once(
    ledger: PostgresStore, heard: Callable[[], Counter[str]]
) -> None:
    worker_of(ledger, "x", "y")
    queues = ["x", "y", "z"] * 4

    def many(_: int) -> None:
        ledger.submit([JobSpec(uuid=uuid4(), kind="a", queue=queue) for queue in queues])

    with ThreadPoolExecutor(SUBMITTERS) as pool:
        list(pool.map(many, range(2 * SUBMITTERS)))
    assert heard() == {"x": 2 * SUBMITTERS, "y": 2 * SUBMITTERS}


class Minute(Event):
    """A stop that comes when somebody has rested for a minute in all; nobody waits for it."""

    rested_s = 0.0

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.rested_s += timeout
        return self.rested_s >= 60.0


@pytest.mark.slow
def test_the_duties_of_an_idle_supervisor_ask_a_bounded_number_of_questions_a_minute(
    ledger: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()
    door = ledger.connections
    rows = door._rows

    def count(connection: psycopg.Connection, name: str, params: dict) -> list:
        asked[name] += 1
        return rows(connection, name, params)

    monkeypatch.setattr(door, "_rows", count)
    worker_of(ledger)
    for duty in (deadlines(ledger), linking(ledger), Retention(ledger, Keep()), Sweeper(ledger)):
        duty.run(Minute())
    duties = asked.total()
    Ticker(ledger).tick()  # which rests until the next full second
    ticks = 60 * (asked.total() - duties)
    assert asked.keys() >= {"lapse", "link", "pulses", "take_due"}
    assert duties + ticks <= PER_MINUTE, asked
