"""A store for looking only: few connections, read-only transactions, and nothing that takes long.

What a person looks at must cost workers nothing, whatever is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any, Final

from timeball.core.queues import Queue
from timeball.errors import StoreUnavailable
from timeball.store.postgres.answers import Bounded
from timeball.store.postgres.connections import SCHEMA_DEFAULT, Connections
from timeball.store.postgres.sharing import Shared
from timeball.store.postgres.store import PostgresStore

READERS_MAX: Final = 2
"""Connections of one store."""

TIMEOUT_S: Final = 2.0
"""No statement takes longer."""

_TURN_S: Final = 5.0


class ReadingConnections(Connections):
    """At most `READERS_MAX` connections; each statement in a read-only transaction of its own."""

    def __init__(self, dsn: str, *, schema: str = SCHEMA_DEFAULT) -> None:
        super().__init__(dsn, schema=schema)
        self._room = BoundedSemaphore(READERS_MAX)

    @contextmanager
    def borrowed(self) -> Iterator[Bounded]:
        """Lend a connection, once one is free.

        Raises:
            StoreUnavailable: None was in time, or a statement took longer than `TIMEOUT_S`.
        """
        if not self._room.acquire(timeout=_TURN_S):
            raise StoreUnavailable("too many are looking at once: try again in a moment")
        try:
            with super().borrowed() as connection:
                yield connection
        finally:
            self._room.release()

    def run(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        """Run the statement of that name, reading; return its rows. See `Connections.run`."""
        with self.transaction() as run:
            run("begin_reading", timeout_ms=int(1000 * TIMEOUT_S))
            return run(name, **params)


class ReadingStore(PostgresStore):
    """The reading verbs of a store; all others are refused by the database."""

    connections: ReadingConnections

    def __init__(self, dsn: str, *, schema: str = SCHEMA_DEFAULT) -> None:
        super().__init__(dsn, schema=schema)
        self.connections = ReadingConnections(dsn, schema=schema)
        self._run = self.connections.run
        self._queues = Shared(super().queues)

    def queues(self) -> list[Queue]:
        """See `Queueing.queues`. Pages that are asked for together count once."""
        return self._queues().copy()
