"""How fast the dashboard and the API answer beside millions of jobs, and what open pages cost.

    .venv/bin/python bench/web.py [--finished 10_000_000] [--pending 1_000_000] [--wide 2_000]
        [--rounds 40] [--keep FOLDER]

Fills a new database (some minutes, 1.2 kB a job), asks for every route that is asked with GET and
for every list, and prints the p95 of each and its CPU, which tells more on a busy machine. `--keep`
leaves the database in a folder, and takes it up there again. `--wide` adds so many queues,
schedules and limits. Ends with 1 if an answer but `/metrics` is slower than 150 ms, or 200 open
pages take more than 5 % of a core where nothing happens.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit
from uuid import UUID

import psycopg
from web_database import burden, fill, run_often, widen

from timeball.client import Client
from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.embedded import EmbeddedPostgres
from timeball.store.postgres.migrate import migrate
from timeball.web import create_app
from timeball.web.app import ROUTES
from timeball.web.server import bound, served

P = 0.95
ANSWER_MS, REST_SHARE = 150.0, 0.05
OPEN, REST_S = 200, 20.0
REFUSED = 400
PARAMETER = re.compile(r"\{(\w+)(?::path)?\}")
ACTIONS = ("cancel", "revive", "delete")
TICKS_S = os.sysconf("SC_CLK_TCK")


def addresses(client: Client, finished: int) -> list[str]:
    """Return an address of every route that is asked with GET, and more of those with many faces.

    A route whose parameter nobody gives a name to here is a KeyError.
    """
    batches = client.batches(limit=2)
    names = {
        "job": str(finished // 2),
        "batch": str(batches[0].uuid) if batches else str(UUID(int=1)),
        "schedule": "schedule.0",
        "about": "queue",
        "limit": "queue.3",
        "name": "ui.css",
    }
    routes = [route for route in ROUTES if route.method == "GET" and route.path != "/events"]
    found = [PARAMETER.sub(lambda part: names[part[1]], route.path) for route in routes]
    words = [f"state:{state}" for state in State] + ["kind:rare.kind", "kind:nobody.has.it"]
    words += ["queue:queue.3", "queue:nobody", "queue:queue.3 kind:rare.kind"]
    words += [f"state:{state} kind:rare.kind" for state in State]
    lists = [f"/jobs?q={quote(word)}" for word in words]
    lists += [f"/jobs?before={finished // 2}", f"/jobs?q=kind:kind.1&before={finished // 2}"]
    searches = (
        "",
        "kind:kind.1",
        "kind:rare.kind",
        "queue:queue.3",
        "state:pending",
        "state:failed",
    )
    ask = [f"/jobs/matching?action={action}&q={q}" for action in ACTIONS for q in searches]
    one = [f"/jobs/{finished - 5}", f"/jobs/{finished + 7}", "/dependencies/{batch}"]
    one += ["/schedules?after=schedule.5", "/queues?after=queue.9", "/limits?after=key+customer:5"]
    one += ["/limits/kind/kind.1", "/limits/key/*", "/record?before=50000", "/batches?before=9"]
    one += ["/schedules/{schedule}?day=2026-10-25&zone=Europe/Berlin", "/certify?run=3"]
    one += ["/backfill/{schedule}?start=2026-01-01", "/schedules?day=2026-10-25"]
    one += [f"/batches/{batch.uuid}" for batch in batches[1:]]
    api = ["jobs?kind=rare.kind", "jobs?limit=500", "export.csv?kind=rare.kind"]
    return [*found, *lists, *ask, *(path.format(**names) for path in one),
            *(f"/api/v1/{each}" for each in api)]  # fmt: skip


def asked(host: str, path: str) -> tuple[int, float]:
    """Ask for an address once; return the status, and how many milliseconds it took.

    Of a file, its first rows are awaited.
    """
    connection = HTTPConnection(host, timeout=60)
    began = time.perf_counter()
    connection.request("GET", path, headers={"accept": "text/html"})
    answer = connection.getresponse()
    answer.read(None if "content-length" in answer.headers else 1)
    took = 1000 * (time.perf_counter() - began)
    connection.close()
    return answer.status, took


class Cost(NamedTuple):
    """What one address costs."""

    path: str
    status: int
    p95_ms: float
    cpu_ms: float
    """Of this process and the database's sessions, on average: what else runs does not matter."""


