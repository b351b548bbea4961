"""What a person writes into the search field."""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from uuid import UUID

from timeball.core.states import State
from timeball.web.api.models import NUMBER_MAX

WORDS: Final = ("state", "queue", "kind", "id")


class Search(NamedTuple):
    """What was meant."""

    only: dict[str, Any]
    """Fields of `timeball.store.base.JobFilter`."""

    job: str | None
    """The one job that is meant."""

    faults: tuple[str, ...]
    """What was not understood, and what to write instead."""


def understood(text: str) -> Search:
    """Return what was meant by words such as ``state:failed queue:mail``, or a number or uuid."""
    only: dict[str, Any] = {}
    job, faults = None, []
    for word in text.split()[:20]:
        name, mark, value = word.partition(":")
        if not mark:
            name, value = ("id" if _is_id(word) else "kind"), word
        if name == "id" and _is_id(value):
            job = value
        elif name == "state" and value in set(State):
            only["state"] = State(value)
        elif name in {"queue", "kind"} and 0 < len(value.encode()) <= 256:  # noqa: PLR2004 - of a name
            only[name] = value
        else:
            faults.append(_fault(word, name))
    return Search(only, job, tuple(faults))


def _fault(word: str, name: str) -> str:
    match name:
        case "state":
            return f"{word}: write one of {', '.join(State)}"
        case "id":
            return f"{word}: write a job's number or uuid"
        case _:
            return f"{word}: write {', '.join(f'{each}:' for each in WORDS)}"


def _is_id(text: str) -> bool:
    if text.isascii() and text.isdigit():
        return len(text) <= len(str(NUMBER_MAX)) - 1
    try:
        UUID(text)
    except ValueError:
        return False
    return True
