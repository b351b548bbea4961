"""Batches: jobs whose end, all of them together, is an end of its own.

A batch is a job that no worker runs. Its jobs, the *members*, are its parents, by edges of the
rule "member". It waits for all of them and ends in the commit that ends the last, whatever the
others were: once, never before, and so that children may come after it like after any job.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from typing import Final, NamedTuple
from uuid import UUID

from timeball.core.callbacks import CALLBACK
from timeball.core.dependencies import PARENT, Rule, RuledOut, Sentence, needs_of
from timeball.core.states import TERMINAL, Ending, State
from timeball.errors import UsageError

BATCH: Final = "timeball.batch"
"""The kind of the job that is a batch."""

MEMBERS: Final = "members"
"""Why a batch waits, and why it has ended."""

OPEN: Final = "open"
"""Why a batch waits that has not been closed: it does not end, whatever its jobs do."""


COUNT_MAX: Final = 10_000
"""How many members of a batch are counted in a list of many."""


class Told(NamedTuple):
    """One edge of a batch, once it has been decided."""

    rule: Rule
    met: bool
    how: State | None
    """How the parent last ended; None: it was deleted."""


def end_of(edges: Iterable[Told]) -> State:
    """Return how a batch ends all of whose edges have been decided.

    Failed, if a member has failed, or was deleted before anybody could look; else cancelled, if
    one was cancelled; else skipped, if all of them were. Members that were skipped beside others
    do no harm: their own rules meant it. A batch without members has succeeded, unless it was to
    come after jobs that have ruled it out.
    """
    every = list(edges)
    needs = needs_of(edge.rule for edge in every)
    for edge in every:
        needs = needs.after(edge.rule, met=edge.met or edge.rule is Rule.MEMBER)
    if needs.sentence(RuledOut.SKIP) is Sentence.SKIP:
        return State.SKIPPED
    members = [edge for edge in every if edge.rule is Rule.MEMBER]
    hows = {State.SUCCEEDED if edge.met else edge.how or State.FAILED for edge in members}
    worst = next((state for state in (State.FAILED, State.CANCELLED) if state in hows), None)
    return worst or (State.SKIPPED if hows == {State.SKIPPED} else State.SUCCEEDED)


def batch_args(name: str, *, is_open: bool) -> str:
    """Return the arguments of the job that is a batch, as the text of a JSON object."""
    return json.dumps({"name": name, "open": is_open})


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchState:
    """A batch as a reader sees it: all of it from one snapshot."""

    id: int
    uuid: UUID
    name: str
    state: State
    is_open: bool
    """Whether it waits to be closed, too."""

    created_at: datetime
    ended_at: datetime | None
    states: Mapping[State, int]
    """Its jobs, and those of batches in it, by state; every state is named."""

    gone: int = 0
    """Jobs that were deleted and had not succeeded."""

    @property
    def jobs(self) -> int:
        """Return how many jobs there are in it, each counted once."""
        return sum(self.states.values()) + self.gone

    @property
    def ended(self) -> int:
        """Return how many of them have ended."""
        return sum(self.states[state] for state in TERMINAL) + self.gone

    @property
    def progress(self) -> float:
        """Return the part of its jobs that has ended, 0 to 1; of none, whether it has ended."""
        return self.ended / self.jobs if self.jobs else float(self.state in TERMINAL)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLine:
    """A batch in a list of many."""

    id: int
    uuid: UUID
    name: str
    state: State
    is_open: bool
    created_at: datetime
    ended_at: datetime | None
    members: int
    """Its jobs and the batches in it, as far as they were counted: `COUNT_MAX` at most."""

    left: int
    """Those that have not ended, as far as they were counted."""


class MemberEdge(NamedTuple):
    """What a job of a batch was to wait for."""

    parent: int
    rule: Rule
    met: bool | None
    spawns: bool = False
    """For pictures only: that one has spawned the job, and waits for it; see `with_spawners`."""

    @property
    def words(self) -> str:
        """What a picture calls it."""
        return "spawns" if self.spawns else str(self.rule)


class MemberAttempt(NamedTuple):
    """An attempt that has ended. Instants are epoch seconds by the store's clock."""

    turn: int
    ending: Ending
    queued_at: float
    """From then on it might start."""

    began_at: float
    ran_s: float
    delay_s: float = 0.0
    """The wait that was prescribed before it."""


