"""Four worker processes that stall, and of which one is killed, keep to a rate."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from tests.worker.supervision import PATIENCE_S, until

from timeball.core.limits import Scope
from timeball.core.permits import SETTLING_S, proofs
from timeball.core.rate import Rate, most_in_window
from timeball.core.records import JobSpec
from timeball.store.postgres import PostgresStore
from timeball.worker.supervisor import SupervisorConfig

pytestmark = pytest.mark.slow

WORKERS, SLOTS = 4, 4
NAMES = {Scope.QUEUE: "default", Scope.KIND: "stamp", Scope.KEY: "k"}
# Each job says on a connection of its own when it began, by the clock that grants the permits;
# and whatever a worker asks of its store may hang on the way there and on the way back.
APP = """
import random, time
from queue import SimpleQueue
import psycopg
from timeball.action.registry import job
from timeball.store.postgres import PostgresStore

LINES = SimpleQueue()
for _ in range({lines}):
    LINES.put(psycopg.connect({dsn!r}, autocommit=True))

@job(name="stamp")
def stamp():
    line = LINES.get()
    line.execute("INSERT INTO public.stamp VALUES (clock_timestamp())")
    LINES.put(line)

def stall():
    if random.random() < 0.1:
        time.sleep(random.random() / 10)

def stalling(verb):
    def call(*args, **kwargs):
        stall()
        try:
            return verb(*args, **kwargs)
        finally:
            stall()
    return call

for name in ("permits", "claim", "settle", "promote"):
    setattr(PostgresStore, name, stalling(getattr(PostgresStore, name)))
"""


@pytest.fixture
def stamps(direct: str) -> Iterator[Callable[[], list[int]]]:
    """Reads when the jobs began, by their own account, in nanoseconds of the database's clock."""
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute("CREATE TABLE public.stamp (at timestamptz NOT NULL)")
        query = (
            "SELECT (extract(epoch FROM at) * 1000000)::bigint * 1000 FROM public.stamp ORDER BY at"
        )
        yield lambda: [at for (at,) in connection.execute(query)]
        connection.execute("DROP TABLE public.stamp")


@pytest.mark.parametrize(
    ("scope", "rate"),
    [
        (Scope.QUEUE, Rate(500)),
        (Scope.KIND, Rate(500, spread=True)),
        (Scope.KEY, Rate(500)),
        (Scope.KIND, Rate(5)),
    ],
    ids=str,
)
def test_four_processes_that_stall_and_die_never_pass_a_rate(
    scope: Scope, rate: Rate, config: SupervisorConfig, store: PostgresStore,
    supervise: Callable, stamps: Callable[[], list[int]],
) -> None:  # fmt: skip
    """By what the jobs say, and by the record, on which each of these starts is."""
    Path(config.loads[0].target).write_text(APP.format(dsn=config.dsn, lines=SLOTS))
    store.limit_starts(scope, NAMES[scope], rate)
    key = NAMES[scope] if scope is Scope.KEY else None
    store.limit(Scope.KEY, NAMES[Scope.KEY], 100)
    store.submit([JobSpec(uuid=uuid4(), kind="stamp", key=key) for _ in range(5 * rate.count)])
    set_at = store.now().timestamp()
    until(lambda: store.now().timestamp() > set_at + SETTLING_S, "the limit holds")
    supervisor = supervise(
        replace(config, children=WORKERS, worker=replace(config.worker, slots=SLOTS))
    )
    until(lambda: len(stamps()) > rate.count, "the first window is over")
    os.kill(supervisor.children()[0].pid, signal.SIGKILL)
    until(lambda: len(stamps()) > 3 * rate.count, "three windows are over")
    supervisor.stop()
    assert supervisor.wait(PATIENCE_S) == 0
    (proof,) = proofs(store.starts())
    seen = stamps()
    most, _ = most_in_window(seen, rate.window_ns)
    assert proof.starts >= len(seen) > 3 * rate.count
    assert (proof.early, proof.most <= rate.count) == ((), True)
    assert most <= rate.count
