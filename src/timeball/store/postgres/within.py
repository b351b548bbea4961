"""Transactions that jobs write in: what a job did there is kept iff its success is accepted.

The success is recorded in the same transaction, as its last statement: no scheduler lock is held
while the job's own code runs, and whatever ends the transaction ends both or neither.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

import psycopg
from psycopg.pq import TransactionStatus

from timeball.core.records import Settlement, Verdict
from timeball.core.retry import PermanentError
from timeball.errors import StoreUnavailable
from timeball.store.postgres import answers
from timeball.store.postgres.connections import Connections, statement
from timeball.store.postgres.encoding import settlement_columns

_BROKEN_TX: Final = (
    "an SQL error that the job caught had made its transaction useless: put what may fail into "
    "`with ctx.connection.transaction():`"
)
_NOT_OURS: Final = (
    "the job ended the transaction itself, by COMMIT, ROLLBACK or PREPARE TRANSACTION, so what it "
    "wrote before that is not tied to its success: leave the end to the worker, and use "
    "`with ctx.connection.transaction():` for a part that may be rolled back"
)
_CLOSED: Final = "the job closed its connection, which rolled back what it wrote: leave it open"


class JobTransaction:
    """The transaction of one attempt.

    Attributes:
        connection: The job's: a psycopg `Connection` or `AsyncConnection`.
        fault: After it is over, why nothing of it is known to be kept; None: all is well.
    """

    def __init__(self, connection: Any, schema: str) -> None:
        self.connection = connection
        self.fault: Exception | None = None
        self.passing = False
        """Whether the fault is one of the moment: a lost connection, a deadlock."""

        self.accepted = False
        self._schema = schema
        self._xid = ""

    def settle(self, worker: int, success: Settlement) -> None:
        """Record that the attempt succeeded; it counts once the transaction has committed."""
        if self._is_whole():
            self.bound()
            cursor = self._cursor()
            cursor.execute(self._text("settle_within"), self._said(worker, success))
            self._judge(cursor.fetchall())

    async def settle_async(self, worker: int, success: Settlement) -> None:
        """Do the same on an `AsyncConnection`."""
        if self._is_whole():
            self.bound()
            cursor = self._cursor()
            await cursor.execute(self._text("settle_within"), self._said(worker, success))
            self._judge(await cursor.fetchall())

    def open(self) -> None:
        """Have the transaction begin for good, so that its id can be compared at the end."""
        self.bound()
        ((self._xid,),) = self._cursor().execute(self._text("begin_within")).fetchall()
        self.connection.answer_s = None  # what the job does takes as long as it takes

    async def open_async(self) -> None:
        """Do the same on an `AsyncConnection`."""
        self.bound()
        cursor = await self._cursor().execute(self._text("begin_within"))
        ((self._xid,),) = await cursor.fetchall()
        self.connection.answer_s = None

    def bound(self) -> None:
        """From now on wait for no answer of the server for ever."""
        self.connection.answer_s = answers.ANSWER_S

    def close(self) -> None:
        """Roll back what was not accepted; what was is committed next."""
        if not (self.accepted or self.connection.closed):
            raise psycopg.Rollback

    def failed(self, error: psycopg.Error) -> None:
        """Note that it ended with an error, so that nobody knows, perhaps, what is kept."""
        if self.fault is None:
            self.fault = error
            self.passing = isinstance(error, psycopg.OperationalError)

    def _cursor(self) -> Any:
        return self.connection.cursor(binary=True, row_factory=psycopg.rows.tuple_row)

    def _text(self, name: str) -> str:
        return statement(name, self._schema)

    def _said(self, worker: int, success: Settlement) -> dict[str, object]:
        return {"xid": self._xid, "worker": worker, **settlement_columns([success])}

    def _is_whole(self) -> bool:
        status = self.connection.info.transaction_status
        if status == TransactionStatus.INERROR:
            self.fault = psycopg.errors.InFailedSqlTransaction(_BROKEN_TX)
        elif self.connection.closed and not self.connection.broken:
            self.fault = PermanentError(_CLOSED)
        return self.fault is None

    def _judge(self, rows: list[tuple[Any, ...]]) -> None:
        if not rows:
            self.fault = PermanentError(_NOT_OURS)
            return
        (((verdict,),),) = rows
        self.accepted = verdict == Verdict.ACCEPTED
        if not self.accepted:
            self.fault = StoreUnavailable("its turn had been given up, or settled, before it ended")
            self.passing = True


class Transactions:
    """Makes a session of its own for each attempt, so that nothing of one job reaches the next."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections

    @contextmanager
    def begin(self) -> Iterator[JobTransaction]:
        """Lend a transaction; at the end it is committed if its `settle` was accepted.

        No error of the database leaves the block: `JobTransaction.fault` tells it.

        Raises:
            StoreUnavailable: It has not begun.
        """
        own: JobTransaction | None = None
        try:
            with self._connections.connect_isolated() as connection, connection.transaction():
                begun = JobTransaction(connection, self._connections.schema)
                begun.open()
                own = begun
                try:
                    yield own
                finally:
                    own.bound()
                own.close()
        except psycopg.Error as error:
            if own is None:
                raise StoreUnavailable(str(error)) from error
            own.failed(error)

    @asynccontextmanager
    async def begin_async(self) -> AsyncIterator[JobTransaction]:
        """Do the same for a job of the event loop."""
        own: JobTransaction | None = None
        try:
            async with (
                await self._connections.connect_isolated_async() as connection,
                connection.transaction(),
            ):
                begun = JobTransaction(connection, self._connections.schema)
                await begun.open_async()
                own = begun
                try:
                    yield own
                finally:
                    own.bound()
                own.close()
        except psycopg.Error as error:
            if own is None:
                raise StoreUnavailable(str(error)) from error
            own.failed(error)
