"""Two programs that are stepped through the statements of the store's own verbs.

Each has a store of its own whose connections ask before every statement that writes or locks, and
before every commit of such a one, whether they may go on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from threading import Condition
from typing import Any, Final

from timeball.certify.queries import query
from timeball.certify.sessions import until
from timeball.errors import TimeballError
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.answers import Bounded
from timeball.store.postgres.connections import Connections, Run, statement
from timeball.store.postgres.roles import VERBS

COMMIT: Final = "commit"
_WRITES: Final = re.compile(
    rf"\b(INSERT|UPDATE|DELETE)\b|timeball\.({'|'.join(VERBS)}|ensure_lane)\("
)
_HINTS: Final = frozenset({"notify"})
"""Statements that write nothing, although they call a verb."""

_FOLLOWING: Final = frozenset({"link", "admit_keys"})
"""Statements that workers send too, in rounds: after another one no steps of their own."""

_LOOK_S: Final = 0.002


@cache
def writing() -> frozenset[str]:
    """Return the names of the store's statements that write, or lock what is written."""
    folder = files("timeball.store.postgres") / "sql"
    names = (each.name.removesuffix(".sql") for each in folder.iterdir())
    return frozenset(each for each in names if _WRITES.search(_code(each))) - _HINTS


def _code(name: str) -> str:
    lines = statement(name).splitlines()
    return "\n".join(line for line in lines if not line.startswith("--"))


class _Gated(Connections):
    """Connections that ask at each gate, and tell by which backend they speak."""

    def __init__(self, dsn: str, gate: Callable[[str], None]) -> None:
        super().__init__(dsn)
        self._gate = gate
        self.pid = 0
        self.committed = 0

    def run(self, name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        """See `Connections.run`; in a transaction whose commit is a step of its own."""
        with self.transaction() as run:
            return run(name, **params)

    @contextmanager
    def transaction(self) -> Iterator[Run]:
        """See `Connections.transaction`."""
        wrote = False

        def stepped(name: str, /, **params: Any) -> list[tuple[Any, ...]]:
            nonlocal wrote
            if name in writing() and not (self.committed and name in _FOLLOWING):
                self._gate(name)
                wrote = True
            return run(name, **params)

        with super().transaction() as run:
            yield stepped
            if wrote:
                self._gate(COMMIT)
                self.committed += 1

    @contextmanager
    def borrowed(self) -> Iterator[Bounded]:
        """See `Connections.borrowed`."""
        with super().borrowed() as connection:
            self.pid = connection.info.backend_pid
            yield connection


class Actor:
    """A program that carries out one verb at a time, a step at a time.

    Args:
        dsn: Of the database.
        watcher: Another connection to it, in autocommit mode.
    """

    def __init__(self, dsn: str, watcher: Any) -> None:
        self.store = PostgresStore(dsn)
        self.store.connections = self._connections = _Gated(dsn, self._gate)
        self.store._run = self._connections.run  # noqa: SLF001 - from outside, as every fault
        self._watcher = watcher
        self._thread = ThreadPoolExecutor(1)
        self._changed = Condition()
        self._at: str | None = None
        self._let_go = False
        self._free = False
        self._call: Future[Any] | None = None

    def start(self, verb: Callable[[PostgresStore], Any], lanes: Iterable[tuple[str, int]]) -> None:
        """Have it begin a verb, knowing some lanes; it stands before its first step, or has ended.

        What it has learned before is forgotten: it was of another run.
        """
        self.store._lanes, self.store._looked_at = set(lanes), ""  # noqa: SLF001 - from outside
        self._connections.committed = 0
        self._call = self._thread.submit(self._carry_out, verb)
        self._settle()

    @property
    def done(self) -> bool:
        """Return whether the verb has ended."""
        assert self._call is not None, "nothing was started"
        return self._call.done()

    @property
    def waits(self) -> bool:
        """Return whether it waits for a lock."""
        return self._at is None and not self.done

    @property
    def at(self) -> str | None:
        """Return the gate that it stands at; None where it waits for a lock, or has ended."""
        return self._at

    def step(self) -> str:
        """Let it go on to its next gate, its end, or a lock; return which gate that was."""
        with self._changed:
            assert self._at is not None, "it stands at no gate"
            passed, self._let_go = self._at, True
            self._at = None
            self._changed.notify_all()
        self._settle()
        return passed

    def look(self) -> None:
        """See where it is now, for what it waited for may have gone."""
        self._settle()

    def answer(self) -> Any:
        """Return what its verb has answered."""
        assert self._call is not None, "nothing was started"
        return self._call.result(0)

    def close(self) -> None:
        """Let it end whatever it is at."""
        with self._changed:
            self._free = True
            self._changed.notify_all()
        self._thread.shutdown()
        self.store.close()

    def _carry_out(self, verb: Callable[[PostgresStore], Any]) -> Any:
        try:
            return verb(self.store)
        except TimeballError as error:
            return type(error).__name__
        finally:
            with self._changed:
                self._changed.notify_all()

    def _gate(self, name: str) -> None:
        with self._changed:
            self._at, self._let_go = name, False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._let_go or self._free)

    def _settle(self) -> None:
        until(self._still, "a verb comes to its next step, to its end or to a lock")

    def _still(self) -> bool:
        with self._changed:
            if self._changed.wait_for(lambda: self._at is not None or self.done, _LOOK_S):
                return True
        (row,) = self._watcher.execute(query("blockers"), {"pid": self._connections.pid})
        return bool(row[0])
