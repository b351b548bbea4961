"""Drafts as the jobs of one scheduler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import UUID

from timeball.action.draft import Draft, uuid_named
from timeball.engine.handles import Work
from timeball.errors import UsageError

NewJob = Callable[[Any, tuple[Any, ...], dict[str, Any]], Work]
"""Makes a job of a callable, its arguments by position, and those by name with the options."""


class Drafted:
    """Makes jobs of drafts, each of which may name those before it."""

    def __init__(self, new_job: NewJob) -> None:
        self.works: list[Work] = []
        """New jobs that nobody else knows yet, in the order of their drafts."""
        self._new_job = new_job
        self._made: dict[object, Work] = {}

    def add(self, given: Draft) -> None:
        """Make one more.

        Raises:
            UsageError: It can never work, and what to write instead.
        """
        made = self._made
        if given.uuid in made:
            raise UsageError(f"{given!r} is here already: leave uuid out, or write another")
        work = self._new_job(given.job, given.args, _with_parents(given.arguments, made))
        if isinstance(work.id, str) and work.id in made:
            raise UsageError(f"id {work.id!r} is in the submission twice: write another one")
        made[work.id] = made[given.uuid] = work
        self.works.append(work)


def drafted(drafts: Sequence[Draft], new_job: NewJob) -> list[Work]:
    """Return new jobs that nobody else knows yet, in the order of their drafts.

    Raises:
        UsageError: One of them can never work, and what to write instead.
    """
    made = Drafted(new_job)
    for each in drafts:
        made.add(each)
    return made.works


def _with_parents(arguments: Mapping[str, Any], made: Mapping[object, Work]) -> dict[str, Any]:
    """Return a draft's arguments with the jobs that its `after` means in place of drafts."""
    after = arguments.get("after")
    if not isinstance(after, list | tuple | set | frozenset):
        return dict(arguments)
    return {**arguments, "after": [_parent(each, made) for each in after]}


def _parent(each: Any, made: Mapping[object, Work]) -> Any:
    named = uuid_named(each)
    work = named if isinstance(named, Work) else made.get(named)
    if work is None:
        if isinstance(named, UUID):
            raise UsageError(
                f"after names {each!r}, a draft of another submission: name the handle that "
                "submit_all gave for it"
            )
        return each
    return (work, *each[1:]) if isinstance(each, tuple) else work
