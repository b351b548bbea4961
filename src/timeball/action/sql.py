"""SQL jobs: one statement in one transaction, bounded in time and in rows.

What may go wrong is an `ActionFailed` of one of these types: SqlRefused (the connection string),
SqlTimeout, SqlError (what the server says; tried again only where that may help: a lost
connection, a deadlock, a server that is starting).
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from threading import Event, Lock, Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format, TransactionStatus

from timeball.action.context import Context, StopSign
from timeball.action.failed import ActionFailed
from timeball.action.secret import VALUE_MIN, SecretUnavailable
from timeball.action.sql_places import placed
from timeball.action.sql_request import TIMEOUT_S, SqlRequest
from timeball.core.outcomes import Unbegun
from timeball.errors import UsageError
from timeball.observe.concealment import conceal
from timeball.observe.encryption import warn_if_plain

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

BYTES_MAX: Final = 200_000
"""Of rows as JSON text: they fit a result together with all that is around them."""

CONNECT_S: Final = 10
_CANCEL_EVERY_S: Final = 0.05
_COPIES: Final = frozenset({ExecStatus.COPY_IN, ExecStatus.COPY_OUT, ExecStatus.COPY_BOTH})

# For what a connection string leaves out, so that nothing of it is the worker's own.
_GIVEN: Final = MappingProxyType(
    {
        "application_name": "timeball",
        "connect_timeout": CONNECT_S,
        "hostaddr": "",
        "options": "",
        "passfile": "/dev/null",
        "port": 5432,
        "sslcert": "/dev/null/none",
        "sslkey": "/dev/null/none",
    }
)

# Of the first two characters of a SQLSTATE: lost connections, rollbacks that another attempt may
# not meet, too few resources, an operator's doings, a lock that was not to be had.
_AGAIN: Final = frozenset({"08", "40", "53", "55", "57", "58"})
_LOST: Final = (psycopg.OperationalError, psycopg.InterfaceError)
_TIMED_OUT: Final = "57014"
_SETTINGS: Final = "select set_config('statement_timeout', %s, true)"
_ROLE: Final = "select set_config('role', %s, true)"


def carry_out(asked: SqlRequest, context: Context) -> dict[str, Any] | Unbegun:
    """Carry out one SQL job and return its result.

    Raises:
        ActionFailed: The statement has not been carried out, and nothing of it is left.
    """
    try:
        with _connected(asked) as connection, _ended_by(context.stop, connection):
            return _result(connection, asked, context)
    except psycopg.Error as error:
        if context.stop.raised:
            return Unbegun("stopped")
        raise _failed(error, context) from None
    except UsageError as error:
        raise ActionFailed(str(error), error_type="SqlRefused", again=False) from None
    except SecretUnavailable as error:
        raise ActionFailed(str(error), error_type="SqlRefused", again=True) from None
    except RecursionError:
        text = "a value of its rows is nested too deep: select less of it, or its text"
        raise ActionFailed(text, error_type="SqlError", again=False) from None


@contextmanager
def _ended_by(stop: StopSign, connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Have the sign end whatever the connection is at in this block."""
    over, using = Event(), Lock()

    def cancel() -> None:
        # Again and again: a word that comes between two statements ends none.
        while not over.wait(_CANCEL_EVERY_S):
            with using, suppress(psycopg.Error):
                if not over.is_set():
                    connection.cancel_safe(timeout=CONNECT_S)

    # In a thread of its own, for whoever raises the sign must not wait for the network.
    stop.when_raised(lambda: Thread(target=cancel, daemon=True).start())
    try:
        yield
    finally:
        with using:  # the driver does not guard a connection that is closed meanwhile
            over.set()


def _connected(asked: SqlRequest) -> psycopg.Connection[Any]:
    dsn = asked.dsn.reveal()
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.Error:
        parts = {}
    password = parts.get("password")
    if isinstance(password, str) and len(password) >= VALUE_MIN:
        conceal(password, asked.dsn.reference)
    if not (parts.get("user") and (parts.get("host") or parts.get("hostaddr"))):
        raise ActionFailed(
            f"{asked.dsn} is no connection string with a host and a user: store such as "
            "postgresql://user:password@host/database",
            error_type="SqlRefused",
            again=False,
        )
    given: dict[str, Any] = {**_GIVEN, "dbname": parts["user"]}
    fixed = {"password": password or "", "client_encoding": "UTF8"}  # as statements are sent
    whole = make_conninfo(**{**given, **parts, **fixed})
    connection: psycopg.Connection[Any] = psycopg.connect(whole)
    encrypted, info = bool(connection.pgconn.ssl_in_use), connection.info
    warn_if_plain(info.host, info.hostaddr, encrypted=encrypted)
    connection.read_only = asked.read_only
    return connection