class Member(NamedTuple):
    """A batch, or one of the jobs and batches in it, with all that a report needs."""

    id: int
    uuid: UUID
    kind: str
    state: State
    turn: int
    reason: str | None
    ruled_out: RuledOut
    name: str
    """Of a batch; else empty."""

    edges: tuple[MemberEdge, ...]
    attempts: tuple[MemberAttempt, ...]
    spawned: tuple[int, ...] = ()
    """The jobs that it has added and waits for, or waited for."""

    queue: str | None = None
    """In which all its attempts were; None, where it was moved."""

    key: str | None = None

    @property
    def is_batch(self) -> bool:
        """Return whether it is a batch itself."""
        return self.kind == BATCH

    @property
    def is_run(self) -> bool:
        """Return whether workers run it: it is neither a batch nor a callback."""
        return self.kind not in {BATCH, CALLBACK}


def with_spawners(members: Iterable[Member]) -> list[Member]:
    """Return members as pictures show them: each comes after the one that has spawned it."""
    every = list(members)
    by = {job: member.id for member in every for job in member.spawned}
    return [
        member._replace(
            edges=(*member.edges, MemberEdge(by[member.id], Rule.ALWAYS, None, spawns=True))
        )
        if member.id in by
        else member
        for member in every
    ]


class ReopenAnswer(StrEnum):
    """What became of a wish to start jobs of a batch again."""

    DONE = "done"
    CHANGED = "changed"  # one of them is not as it was: look again
    BUSY = "busy"  # others were in the way: try again


def failed_part(members: Iterable[Member]) -> list[tuple[int, int]]:
    """Return which jobs of a batch to start again, as (job, turn), by id.

    Those that failed or were cancelled, and those that were ruled out because of them: where one
    of their parents starts again, and the others do not rule them out by themselves.

    Raises:
        UsageError: Started again they would wait for each other.
    """
    found = {member.id: member for member in members}
    again: set[int] = set()
    for member in parents_first(found):
        if member.is_batch:
            if any(edge.parent in again for edge in member.edges):
                again.add(member.id)
        elif _starts_again(member, again):
            again.add(member.id)
    _check_order(found, again)
    return [(job, found[job].turn) for job in sorted(again) if not found[job].is_batch]


def _check_order(members: Mapping[int, Member], again: set[int]) -> None:
    """Raise UsageError where jobs that start again would wait for each other.

    One that was cancelled while it waited for another may be a parent of that one by now.
    """
    graph = {
        job: [edge.parent for edge in members[job].edges if edge.parent in again] for job in again
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        names = ", ".join(f"job {job}" for job in error.args[1][1:])
        raise UsageError(
            f"started again, {names} would wait for each other: revive one of them by itself, "
            "then retry"
        ) from None


def _starts_again(member: Member, again: set[int]) -> bool:
    if member.state not in {State.FAILED, State.CANCELLED, State.SKIPPED}:
        return False
    if member.kind == CALLBACK:  # whoever was asked has been told where to call once
        return False
    if member.reason != PARENT:
        return member.state is not State.SKIPPED
    if not any(edge.parent in again for edge in member.edges):
        return False
    needs = needs_of(edge.rule for edge in member.edges)
    for edge in member.edges:
        if edge.met is not None and edge.parent not in again:
            needs = needs.after(edge.rule, met=edge.met)
    return needs.sentence(member.ruled_out) is Sentence.WAIT


def parents_first(members: Mapping[int, Member]) -> list[Member]:
    """Return members in an order in which each comes after those that it waits for.

    Where edges that were added to those that others have given up go round, one is left out.
    """
    graph = {
        member.id: [edge.parent for edge in member.edges if edge.parent in members]
        for member in members.values()
    }
    while True:
        try:
            return [members[job] for job in TopologicalSorter(graph).static_order()]
        except CycleError as error:
            circle: list[int] = error.args[1]
            later, job = max(pairwise(circle))
            graph[job].remove(later)
