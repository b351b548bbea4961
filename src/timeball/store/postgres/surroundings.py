"""What a job comes after and what comes after it: as far as a picture has room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from timeball.core.batches import Member
from timeball.store.postgres.batches import member_of
from timeball.store.postgres.connections import Run

NODES_MAX: Final = 200
"""Jobs that are told."""

FOUND_MAX: Final = 250
"""Jobs that are counted."""

_WINDOW: Final = 1_000
"""Edges after each job among which those of its children are looked for that wait no longer."""


class Surroundings(NamedTuple):
    """The jobs around one, itself among them."""

    members: Sequence[Member]
    """The nearest, up to `NODES_MAX`, by id; with the edges between them, and without attempts."""

    more: int
    """How many there are besides, up to `FOUND_MAX` in all."""

    @property
    def capped(self) -> bool:
        """Return whether there may be still more than `more`."""
        return len(self.members) + self.more >= FOUND_MAX


def surroundings(run: Run, job_id: int) -> Surroundings:
    """Return what is connected with a job or a batch by what comes after what.

    Of a batch its members belong to it; of another batch, itself alone.

    Args:
        run: Runs statements.
        job_id: The job's number.

    Raises:
        StoreUnavailable: It took too long, or the database does not answer.
    """
    found = [each for (each,) in run("around", job=job_id, most=FOUND_MAX, window=_WINDOW)]
    near = found[:NODES_MAX]
    members = [member_of(*row) for row in run("around_jobs", jobs=near)]
    return Surroundings(members, len(found) - len(near))