def _result(
    connection: psycopg.Connection[Any], asked: SqlRequest, context: Context
) -> dict[str, Any]:
    limit_ms = math.ceil(1000 * (context.timeout_s or TIMEOUT_S))
    connection.execute(_SETTINGS, [str(limit_ms)])
    if asked.role is not None:
        connection.execute(_ROLE, [asked.role])
    reply = Reply(connection)
    rows: list[Any] = []
    size = 0
    with closing(reply.rows(asked.statement, asked.params)) as found:
        for row in found:
            if size <= BYTES_MAX and len(rows) < asked.rows_max:
                plain = [_plain(value) for value in row]
                size += len(json.dumps(plain))
                rows += [plain] if size <= BYTES_MAX else []
            # The rest of what changes nothing is not even read; all else is carried out whole.
            if asked.read_only and reply.row_count > len(rows):
                break
    return {
        "columns": reply.columns,
        "rows": rows,
        "row_count": reply.row_count,
        "truncated": bool(reply.columns) and reply.row_count > len(rows),
    }


def _plain(value: Any) -> Any:
    """Return a value as JSON can hold it: what it does not know becomes text."""
    match value:
        case None | bool() | str():
            return value
        case int() | float():
            return value if abs(value) < 2**53 else str(value)
        case bytes() | bytearray() | memoryview():
            return f"\\x{bytes(value).hex()}"
        case Mapping():
            return {str(key): _plain(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case _:
            return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _failed(error: psycopg.Error, context: Context) -> ActionFailed:
    state = error.sqlstate
    if state == _TIMED_OUT:
        text = f"ran longer than its {context.timeout_s or TIMEOUT_S:g} s"
        return ActionFailed(text, error_type="SqlTimeout", again=True)
    # Without a state it was not the server who said it: the connection, or what it was given.
    again = isinstance(error, _LOST) if state is None else state[:2] in _AGAIN
    said = error.diag.message_primary or str(error).strip()
    text = f"{said} ({state})" if state else said
    return ActionFailed(text, error_type="SqlError", again=again)


class Reply:
    """What the server answers to one statement, looked at row by row.

    The driver's own streaming takes only statements that give rows, and says of no other how many
    it has changed; its `execute` reads all rows before the first can be looked at. This one is
    sent by a protocol that takes one statement and no more. `rows` has to be read to its end: only
    then has the statement been carried out as a whole.
    """

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self.columns: list[str] = []
        self.row_count = 0
        """Rows that it gave, or changed where it gives none."""

        self._connection = connection
        self._adapter = Transformer(connection)

    def rows(
        self, statement: str, params: Sequence[Any] | Mapping[str, Any] | None
    ) -> Generator[tuple[Any, ...], None, None]:
        """Carry a statement out and give its rows; in memory is one of them.

        Raises:
            UsageError: Placeholders and parameters do not fit each other.
            psycopg.Error: What the server says; nothing of the statement counts.
        """
        text, values = placed(statement, params)
        sent = self._adapter.dump_sequence(values, [PyFormat.AUTO] * len(values))
        pgconn = self._connection.pgconn
        pgconn.send_query_params(
            text.encode(), sent, self._adapter.types or (), self._adapter.formats, Format.TEXT
        )
        pgconn.set_single_row_mode()
        try:
            self._connection.wait(generators.send(pgconn))
            while result := self._next():
                if self._is_row(result):
                    yield self._adapter.load_row(0, tuple)
        finally:
            self._leave()

    def _next(self) -> PGresult | None:
        # Waits as the driver does: libpq itself would hold up all threads of Python.
        found: PGresult | None = self._connection.wait(generators.fetch(self._connection.pgconn))
        return found

    def _is_row(self, result: PGresult) -> bool:
        """Take in one message, and return whether it is a row."""
        first = not self.columns
        self.columns = [(result.fname(n) or b"").decode() for n in range(result.nfields)]
        match result.status:
            case ExecStatus.SINGLE_TUPLE:
                self._adapter.set_pgresult(result, set_loaders=first)
                self.row_count += 1
                return True
            case ExecStatus.TUPLES_OK:
                return False
            case ExecStatus.COMMAND_OK:
                self.row_count = result.command_tuples or 0
                return False
            case ExecStatus.FATAL_ERROR:
                raise error_from_result(result)
            case ExecStatus.EMPTY_QUERY:
                raise psycopg.ProgrammingError("the statement is empty: write one SQL statement")
            case _:  # COPY, which needs somebody to talk to
                raise psycopg.ProgrammingError("a statement that copies from or to its client")

    def _leave(self) -> None:
        """Have the connection free again, whatever the reader has not read, or end it."""
        pgconn = self._connection.pgconn
        if pgconn.transaction_status == TransactionStatus.ACTIVE:
            with suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=CONNECT_S)
        while result := self._next():
            if result.status in _COPIES:  # the same again and again, until somebody copies
                self._connection.close()
                return
