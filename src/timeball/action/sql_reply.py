"""A statement that may write, whose rows are looked at one by one and kept by nobody.

The driver's own streaming takes only statements that give rows, and says of no other how many it
has changed; its `execute` reads all rows before the first can be looked at.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg import generators
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, Format, TransactionStatus

from timeball.errors import UsageError

if TYPE_CHECKING:
    from psycopg.pq.abc import PGresult

_CANCEL_S: Final = 10.0
_COPIES: Final = frozenset({ExecStatus.COPY_IN, ExecStatus.COPY_OUT, ExecStatus.COPY_BOTH})
_PLACE: Final = re.compile(r"%(?:%|s|\(([^)]+)\)s|)", re.DOTALL)


class Reply:
    """What the server answers to one statement.

    It is sent by a protocol that takes one statement and no more. `rows` has to be read to its
    end: only then has the statement been carried out as a whole.
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
            case _:  # COPY, which needs somebody to talk to
                raise psycopg.ProgrammingError("a statement that copies from or to its client")

    def _leave(self) -> None:
        """Have the connection free again, whatever the reader has not read, or end it."""
        pgconn = self._connection.pgconn
        if pgconn.transaction_status == TransactionStatus.ACTIVE:
            with suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=_CANCEL_S)
        while result := self._next():
            if result.status in _COPIES:  # the same again and again, until somebody copies
                self._connection.close()
                return


def placed(
    statement: str, params: Sequence[Any] | Mapping[str, Any] | None
) -> tuple[str, Sequence[Any]]:
    """Return a statement with ``$1``, ``$2`` … for its placeholders, and their values in order.

    Raises:
        UsageError: They do not fit each other.
    """
    if not params:  # a percent sign is nothing but that
        return statement, ()
    places = _Places(params)
    text = _PLACE.sub(places.number, statement)
    if not isinstance(params, Mapping) and len(places.values) != len(params):
        raise UsageError(f"params has {len(params)} values for {len(places.values)} %s")
    return text, places.values


class _Places:
    """Numbers placeholders as they come."""

    def __init__(self, params: Sequence[Any] | Mapping[str, Any]) -> None:
        self.values: list[Any] = []
        self._params = params
        self._numbers: dict[str, int] = {}

    def number(self, found: re.Match[str]) -> str:
        """Return what stands for a placeholder."""
        match found[0]:
            case "%%":
                return "%"
            case "%":
                raise UsageError("a lone % in a statement that has params: write %%")
        if isinstance(self._params, Mapping):
            return f"${self._named(self._params, found[1])}"
        if found[1] is not None or len(self.values) == len(self._params):
            raise UsageError("params is a list: write as many %s as it has values")
        self.values.append(self._params[len(self.values)])
        return f"${len(self.values)}"

    def _named(self, params: Mapping[str, Any], name: str | None) -> int:
        if name is None or name not in params:
            raise UsageError(f"params is a table without {name!r}: write its names as %(name)s")
        if name not in self._numbers:
            self.values.append(params[name])
            self._numbers[name] = len(self.values)
        return self._numbers[name]
