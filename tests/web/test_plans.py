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
from timeball.web.pages import jobs
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
    *("/metrics", "/api/v1/counts", "/api/v1/jobs?limit=500"),
]
RARE = (
    "UPDATE timeball.job SET kind = 'rare' WHERE id IN (3, 4, 5)",
    "UPDATE timeball.ended SET event = 'failed' WHERE job_id % 3 = 0 AND event = 'succeeded'",
    "UPDATE timeball.lease SET pos_xid = pg_snapshot_xmin(cur)",
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
    for module in (panorama, jobs):
        monkeypatch.setattr(module, "NEWEST_MAX", BOUND)
    for module in (queues, tide):
        monkeypatch.setattr(module, "COUNT_MAX", BOUND)
    app, heard = create_app(direct), Heard()
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
    for path in PATHS:
        plans.clear()
        assert browser.get(path).status == 200, path
        assert plans, path
        scanned = {(plan.query, table) for plan in plans for table in plan.scanned() & LARGE}
        assert not scanned, path
        # Of the newest jobs four turns each are looked at.
        many = {plan.query: plan.most_rows() for plan in plans if plan.most_rows() > 5 * BOUND}
        assert not many, path
