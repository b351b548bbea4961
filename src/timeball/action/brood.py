"""The jobs that one attempt spawns, on their way to its outcome."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from timeball.action.draft import TOGETHER_MAX, Draft
from timeball.action.draft_specs import draft_spec
from timeball.core.outcomes import Outcome, Returned
from timeball.core.records import JobSpec
from timeball.errors import UsageError


class Brood:
    """Collects what an attempt spawns, each checked at once."""

    __slots__ = ("_specs",)

    def __init__(self) -> None:
        self._specs: dict[UUID, JobSpec] = {}

    def add(self, spawned: Draft) -> None:
        """Take a job that is to be added.

        Raises:
            UsageError: It can never be, and what to write instead.
        """
        if len(self._specs) == TOGETHER_MAX:
            raise UsageError(f"a job spawns {TOGETHER_MAX:,} others at most: have some spawn more")
        spec = draft_spec(spawned)
        if self._specs.setdefault(spec.uuid, spec) is not spec:
            raise UsageError(f"{spawned!r} was spawned already: leave uuid out, or write another")

    def joined(self, said: Outcome) -> Outcome:
        """Return an outcome with what was spawned, where it is a success."""
        if self._specs and isinstance(said, Returned):
            return replace(said, spawned=tuple(self._specs.values()))
        return said