def costs(host: str, dsn: str, paths: list[str], rounds: int) -> Iterator[Cost]:
    """Ask for each address so often, once before."""
    for path in paths:
        status, _ = asked(host, path)
        before = cpu_s(dsn)
        found = [asked(host, path)[1] for _ in range(rounds)]
        cpu_ms = 1000 * (cpu_s(dsn) - before) / rounds
        yield Cost(path, status, quantile(found), cpu_ms)


def quantile(times: list[float]) -> float:
    return sorted(times)[min(len(times) - 1, int(P * len(times)))]


def rest_share(host: str, dsn: str) -> float:
    """Return what share of a core open pages cost where nothing happens, the database included."""
    with ExitStack() as stack:
        for _ in range(OPEN):
            connection = HTTPConnection(host, timeout=60)
            stack.callback(connection.close)
            connection.request("GET", "/events")
            connection.getresponse()
        time.sleep(2.0)
        before = cpu_s(dsn)
        time.sleep(REST_S)
        return (cpu_s(dsn) - before) / REST_S


def cpu_s(dsn: str) -> float:
    """Return the seconds of CPU that this process and its database's sessions have had.

    Those of sessions that have ended are in the account of their parent.
    """
    with psycopg.connect(dsn) as connection:
        pids = connection.execute("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        found = time.process_time()
        facts = [ticks(pid) for (pid,) in pids.fetchall()]
        living = sum(user + system for _, user, system, *_ in facts)
        _, _, _, *ended = ticks(facts[0][0])
    return found + (living + sum(ended)) / TICKS_S


def ticks(pid: int) -> list[int]:
    """Return a process's parent, and user and system ticks: its own, and its ended children's."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(stat[1]), *map(int, stat[11:15])]


def main() -> int:
    """Measure; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--finished", type=int, default=10_000_000)
    parser.add_argument("--pending", type=int, default=1_000_000)
    parser.add_argument("--wide", type=int, default=2_000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--keep", type=Path)
    asks = parser.parse_args()
    with ExitStack() as stack:
        folder = asks.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        new = not (folder / "data").exists()
        server = stack.enter_context(EmbeddedPostgres(folder, linger_s=0.0))
        store = PostgresStore(server.dsn)
        stack.callback(store.close)
        client, runs = Client(store), folder / "results"
        if new:
            migrate(store.connections)
            fill(store, asks.finished, asks.pending)
        if not runs.exists():
            widen(client, asks.wide)
            burden(client)
            run_often(runs)
        app = create_app(client, results=runs)
        url = stack.enter_context(served(app, bound("127.0.0.1", 0, tokens=False)))
        return measured(client, urlsplit(url).netloc, server.dsn, asks)


def measured(client: Client, host: str, dsn: str, asks: argparse.Namespace) -> int:
    """Measure what is served; return the exit code."""
    late = 0
    for cost in costs(host, dsn, addresses(client, asks.finished), asks.rounds):
        is_late = cost.p95_ms > ANSWER_MS and cost.path != "/metrics"  # which no person awaits
        late += is_late or cost.status >= REFUSED
        told = f"p95 {cost.p95_ms:5.0f} ms, CPU {cost.cpu_ms:5.0f} ms"
        print(f"{told}  {cost.status}  {cost.path}{'  LATE' if is_late else ''}", flush=True)
    share = rest_share(host, dsn)
    print(f"{OPEN} open pages at rest: {share:.1%} of a core; {late} answers are late or refused")
    return 1 if late or share > REST_SHARE else 0


if __name__ == "__main__":
    sys.exit(main())
