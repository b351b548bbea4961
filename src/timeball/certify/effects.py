"""The effect ledger: what job bodies did, noted by themselves, outside of the product.

Each process appends whole lines to a file of its own (O_APPEND), so that nothing is torn or lost
when it is killed: what was written is in the kernel's hands.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from timeball.core.history import JobHistory
from timeball.core.states import Ending

BEGAN: Final = "began"
ENDED: Final = "ended"


class Effect(NamedTuple):
    """One line of the ledger."""

    what: str
    """BEGAN, ENDED, or a word of the job's own."""

    job: UUID
    turn: int
    pid: int
    at_ns: int
    """On the monotonic clock, which all processes of this machine share."""


@cache
def _file(folder: str, pid: int) -> int:
    path = Path(folder, f"effects-{pid}")
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def note(folder: str, what: str, job: UUID, turn: int) -> None:
    """Append one line for this process."""
    pid = os.getpid()
    line = f"{what} {job} {turn} {pid} {time.monotonic_ns()}\n"
    os.write(_file(folder, pid), line.encode())


class Effects:
    """The ledger of one scenario, as the harness reads it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self) -> list[Effect]:
        """Return all lines, in the order of time."""
        found = []
        for path in self.folder.glob("effects-*"):
            for line in path.read_text().splitlines():
                what, job, turn, pid, at_ns = line.split()
                found.append(Effect(what, UUID(job), int(turn), int(pid), int(at_ns)))
        return sorted(found, key=lambda each: each.at_ns)

    def began(self) -> Counter[UUID]:
        """Return how many attempts of each job have begun."""
        return Counter(each.job for each in self.read() if each.what == BEGAN)


def disagreements(histories: Iterable[JobHistory], effects: Iterable[Effect]) -> Iterator[str]:
    """Yield where the record of the product and the ledger of the job bodies disagree."""
    noted = Counter((each.job, each.turn) for each in effects if each.what == BEGAN)
    for history in histories:
        granted = {grant.turn for grant in history.grants}
        seen = {turn: noted.pop((history.uuid, turn), 0) for turn in sorted(granted)}
        yield from (
            f"turn {turn} of {history.uuid} began {count} times"
            for turn, count in seen.items()
            if count > 1
        )
        last = history.endings[-1] if history.endings else None
        if last and last.ending is Ending.SUCCEEDED and not seen.get(last.turn):
            yield f"{history.uuid} succeeded in turn {last.turn}, which never began"
    yield from (f"turn {turn} of {job} began, and was never granted" for job, turn in noted)
