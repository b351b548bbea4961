"""What a running job may ask about the jobs that it comes after."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from timeball.action.failed import ActionFailed
from timeball.core.dependencies import Parent
from timeball.core.payload import decode_value
from timeball.core.states import State


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentJob:
    """One parent of a running job, as it was when that asked."""

    uuid: UUID
    state: State | None
    """None: it was deleted since, and its result with it."""

    value: Any

    @property
    def result(self) -> Any:
        """What it returned; None where it returned nothing, or has not succeeded.

        Raises:
            ActionFailed: It was deleted. That fails the job for good, as "ParentGone".
        """
        if self.state is None:
            raise ActionFailed(
                f"job {self.uuid}, which this one comes after, was deleted with its result: keep "
                "ended jobs for longer (`timeball worker --keep`), or store what is needed later",
                error_type="ParentGone",
                again=False,
            )
        return self.value


def parent_jobs(parents: Iterable[Parent]) -> list[ParentJob]:
    """Return the parents of a job as that sees them."""
    return [
        ParentJob(uuid=each.uuid, state=each.state, value=decode_value(each.result))
        for each in parents
    ]
