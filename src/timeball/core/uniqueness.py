"""What it means that a job is unique, and how a submit answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID


class UniqueScope(StrEnum):
    """Among which jobs a unique key is unique."""

    KIND = "kind"
    QUEUE = "queue"
    GLOBAL = "global"


class UniqueUntil(StrEnum):
    """How long a job holds its unique key."""

    ENDED = "ended"  # in whatever state, also between two attempts
    STARTED = "started"  # until its first attempt: one may run while the next one waits


class OnClash(StrEnum):
    """What happens to a job whose unique key another one holds."""

    IGNORE = "ignore"  # nothing is added, and the submit gives the one that holds it
    REJECT = "reject"  # the submit raises
    REPLACE = "replace"  # the other is cancelled where it is held back; else like reject


@dataclass(frozen=True, slots=True, kw_only=True)
class Unique:
    """At most one job of this key at a time."""

    key: str
    scope: UniqueScope = UniqueScope.KIND
    until: UniqueUntil = UniqueUntil.ENDED
    on_clash: OnClash = OnClash.IGNORE


class Submitted(NamedTuple):
    """A job as a submit gives it: the new one, or the one that was there."""

    id: int
    uuid: UUID
