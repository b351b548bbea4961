"""What must hold of the edges on a job's record: I13, I14 and I15 of the contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from timeball.core.batches import BATCH, MEMBERS, OPEN, Told, end_of
from timeball.core.callbacks import CALL, CALLBACK
from timeball.core.dependencies import PARENT, SPAWNED, Needs, Rule, Sentence, is_met, needs_of
from timeball.core.history import EdgeRecord, EndingRecord, JobHistory
from timeball.core.states import FINAL_STATE, Ending, State


def early(history: JobHistory, slack_s: float) -> Iterator[str]:
    """Yield what is wrong where a job, for all its parents had done, should not have started."""
    if not history.edges:
        return
    yield from _unfounded(history.edges, slack_s)
    yield from _too_soon(history, slack_s)
    started = [row.at for row in history.entries] + [row.at for row in history.grants]
    started += [row.began_at for row in history.endings if row.began_at is not None]
    at = min(started, default=inf)
    if min((row.at for row in history.revivals), default=inf) <= at + slack_s:
        return  # who is revived starts at once
    known = (edge for edge in history.edges if _at(edge) <= at + slack_s)
    if at < inf and _sentence(history, known, spawned=False) is not Sentence.RELEASE:
        yield f"started at {at:.6f}, when its parents had not allowed it"


def missed(history: JobHistory) -> Iterator[str]:
    """Yield what is wrong where a job waits although its edges say what follows."""
    if not history.edges:
        return
    for edge in history.edges:
        if edge.linked_at is not None and edge.decided_at is None and edge.ended:
            yield f"has a linked edge from job {edge.parent}, which has ended, undecided"
    held = history.held
    waits = held is not None and held.state is State.WAITING and held.reason != OPEN
    spawned = held is not None and held.reason == SPAWNED
    sentence = _sentence(history, history.edges, spawned=spawned) if waits else Sentence.WAIT
    if sentence is not Sentence.WAIT:
        yield f"is waiting, and its edges say {sentence}"
    yield from _ended(history)


def _ended(history: JobHistory) -> Iterator[str]:
    """Yield what is wrong with how the edges have ended a job, since it was last revived."""
    revived = max((row.turn for row in history.revivals), default=0)
    for end in history.endings:
        if end.reason not in {PARENT, MEMBERS} or end.turn <= revived:
            continue
        told = [edge for edge in history.edges if _at(edge) <= end.at]
        if end.reason == MEMBERS:
            yield from _joined(history, end, told)
        elif _sentence(history, told, spawned=False) not in {Sentence.SKIP, Sentence.FAIL}:
            yield f"turn {end.turn} ended {end.ending} by its parents, which allow it to run"


def _joined(history: JobHistory, end: EndingRecord, told: list[EdgeRecord]) -> Iterator[str]:
    """Yield what is wrong with the end of a batch."""
    if len(told) < len(history.edges):
        left = len(history.edges) - len(told)
        yield f"turn {end.turn}, of a batch, ended {end.ending} with {left} edges undecided"
        return
    ends = [edge.ends for edge in told if edge.ends is not None and len(edge.ends) == 1]
    if len(ends) < len(told):
        return  # which of several ends it was told of nobody can say, nor how those deleted ended
    wanted = end_of(
        Told(edge.rule, bool(edge.met), state)
        for edge, ((state, _),) in zip(told, ends, strict=True)
    )
    if FINAL_STATE[end.ending] is not wanted:
        yield f"turn {end.turn}, of a batch, ended {end.ending}, and its jobs say {wanted}"


def by_itself(history: JobHistory, end: EndingRecord) -> bool:
    """Return whether no worker had to end that turn: its edges have, or a call from outside."""
    called = (history.kind, end.reason, end.ending) == (CALLBACK, CALL, Ending.SUCCEEDED)
    return called or end.reason in {PARENT, MEMBERS}


def backwards(history: JobHistory) -> Iterator[str]:
    """Yield the edges that do not lead from an earlier job: only those could close a cycle."""
    for edge in history.edges:
        joined = edge.spawned or edge.added or (history.kind, edge.rule) == (BATCH, Rule.MEMBER)
        if edge.parent >= history.id and not joined:
            yield f"waits for job {edge.parent}, which was added after it"


def _unfounded(edges: Iterable[EdgeRecord], slack_s: float) -> Iterator[str]:
    """Yield the decisions that no end of the parent explains."""
    for edge in edges:
        if edge.decided_at is None or edge.ends is None:
            continue
        before = [state for state, at in edge.ends if at <= edge.decided_at + slack_s]
        if not any(is_met(edge.rule, state) is edge.met for state in before):
            met = "met" if edge.met else "not met"
            yield f"{edge.rule} of job {edge.parent} was {met}, and that has not ended so"


def _too_soon(history: JobHistory, slack_s: float) -> Iterator[str]:
    """Yield what is wrong where a job went on before those that it had spawned had ended."""
    awaited = [row.turn for row in history.endings if row.ending is Ending.AWAITED]
    decided_at = max((_at(edge) for edge in history.edges if edge.spawned), default=-inf)
    if not awaited or any(row.turn >= max(awaited) for row in history.revivals):
        return
    for row in history.entries:
        if row.turn == max(awaited) + 1 and row.at + slack_s < decided_at:
            yield f"went on at {row.at:.6f}, before the jobs that it had spawned had ended"


def _sentence(history: JobHistory, decided: Iterable[EdgeRecord], *, spawned: bool) -> Sentence:
    """Return what follows from the edges of one sort: to parents, or to jobs it has spawned."""
    if history.kind == BATCH:
        left = len(history.edges) - sum(edge.met is not None for edge in decided)
        return Sentence.WAIT if left else Sentence.RELEASE
    needs: Needs = needs_of(edge.rule for edge in history.edges if edge.spawned is spawned)
    for edge in decided:
        if edge.met is not None and edge.spawned is spawned:
            needs = needs.after(edge.rule, met=edge.met)
    return needs.sentence(history.ruled_out)


def _at(edge: EdgeRecord) -> float:
    return inf if edge.decided_at is None else edge.decided_at
