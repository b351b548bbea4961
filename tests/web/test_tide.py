"""What tells open pages of changes."""

from __future__ import annotations

import asyncio
from http.client import HTTPConnection
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from tests.web.asgi import Browser
from tests.web.conftest import TEXTS

from timeball.client import Client
from timeball.errors import StoreUnavailable
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.reading import ReadingConnections
from timeball.web import Scope, create_app
from timeball.web.server import bound, served
from timeball.web.tide import Tide

DEADLINE_S = 30.0


def test_a_change_is_told_to_all_who_listen_and_then_nobody_looks(client: Client, dsn: str) -> None:
    connections = ReadingConnections(dsn)
    tide = Tide(connections, look_s=0.01)
    changes = [
        lambda: client.submit("k"),
        lambda: client.pause_queue("q"),
        lambda: client.limit(queue="q", rate="5/s"),
        lambda: client.schedule("s", "k", cron="@daily", tz="UTC"),
        lambda: client.pause_schedule("s"),
        lambda: client.cancel(client.jobs()[0].uuid),
    ]

    async def story() -> None:
        first, second = tide.changes(), tide.changes()
        for change in changes:
            waits = [asyncio.ensure_future(anext(first)), asyncio.ensure_future(anext(second))]
            while tide.listeners < 2 or not tide.looked:
                await asyncio.sleep(0)
            await asyncio.to_thread(change)
            assert await asyncio.wait_for(asyncio.gather(*waits), DEADLINE_S) == [True, True]
        await first.aclose()
        await second.aclose()
        assert (tide.listeners, tide.looks) == (0, False)

    asyncio.run(story())
    connections.close()


def test_the_stream_begins_at_once_and_ends_with_its_reader(app: Any) -> None:
    answer = Browser(app, TEXTS[Scope.READ]).get("/events")
    assert answer.header("content-type") == "text/event-stream; charset=utf-8"
    assert answer.text == "retry: 3000\n\n"
    assert app.state.desk.tide.listeners == 0


class Sea:
    """Connections to a database that is there, or is not."""

    def __init__(self) -> None:
        self.away, self.level, self.looks = False, 0, 0

    def run(self, name: str, **_: Any) -> list[tuple[Any, ...]]:
        self.looks += name == "latest_change"
        if self.away:
            raise StoreUnavailable("too many are looking at once")
        return [] if name == "queues" else [(self.level,)]

    async def looked_at(self) -> None:
        """Wait until a look has begun and ended from now on."""
        until = self.looks + 2
        while self.looks < until:
            await asyncio.sleep(0)


def test_while_nothing_can_be_seen_nothing_has_changed_and_afterwards_what_did_is_told() -> None:
    """Pages that all asked again because the database is busy would keep it so."""
    sea = Sea()
    tide = Tide(cast("Connections", sea), look_s=0.001)

    async def story() -> None:
        changes = tide.changes()
        wait = asyncio.ensure_future(anext(changes))
        while not tide.looked:
            await asyncio.sleep(0)
        for away in (True, False, True):
            sea.away = away
            await sea.looked_at()
            assert not wait.done()
        sea.level, sea.away = 1, False
        assert await asyncio.wait_for(wait, DEADLINE_S)
        await changes.aclose()

    asyncio.run(story())


def test_a_server_that_stops_lets_open_pages_go_without_cutting_them_off(
    client: Client, capfd: pytest.CaptureFixture[str]
) -> None:
    """Cut off, an answer ends in the middle, and the server writes a traceback for each."""
    app = create_app(client)
    with served(app, bound("127.0.0.1", 0, tokens=False)) as url:
        connection = HTTPConnection(urlsplit(url).netloc, timeout=DEADLINE_S)
        connection.request("GET", "/events")
        answer = connection.getresponse()
        assert answer.readline() == b"retry: 3000\n"
    answer.read()
    connection.close()
    app.state.desk.look_connections.close()
    assert "Traceback" not in capfd.readouterr().err
