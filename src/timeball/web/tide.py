"""Whether anything has changed: one look a second, however many pages are open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from timeball.core.queues import COUNT_MAX
from timeball.errors import TimeballError
from timeball.store.postgres.connections import Connections

LOOK_S: Final = 1.0

_BUDGET: Final = 4_000
"""Jobs that are counted at each look: of changes further back in a queue other marks tell."""

BEAT_S: Final = 15.0
"""So often something is said, so that what stands between keeps the connection."""


class Tide:
    """Notes that something has changed. Looks only while somebody listens.

    Args:
        connections: To the database.
        look_s: Seconds from one look to the next.
    """

    def __init__(self, connections: Connections, look_s: float = LOOK_S) -> None:
        self._connections, self._look_s = connections, look_s
        self._listeners: set[asyncio.Event] = set()
        self._task: asyncio.Task[None] | None = None
        self._moved: Any = None
        self._looked = self._over = False

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    @property
    def looks(self) -> bool:
        """Whether the database is being looked at."""
        return self._task is not None and not self._task.done()

    @property
    def looked(self) -> bool:
        """Whether it is known how things stood: what changes from then on is told."""
        return self._looked

    async def changes(self) -> AsyncIterator[bool]:
        """Yield True when something has changed, and False now and then; until `end`."""
        mine = asyncio.Event()
        self._listeners.add(mine)
        if not self.looks:
            self._looked = False
            self._task = asyncio.create_task(self._watch())
        try:
            while not self._over:
                changed = await _set_within(mine, BEAT_S)
                mine.clear()
                if not self._over:
                    yield changed
        finally:
            self._listeners.discard(mine)
            if not self._listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    def end(self) -> None:
        """Let all who listen go, and those who come later: the server stops. In its event loop."""
        self._over = True
        for event in self._listeners:
            event.set()

    async def _watch(self) -> None:
        seen = await asyncio.to_thread(self._look)
        self._looked = True
        while True:
            await asyncio.sleep(self._look_s)
            found = await asyncio.to_thread(self._look)
            if found != seen:
                seen = found
                for event in self._listeners:
                    event.set()

    def _look(self) -> Any:
        """Return what differs whenever a page would; cheap where nothing was written at all."""
        try:
            moved = self._connections.run("latest_change")
            if self._moved is None or self._moved[0] != moved:
                self._moved = moved, self._marks()
        except TimeballError:
            # Away, or busy: pages that asked again now would only make it worse.
            pass
        return self._moved and self._moved[1]

    def _marks(self) -> list[Any]:
        queues = self._connections.run("queues", most=COUNT_MAX, budget=_BUDGET)
        return [*(row[:4] + row[5:] for row in queues), *self._connections.run("marks")]


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return False
    return True
