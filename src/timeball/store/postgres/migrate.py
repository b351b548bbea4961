"""Bring a database's schema up to date: numbered files once, functions whenever they change.

`migrations/` holds numbered files, each run once and never edited afterwards: its
checksum is kept and compared. `functions/` holds one function or view a file, which
replaces the one before it whenever the file has changed. Each numbered file is a transaction,
and all functions are one, under one advisory lock, so that any number of programs may start at
once. A file that builds an index concurrently runs outside of a transaction.

Workers of the version before go on meanwhile, after each of these steps: see decision 0019.
"""

from __future__ import annotations

import hashlib
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
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
_REST_S: Final = 0.2  # in which those who wait for the table, or to migrate, get their turn
_BUSY: Final = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)

_log = logging.getLogger(__name__)

_PREPARE: Final = ("create_schema", "migration_table")
_INDEX: Final = re.compile(r"^CREATE (?:UNIQUE )?INDEX CONCURRENTLY (\w+)", re.MULTILINE)


class Migration(NamedTuple):
    """One file that makes a part of the schema."""

    name: str
    text: str
    checksum: str
    """SHA-256 of the file, in hexadecimal."""

    repeatable: bool

    @property
    def built(self) -> str | None:
        """Which index it builds while others write; None: it runs in a transaction."""
        found = _INDEX.search(self.text)
        return found and found[1]


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

    Workers go on meanwhile: a lock that is not there within 0.1 s is let go and asked for
    again, so that no claim queues behind a migration that queues behind a long transaction.
    Whoever is interrupted runs it again: it goes on behind the last step that was whole.

    Raises:
        SchemaMismatch: The database was migrated by a newer version, or a numbered file
            is not the one that was applied.
        StoreUnavailable: Somebody has held a lock, or migrated, for all of five minutes.
    """
    applied: list[str] = []
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            if not (done := _step(connections)):
                return applied
            applied += done
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, _BUSY) or time.monotonic() > deadline:
                raise
            _log.warning("a table is in use, trying again: %s", error)
            time.sleep(_REST_S)


def _step(connections: Connections) -> list[str]:
    """Apply the next numbered file, or all functions; return what was applied."""
    schema = connections.schema
    with _alone(connections) as connection:
        for name in _PREPARE:
            connection.execute(statement(name, schema))
        todo = _missing(connection, schema)
        step = todo if todo and todo[0].repeatable else todo[:1]
        for migration in step:
            if migration.built:
                _build(connections, migration, migration.built)
            else:
                connection.execute(in_schema(migration.text, schema))
            connection.execute(statement("migration_applied", schema), _row(migration))
        if step:
            connection.execute(seal(schema).encode())
    return [migration.name for migration in step]


@contextmanager
def _alone(connections: Connections) -> Iterator[psycopg.Connection[Any]]:
    """Lend a transaction while nobody else migrates.

    Raises:
        StoreUnavailable: Somebody has migrated for all of five minutes.
    """
    schema, deadline = connections.schema, time.monotonic() + _PATIENCE_S
    while True:
        with connections.borrowed() as connection, connection.transaction():
            connection.execute(statement("migration_begin", schema))
            if connection.execute(statement("migration_lock", schema)).fetchone() == (True,):
                yield connection
                return
        if time.monotonic() > deadline:
            raise StoreUnavailable("another migration is going on: try again when it has ended")
        time.sleep(_REST_S)


def _build(connections: Connections, migration: Migration, index: str) -> None:
    """Build an index on a connection of its own: not in a transaction, where none can be.

    The caller's transaction keeps other migrations away meanwhile. It has no snapshot that the
    building would wait for.
    """
    schema = connections.schema
    with connections.borrowed() as connection:
        found = connection.execute(statement("migration_index", schema), {"index": index})
        whole = found.fetchone()
        if whole == (False,):
            _log.warning("index %s was left unfinished: building it anew", index)
            drop = statement("migration_drop", schema).replace(".unfinished", f".{index}")
            connection.execute(drop.encode())
        if whole != (True,):
            connection.execute(in_schema(migration.text, schema))


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
    waiting = statement("migration_lock", schema).replace("_try_", "_")
    begin = f"BEGIN;\n{statement('migration_begin', schema)}{waiting}"
    parts = [begin, *(statement(name, schema) for name in _PREPARE)]
    for migration in migrations():
        applied = statement("migration_applied", schema)
        for name, value in _row(migration).items():
            applied = applied.replace(f"%({name})s", f"'{value}'")
        text = in_schema(migration.text, schema)
        if migration.built:
            text = f"COMMIT;\n{text}{begin}"
        parts += [f"-- {migration.name}", text, applied]
    return "\n".join([*parts, seal(schema), "COMMIT;", ""])


def grant(connections: Connections) -> None:
    """Make the roles of `roles` and give each its rights; nobody waits for it. Run it again freely.

    Raises:
        SchemaMismatch: The schema is not the one whose objects are named there.
        UsageError: This user may not create roles, or does not own the schema.
    """
    check(connections)
    schema = connections.schema
    with _alone(connections) as connection:
        connection.execute(grants(schema).encode())


def _missing(connection: psycopg.Connection[Any], schema: str) -> list[Migration]:
    rows = connection.execute(statement("migrations", schema)).fetchall()
    applied = {name: (checksum, program) for name, checksum, program in rows}
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
        checksum, program = applied.get(migration.name, (None, ""))
        if checksum == migration.checksum:
            continue
        if checksum is not None and not migration.repeatable:
            raise SchemaMismatch(
                f"{migration.name} is not the file that was applied to this database: "
                "install the version that it was migrated with"
            )
        if _release(program) > _release(version("timeball")):
            raise SchemaMismatch(
                f"{migration.name} is that of Timeball {program}, and this is an older one: "
                "install the newer Timeball that migrated it"
            )
        todo.append(migration)
    return todo


def _row(migration: Migration) -> dict[str, str]:
    """Return what is noted of a file that was applied."""
    return {
        "name": migration.name,
        "checksum": migration.checksum,
        "program": version("timeball"),
    }


def _release(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text)[:3])
