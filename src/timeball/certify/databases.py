"""Databases for scenarios: each gets an empty one of its own, which is gone afterwards."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from timeball.certify.queries import query
from timeball.errors import StoreUnavailable, UsageError
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.embedded import EmbeddedPostgres, reset
from timeball.store.postgres.migrate import migrate

_HURRY: Final = ("fsync = off", "full_page_writes = off", "autovacuum = off")
_PRISTINE: Final = "template0"

Change = Callable[[Any], None]
"""Changes a migrated schema, over a connection in autocommit mode."""


class Databases:
    """Makes databases on one server.

    Args:
        dsn: Of a database on it, as a user who may create others.
        own: The folder of the server, where it is one of our own.
        changes: Made to the schema once it is migrated: the defects to be put in.
    """

    def __init__(
        self, dsn: str, *, own: Path | None = None, changes: tuple[Change, ...] = ()
    ) -> None:
        self._dsn = dsn
        self.own = own
        self._changes = changes
        self._prefix = f"timeball_certify_{uuid4().hex[:12]}"
        self._made = 0
        self._template: str | None = None

    @contextmanager
    def lent(self, *, pristine: bool = False) -> Iterator[str]:
        """Lend the DSN of a migrated, empty database; of one without our schema: `pristine`."""
        self._made += 1
        name = f"{self._prefix}_{self._made}"
        self._create(name, _PRISTINE if pristine else self.migrated())
        try:
            yield self._dsn_of(name)
        finally:
            self._drop(name)

    def close(self) -> None:
        """Drop what is left, where the server is still there."""
        if self._template is not None:
            with suppress(StoreUnavailable):
                self._drop(self._template)

    def migrated(self) -> str:
        """Return the name of a migrated database, to copy; migrating takes longer than copying."""
        if self._template is None:
            name = f"{self._prefix}_0"
            self._create(name, _PRISTINE)
            self._template = name
            connections = Connections(self._dsn_of(name))
            migrate(connections)
            with connections.borrowed() as connection:
                for change in self._changes:
                    change(connection)
            connections.close()
        return self._template

    def _create(self, name: str, template: str) -> None:
        try:
            carry_out(self._dsn, query("create_database").format(name=name, template=template))
        except UsageError as error:
            raise UsageError(
                "certify makes databases of its own on the server: connect as a user who may, "
                "or run ALTER ROLE … CREATEDB"
            ) from error

    def _drop(self, name: str) -> None:
        carry_out(self._dsn, query("drop_database").format(name=name))

    def _dsn_of(self, name: str) -> str:
        return conninfo(self._dsn, dbname=name)


def carry_out(dsn: str, *texts: str) -> None:
    """Carry out statements on a connection of their own: the server may have died before."""
    with closing(Connections(dsn)) as connections, connections.borrowed() as connection:
        for text in texts:
            connection.execute(text.encode())


def conninfo(dsn: str, **changes: str) -> str:
    """Return the address of a database with some of its parts changed, its password included."""
    with closing(Connections(dsn)) as connections, connections.borrowed() as connection:
        info = connection.info
        given = {**info.get_parameters(), "password": info.password, **changes}
    given.pop("application_name", None)
    return " ".join(f"{key}={_quoted(str(value))}" for key, value in given.items() if value)


def address(dsn: str) -> Path:
    """Return the Unix socket of the server of an address."""
    with closing(Connections(dsn)) as connections, connections.borrowed() as connection:
        return Path(connection.info.host) / f".s.PGSQL.{connection.info.port}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@contextmanager
def serving(dsn: str | None, changes: tuple[Change, ...] = ()) -> Iterator[Databases]:
    """Lend databases: on the server given, else on an embedded one that is gone afterwards.

    Args:
        dsn: Of somebody's server.
        changes: See `Databases`.
    """
    if dsn is not None:
        with closing(Databases(dsn, changes=changes)) as databases:
            yield databases
        return
    folder = Path(tempfile.mkdtemp(prefix="timeball-certify-"))
    server = EmbeddedPostgres(folder, linger_s=0.0)
    try:
        hurry = [query("hurry").format(setting=setting) for setting in _HURRY]
        carry_out(server.start(), *hurry, query("reload"))
        with closing(Databases(server.dsn, own=folder, changes=changes)) as databases:
            yield databases
    finally:
        remove(server, folder)


def remove(server: EmbeddedPostgres, folder: Path) -> None:
    """End an embedded server of our own, and leave nothing of its folder."""
    try:
        server.stop()
        reset(folder)
    finally:  # a signal may have come meanwhile
        with suppress(UsageError):  # it does not know what is half gone
            reset(folder)
        shutil.rmtree(folder, ignore_errors=True)
