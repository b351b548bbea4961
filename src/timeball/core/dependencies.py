"""When a job that comes after others may start: the one decision that both engines share.

Each edge from a child to a parent has a rule and is decided once, when the parent has
ended. Edges count in two groups: of those that say "one" it is enough that one is met, of
all others each must be. What follows for the child does not depend on the order in which
its parents end, and once it is no longer `WAIT` it never changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple
from uuid import UUID

from timeball.core.states import TERMINAL, State


class Rule(StrEnum):
    """What a parent's end means for a child. Failed means failed or cancelled."""

    ALL_SUCCESS = "all_success"  # each has succeeded
    ALL_DONE = "all_done"  # each has ended, in whatever state
    NONE_FAILED = "none_failed"  # each has succeeded or was skipped
    ALWAYS = "always"  # another word for all_done: nothing rules the child out
    ONE_SUCCESS = "one_success"  # one has succeeded; the others are not waited for
    ONE_FAILED = "one_failed"  # one has failed; the others are not waited for
    MEMBER = "member"  # the child is a batch, and the parent one of its jobs


class RuledOut(StrEnum):
    """What happens to a child whose rules can no longer be met."""

    SKIP = "skip"  # it is skipped, and so are those that need it
    FAIL = "fail"  # it has failed
    RUN = "run"  # it runs all the same, once all its parents have ended


class Sentence(StrEnum):
    """What follows for a child from what is known of its parents."""

    WAIT = "wait"
    RELEASE = "release"
    SKIP = "skip"
    FAIL = "fail"


class Edge(NamedTuple):
    """One parent of a job, as it was submitted."""

    parent: UUID
    rule: Rule = Rule.ALL_SUCCESS


class EdgesAnswer(StrEnum):
    """What became of a wish to have a job come after more parents."""

    ADDED = "added"  # it waits for them, too
    REFUSED = "refused"  # it waits for no parent, or has begun or ended before
    NOT_FOUND = "not_found"
    BUSY = "busy"  # others were in the way: try again


class Parent(NamedTuple):
    """One parent of a job, as a reader sees it."""

    uuid: UUID
    rule: Rule
    state: State | None
    """None: it was deleted."""

    result: str | None
    """Text of a JSON value."""


OURS: Final = frozenset({Rule.MEMBER})
"""Words that no caller writes."""


class Awaited(NamedTuple):
    """What a job has that waited for jobs it had spawned: nothing of it is to be run again."""

    result: str | None
    """Text of a JSON value: what it returned before."""

    failed: str | None
    """The uuid of one it spawned that failed or was cancelled; None: all went well."""


SPAWNED: Final = "spawned"
"""Why a job waits that has spawned others, and why it has failed where one of those has."""

PARENT: Final = "parent"
"""Why a job was skipped, or failed, that never began: the rules of its edges."""

PARENTS_MAX: Final = 10_000
"""Parents of one job."""

ONE_OF: Final = frozenset({Rule.ONE_SUCCESS, Rule.ONE_FAILED})

_FAILED: Final = frozenset({State.FAILED, State.CANCELLED})
_MET_BY: Final = MappingProxyType(
    {
        Rule.ALL_SUCCESS: frozenset({State.SUCCEEDED}),
        Rule.ALL_DONE: TERMINAL,
        Rule.NONE_FAILED: TERMINAL - _FAILED,
        Rule.ALWAYS: TERMINAL,
        Rule.ONE_SUCCESS: frozenset({State.SUCCEEDED}),
        Rule.ONE_FAILED: _FAILED,
        Rule.MEMBER: frozenset({State.SUCCEEDED}),
    }
)


def is_met(rule: Rule, state: State | None) -> bool:
    """Return whether a parent's end meets the rule of an edge.

    Args:
        rule: Of the edge.
        state: Terminal; None where the parent was deleted before anybody could look.
    """
    if state is None:  # it has ended, and nobody knows how
        return _MET_BY[rule] == TERMINAL
    return state in _MET_BY[rule]


class Needs(NamedTuple):
    """What a child still waits for."""

    all_left: int
    """Undecided edges that must each be met."""

    one_left: int
    """Undecided edges of which one must be met."""

    one_met: bool
    """Whether one of those has been, or there is none."""

    lost: bool = False
    """Whether an edge that had to be met was not."""

    def after(self, rule: Rule, *, met: bool) -> Needs:
        """Return what is left once one more edge has been decided."""
        if rule in ONE_OF:
            return self._replace(one_left=self.one_left - 1, one_met=self.one_met or met)
        return self._replace(all_left=self.all_left - 1, lost=self.lost or not met)

    def with_more(self, more: Needs, *, had_ones: bool) -> Needs:
        """Return what is left once edges were added.

        Args:
            more: What these need, none of which has been decided.
            had_ones: Whether there was one before, decided or not, of those of which one is enough.
        """
        return self._replace(
            all_left=self.all_left + more.all_left,
            one_left=self.one_left + more.one_left,
            one_met=self.one_met and (had_ones or more.one_met),
        )

    def sentence(self, ruled_out: RuledOut) -> Sentence:
        """Return what follows for the child."""
        if self.lost or not (self.one_met or self.one_left):
            if ruled_out is not RuledOut.RUN:
                return Sentence(ruled_out.value)
            return Sentence.WAIT if self.all_left + self.one_left else Sentence.RELEASE
        return Sentence.RELEASE if self.one_met and not self.all_left else Sentence.WAIT


def needs_of(rules: Iterable[Rule]) -> Needs:
    """Return what a child waits for of whose edges none has been decided."""
    every = list(rules)
    ones = sum(rule in ONE_OF for rule in every)
    return Needs(len(every) - ones, ones, not ones)
