"""What several worker processes do together on one embedded PostgreSQL, as ratios.

    .venv/bin/python bench/fleet.py [--smoke] [--only rates,scaling,idle]

rates: four worker processes under a limit of 500 starts a second on a queue, a kind or a key. What
they ask of the store stalls for up to 100 ms, one time in ten on the way there and on the way back,
and one of them is killed. Each job says by the server's clock when it began. Told: the most starts
in any second, and the share of what may start that did. scaling: how fast 1, 2, 4 and 8 processes
drain a queue. idle: the CPU of a worker at rest.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import psycopg

from timeball.client import Client
from timeball.core.audit import audit
from timeball.core.limits import Scope
from timeball.core.permits import SETTLING_S
from timeball.core.rate import Rate, most_in_window
from timeball.core.records import JobSpec
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.embedded import EmbeddedPostgres
from timeball.store.postgres.migrate import migrate
from timeball.worker.child import Load
from timeball.worker.config import WorkerConfig
from timeball.worker.supervisor import Supervisor, SupervisorConfig

PATIENCE_S = 60.0
TICKS_S = os.sysconf("SC_CLK_TCK")
APP = """
import random, time
from queue import SimpleQueue
import psycopg
from timeball.action.registry import job
from timeball.store.postgres import PostgresStore

LINES = SimpleQueue()
for _ in range({slots} if {stalls} else 0):
    LINES.put(psycopg.connect({dsn!r}, autocommit=True, options="-c synchronous_commit=off"))

@job(name="stamp")
def stamp():
    line = LINES.get()
    line.execute("INSERT INTO public.stamp VALUES (clock_timestamp())")
    LINES.put(line)

@job(name="noop")
async def noop(n):
    pass

def stall():
    if random.random() < {stalls}:
        time.sleep(random.random() / 10)

def stalling(verb):
    def call(*args, **kwargs):
        stall()
        try:
            return verb(*args, **kwargs)
        finally:
            stall()
    return call

if {stalls}:
    for name in ("permits", "claim", "settle", "promote"):
        setattr(PostgresStore, name, stalling(getattr(PostgresStore, name)))
