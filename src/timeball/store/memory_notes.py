"""What running jobs say of themselves, in the memory store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from threading import Lock
from uuid import UUID

from timeball.core.notes import LogLine, Note, Progress, newest
from timeball.errors import JobNotFound
from timeball.store.memory_rows import Row


class MemoryNotes:
    """Progress and lines are parts of a job's row, and go with it."""

    _clock: Callable[[], datetime]
    _lock: Lock
    _rows: dict[int, Row]
    _ids: dict[UUID, int]

    def note(self, notes: Sequence[Note]) -> set[int]:
        """See `Store.note`."""
        with self._lock:
            for note in notes:
                row = self._rows.get(note.job_id)
                if row is not None:
                    _keep(row, note, self._clock())
            return {note.job_id for note in notes}

    def logs(self, uuid: UUID) -> list[LogLine]:
        """See `Store.logs`."""
        with self._lock:
            if uuid not in self._ids:
                raise JobNotFound(uuid)
            return list(self._rows[self._ids[uuid]].lines.values())


def _keep(row: Row, note: Note, now: datetime) -> None:
    if note.progress is not None and (row.progress is None or row.progress.turn <= note.turn):
        row.progress = Progress(*note.progress, note.turn, now)
    said = {
        (note.turn, line.n): LogLine(note.turn, now - timedelta(seconds=line.age_s), line.text)
        for line in note.lines
    }
    row.lines = newest((said | row.lines).items())
