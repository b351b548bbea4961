"""Which job, or which jobs, a person means."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from timeball.errors import JobNotFound, UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.client import Client
    from timeball.core.records import Job
    from timeball.core.states import State

_PREFIX_MIN: Final = 4
_PREFIXED: Final = 1_000
"""A prefix is looked for among so many of the newest jobs."""

_PAGE: Final = 1_000


def find(client: Client, text: str) -> Job:
    """Return the job that a person means by its uuid, the beginning of it, or its number.

    Raises:
        JobNotFound: None fits.
        UsageError: Several do, or it can be no job's.
    """
    if text.isascii() and text.isdigit() and len(text) <= len(str(2**63)) - 1:
        found = client.jobs(before_id=int(text) + 1, limit=1)
        if found and found[0].id == int(text):
            return found[0]
        raise JobNotFound(text)
    try:
        return client.get(UUID(text))
    except ValueError:
        return _by_prefix(client, text)


def _by_prefix(client: Client, text: str) -> Job:
    prefix = text.lower()
    if len(prefix) < _PREFIX_MIN or set(prefix) - set("0123456789abcdef-"):
        raise UsageError(
            f"{text!r} is no job's: write its uuid, the first {_PREFIX_MIN} or more characters "
            "of it, or its number"
        )
    fits = [job for job in client.jobs(limit=_PREFIXED) if str(job.uuid).startswith(prefix)]
    if len(fits) > 1:
        raise UsageError(f"{len(fits)} jobs begin with {text}: write more of the one you mean")
    if not fits:
        raise JobNotFound(text)
    return fits[0]


def matching(client: Client, states: tuple[State, ...], **only: Any) -> list[UUID]:
    """Return the jobs in one of some states that a filter lets through."""
    found: list[UUID] = []
    for state in states:
        before_id = None
        while page := client.jobs(state=state, before_id=before_id, limit=_PAGE, **only):
            found += [job.uuid for job in page]
            before_id = page[-1].id
    return found
