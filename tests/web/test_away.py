"""A database that is away, busy, not migrated, or does not let the dashboard in."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
from tests.web.asgi import Browser
from tests.web.conftest import TOKENS, path_of

from timeball.client import Client
from timeball.store.postgres import PostgresStore, reading
from timeball.store.postgres import connections as store_connections
from timeball.store.postgres.connections import statement
from timeball.web import Scope, create_app
from timeball.web.app import ROUTES

GETS = [route for route in ROUTES if route.method == "GET"]
ALWAYS_THERE = {
    *("/events", "/login", "/static/{name}", "/api/v1/openapi.json"),
    *("/certify", "/api/v1/certify"),
}
NOBODY = "postgresql://who:canary@127.0.0.1:1/nowhere"


def test_a_database_that_is_away_is_said_to_be_and_nothing_of_where_it_is() -> None:
    browser = Browser(create_app(NOBODY))
    for route in GETS:
        if route.path in ALWAYS_THERE:
            continue
        for accept in ("text/html", "application/json"):
            answer = browser.get(path_of(route), accept=accept)
            assert answer.status == 503, route.path
            assert not re.search(r"canary|127\.0\.0\.1|nowhere|SELECT|Traceback", answer.text)


def test_a_schema_that_is_not_there_is_told_apart_and_the_doctor_says_what_mends_it(
    dsn: str,
) -> None:
    with Client(PostgresStore(dsn, schema="not_migrated")) as client:
        app = create_app(client)
        browser = Browser(app)
        for path in ("/", "/jobs", "/record", "/metrics", "/api/v1/jobs", "/api/v1/operations"):
            answer = browser.get(path, accept="text/html")
            assert answer.status == 503, path
            assert "schema is missing" in answer.text, path
            assert "not_migrated" not in answer.text, path
        answer = browser.get("/doctor", accept="text/html")
        assert answer.status == 200
        assert "timeball db migrate" in answer.text
        app.state.desk.look_connections.close()


def test_no_page_reads_over_the_connections_that_change_things(
    app: Any, admin: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On them, no statement is ended after 2 seconds."""

    def refused() -> None:
        raise AssertionError("a page has read over them")

    monkeypatch.setattr(app.state.desk.client.store.connections, "borrowed", refused)
    for route in GETS:
        if route.path != "/events":
            assert admin.get(path_of(route)).status in {200, 303, 404}, route.path


def test_who_shows_no_token_costs_the_database_nothing() -> None:
    """It is away, and nobody finds out."""
    browser = Browser(create_app(NOBODY, tokens=TOKENS))
    for route in ROUTES:
        if route.scope is not Scope.OPEN:
            expected = 403 if route.scope is Scope.CALLBACK else 401  # its address is a token
            assert browser.send(route.method, path_of(route)).status == expected


def test_once_the_database_is_back_so_are_the_pages(app: Any, admin: Browser) -> None:
    connections = app.state.desk.look_connections
    assert admin.get("/jobs").status == 200
    for _, connection in connections._idle:
        connection.pgconn.finish()
    told = [admin.get("/jobs").status for _ in range(4)]
    assert set(told) <= {200, 503}
    assert told[-1] == 200


def test_what_the_driver_says_reaches_nobody(
    app: Any, admin: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the dashboard connects as somebody who may not read."""

    def refused(*_: object, **__: object) -> None:
        with app.state.desk.look_connections.borrowed():
            raise psycopg.errors.InsufficientPrivilege("permission denied for table canary")

    monkeypatch.setattr(app.state.desk.look, "jobs", refused)
    answer = admin.get("/api/v1/jobs")
    assert answer.status == 503
    assert "canary" not in answer.text
    assert "timeball db roles" in answer.json["detail"]


def test_a_list_that_takes_too_long_is_told_apart_and_how_to_ask_for_less(
    app: Any, admin: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "TIMEOUT_S", 0.01)
    connections = app.state.desk.look_connections
    slow = "SELECT pg_sleep(60)"
    monkeypatch.setattr(
        store_connections,
        "statement",
        lambda name, schema: slow if name == "jobs" else statement(name, schema),
    )
    answer = admin.get("/api/v1/jobs?kind=k")
    assert answer.status == 503
    assert "longer than 2 seconds: ask for less" in answer.json["detail"]
    assert connections._lent == 0
