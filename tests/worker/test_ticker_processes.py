"""Three processes tick one database; the one that fires is killed at the turn of each minute."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from queue import Empty, SimpleQueue
from random import Random
from threading import Thread
from uuid import uuid4

import psycopg
import pytest
from tests.store.world import schedule

from timeball.client.specs import agenda_of
from timeball.core.audit import audit_schedules
from timeball.core.records import Decision
from timeball.core.standing import standing
from timeball.store.base import JobFilter
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.migrate import migrate

pytestmark = pytest.mark.slow

PATIENCE_S = 60.0
MINUTES = 100
NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
MINUTE, BEFORE = timedelta(minutes=1), timedelta(milliseconds=100)
# The database's clock is a row, so that every node sees it turn at the same instant.
VIRTUAL = """
CREATE TABLE public.virtual (at timestamptz NOT NULL);
INSERT INTO public.virtual VALUES ('{noon}');
CREATE OR REPLACE FUNCTION timeball.now() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE
RETURN (SELECT at FROM public.virtual);
CREATE OR REPLACE FUNCTION timeball.clock() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN (SELECT at FROM public.virtual);
"""


@pytest.fixture
def virtual(server: str) -> Iterator[str]:
    """A migrated database of its own, whose clock stands still until it is set."""
    name = f"virtual_{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE template0".encode())
        dsn = server.replace("/postgres?", f"/{name}?")
        connections = Connections(dsn)
        migrate(connections)
        connections.close()
        with psycopg.connect(dsn) as connection:
            connection.execute(VIRTUAL.format(noon=NOON).encode())
        yield dsn
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


class Nodes:
    """The processes that tick, and which of them has fired last."""

    def __init__(self, dsn: str) -> None:
        self.program = subprocess.Popen(
            [sys.executable, "-m", "tests.worker.ticking", dsn],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            text=True,
        )
        self.pids: list[int] = []
        self._said: SimpleQueue[tuple[str, int]] = SimpleQueue()
        self._ear = Thread(target=self._listen, daemon=True)
        self._ear.start()

    def _listen(self) -> None:
        assert self.program.stdout is not None
        for line in self.program.stdout:
            word, _, pid = line.partition(" ")
            self._said.put((word, int(pid)))

    def add(self) -> None:
        assert self.program.stdin is not None
        self.program.stdin.write("one\n")
        self.program.stdin.flush()
        self.pids.append(self.heard("node"))

    def heard(self, wanted: str) -> int:
        """Wait for a word, and return who it is about; what others say meanwhile is dropped."""
        while True:
            word, pid = self._said.get(timeout=PATIENCE_S)
            if word == wanted:
                return pid

    def last_to_fire(self) -> int | None:
        last = None
        try:
            while True:
                word, pid = self._said.get_nowait()
                last = pid if word == "fired" else last
        except Empty:
            return last

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        self.pids.remove(pid)

    def end(self) -> None:
        assert self.program.stdin is not None
        self.program.stdin.close()
        for pid in self.pids:
            os.kill(pid, signal.SIGKILL)
        self._ear.join(PATIENCE_S)  # its pipe ends with the last of them
        self.program.wait(PATIENCE_S)
        assert self.program.stdout is not None
        self.program.stdout.close()


@pytest.fixture
def nodes(virtual: str) -> Iterator[Nodes]:
    nodes = Nodes(virtual)
    yield nodes
    nodes.end()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_the_process_that_fires_is_killed_at_the_turn_of_each_of_100_minutes(
    virtual: str, nodes: Nodes
) -> None:
    store, random = PostgresStore(virtual), Random(1)
    spec = schedule("minute", expression="* * * * *", gap="skip", overlap="both", catchup="all")
    store.declare(spec, standing(agenda_of(spec), store.now()))
    for _ in range(3):
        nodes.add()
    victim = nodes.pids[0]
    clock = psycopg.connect(virtual, autocommit=True)
    for minute in range(1, MINUTES + 1):
        turn = NOON + minute * MINUTE
        for at in (turn - BEFORE, turn):
            clock.execute("UPDATE public.virtual SET at = %s", [at])
            if (at == turn) is (minute % 2 == 1):  # just before the turn, or in it
                time.sleep(random.uniform(0, 0.004))
                nodes.kill(victim)
                nodes.add()
        until(lambda minute=minute: store.schedule("minute").fired >= minute)
        fired = nodes.last_to_fire()
        victim = fired if fired in nodes.pids else random.choice(nodes.pids)
    clock.close()
    told = store.occurrences("minute", limit=10 * MINUTES)
    fired_at = sorted(each.nominal_at for each in told if each.decision is Decision.FIRED)
    assert fired_at == [NOON + n * MINUTE for n in range(1, MINUTES + 1)]
    assert len(store.jobs(JobFilter(limit=10 * MINUTES))) == MINUTES
    agenda = agenda_of(spec)
    found = audit_schedules(
        store.schedule_histories(), lambda s: (d.at for d in agenda.occurrences(s.activated_at))
    )
    assert [str(violation) for violation in found] == []
    store.close()
