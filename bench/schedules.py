"""How late 100,000 schedules fire that come due in one minute, and what idle ones cost.

    .venv/bin/python bench/schedules.py [--schedules 100000] [--tickers 2] [--smoke]

Three rounds on an embedded PostgreSQL with durable settings: nothing is due; all schedules
come due, spread over a minute, with several tickers in processes of their own; one schedule of
every second catches up a day. Lateness is from an occurrence to the row that records it, by
the database's clock. Absolute figures of one machine on one day.
"""

from __future__ import annotations

import argparse
import multiprocessing
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import timeball
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.audit import audit_schedules
from timeball.core.standing import standing
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.embedded import EmbeddedPostgres
from timeball.store.postgres.migrate import migrate
from timeball.worker.ticker import Ticker

ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "UTC")
IDLE_S, LEAD_S = 20, 10
# The columns of a schedule that a copy takes from its pattern.
COPIED = """kind, expression, tz, gap, overlap, terms, args, queue, priority, max_retries,
    max_crashes, delivery, timeout_s, catchup, catchup_window_s, catchup_limit, grace_s,
    overlap_runs, source, active_from, cursor_at, next_at, due_at, zone_version, fingerprint,
    offset_s"""
COPY = f"""INSERT INTO timeball.schedule (name, {COPIED})
    SELECT name || '-' || n, {COPIED}
    FROM timeball.schedule, generate_series(2, %(each)s) AS n WHERE name LIKE 'bench-%%'"""
