"""What a person writes into the search field."""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from uuid import UUID

from timeball.core.states import State
from timeball.web.api.models import NUMBER_MAX

WORDS_MAX: Final = 20
WORDS: Final = ("state", "queue", "kind", "id", "batch", "after")
_PLACES: Final = {"id": "jobs", "batch": "jobs", "after": "dependencies"}
"""Where each word leads that names one job; from there a batch has a page of its own."""


class Search(NamedTuple):
    """What was meant."""

    only: dict[str, Any]
    """Fields of `timeball.store.base.JobFilter`."""

    path: str | None
    """The page of the one job, batch or graph that is meant."""

    faults: tuple[str, ...]
    """What was not understood, and what to write instead."""


def understood(text: str) -> Search:
    """Return what was meant by words such as ``state:failed queue:mail``, or a number or uuid."""
    only: dict[str, Any] = {}
    path, faults = None, list[str]()
    words = text.split()
    if len(words) > WORDS_MAX:
        faults.append(f"{len(words)} words: write at most {WORDS_MAX}")
    for written in words[:WORDS_MAX]:
        name, mark, value = written.partition(":")
        if not mark:
            name, value = ("id" if _is_id(written) else "kind"), written
        if name in _PLACES and _is_id(value):
            path = f"/{_PLACES[name]}/{value}"
        elif name == "state" and value in set(State):
            only["state"] = State(value)
        elif name in {"queue", "kind"} and 0 < len(value.encode()) <= 256:  # noqa: PLR2004 - of a name
            only[name] = value.replace("%20", " ").replace("%25", "%")
        else:
            faults.append(_fault(written, name))
    return Search(only, path, tuple(faults))


def word(name: object) -> str:
    """Return a name as one word of a search, which ends at a space."""
    return str(name).replace("%", "%25").replace(" ", "%20")


def _fault(written: str, name: str) -> str:
    match name:
        case "state":
            return f"{written}: write one of {', '.join(State)}"
        case "id" | "batch" | "after":
            return f"{written}: write a number or a uuid"
        case _:
            return f"{written}: write {', '.join(f'{each}:' for each in WORDS)}"


def _is_id(text: str) -> bool:
    if text.isascii() and text.isdigit():
        return len(text) <= len(str(NUMBER_MAX)) - 1
    try:
        UUID(text)
    except ValueError:
        return False
    return True
