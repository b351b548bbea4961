"""Being woken by PostgreSQL when there may be work: a hint, and never needed.

LISTEN needs a session of its own. TCP does not notice a proxy that swallows packets,
so a quiet connection is checked by a round trip; a broken one is made anew, with a
backoff, while the worker goes on by polling. Behind a pooling proxy there are no
sessions: there the worker polls, or listens at an address that leads to the server itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from threading import Event
from typing import Any, Final, LiteralString, NamedTuple

import psycopg

from timeball.store.postgres.connections import Connections, statement

CHECK_S: Final = 15.0
"""Seconds of silence after which the connection is checked."""

ANSWER_S: Final = 15.0
"""Seconds after which a round trip that has no answer means that it is broken."""

TICK_S: Final = 0.5
"""Seconds until `stop` is noticed."""

BACKOFF_MAX_S: Final = 10.0

DIRECT: Final = "TIMEBALL_LISTEN_DSN"
"""The variable with the address to listen at, where the other one leads to a pooling proxy."""

log = logging.getLogger(__name__)


class Waking(NamedTuple):
    """Whom to wake, and of what: who serves other queues sleeps on, and asks the server nothing."""

    wake: Callable[[], None]
    queues: frozenset[str]


def listen(
    connections: Connections, wake: Callable[[], None], stop: Event, queues: Collection[str]
) -> None:
    """Call `wake` when any of `queues` is named, until `stop` is set. Blocks; outlives outages."""
    backoff_s = 0.1
    while not stop.is_set():
        try:
            with connections.connect() as connection:
                backoff_s, connection.answer_s = 0.1, ANSWER_S
                _serve(connection, connections.schema, Waking(wake, frozenset(queues)), stop)
        except psycopg.Error as error:
            log.warning("listener lost, polling meanwhile: %s", str(error).strip())
            stop.wait(backoff_s)
            backoff_s = min(BACKOFF_MAX_S, 2 * backoff_s)


def _serve(connection: psycopg.Connection[Any], schema: str, waking: Waking, stop: Event) -> None:
    if _is_pooled(connection):
        log.warning(
            "polling: a pooling proxy lets no notification through; "
            "to be woken, set %s to an address of the server itself",
            DIRECT,
        )
        connection.close()
        stop.wait()
        return
    connection.execute(statement("listen", schema))
    waking.wake()  # what was submitted before we listened
    _relay(connection, statement("ping"), waking, stop)


def _is_pooled(connection: psycopg.Connection[Any]) -> bool:
    """Whether somebody else than the server has answered: a proxy hands out numbers of its own."""
    row = connection.execute(statement("backend")).fetchone()
    return row != (connection.info.backend_pid,)


def _relay(
    connection: psycopg.Connection[Any], ping: LiteralString, waking: Waking, stop: Event
) -> None:
    quiet_s = 0.0
    while not stop.is_set():
        heard = {notify.payload for notify in connection.notifies(timeout=TICK_S, stop_after=1)}
        if not waking.queues.isdisjoint(heard):
            waking.wake()
        quiet_s = 0.0 if heard else quiet_s + TICK_S
        if quiet_s >= CHECK_S:
            connection.execute(ping)
            quiet_s = 0.0
