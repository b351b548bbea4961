"""What `timeball demo --web` shows: several queues, failures, a graph, limits, schedules."""

from __future__ import annotations

from itertools import count
from threading import Event
from typing import Final

from timeball.cli import demo_kinds as kinds
from timeball.client import Client
from timeball.errors import QueueFull, StoreUnavailable

QUEUES: Final = ("mail", "reports", "etl", "hooks")
LOADS: Final = kinds.__name__
_BEAT_S: Final = 1.0
_SOURCES: Final = ("orders", "users", "stock", "payments")


def begin(client: Client) -> None:
    """Set limits and schedules, and add the first jobs."""
    client.limit(queue="mail", rate="8/s")
    client.limit(queue="reports", at_once=2)
    client.limit(key="tenant-*", at_once=1)
    for name, job, cron, tz, args in (
        ("nightly-report", kinds.render, "30 2 * * *", "Europe/Berlin", {"month": 1}),
        ("sync-ledger", kinds.extract, "0 */3 * * *", "Europe/Berlin", {"source": "ledger"}),
        ("ping-hook", kinds.call, "@every 10s", "UTC", {"order": 1}),
        ("close-books", kinds.load, "59 23 L * *", "Europe/Berlin", {"target": "books"}),
        ("new-york-open", kinds.load, "30 9 * * mon-fri", "America/New_York", {"target": "desk"}),
    ):
        client.schedule(name, job, cron=cron, tz=tz, args=args)
    client.pause_schedule("close-books")
    client.submit_many(kinds.welcome, [{"user": user} for user in range(1, 240)])
    client.submit_many(kinds.render, [{"month": month} for month in range(1, 7)])
    client.submit_many(kinds.call, [{"order": order} for order in range(1, 30)])
    client.submit(kinds.welcome, user=1_000, delay_s=3_600.0)
    client.submit("mail.digest", week=48, queue="mail")  # which no worker knows
    graph(client)


def graph(client: Client) -> None:
    """Add a batch of jobs that come after others."""
    with client.batch("monthly-close") as batch:
        parts = [batch.submit(kinds.extract, source=name) for name in _SOURCES]
        checks = [batch.submit(kinds.call, order=10 + n, after=parts[n : n + 2]) for n in range(3)]
        joined = batch.submit(kinds.load, target="warehouse", after=checks, key="tenant-7")
        batch.submit_many(kinds.render, [{"month": n} for n in range(3)], after=[joined])
        batch.submit(kinds.call, order=9, after=[(joined, "all_done")])


def go_on(client: Client, stop: Event) -> None:
    """Add a few jobs a second until `stop` is set."""
    for beat in count():
        if stop.wait(_BEAT_S):
            return
        try:
            users = [{"user": 2_000 + 6 * beat + n} for n in range(6)]
            client.submit_many(kinds.welcome, users)
            client.submit(kinds.call, order=100 + beat)
            if beat % 5 == 0:
                client.submit(kinds.render, month=beat % 12)
            if beat % 20 == 0:
                graph(client)
        except (QueueFull, StoreUnavailable):
            continue  # the next beat tries again
