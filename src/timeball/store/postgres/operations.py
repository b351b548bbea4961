"""The record of what people changed through the dashboard and the API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from timeball.core.payload import decode_value
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.encoding import encode


class Operation(NamedTuple):
    """One change by a person."""

    id: int
    at: datetime
    who: str
    """The name of a token."""

    origin: str
    """The address that the request came from."""

    what: str
    target: str
    before: Any
    after: Any
    """What it came to; None: it was about to happen, and nobody has said how it went."""

    ended_at: datetime | None


class Operations:
    """Writes the record, and reads it.

    Args:
        connections: To write with.
        look: To read with.
    """

    def __init__(self, connections: Connections, look: Connections) -> None:
        self._run, self._look = connections.run, look.run

    def record(
        self,
        what: str,
        target: str,
        *,
        who: str,
        origin: str,
        before: Mapping[str, Any],
        change: Callable[[], Mapping[str, Any]],
    ) -> Mapping[str, Any]:
        """Make a change and return what it came to, on record before it begins and once it is over.

        A change that nobody survives to speak of is on record without an outcome.

        Args:
            what: Such as ``"queue.pause"``.
            target: What is changed, such as ``"queue mail"``.
            who: The name of a token.
            origin: The address that the request came from.
            before: How it stood.
            change: Makes the change; returns what it came to.
        """
        facts = {"what": what, "target": target, "who": who, "origin": origin}
        ((number,),) = self._run("begin_operation", before=encode(before), **facts)
        after: Mapping[str, Any] = {"error": "unknown"}
        try:
            after = change()
        except Exception as error:
            after = {"error": type(error).__name__}
            raise
        finally:
            self._run("end_operation", id=number, after=encode(after))
        return after

    def page(self, *, before_id: int | None = None, limit: int = 50) -> list[Operation]:
        """Return a page of what was changed, newest first."""
        rows = self._look("operations", before_id=before_id, limit=limit)
        return [_operation_of(row) for row in rows]


def _operation_of(row: tuple[Any, ...]) -> Operation:
    id_, at, who, origin, what, target, before, after, ended_at = row
    return Operation(
        id=id_,
        at=at.astimezone(UTC),
        who=who,
        origin=origin,
        what=what,
        target=target,
        before=decode_value(before),
        after=decode_value(after),
        ended_at=ended_at and ended_at.astimezone(UTC),
    )
