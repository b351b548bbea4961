"""Connections that are given up when the server does not answer.

TCP does not notice a proxy that takes every packet and hands none on: whoever waits for an answer
then waits for ever, also once the proxy is mended. So a connection may have a limit on how long
one answer takes.
"""

from __future__ import annotations

import time
from typing import Any, Final, TypeVar

import psycopg
from psycopg.abc import PQGen

ANSWER_S: Final = 120.0
"""Seconds after which a verb counts as lost, and may be sent again."""
LONG_ANSWER_S: Final = 3_600.0
"""The same for what takes longer the more there is: counts, moving in, a step of a migration."""

RV = TypeVar("RV")


class Bounded(psycopg.Connection[tuple[Any, ...]]):
    """A connection on which nobody waits for an answer for longer than he has said."""

    answer_s: float | None = None
    """Seconds; None: as long as it takes."""

    def wait(self, gen: PQGen[RV], *args: Any, **named: Any) -> RV:
        """Wait for an answer.

        Raises:
            psycopg.OperationalError: There was none in time; the connection is closed.
        """
        return super().wait(_within(self, gen, self.answer_s), *args, **named)


class BoundedAsync(psycopg.AsyncConnection[tuple[Any, ...]]):
    """The same for an event loop."""

    answer_s: float | None = None

    async def wait(self, gen: PQGen[RV], *args: Any, **named: Any) -> RV:
        """Wait for an answer, as `Bounded.wait` does."""
        return await super().wait(_within(self, gen, self.answer_s), *args, **named)


def _within(
    connection: Bounded | BoundedAsync, gen: PQGen[RV], answer_s: float | None
) -> PQGen[RV]:
    """Return `gen`, which ends with an error where it is still waiting at the end of its time."""
    if answer_s is None:
        return (yield from gen)
    until_s = time.monotonic() + answer_s
    try:
        state = next(gen)
        while True:
            ready = yield state
            if not ready and time.monotonic() > until_s:
                connection.pgconn.finish()
                raise psycopg.OperationalError(f"no answer within {answer_s:g} s")
            state = gen.send(ready)
    except StopIteration as end:
        value: RV = end.value
        return value
