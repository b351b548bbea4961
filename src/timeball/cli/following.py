"""A job as it goes on: its states, how far it is, and what it says."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from timeball.core.notes import LogLine
from timeball.core.records import Job
from timeball.core.states import TERMINAL

if TYPE_CHECKING:
    from timeball.client import Client

_POLL_FIRST_S: Final = 0.02
_POLL_LAST_S: Final = 0.5
_LAST_WORDS_S: Final = 1.2
"""A worker writes what jobs say once a second, and may be later with it than with their end."""


def followed(client: Client, job: Job) -> Iterator[tuple[Job, LogLine | None]]:
    """Yield a job with each line that it logs, and without one whenever it has changed."""
    said: Sequence[LogLine] = ()
    seen: Job | None = None
    rest_s = _POLL_FIRST_S
    while True:
        ended, changed = job.state in TERMINAL, seen is None or _facts(job) != _facts(seen)
        if changed and not ended:
            yield job, None
        if ended and said:
            time.sleep(_LAST_WORDS_S)
        before, said = said, client.logs(job.uuid)
        fresh = _fresh(before, said)
        yield from ((job, line) for line in fresh)
        if ended:
            yield job, None
            return
        rest_s = _POLL_FIRST_S if changed or fresh else min(_POLL_LAST_S, 1.5 * rest_s)
        time.sleep(rest_s)
        seen, job = job, client.get(job.uuid)


def _facts(job: Job) -> tuple[object, ...]:
    return job.state, job.turn, job.progress


def _fresh(before: Sequence[LogLine], now: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return the lines that have come; the oldest may be kept no longer."""
    for size in range(min(len(before), len(now)), 0, -1):
        if list(before[-size:]) == list(now[:size]):
            return now[size:]
    return now
