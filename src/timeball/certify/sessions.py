"""Real connections that are stepped statement by statement, and seen blocked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from timeball.certify.history import History
from timeball.certify.queries import query
from timeball.certify.scenario import Stalled
from timeball.store.postgres.connections import Connections, statement

Rows = list[tuple[Any, ...]]
Params = Sequence[Any] | Mapping[str, Any] | None
DEADLINE_S: Final = 30.0
_LOOK_S: Final = 0.001


def until(
    true: Callable[[], object],
    what: str,
    within_s: float = DEADLINE_S,
    *,
    look_s: float = _LOOK_S,
) -> None:
    """Look until something is so, once every `look_s` seconds.

    Raises:
        Stalled: It has not come true within that time.
    """
    deadline = time.monotonic() + within_s
    while not true():
        if time.monotonic() > deadline:
            raise Stalled(f"not within {within_s:g} s: {what}")
        time.sleep(look_s)


@dataclass(frozen=True, slots=True)
class Blocked:
    """The statement waits for a lock; `Session.answer` gets what it returns in the end."""

    by: tuple[int, ...]
    """The processes that it waits for."""


class Refused(NamedTuple):
    """The statement has failed."""

    sqlstate: str
    text: str


class Session:
    """One connection, with a thread of its own that waits for its answers.

    Args:
        dsn: Of the database.
        watcher: Another connection to it, in autocommit mode, for the questions about this one.
        history: Where each statement is noted; None: nowhere.
    """

    def __init__(self, dsn: str, watcher: Any, history: History | None = None) -> None:
        self.connection: Any = Connections(dsn).connect()
        self.pid: int = self.connection.info.backend_pid
        self._watcher = watcher
        self._history = history
        self._thread = ThreadPoolExecutor(1)
        self._call: Future[Rows] | None = None

    def close(self) -> None:
        """End what it is at, and the connection with it; what was not committed is gone."""
        try:
            self.connection.cancel_safe()
        finally:  # the server may be gone
            self._thread.shutdown()
            self.connection.close()

    def step(self, sql: str, params: Params = None) -> Rows | Blocked | Refused:
        """Send a statement and return its rows, that it waits for a lock, or that it failed."""
        self._call = call = self._send(sql, params)
        until(lambda: call.done() or self.blockers(), f"answered, or blocked: {sql[:60]}")
        return self.outcome() if call.done() else Blocked(tuple(self.blockers()))

    def outcome(self) -> Rows | Refused:
        """Wait for what the last step returns in the end, or how it fails."""
        assert self._call is not None, "nothing was sent"
        error = self._call.exception(DEADLINE_S)
        if error is None:
            return self._call.result()
        sqlstate = getattr(error, "sqlstate", None)
        if sqlstate is None:
            raise error
        return Refused(sqlstate, str(error).splitlines()[0])

    def run(self, sql: str, params: Params = None) -> Rows:
        """Return the rows of a statement that must not block."""
        call = self._send(sql, params)
        try:  # somebody may be in the way for a moment, such as autovacuum
            return call.result(DEADLINE_S)
        except TimeoutError:
            raise AssertionError(f"blocked by {self.blockers()}: {sql}") from None

    def blocks(self, sql: str, params: Params = None) -> Self:
        """Run a statement that must block; `answer` gets what it returns in the end."""
        call = self._send(sql, params)
        until(lambda: call.done() or self.blockers(), "blocked or answered")
        assert not call.done(), f"did not block, but gave {call.result()}"
        self._call = call
        return self

    def answer(self) -> Rows:
        """Return the rows of what was blocked."""
        assert self._call is not None, "nothing was sent"
        return self._call.result(DEADLINE_S)

    def verb(self, name: str, **params: Any) -> Rows:
        """Run the store's statement of that name, which must not block."""
        return self.run(statement(name), params)

    def verb_blocks(self, name: str, **params: Any) -> Self:
        """Run the store's statement of that name, which must block."""
        return self.blocks(statement(name), params)

    def verb_steps(self, name: str, **params: Any) -> Rows | Blocked | Refused:
        """Step the store's statement of that name."""
        return self.step(statement(name), params)

    def blockers(self) -> list[int]:
        """Return the processes that it waits for."""
        row = self._watcher.execute(query("blockers"), {"pid": self.pid}).fetchone()
        return list(row[0]) if row else []

    def begin(self) -> Self:
        """Begin a transaction."""
        self.run("BEGIN")
        return self

    def commit(self) -> None:
        """Commit it."""
        self.run("COMMIT")

    def rollback(self) -> None:
        """Take it back."""
        self.run("ROLLBACK")

    def _send(self, sql: str, params: Params) -> Future[Rows]:
        return self._thread.submit(self._execute, sql, params)

    def _execute(self, sql: str, params: Params) -> Rows:
        if self._history is None:
            return self._rows(sql, params)
        text = " ".join(line for line in sql.splitlines() if not line.startswith("--"))
        with self._history.calling("statement", session=self.pid, asked=text) as answer:
            rows = self._rows(sql, params)
            answer["rows"] = len(rows)
            return rows

    def _rows(self, sql: str, params: Params) -> Rows:
        cursor = self.connection.execute(sql, params)
        return cursor.fetchall() if cursor.description else []
