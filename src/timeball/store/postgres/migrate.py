"""Bring a database's schema up to date: numbered files once, functions whenever they change.

`migrations/` holds numbered files, each run once and never edited afterwards: its
checksum is kept and compared. `functions/` holds one function or view a file, which
replaces the one before it whenever the file has changed. All of it happens in one
transaction under one advisory lock, so that any number of programs may start at once.
"""

from __future__ import annotations

import hashlib
import logging
import time
from importlib.resources import files
from typing import Any, Final, NamedTuple

import psycopg

from timeball.errors import SchemaMismatch, StoreUnavailable
from timeball.store.postgres.connections import (
    SCHEMA_DEFAULT,
    Connections,
    in_schema,
    statement,
)
from timeball.store.postgres.roles import grants, seal

_PATIENCE_S: Final = 300.0
_REST_S: Final = 0.2  # in which those who wait for the table get it

_log = logging.getLogger(__name__)

_PREPARE: Final = ("migration_begin", "create_schema", "migration_table")


class Migration(NamedTuple):
    """One file that makes a part of the schema."""

    name: str
    text: str
    checksum: str
    """SHA-256 of the file, in hexadecimal."""

    repeatable: bool


def migrations() -> list[Migration]:
    """Return all files in the order in which they are run."""
    found = []
    for folder, repeatable in (("migrations", False), ("functions", True)):
        for path in sorted((files(__package__) / folder).iterdir(), key=lambda path: path.name):
            if path.name.endswith(".sql"):
                text = path.read_text("utf-8")
                checksum = hashlib.sha256(text.encode()).hexdigest()
                found.append(Migration(f"{folder}/{path.name}", text, checksum, repeatable))
    return found


def migrate(connections: Connections) -> list[str]:
    """Apply what is missing or has changed; return the names of what was applied.

    Workers go on meanwhile: a lock that is not there within a second is let go and asked for
    again, so that no claim queues behind a migration that queues behind a long transaction.

    Raises:
        SchemaMismatch: The database was migrated by a newer version, or a numbered file
            is not the one that was applied.
        StoreUnavailable: Somebody has held a lock for all of five minutes.
    """
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return _migrate(connections)
        except StoreUnavailable as error:
            busy = isinstance(error.__cause__, psycopg.errors.LockNotAvailable)
            if not busy or time.monotonic() > deadline:
                raise
            _log.warning("a table is in use, trying again: %s", error)
            time.sleep(_REST_S)


def _migrate(connections: Connections) -> list[str]:
    schema = connections.schema
    with connections.borrowed() as connection, connection.transaction():
        for name in _PREPARE:
            connection.execute(statement(name, schema))
        todo = _missing(connection, schema)
        for migration in todo:
            connection.execute(in_schema(migration.text, schema))
            connection.execute(
                statement("migration_applied", schema),
                {"name": migration.name, "checksum": migration.checksum},
            )
        if todo:
            connection.execute(seal(schema).encode())
    return [migration.name for migration in todo]


def check(connections: Connections) -> None:
    """Return if the schema fits this program.

    Raises:
        SchemaMismatch: It is missing, older or newer; the text says what to do.
    """
    with connections.borrowed() as connection:
        exists = connection.execute(statement("has_schema", connections.schema)).fetchone()
        if exists != (True,):
            raise SchemaMismatch("the database has no Timeball schema: run `timeball db migrate`")
        todo = _missing(connection, connections.schema)
    if todo:
        raise SchemaMismatch(
            f"the schema lacks {len(todo)} changes of this version, the first of them "
            f"{todo[0].name}: run `timeball db migrate`"
        )


def script(schema: str = SCHEMA_DEFAULT) -> str:
    """Return one SQL script that makes the whole schema, for people who run it themselves."""
    parts = ["BEGIN;", *(statement(name, schema) for name in _PREPARE)]
    for migration in migrations():
        applied = statement("migration_applied", schema)
        for name in ("name", "checksum"):
            applied = applied.replace(f"%({name})s", f"'{getattr(migration, name)}'")
        parts += [f"-- {migration.name}", in_schema(migration.text, schema), applied]
    return "\n".join([*parts, seal(schema), "COMMIT;", ""])


def grant(connections: Connections) -> None:
    """Make the roles of `roles` and give each its rights; nobody waits for it. Run it again freely.

    Raises:
        SchemaMismatch: The schema is not the one whose objects are named there.
        UsageError: This user may not create roles, or does not own the schema.
    """
    check(connections)
    schema = connections.schema
    with connections.borrowed() as connection, connection.transaction():
        connection.execute(statement("migration_begin", schema))
        connection.execute(grants(schema).encode())


def _missing(connection: psycopg.Connection[Any], schema: str) -> list[Migration]:
    applied = dict(connection.execute(statement("migrations", schema)).fetchall())
    known = migrations()
    unknown = sorted(set(applied) - {migration.name for migration in known})
    numbered = [name for name in unknown if name.startswith("migrations/")]
    if numbered:
        raise SchemaMismatch(
            f"the database has {numbered[-1]}, which this version does not know: "
            "install the newer Timeball that migrated it"
        )
    todo = []
    for migration in known:
        checksum = applied.get(migration.name)
        if checksum is not None and not migration.repeatable and checksum != migration.checksum:
            raise SchemaMismatch(
                f"{migration.name} is not the file that was applied to this database: "
                "install the version that it was migrated with"
            )
        if checksum != migration.checksum:
            todo.append(migration)
    return todo
