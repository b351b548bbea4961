"""Connections to PostgreSQL, and the one door through which every statement goes.

Every verb borrows a connection for one statement and gives it back: no session
state, so all of it works through a pooling proxy. Statements are files in ``sql/``
and are run by their name, so that the fault harness can stand between.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, LiteralString

import psycopg
from psycopg import errors as pg

from timeball.core.redaction import HIDDEN
from timeball.errors import (
    JobNotFound,
    QueueFull,
    SchemaMismatch,
    StoreUnavailable,
    UniqueClash,
    UsageError,
    WorkerExpired,
)
from timeball.observe.encryption import warn_if_plain
from timeball.store.postgres import answers
from timeball.store.postgres.answers import Bounded, BoundedAsync

SCHEMA_DEFAULT: Final = "timeball"
CONNECT_TIMEOUT_S: Final = 10
SILENCE_MS: Final = 20_000
"""After which a TCP connection whose packets nobody acknowledges counts as broken."""
SPARE_S: Final = 10.0
"""How long a connection is kept that nobody needs, as long as there is another one."""

_TELLABLE: Final = frozenset(
    {"host", "hostaddr", "port", "dbname", "user", "service", "sslmode", "target_session_attrs"}
)
"""What of an address anybody may read. New libpqs have new secrets, so the others are not told."""

_LONG: Final = frozenset({"counts", "move_in"})
"""Statements that may take as long as there are jobs."""

_ROWS = psycopg.rows.tuple_row
_SETTINGS: Final[dict[str, Any]] = {
    "autocommit": True,
    "prepare_threshold": None,  # prepared statements collide behind a pooling proxy
    "connect_timeout": CONNECT_TIMEOUT_S,
    "tcp_user_timeout": SILENCE_MS,
    "keepalives_idle": SILENCE_MS // 2000,
    "application_name": "timeball",
}
_TRY_AGAIN: Final = (
    psycopg.OperationalError,  # gone, refused, shut down, disk full, too many connections
    psycopg.InterfaceError,  # closed under our hands
    pg.SerializationFailure,
    pg.DeadlockDetected,
    pg.ReadOnlySqlTransaction,  # a failover is going on, or this is a replica
    pg.UniqueViolation,  # the same request twice at once: the other one's answer is next
)
_OTHER_SCHEMA: Final = (
    pg.UndefinedTable,
    pg.UndefinedColumn,
    pg.UndefinedFunction,
    pg.AmbiguousFunction,
    pg.InvalidSchemaName,
)


class LaneMissing(UsageError):
    """A lane that this program knew is not there: a failover or a restore has lost it."""


class Moved(StoreUnavailable):
    """The ledger is on another server or timeline than it was: it has to move in first."""


Run = Callable[..., list[tuple[Any, ...]]]
"""Runs the statement of a name with its parameters and returns the rows."""


@cache
def statement(name: str, schema: str = SCHEMA_DEFAULT) -> LiteralString:
    """Return the text of ``sql/<name>.sql`` for a schema."""
    return in_schema((files(__package__) / "sql" / f"{name}.sql").read_text("utf-8"), schema)


def in_schema(text: str, schema: str) -> LiteralString:
    """Return SQL text with the schema ``timeball`` in it turned into another one.

    Raises:
        UsageError: The schema's name is not a plain lower-case identifier.
    """
    if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema):
        raise UsageError(
            f"schema {schema!r}: write lower-case letters, digits and _, not starting with a digit"
        )
    # Our own files and a checked identifier, nothing else: it is as good as a literal.
    return re.sub(r"\btimeball(?=[.;]|_wake)", schema, text)


def shown(dsn: str) -> str:
    """Return an address of a database as far as it holds no secret; where it is none, nothing."""
    try:
        parts = psycopg.conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        return HIDDEN
    told = {name: value for name, value in parts.items() if name in _TELLABLE}
    return psycopg.conninfo.make_conninfo("", **told)


class Connections:
    """A few connections, made when needed, shared by the threads of one process.

    Those that nobody has needed for a while are closed when another one comes back.

    Args:
        dsn: Where the database is.
        schema: Where in it the ledger is.
        patience_s: How long to wait for a connection that is lent before another one is made.

    Raises:
        UsageError: `dsn` is not a libpq URL or a list of key=value pairs.
    """

    def __init__(self, dsn: str, *, schema: str = SCHEMA_DEFAULT, patience_s: float = 0.0) -> None:
        try:
            psycopg.conninfo.conninfo_to_dict(dsn)
        except psycopg.ProgrammingError:
            # The driver's own words repeat what was written, and with it the password.
            raise UsageError(
                "this is no address of a database: write postgresql://user@host/name, "
                "or host=… dbname=…"
            ) from None
        self.dsn = dsn
        self.schema = schema
        self.answer_s: float | None = None
        """After how many seconds an answer counts as lost; None: `answers.ANSWER_S`."""

        self._idle: list[tuple[float, Bounded]] = []
        self._patience_s = patience_s
        self._lent = 0
        self._lock = threading.Condition()
        self._closed = False

    def run(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        """Run the statement of that name in a transaction of its own; return its rows.

        Raises:
            StoreUnavailable: It may or may not have happened: send it again.
            WorkerExpired: The worker that it speaks for was given up.
            SchemaMismatch: The schema is missing, or of another version.
        """
        with self.borrowed() as connection:
            return self._rows(connection, name, params)

    @contextmanager
    def transaction(self) -> Iterator[Run]:
        """Lend a `run` whose statements are one transaction; it commits at the end."""
        with self.borrowed() as connection:
            connection.answer_s = self.answer_s or answers.ANSWER_S  # its beginning too
            with connection.transaction():
                yield lambda name, /, **params: self._rows(connection, name, params)

    def _rows(
        self, connection: Bounded, name: str, params: dict[str, Any]
    ) -> list[tuple[Any, ...]]:
        if name in _LONG:
            connection.answer_s = answers.LONG_ANSWER_S
        else:
            connection.answer_s = self.answer_s or answers.ANSWER_S
        cursor = connection.cursor(binary=True)
        cursor.execute(statement(name, self.schema), params)
        return cursor.fetchall() if cursor.description else []

    @contextmanager
    def borrowed(self) -> Iterator[Bounded]:
        """Lend a connection in autocommit mode; its errors become those of this package."""
        connection: Bounded | None = None
        try:
            connection = self._take()
            connection.answer_s = answers.LONG_ANSWER_S
            yield connection
        except psycopg.Error as error:
            raise _translated(error) from error
        finally:
            if connection is not None:
                self._give_back(connection)

    def connect(self) -> Bounded:
        """Return a connection of the caller's own, in autocommit mode."""
        connection = Bounded.connect(self.dsn, row_factory=_ROWS, **_SETTINGS)
        encrypted = bool(connection.pgconn.ssl_in_use)
        info = connection.info
        warn_if_plain(info.host, info.hostaddr, encrypted=encrypted)
        return connection

    def connect_isolated(self) -> Bounded:
        """Return one whose transactions are READ COMMITTED whatever the database's default."""
        connection = self.connect()
        connection.answer_s = answers.ANSWER_S
        connection.isolation_level, connection.read_only = (
            psycopg.IsolationLevel.READ_COMMITTED,
            False,
        )
        return connection

    async def connect_isolated_async(self) -> BoundedAsync:
        """Return such a one for an event loop."""
        connection = await BoundedAsync.connect(self.dsn, row_factory=_ROWS, **_SETTINGS)
        connection.answer_s = answers.ANSWER_S
        await connection.set_isolation_level(psycopg.IsolationLevel.READ_COMMITTED)
        await connection.set_read_only(False)
        return connection

    def close(self) -> None:
        """Close the idle connections now, and each borrowed one when it comes back."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            self._lock.notify_all()
        for _, connection in idle:
            connection.close()

    def _take(self) -> Bounded:
        with self._lock:
            if self._lent:
                self._lock.wait_for(lambda: self._idle or self._closed, self._patience_s)
            if self._closed:
                raise StoreUnavailable("this store was closed")
            self._lent += 1
            if self._idle:
                return self._idle.pop()[1]
        try:
            return self.connect()
        except BaseException:
            self._lent_no_more()
            raise

    def _give_back(self, connection: Bounded) -> None:
        whole = connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        now_s = time.monotonic()
        with self._lock:
            whole = whole and not self._closed
            # Siblings of a broken one come from before the same restart: do not try each.
            stale = [each for each in self._idle if not whole or each[0] < now_s - SPARE_S]
            self._idle = self._idle[len(stale) :]
            if whole:
                self._idle.append((now_s, connection))
            else:
                stale.append((now_s, connection))
        self._lent_no_more()
        for _, each in stale:
            each.close()

    def _lent_no_more(self) -> None:
        with self._lock:
            self._lent -= 1
            self._lock.notify()


_REFUSALS: Final[Mapping[str, type[Exception]]] = MappingProxyType(
    {"TB001": WorkerExpired, "TB002": UsageError, "TB003": LaneMissing, "TB005": Moved}
)


def refusal(error: psycopg.Error) -> Exception | None:
    """Return what a function of the schema meant by an error; None if it is none of theirs."""
    match error.sqlstate:
        case "TB004":
            return UniqueClash(error.diag.message_detail, _text(error))
        case "TB006":
            return QueueFull(error.diag.message_detail or "", _text(error))
        case "TB010":
            return JobNotFound(error.diag.message_detail)
    kind = _REFUSALS.get(error.sqlstate or "")
    return None if kind is None else kind(_text(error))


def _translated(error: psycopg.Error) -> Exception:
    if (refused := refusal(error)) is not None:
        return refused
    if isinstance(error, _OTHER_SCHEMA):
        return SchemaMismatch(
            f"{_text(error)}: run `timeball db migrate`, or install the newer Timeball that did"
        )
    if isinstance(error, pg.InsufficientPrivilege):
        return UsageError(
            f"{_text(error)}: connect as a user who has the role for it; `timeball db roles` "
            "prints who may do what, and `--apply` as the schema's owner grants it"
        )
    if isinstance(error, _TRY_AGAIN):
        return StoreUnavailable(_text(error))
    return error


def _text(error: psycopg.Error) -> str:
    return (error.diag.message_primary or str(error)).strip().splitlines()[0]
