"""A job that was submitted, as its submitter holds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from timeball.core.records import CancelAnswer, Job

if TYPE_CHECKING:
    from timeball.client.sync import Client


@dataclass(frozen=True, slots=True)
class Handle:
    """A submitted job."""

    client: Client
    uuid: UUID
    id: int
    """0 until the batch that it was written into has been submitted."""

    def job(self) -> Job:
        """Return the job as it is now."""
        return self.client.get(self.uuid)

    def wait(self, timeout_s: float | None = None) -> Job:
        """Return the job once it has ended. See `Client.wait`."""
        return self.client.wait([self], timeout_s)[0]

    def cancel(self) -> CancelAnswer:
        """Keep it from starting, or ask it to stop. See `Client.cancel`."""
        return self.client.cancel(self)


def uuid_of(job: Handle | UUID) -> UUID:
    """Return the uuid of a job given by its handle or its uuid."""
    return job if isinstance(job, UUID) else job.uuid
