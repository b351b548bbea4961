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
    # A proxy of transactions knows no statement that is prepared in another session.
    LINES.put(psycopg.connect({dsn!r}, autocommit=True, prepare_threshold=None))

@job(name="stamp")
def stamp(n):
    line = LINES.get()
    line.execute("INSERT INTO public.stamp VALUES (%s, clock_timestamp())", [n])
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


MICROSECONDS = "(extract(epoch FROM {}) * 1000000)::bigint"
STAMPS = f"SELECT {MICROSECONDS.format('at')} FROM public.stamp ORDER BY at"
# How long after its start on record each job says that it began; null: it has none.
LATE = f"""
    SELECT {MICROSECONDS.format("stamp.at")} - (
        SELECT {MICROSECONDS.format("max(ended.began_at)")} FROM timeball.job JOIN timeball.ended
        ON ended.job_id = job.id
        WHERE (job.args ->> 'n')::integer = stamp.n
          AND ended.began_at < stamp.at + interval '1 millisecond')
    FROM public.stamp"""


@pytest.fixture
def said(direct: str) -> Iterator[Callable[[str], list[int]]]:
    """Asks about what the jobs have said of when they began."""
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE public.stamp (n integer NOT NULL, at timestamptz NOT NULL)"
        )
        yield lambda query: [us for (us,) in connection.execute(query.encode())]
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
    supervise: Callable, said: Callable[[str], list[int]],
) -> None:  # fmt: skip
    """By the record; and each job says that it began when the record says, or a little later."""
    Path(config.loads[0].target).write_text(APP.format(dsn=config.dsn, lines=SLOTS))
    store.limit_starts(scope, NAMES[scope], rate)
    key = NAMES[scope] if scope is Scope.KEY else None
    store.limit(Scope.KEY, NAMES[Scope.KEY], 100)
    store.submit([
        JobSpec(uuid=uuid4(), kind="stamp", key=key, args=f'{{"n": {n}}}')
        for n in range(5 * rate.count)
    ])  # fmt: skip
    set_at = store.now().timestamp()
    until(lambda: store.now().timestamp() > set_at + SETTLING_S, "the limit holds")
    supervisor = supervise(
        replace(config, children=WORKERS, worker=replace(config.worker, slots=SLOTS))
    )
    until(lambda: len(said(STAMPS)) > rate.count, "the first window is over")
    os.kill(supervisor.children()[0].pid, signal.SIGKILL)
    until(lambda: len(said(STAMPS)) > 3 * rate.count, "three windows are over")
    supervisor.stop()
    assert supervisor.wait(PATIENCE_S) == 0
    (proof,) = proofs(store.starts())
    # Of those that had ended when their worker was killed, before it had told, there is no record.
    seen, late = said(STAMPS), [us for us in said(LATE) if us is not None]
    assert proof.starts > 2 * rate.count
    assert (proof.early, proof.most <= rate.count) == ((), True)
    # What a loaded machine adds between a start and the first line of the job is no start.
    most, _ = most_in_window(seen, max(1, rate.window_ns // 1_000 - max(late)))
    assert most <= rate.count
