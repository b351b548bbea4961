"""A PostgreSQL store whose clock the tests move."""

from __future__ import annotations

from datetime import timedelta

import psycopg
from tests.store.world import Clock, World

from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import Connections


class TravellingConnections(Connections):
    """Every connection reads the test's clock."""

    def __init__(self, dsn: str, clock: Clock) -> None:
        super().__init__(dsn)
        self.clock = clock

    def _take(self) -> psycopg.Connection:
        connection = super()._take()
        connection.execute("SELECT set_config('timeball.now', %s, false)", [str(self.clock.at)])
        return connection


class TravellingStore(PostgresStore):
    """The store itself, on those connections."""

    def __init__(self, dsn: str, clock: Clock) -> None:
        super().__init__(dsn)
        self.connections = TravellingConnections(dsn, clock)
        self._run = self.connections.run


def postgres_world(dsn: str) -> World:
    """A world on the empty database behind `dsn`."""
    clock = Clock()

    def travel(by: timedelta) -> None:
        clock.move(by)

    return World(TravellingStore(dsn, clock), travel)