"""
LAWS = (Rate(500), Rate(500, spread=True))


class Site(NamedTuple):
    """A server, on which each measurement has a database of its own."""

    dsn: str
    smoke: bool
    counter: list[int]

    @contextmanager
    def database(self) -> Iterator[PostgresStore]:
        self.counter.append(1)
        name = f"fleet_{len(self.counter)}"
        with psycopg.connect(self.dsn, autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE template0")
            store = PostgresStore(self.dsn.replace("/postgres?", f"/{name}?"))
            migrate(store.connections)
            yield store
            store.close()
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def fleet(
    store: PostgresStore, children: int, slots: int, stalls: float = 0.0
) -> Iterator[Supervisor]:
    with tempfile.TemporaryDirectory(prefix="timeball-bench-") as folder:
        app = Path(folder) / "app.py"
        app.write_text(APP.format(slots=slots, dsn=store.connections.dsn, stalls=stalls))
        supervisor = Supervisor(SupervisorConfig(
            dsn=store.connections.dsn, loads=(Load(target=str(app)),),
            worker=WorkerConfig(name="bench", slots=slots), children=children))  # fmt: skip
        supervisor.start()
        yield supervisor
        supervisor.stop()
        supervisor.wait(PATIENCE_S)


def until(condition: Callable[[], bool], step_s: float = 0.02) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(condition)
        time.sleep(step_s)


# The measurements: each returns whether all is as it must be


def rates(site: Site) -> bool:
    windows = 4 if site.smoke else 10
    return all([limited(site, scope, rate, windows) for scope in Scope for rate in LAWS]
               + [limited(site, Scope.KIND, Rate(5), 3)])  # fmt: skip


def limited(site: Site, scope: Scope, rate: Rate, windows: int) -> bool:
    key = "k" if scope is Scope.KEY else None
    name = {Scope.KEY: "k", Scope.KIND: "stamp", Scope.QUEUE: "default"}[scope]
    with site.database() as store, psycopg.connect(store.connections.dsn, autocommit=True) as line:
        line.execute("CREATE TABLE public.stamp (at timestamptz NOT NULL)")

        def started() -> int:
            (n,) = line.execute("SELECT count(*) FROM public.stamp").fetchone() or (0,)
            return int(n)

        store.limit_starts(scope, name, rate)
        if key is not None:
            store.limit(Scope.KEY, key, 400)  # each is under way from when it is admitted
        jobs = (windows + 3) * rate.count
        store.submit([JobSpec(uuid=uuid4(), kind="stamp", key=key) for _ in range(jobs)])
        at = store.now().timestamp()
        until(lambda: store.now().timestamp() > at + SETTLING_S)
        with fleet(store, 4, 8, stalls=0.1) as supervisor:
            until(lambda: started() > rate.count)
            os.kill(supervisor.children()[0].pid, signal.SIGKILL)
            until(lambda: started() > windows * rate.count)
        query = "SELECT (extract(epoch FROM at) * 1000000)::bigint * 1000 FROM stamp ORDER BY at"
        stamps = [at for (at,) in line.execute(query)]
    most, _ = most_in_window(stamps, rate.window_ns)
    # From when all are at work: of an even spacing nothing is made up for that comes late.
    at_work = stamps[min(rate.count, len(stamps) // 2) :]
    least_ns = Rate(rate.count, rate.per_s).earliest_offset_ns(len(at_work))
    if rate.spread:
        least_ns = (len(at_work) - 1) * rate.window_ns // rate.count
    share = least_ns / (at_work[-1] - at_work[0])
    print(f"  {scope} {rate}: {share:.1%} of what may start, {most} at most in any window",
          flush=True)  # fmt: skip
    return most <= rate.count


def scaling(site: Site) -> bool:
    """How fast so many processes drain a queue."""
    jobs = 20_000 if site.smoke else 60_000
    found = {}
    for children in (1, 2, 4, 8):
        with site.database() as store:
            Client(store).submit_many("noop", ({"n": n} for n in range(jobs)))
            with fleet(store, children, 100) as supervisor:
                until(lambda: ended(store) > jobs // 10)
                before, at = ended(store), time.perf_counter()
                until(lambda: ended(store) == jobs)
                found[children] = (jobs - before) / (time.perf_counter() - at)
                assert len(supervisor.children()) == children
            sound = audit(store.histories(), quiesced=True).clean
    told = ", ".join(f"{n}: {rate:,.0f}/s" for n, rate in found.items())
    print(f"  workers {told}; 8 workers / best {found[8] / max(found.values()):.2f}", flush=True)
    return sound


def ended(store: PostgresStore) -> int:
    with store.connections.borrowed() as connection:
        (n,) = connection.execute("SELECT count(*) FROM timeball.ended").fetchone() or (0,)
    return int(n)


def idle(site: Site) -> bool:
    """The CPU of a worker at rest, and of its supervisor, by /proc/PID/stat."""
    lasting_s = 10.0 if site.smoke else 30.0
    with site.database() as store, fleet(store, 1, 8) as supervisor:
        until(lambda: bool(store.pulses()) and bool(supervisor.children()))
        time.sleep(2.0)
        (child,) = supervisor.children()
        before, own, at = cpu_s(child.pid), time.process_time(), time.monotonic()
        time.sleep(lasting_s)
        took_s = time.monotonic() - at
        share, other = (cpu_s(child.pid) - before) / took_s, (time.process_time() - own) / took_s
    print(f"  worker at rest: {share:.2%} of a core, its supervisor {other:.2%}", flush=True)
    return share < 0.01


def cpu_s(pid: int) -> float:
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICKS_S


MEASURES: dict[str, Callable[[Site], bool]] = {"rates": rates, "scaling": scaling, "idle": idle}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--smoke", action="store_true", help="shorter")
    parser.add_argument("--only", default=",".join(MEASURES), help="some of " + ", ".join(MEASURES))
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="timeball-bench-") as folder,
        EmbeddedPostgres(Path(folder) / "data", linger_s=0.0) as server,
    ):
        site = Site(server.dsn, options.smoke, [])
        good = [MEASURES[name](site) for name in options.only.split(",")]
    print("sound" if all(good) else "NOT SOUND")
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
