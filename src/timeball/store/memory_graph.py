"""Jobs of the memory store that come after others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from threading import Lock
from typing import Final
from uuid import UUID

from timeball.core.batches import BATCH, MEMBERS, OPEN, Told, end_of
from timeball.core.callbacks import CALL, CALLBACK
from timeball.core.dependencies import PARENT, SPAWNED, Parent, Sentence, is_met, needs_of
from timeball.core.history import EdgeRecord
from timeball.core.payload import decode_value
from timeball.core.records import JobSpec
from timeball.core.states import TERMINAL, Ending, Event, State
from timeball.errors import UsageError
from timeball.store.memory_rows import Row, Tie, ends_of, epoch, move

PARENTS: Final = "parents"
"""Why a waiting job is held."""


class MemoryGraph(ABC):
    """Edges, and what the end of a parent does to its children."""

    _clock: Callable[[], datetime]
    _lock: Lock
    _rows: dict[int, Row]
    _ids: dict[UUID, int]

    def __init__(self) -> None:
        self._children: defaultdict[int, list[Row]] = defaultdict(list)
        """By the id of a parent."""

    @abstractmethod
    def _line_up(self, rows: Iterable[Row], keys: Iterable[str] = ()) -> int: ...

    @abstractmethod
    def _hold(
        self, row: Row, *, run_at: datetime | None = None, reason: str | None = None
    ) -> None: ...

    @abstractmethod
    def _let_go(self, row: Row) -> None: ...

    @abstractmethod
    def _rule_out(self, row: Row, event: Event, ending: Ending, reason: str) -> None: ...

    def link(self, limit: int) -> int | None:
        """See `Store.link`."""
        with self._lock:
            return self._link(limit)

    def parents(self, job_id: int) -> list[Parent]:
        """See `Store.parents`."""
        with self._lock:
            ties = sorted(self._rows[job_id].ties.items()) if job_id in self._rows else []
            return [self._parent(job, tie) for job, tie in ties if not tie.spawned]

    # The rest runs under the lock.

    def _parent(self, job: int, tie: Tie) -> Parent:
        row = self._rows.get(job)
        last = row.endings.get(max(row.endings, default=0)) if row else None
        state = None if row is None else row.state
        return Parent(tie.uuid, tie.rule, state, last and last.how.result)

    def _check_parents(self, specs: Sequence[JobSpec]) -> None:
        known = set(self._ids)
        for spec in specs:
            lacking = [edge.parent for edge in spec.after if edge.parent not in known]
            if lacking and spec.uuid not in self._ids:
                text = f"after names job {lacking[0]}, which is not here: submit parents first"
                raise UsageError(text)
            known.add(spec.uuid)

    def _join(self, row: Row, stands_for: Mapping[UUID, UUID], new: Collection[int]) -> None:
        """Have a new job wait for its parents; those of the same submission count at once."""
        for parent, rule in row.spec.after:
            uuid = stands_for.get(parent, parent)
            job = self._ids[uuid]
            if job not in row.ties:
                counts = job in new and self._rows[job].state not in TERMINAL
                row.ties[job] = Tie(uuid, rule, self._clock() if counts else None)
                self._children[job].append(row)
        row.needs = needs_of(tie.rule for tie in row.ties.values())
        row.state = State.WAITING
        self._hold(row, reason=self._why(row))
        if row.held_for == MEMBERS and not row.ties:
            self._join_up(row)

    def _link(self, limit: int) -> int:
        found = [
            (child.id, job)
            for job, children in self._children.items()
            for child in children
            if child.ties[job].linked_at is None
        ]
        chosen = sorted(found)[:limit]
        for child, job in chosen:
            self._rows[child].ties[job].linked_at = self._clock()
        freed = self._tell({job for _, job in chosen})
        self._line_up(freed, {row.spec.key for row in freed if row.spec.key})
        return len(chosen)

    def _unlink(self, row: Row) -> None:
        for child in self._children.get(row.id, ()):
            if child.ties[row.id].decided_at is None:
                child.ties[row.id].linked_at = None

    def _tell(self, jobs: Iterable[int]) -> list[Row]:
        """Decide the linked edges of jobs that have ended; return who is free to start."""
        ended = deque(sorted(set(jobs)))
        freed: list[Row] = []
        while ended:
            job = ended.popleft()
            state = self._rows[job].state if job in self._rows else None
            if state is not None and state not in TERMINAL:
                continue
            for child in self._children.get(job, ()):
                sentence = self._weigh(child, child.ties[job], state)
                if sentence is Sentence.WAIT:
                    continue
                self._obey(child, sentence)
                if child.state in TERMINAL:
                    ended.append(child.id)
                elif child.state is not State.WAITING:  # an open batch waits on
                    freed.append(child)
        return [row for row in freed if row.state is State.PENDING]

    def _obey(self, child: Row, sentence: Sentence) -> None:
        """Do to a child what its edges say."""
        match sentence:
            case Sentence.RELEASE if child.spec.kind != BATCH:
                self._set_free(child)
            case Sentence.RELEASE:
                if child.held_for == MEMBERS:
                    self._join_up(child)
            case Sentence.SKIP | Sentence.FAIL:
                ending = Ending.SKIPPED if sentence is Sentence.SKIP else Ending.FAILED
                self._rule_out(child, Event.SKIP, ending, PARENT)
            case _:
                raise AssertionError(sentence)

    def _weigh(self, child: Row, tie: Tie, state: State | None) -> Sentence:
        if tie.linked_at is None or tie.decided_at is not None:
            return Sentence.WAIT
        tie.decided_at, tie.met = self._clock(), is_met(tie.rule, state)
        if child.state is not State.WAITING or child.needs is None:
            return Sentence.WAIT
        if tie.spawned is not (child.held_for == SPAWNED):  # left from before a revival
            return Sentence.WAIT
        child.needs = child.needs.after(tie.rule, met=tie.met)
        if child.spec.kind == BATCH:
            left = child.needs.all_left + child.needs.one_left
            return Sentence.WAIT if left else Sentence.RELEASE
        return child.needs.sentence(child.spec.ruled_out)

    def _why(self, row: Row) -> str:
        """Return why a new job waits that comes after others, or for a call."""
        if row.spec.kind == CALLBACK:
            return CALL
        if row.spec.kind != BATCH:
            return PARENTS
        return OPEN if decode_value(row.spec.args).get("open") else MEMBERS

    def _join_up(self, batch: Row) -> None:
        """End a batch all of whose edges have been decided."""
        state = end_of(
            Told(tie.rule, bool(tie.met), self._last_end(job)) for job, tie in batch.ties.items()
        )
        self._rule_out(batch, Event.JOIN, Ending(state.value), MEMBERS)

    def _last_end(self, job: int) -> State | None:
        ends = ends_of(self._rows[job]) if job in self._rows else ()
        return ends[-1][0] if ends else None

    def _set_free(self, row: Row) -> None:
        has_run = row.held_for == SPAWNED  # revived, perhaps, before its instant
        self._let_go(row)
        if not has_run and row.first_at is not None and row.first_at > self._clock():
            move(row, Event.RELEASE, State.SCHEDULED)
            self._hold(row, run_at=row.first_at)
        else:
            move(row, Event.RELEASE, State.PENDING)

    def _is_needed(self, row: Row) -> bool:
        """Whether somebody has yet to look at how this job has ended."""
        return any(
            child.ties[row.id].met is None
            or (child.spec.kind == BATCH and child.state is State.WAITING)
            for child in self._children.get(row.id, ())
        )

    def _forget(self, row: Row) -> None:
        """Drop what a deleted job waited for, and who waited for it and knows the answer."""
        for job in row.ties:
            if job in self._children:
                self._children[job].remove(row)
        self._children.pop(row.id, None)

    def _edges(self, row: Row) -> tuple[EdgeRecord, ...]:
        return tuple(self._edge(job, tie) for job, tie in sorted(row.ties.items()))

    def _edge(self, job: int, tie: Tie) -> EdgeRecord:
        row = self._rows.get(job)
        linked_at, decided_at = epoch(tie.linked_at), epoch(tie.decided_at)
        ended = row is None or row.state in TERMINAL
        ends = None if row is None else ends_of(row)
        return EdgeRecord(
            job, tie.rule, linked_at, decided_at, tie.met, ends, ended, tie.spawned, tie.added
        )
