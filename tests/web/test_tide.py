"""What tells open pages of changes."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.web.asgi import Browser
from tests.web.conftest import TEXTS

from timeball.client import Client
from timeball.store.postgres.reading import ReadingConnections
from timeball.web import Scope
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


def test_a_database_that_is_away_is_a_change_too(dsn: str) -> None:
    connections = ReadingConnections(dsn)
    tide = Tide(connections, look_s=0.01)

    async def story() -> None:
        changes = tide.changes()
        wait = asyncio.ensure_future(anext(changes))
        while not tide.looked:
            await asyncio.sleep(0)
        connections.close()
        assert await asyncio.wait_for(wait, DEADLINE_S)
        await changes.aclose()

    asyncio.run(story())
