"""What pages read: through indexes, and a bounded number of rows, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from tests.store.postgres.plans import EXPLAIN, Explained, Plan, seed
from tests.web.asgi import Browser

from timeball.core.states import State
from timeball.store.postgres import panorama, queues
from timeball.web import create_app, tide
from timeball.web.shell import NAVIGATION

JOBS, BOUND = 10_000, 400
LARGE = {"job", "entry", "ended", "held", "lease", "event", "logged", "occurrence", "operation"}
WORDS = ("kind:rare", "queue:default", "queue:none", "kind:rare queue:default")
LISTS = [f"{state} {word}" for state in State for word in ("", "kind:rare", "queue:none")]
PATHS = [
    *(f"/{entry.path}" for entry in NAVIGATION if entry.path != "certify"),
    *(f"/jobs?q={word}" for word in WORDS),
    *(f"/jobs?q=state:{word}" for word in LISTS),
    *("/jobs?before=5000", "/jobs?q=kind:rare&before=5000", "/jobs/77", "/dependencies/77"),
    *("/limits/queue/q2", "/limits/kind/rare", "/limits/key/t-*"),
    *("/metrics", "/api/v1/counts", "/api/v1/jobs?limit=500"),
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
    "ANALYZE",
)
pytestmark = pytest.mark.slow


@pytest.fixture
def asking(direct: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Browser, list[Plan]]]:
    """A browser, and the plans of all that its pages ask for."""
    seed(direct, JOBS)
    with psycopg.connect(direct, autocommit=True) as connection:
        for text in RARE:
            connection.execute(text)
    for name in ("NEWEST_MAX", "LOOKED_MAX", "PROVEN_MAX"):
        monkeypatch.setattr(panorama, name, BOUND)
    for module in (queues, tide):
        monkeypatch.setattr(module, "COUNT_MAX", BOUND)
    app, heard = create_app(direct), Heard()
    with app.state.desk.client.batch() as batch:
        batch.submit("k")
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


def test_no_page_reads_a_large_table_from_its_beginning_or_more_of_it_than_it_may(
    asking: tuple[Browser, list[Plan]],
) -> None:
    browser, plans = asking
    batch = browser.get("/api/v1/batches").json["batches"][0]["uuid"]
    for path in (*PATHS, f"/batches/{batch}", f"/dependencies/{batch}"):
        plans.clear()
        assert browser.get(path).status == 200, path
        assert plans, path
        scanned = {(plan.query, table) for plan in plans for table in plan.scanned() & LARGE}
        assert not scanned, path
        # Of the newest jobs four turns each are looked at.
        many = {plan.query: plan.most_rows() for plan in plans if plan.most_rows() > 6 * BOUND}
        assert not many, path
