"""The part of a store that keeps what running jobs say of themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from timeball.core.notes import LogLine, Note


class Noting(Protocol):
    """What a store must do about it; see `timeball.store.base.Store` for what holds of all."""

    def note(self, notes: Sequence[Note]) -> set[int]:
        """Keep what attempts say: of progress the latest, of lines the newest.

        An earlier turn takes nothing back from a later one.

        Returns:
            The jobs that are done with, those that do not exist any more included. Send the
            notes of the others again later.
        """
        ...

    def logs(self, uuid: UUID) -> list[LogLine]:
        """Return the lines that are kept of a job, oldest first.

        Raises:
            JobNotFound: No job has that id.
        """
        ...
