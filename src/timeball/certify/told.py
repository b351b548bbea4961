"""The driver's store: all that a scenario itself asks of it is noted in the client's history."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from timeball.certify.history import History
from timeball.core.records import JobSpec
from timeball.errors import TimeballError
from timeball.store.base import Store
from timeball.store.postgres import PostgresStore

_LONG: Final = 300


def verbs() -> frozenset[str]:
    """Return the names of all verbs that a store has."""
    parts = (vars(each) for each in Store.__mro__ if each is not object)
    return frozenset(name for part in parts for name in part if not name.startswith("_"))


READS: Final = frozenset(
    {
        *("leases", "cancels", "pulses", "now", "schedules", "schedule", "occurrences", "zones"),
        *("in_zone", "get", "ended", "jobs", "counts", "histories", "strays", "parents", "queues"),
        *("schedule_histories", "limits", "holdings", "starts", "rates", "batch", "batches"),
        *("batch_left", "batch_members", "deleted", "logs"),
    }
)
"""Verbs that change nothing."""


class Told:
    """A store each of whose calls is noted when it begins and when it ends.

    Scenarios look again and again until something is so: of reads that are the same and answer
    as before only the first is noted.

    Args:
        store: What carries out the verbs.
        history: Where it is noted.
    """

    def __init__(self, store: PostgresStore, history: History) -> None:
        self._store = store
        self._history = history
        self._read: dict[str, str] = {}
        for name in verbs():
            vars(self)[name] = self._noted_read(name) if name in READS else self._noted(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _noted(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            with self._history.calling(name, asked=_brief((*args, *options.values()))) as answer:
                told = getattr(self._store, name)(*args, **options)
                answer["answer"] = _brief(told)
                return told

        return call

    def _noted_read(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            asked = _brief((*args, *options.values()))
            try:
                told = getattr(self._store, name)(*args, **options)
            except TimeballError:
                with self._history.calling(name, asked=asked):
                    raise
            if self._read.get(name + asked) != (brief := _brief(told)):
                self._read[name + asked] = brief
                with self._history.calling(name, asked=asked) as answer:
                    answer["answer"] = brief
            return told

        return call


def _brief(value: Any) -> str:
    """Return what identifies an argument or an answer, in a line that is not too long."""
    if isinstance(value, JobSpec):
        return f"{value.kind} {value.uuid}"
    if isinstance(value, Iterator):
        return "a stream"
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return f"[{', '.join(map(_brief, value))}]"[:_LONG]
    return str(value)[:_LONG]
