"""Several nodes, of which the one that fires is killed: each occurrence is one job all the same."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from random import Random
from typing import Any

import psycopg
import pytest
from tests.store.postgres_world import TravellingStore
from tests.store.world import NOON, Clock, schedule

from timeball.client.specs import agenda_of
from timeball.core.audit import audit_schedules
from timeball.core.records import Decision
from timeball.core.standing import standing
from timeball.errors import StoreUnavailable
from timeball.store.base import JobFilter
from timeball.store.postgres.connections import statement
from timeball.worker.ticker import Ticker

MINUTE = timedelta(minutes=1)
pytestmark = pytest.mark.slow


class Node:
    """A ticker with connections of its own, which can be killed in the middle of a tick."""

    def __init__(self, dsn: str, clock: Clock) -> None:
        self.store = TravellingStore(dsn, clock)
        self.ticker = Ticker(self.store)
        self._rows = self.store.connections._rows
        self._mishap: Callable[[psycopg.Connection, str, Any], list] | None = None
        self.store.connections._rows = self._between  # type: ignore[method-assign]  # the harness

    def _between(self, connection: psycopg.Connection, name: str, params: Any) -> list:
        if self._mishap and name in {"take_due", "fire"}:
            return self._mishap(connection, name, params)
        return self._rows(connection, name, params)

    def tick(self) -> int:
        jobs = 0
        while True:
            made = self.ticker.tick()
            jobs += made.jobs
            if made.rest_s > 0:
                return jobs

    def die(self, where: str) -> None:
        """Tick, and be killed: with what is due taken, with it written, or after the commit."""

        def killed(connection: psycopg.Connection, name: str, params: Any) -> list:
            rows = self._rows(connection, name, params)
            if where == "take_due" or name == "fire":
                connection.close()  # as the kernel does for a process that is gone
                raise psycopg.OperationalError(f"killed after {name}")
            return rows

        def answered(connection: psycopg.Connection, name: str, params: Any) -> list:
            rows = self._rows(connection, name, params)
            if name == "fire":
                connection.execute("COMMIT")
                connection.close()
                raise psycopg.OperationalError("killed after the commit")
            return rows

        self._mishap = answered if where == "commit" else killed
        with suppress(StoreUnavailable):
            self.ticker.tick()
        self._mishap = None


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def nodes(dsn: str, clock: Clock) -> Iterator[list[Node]]:
    nodes = [Node(dsn, clock) for _ in range(3)]
    yield nodes
    for node in nodes:
        node.store.close()


def declare(node: Node, name: str = "minute", **fields: str) -> None:
    spec = schedule(name, **{"expression": "* * * * *", "gap": "skip", "overlap": "both", **fields})
    node.store.declare(spec, standing(agenda_of(spec), node.store.now()))


def fired(node: Node, name: str = "minute") -> list[datetime]:
    told = node.store.occurrences(name, limit=1_000)
    return sorted(each.nominal_at for each in told if each.decision is Decision.FIRED)


def assert_once(node: Node) -> None:
    """Every occurrence was decided once, and there are as many jobs as were fired."""
    specs = {each.spec.name: each.spec for each in node.store.schedules()}
    found = audit_schedules(
        node.store.schedule_histories(),
        lambda s: (due.at for due in agenda_of(specs[s.name]).occurrences(s.activated_at)),
    )
    assert [str(violation) for violation in found] == []
    jobs = node.store.jobs(JobFilter(limit=10_000))
    assert len(jobs) == sum(len(fired(node, name)) for name in specs)


def test_the_node_that_fires_is_killed_at_the_turn_of_each_of_100_minutes(
    nodes: list[Node], clock: Clock
) -> None:
    declare(nodes[0], catchup="all")
    random = Random(1)
    for minute in range(1, 101):
        clock.at = NOON + minute * MINUTE - timedelta(milliseconds=100)
        assert [node.tick() for node in nodes] == [0, 0, 0]
        clock.at = NOON + minute * MINUTE
        victim, *others = random.sample(nodes, 3)
        victim.die(random.choice(["take_due", "fire", "commit"]))
        deadline = time.monotonic() + 60
        # The server notices the death in its own time; until then the schedule stays locked.
        while nodes[0].store.schedule("minute").fired < minute:
            assert time.monotonic() < deadline
            assert sum(node.tick() for node in others) <= 1
    assert fired(nodes[0]) == [NOON + n * MINUTE for n in range(1, 101)]
    assert_once(nodes[0])


def test_what_one_node_is_at_no_other_fires_nor_waits_for(
    nodes: list[Node], clock: Clock, dsn: str
) -> None:
    declare(nodes[0])
    declare(nodes[0], "other")
    clock.at = NOON + MINUTE
    with psycopg.connect(dsn) as frozen:
        frozen.execute("SELECT set_config('timeball.now', %s, true)", [str(clock.at)])
        frozen.execute(statement("take_due"), {"limit": 1})
        assert [node.tick() for node in nodes] == [1, 0, 0]
    assert [node.tick() for node in nodes] == [1, 0, 0]
    assert_once(nodes[0])


@pytest.mark.parametrize("seed", range(3))
def test_a_clock_that_is_set_back_and_forth_neither_repeats_nor_loses_an_occurrence(
    nodes: list[Node], clock: Clock, seed: int
) -> None:
    for name, catchup in (("all", "all"), ("last", "last"), ("none", "none")):
        declare(nodes[0], name, catchup=catchup)
    random = Random(seed)
    steps = [timedelta(seconds=20)] * 40 + [-timedelta(seconds=90)] * 5 + [timedelta(hours=1)]
    random.shuffle(steps)
    for step in steps:
        clock.at += step
        random.choice(nodes).tick()
    clock.at = max(clock.at, nodes[0].store.schedule("all").cursor)
    nodes[0].tick()
    everything = fired(nodes[0], "all")
    minutes = int((everything[-1] - NOON) / MINUTE)
    assert everything == [NOON + n * MINUTE for n in range(1, minutes + 1)]
    assert_once(nodes[0])


def test_the_clock_of_the_nodes_machine_is_not_asked(
    nodes: list[Node], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(nodes[0])
    for minute, error_s in enumerate((3_600, -3_600, 0), 1):
        clock.at = NOON + minute * MINUTE
        wrong = (clock.at + timedelta(seconds=error_s)).timestamp()
        monkeypatch.setattr("time.time", lambda wrong=wrong: wrong)
        assert nodes[minute - 1].tick() == 1
    assert fired(nodes[0]) == [NOON + n * MINUTE for n in (1, 2, 3)]
    assert_once(nodes[0])


def test_a_row_that_cannot_be_stored_stops_its_own_schedule_only(
    nodes: list[Node], clock: Clock, dsn: str
) -> None:
    for name in ("a", "b", "broken", "c"):
        declare(nodes[0], name)
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("UPDATE timeball.schedule SET timeout_s = -1 WHERE name = 'broken'")
    clock.at = NOON + MINUTE
    assert nodes[0].tick() == 3
    broken = nodes[0].store.schedule("broken")
    assert broken.state == "error"
    assert "timeout_s" in (broken.error or "")
    clock.at += MINUTE
    assert nodes[1].tick() == 3
