"""What routes work with: the database to look at, the one to change, and the record of changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from starlette.requests import Request

from timeball.client import Client
from timeball.core.records import Job
from timeball.errors import JobNotFound
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.operations import Operations
from timeball.store.postgres.panorama import Panorama
from timeball.web.gate import Caller, Gate
from timeball.web.rehearsal import Rehearsal
from timeball.web.scopes import Scope
from timeball.web.settings import Settings
from timeball.web.tide import Tide

_NUMBER_DIGITS: Final = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """One application's means."""

    client: Client
    """Changes things."""

    look: Client
    """Looks at them, over connections that can do nothing else."""

    look_connections: Connections
    panorama: Panorama
    operations: Operations
    tide: Tide
    gate: Gate
    rehearsal: Rehearsal
    settings: Settings
    title: str
    """What people call this instance."""

    base_path: str
    """Where a proxy has put the application, without a slash at the end."""

    def find(self, text: str) -> Job:
        """Return the job of a uuid, or of a number.

        Raises:
            JobNotFound: There is none, or the text is neither.
        """
        if text.isascii() and text.isdigit() and len(text) <= _NUMBER_DIGITS:
            number = int(text)
            found = self.look.jobs(before_id=number + 1, limit=1)
            if found and found[0].id == number:
                return self.look.get(found[0].uuid)
            raise JobNotFound(text)
        try:
            uuid = UUID(text)
        except ValueError:
            raise JobNotFound(text[:64]) from None
        return self.look.get(uuid)

    def record(
        self,
        caller: Caller,
        what: str,
        target: str,
        *,
        before: Mapping[str, Any],
        change: Callable[[], Mapping[str, Any]],
    ) -> Mapping[str, Any]:
        """Make a change that is on record; return what it came to. See `Operations.record`."""
        return self.operations.record(
            what,
            target,
            who=caller.name,
            origin=caller.origin,
            before=before,
            change=change,
        )


def desk_of(request: Request) -> Desk:
    """Return the desk of the application that a request has come to."""
    desk = request.app.state.desk
    assert isinstance(desk, Desk)
    return desk


def caller_of(request: Request) -> Caller:
    """Return who asks."""
    caller = request.state.caller
    assert isinstance(caller, Caller)
    return caller


def sees_payload(request: Request) -> bool:
    """Return whether who asks may see what jobs are given, give and say."""
    return caller_of(request).may(Scope.READ_PAYLOAD)