LATENESS = """SELECT count(*), count(DISTINCT schedule_id),
    percentile_cont(0.5) WITHIN GROUP (ORDER BY late),
    percentile_cont(0.99) WITHIN GROUP (ORDER BY late), max(late)
    FROM (SELECT schedule_id, extract(epoch FROM at - nominal_at)::float AS late
        FROM timeball.occurrence) AS o"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--tickers", type=int, default=2)
    parser.add_argument("--smoke", action="store_true", help="small and quick: only that it works")
    options = parser.parse_args()
    if options.smoke:
        options.schedules = 1_200
    with (
        tempfile.TemporaryDirectory(prefix="timeball-bench-") as folder,
        EmbeddedPostgres(Path(folder) / "data", linger_s=0.0) as server,
    ):
        store = PostgresStore(server.dsn)
        migrate(store.connections)
        print(f"timeball {timeball.__version__}, CPython {platform.python_version()}, "
              f"{options.schedules:,} schedules, {options.tickers} tickers")  # fmt: skip
        spread_s = 4 if options.smoke else 60
        good = measure(store, server.dsn, options, spread_s=spread_s)
        catch_up(store, hours=1 if options.smoke else 24)
        store.close()
    return 0 if good else 1


def measure(store: PostgresStore, dsn: str, options: argparse.Namespace, *, spread_s: int) -> bool:
    idle_s = 2 if options.smoke else IDLE_S
    share = spread_s * len(ZONES)
    schedules = options.schedules // share * share
    first = store.now().replace(microsecond=0) + timedelta(seconds=2 * idle_s + LEAD_S)
    declare(store, schedules, first, spread_s)
    with tickers(dsn, 1) as answers:
        before = backend_s(store)
        time.sleep(idle_s)
        spent = backend_s(store) - before
    idle = (sum(answers) + spent) / idle_s
    print(f"idle: {100 * idle:.1f} % of a core, {100 * spent / idle_s:.1f} of it in the database")
    with tickers(dsn, options.tickers) as answers:
        before = backend_s(store)
        end = first + timedelta(seconds=spread_s)
        while store.now() < end or pending(store, end):
            time.sleep(0.5)
        spent = backend_s(store) - before
    count, each, p50, p99, worst = row(store, LATENESS)
    cpu = ", ".join(f"{ticker:.1f} s" for ticker in answers)
    print(f"due over {spread_s} s: {count:,} occurrences, late p50 {p50:.2f} s, p99 {p99:.2f} s, "
          f"max {worst:.2f} s; CPU of the tickers {cpu}, database {spent:.1f} s")  # fmt: skip
    violations = list(audit_schedules(store.schedule_histories(), expected(store)))
    print(f"  each once: {count == each == schedules}, violations {len(violations)}")
    return bool(count == each == schedules and not violations)


def declare(store: PostgresStore, schedules: int, first: datetime, spread_s: int) -> None:
    """Make schedules of every hour that come due in the `spread_s` seconds from `first`."""
    now = store.now()
    for second in range(spread_s):
        at = first + timedelta(seconds=second)
        for zone in ZONES:
            minute = (at + timedelta(minutes=30 * (zone == "Asia/Kolkata"))).minute
            spec = schedule_spec(
                f"bench-{second}-{zone}", "bench", cron=f"{at.second} {minute} * * * *", tz=zone
            )
            cursor = max(now, at - timedelta(seconds=30))
            store.declare(spec, standing(agenda_of(spec), cursor))
    with store.connections.connect() as connection:
        connection.execute(COPY.encode(), {"each": schedules // (spread_s * len(ZONES))})
        connection.execute("VACUUM ANALYZE timeball.schedule")


@contextmanager
def tickers(dsn: str, number: int) -> Iterator[list[float]]:
    """Run tickers in processes of their own; the list then holds their CPU seconds."""
    context, spent = multiprocessing.get_context("spawn"), list[float]()
    pipes = [context.Pipe() for _ in range(number)]
    processes = [context.Process(target=tick, args=(dsn, theirs)) for _, theirs in pipes]
    for process in processes:
        process.start()
    for ours, _ in pipes:
        ours.recv()
    yield spent
    for ours, _ in pipes:
        ours.send("stop")
        spent.append(ours.recv())
    for process in processes:
        process.join()


def tick(dsn: str, pipe: Connection) -> None:
    """Tick until told to stop, and answer with the CPU seconds that it took."""
    store, stop = PostgresStore(dsn), threading.Event()
    store.now()
    before = time.process_time()
    thread = threading.Thread(target=Ticker(store).run, args=(stop,))
    thread.start()
    pipe.send("ready")
    pipe.recv()
    stop.set()
    thread.join()
    pipe.send(time.process_time() - before)
    store.close()


def catch_up(store: PostgresStore, *, hours: int) -> None:
    """Decide the occurrences of every second since long ago, of which one runs."""
    spec = schedule_spec("late", "bench", cron="* * * * * *", tz="Europe/Berlin")
    cursor = store.now().replace(microsecond=0) - timedelta(hours=hours)
    store.declare(spec, standing(agenda_of(spec), cursor))
    ticker, began_s = Ticker(store), time.perf_counter()
    while ticker.tick().rest_s == 0:
        pass
    elapsed_s = time.perf_counter() - began_s
    print(f"catching up {hours} h of every second: {3600 * hours / elapsed_s:,.0f} occurrences/s")


def expected(store: PostgresStore) -> Any:
    found = {each.spec.name: each.spec for each in store.schedules()}
    agendas: dict[tuple[str, str], Any] = {}

    def due(record: Any) -> Iterator[datetime]:
        spec = found[record.name]
        key = spec.expression, spec.tz
        agenda = agendas.get(key) or agendas.setdefault(key, agenda_of(spec))
        return agenda.following(record.activated_at)

    return due


def pending(store: PostgresStore, end: datetime) -> bool:
    query = "SELECT count(*) FROM timeball.schedule WHERE due_at < %s"
    return bool(row(store, query, [end])[0])


def backend_s(store: PostgresStore) -> float:
    """CPU seconds of all backends of the server, this one's own included."""
    pids = row(
        store, "SELECT array_agg(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'"
    )[0]
    return sum(cpu_s(pid) for pid in pids)


def cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    except OSError:
        return 0.0  # it has gone, or this is no Linux
    return (int(fields[11]) + int(fields[12])) / 100


def row(store: PostgresStore, query: str, params: Any = None) -> Any:
    with store.connections.connect() as connection:
        return connection.execute(query.encode(), params).fetchone()


if __name__ == "__main__":
    sys.exit(main())
