"""What a running attempt of a scheduler spawns, and how a job ends that has waited for that."""

from __future__ import annotations

from typing import Any

from timeball.action.draft import Draft
from timeball.core.dependencies import Awaited
from timeball.core.outcomes import Raised, finished
from timeball.core.states import State
from timeball.engine.drafts import Drafted
from timeball.engine.handles import Work
from timeball.engine.runner import Done, Ended, Spawning
from timeball.errors import UsageError


class Brood:
    """Collects the jobs that one attempt spawns, each made at once, so that mistakes are told."""

    __slots__ = ("_drafted",)

    def __init__(self, work: Work) -> None:
        self._drafted = Drafted(work.form.engine.new_job)

    def add(self, spawned: Draft) -> None:
        """Take a job that is to be added.

        Raises:
            UsageError: It can never be, and what to write instead.
        """
        if "id" in spawned.arguments:
            raise UsageError("a job that is spawned has no id of its own: leave id out")
        self._drafted.add(spawned)

    def joined(self, said: Ended) -> Ended:
        """Return how an attempt ended with what it has spawned, where that is a success."""
        works = self._drafted.works
        return Spawning(said.value, tuple(works)) if works and isinstance(said, Done) else said


def end_of(work: Work) -> Ended:
    """Return the end of a job that has waited for those it had spawned; nothing is called again."""
    assert work.more is not None
    bad = (State.FAILED, State.CANCELLED)
    failed: Any = next((each for each in work.more.spawned if each.state in bad), None)
    if failed is None:
        return Done(work.more.kept)
    told = finished(Awaited(None, str(failed.id)))
    assert isinstance(told, Raised)
    return told
