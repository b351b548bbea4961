"""What pages read: through indexes, and a bounded number of rows, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from tests.store.postgres.plans import EXPLAIN, Explained, Plan, seed
from tests.web.asgi import Browser
from tests.web.conftest import path_of

from timeball.core.states import State
from timeball.store.postgres import panorama, queues
from timeball.web import create_app, tide
from timeball.web.api import exports
from timeball.web.api.matching import STATES
from timeball.web.app import ROUTES

JOBS, BOUND = 10_000, 400
LARGE = {"job", "entry", "ended", "held", "lease", "event", "logged", "occurrence", "operation"}
WORDS = ("kind:rare", "queue:default", "queue:none", "kind:rare queue:default")
LISTS = [f"{state} {word}" for state in State for word in ("", "kind:rare", "queue:none")]
NAMES = {"job": "77", "about": "kind", "limit": "rare", "schedule": "s", "name": "ui.css"}
STILL = {"/login", "/static/{name}", "/api/v1/openapi.json", "/certify", "/api/v1/certify"}
"""Routes that read nothing."""

ROUTED = [route for route in ROUTES if route.method == "GET" and route.path != "/events"]
FAR = datetime.now(UTC) - timedelta(days=60)
MORE = [
    *(f"/jobs?q={word}" for word in WORDS),
    *(f"/jobs?q=state:{word}" for word in LISTS),
    *(f"/jobs/matching?action={do}&q={word}" for do in STATES for word in ("", *WORDS)),
    *("/jobs?before=5000", "/jobs?q=kind:rare&before=5000", "/dependencies/{batch}"),
    *("/limits/queue/q2", "/limits/key/t-*", "/batches?before=5000", "/record?before=5000"),
    *(f"/backfill/s?start={FAR:%Y-%m-%d}", "/schedules/s?day=2026-10-25"),
    *("/api/v1/jobs?limit=500", "/schedules?zone=Europe/Berlin"),
    *("/api/v1/export.csv?kind=rare", "/api/v1/operations?before=50"),
]
RARE = (
    "UPDATE timeball.job SET kind = 'rare' WHERE id IN (3, 4, 5)",
    "UPDATE timeball.ended SET event = 'failed' WHERE job_id % 3 = 0 AND event = 'succeeded'",
    "UPDATE timeball.lease SET pos_xid = pg_snapshot_xmin(cur)",
    # As many as have been granted before, and matter no more.
    "SELECT timeball.ensure_lane('q' || n, 5) FROM generate_series(2, 20) AS n",
    "SELECT timeball.register('w' || n, '{a}', '{q}', 9) FROM generate_series(2, 4) AS n",
    """INSERT INTO timeball.lease
        (lane, seq, worker, request, floor, prev, cur, pos_xid, pos_id, job_ids, turns)
    SELECT 1 + n % 20, -n, 1 + n % 4, gen_random_uuid(), -n, prev, cur, '0', 0, job_ids[1:1],
        turns[1:1]
    FROM timeball.lease CROSS JOIN generate_series(1, 3000) AS n WHERE seq = 1""",
    """INSERT INTO timeball.limiter (scope, name, starts, window_us, since)
    SELECT scope, name, 1, 1, '-infinity'
    FROM (VALUES ('queue', 'q2'), ('kind', 'rare'), ('key', 't-*')) AS rate (scope, name)""",
    """INSERT INTO timeball.operation (who, origin, what, target, before)
    SELECT 'w', 'o', 'w', 't', '{}' FROM generate_series(1, 3000)""",
    """INSERT INTO timeball.occurrence (schedule_id, nominal_at, decision, job_id)
    SELECT schedule.id, now() - make_interval(mins => n), 'fired', n
    FROM timeball.schedule CROSS JOIN generate_series(1, 3000) AS n""",
    "ANALYZE",
)
pytestmark = pytest.mark.slow


@pytest.fixture
def asking(direct: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Browser, list[Plan]]]:
    """A browser, and the plans of all that its pages ask for."""
    seed(direct, JOBS)
    for name in ("NEWEST_MAX", "LOOKED_MAX", "PROVEN_MAX"):
        monkeypatch.setattr(panorama, name, BOUND)
    for module in (queues, tide):
        monkeypatch.setattr(module, "COUNT_MAX", BOUND)
    monkeypatch.setattr(exports, "ROWS_MAX", 200)
    app, heard = create_app(direct), Heard()
    with app.state.desk.client.batch() as batch:
        batch.submit("k")
    app.state.desk.client.schedule("s", "k", cron="@hourly", tz="UTC")
    with psycopg.connect(direct, autocommit=True) as connection:
        for text in RARE:
            connection.execute(text)
    connections = app.state.desk.look_connections
    connect = connections.connect
    monkeypatch.setattr(connections, "connect", lambda: heard.to(connect()))
    yield Browser(app), heard.plans
    connections.close()
    app.state.desk.client.store.close()


class Heard(Explained):
    """The plans of connections that somebody else opens."""

    def __init__(self) -> None:
        self._heard = self.plans = list[Plan]()

    def to(self, connection: Any) -> Any:
        connection.add_notice_handler(self._hear)
        for setting in EXPLAIN:
            connection.execute(setting)
        return connection


def test_no_route_reads_a_large_table_from_its_beginning_or_more_of_it_than_it_may(
    asking: tuple[Browser, list[Plan]],
) -> None:
    browser, plans = asking
    batch = browser.get("/api/v1/batches").json["batches"][0]["uuid"]
    every = [(path_of(route, **NAMES, batch=batch), route.path in STILL) for route in ROUTED]
    every += [(path.format(batch=batch), False) for path in MORE]
    for path, still in every:
        plans.clear()
        assert browser.get(path).status == 200, path
        assert (not plans) == still, path
        scanned = {(plan.query, table) for plan in plans for table in plan.scanned() & LARGE}
        assert not scanned, path
        # Of the newest jobs four turns each are looked at.
        many = {plan.query: plan.most_rows() for plan in plans if plan.most_rows() > 6 * BOUND}
        assert not many, path
