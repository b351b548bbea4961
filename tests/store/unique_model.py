"""Who holds which unique key, and who gives way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from timeball.core.records import JobSpec
from timeball.core.states import Ending, State

if TYPE_CHECKING:
    from tests.store.model_lines import Thing


class UniqueModel:
    """The unique keys of all jobs."""

    jobs: list[Thing]
    keys: dict[str, int]

    def rule_out(self, n: int, ending: Ending) -> None:
        raise NotImplementedError

    def unlink(self, n: int) -> None:
        raise NotImplementedError

    def clash(self, spec: JobSpec) -> int | None:
        """The job that holds the key of another one that is to be submitted."""
        assert spec.unique is not None
        n = self.keys.get(spec.unique.key)
        if n is None:
            return None
        job = self.jobs[n]
        assert job.spec.unique is not None
        begun = job.attempts > 0 or job.state is State.RUNNING
        free = job.over or (job.spec.unique.until == "started" and begun)
        return None if free else n

    def lost(self, n: int) -> bool:
        """Whether a job that could be revived has lost its key to another one."""
        job = self.jobs[n]
        ripe = job.over and not job.gone and job.state is not State.SUCCEEDED
        return ripe and job.spec.unique is not None and self.clash(job.spec) is not None

    def replace(self, n: int) -> bool:
        """Whether a job gives way to a newer one of its key: only where it is held back."""
        job = self.jobs[n]
        waits = (job.orphan_since, job.waits_since) != (None, None)
        held = job.state is State.SCHEDULED or waits
        if held:
            self.rule_out(n, Ending.CANCELLED)
            self.unlink(n)
        return held
