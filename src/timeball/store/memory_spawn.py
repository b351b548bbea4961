"""Jobs of the memory store that wait for others which they have spawned."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from uuid import UUID

from timeball.core.batches import BATCH
from timeball.core.dependencies import (
    ONE_OF,
    PARENTS_MAX,
    Awaited,
    Edge,
    EdgesAnswer,
    Needs,
    Rule,
    needs_of,
)
from timeball.core.records import JobSpec, Settlement, Verdict
from timeball.core.states import TERMINAL, Ending, Event, State
from timeball.core.uniqueness import OnClash
from timeball.errors import UsageError
from timeball.store.graph import (
    LINK_MAX,
    SPAWNS,
    WOULD_WAIT,
    comes_after,
    cycle_text,
    links_of,
)
from timeball.store.memory_graph import PARENTS, MemoryGraph
from timeball.store.memory_keys import MemoryKeys
from timeball.store.memory_rows import Row, Tie

_PASSING = frozenset({Ending.RELEASED, Ending.LOST, Ending.MOVED})
"""Endings that change nothing about what a job has done before."""


class MemorySpawn(MemoryGraph, MemoryKeys, ABC):
    """Spawning: added with the end of the turn that asks for it, or not at all."""

    @abstractmethod
    def settle(self, worker: int, settlements: Sequence[Settlement]) -> list[Verdict]:
        """See `Store.settle`."""

    @abstractmethod
    def _record(self, worker: int, said: Settlement) -> Verdict: ...

    @abstractmethod
    def _check_depth(self, specs: Sequence[JobSpec]) -> None: ...

    @abstractmethod
    def _add(self, spec: JobSpec, *, queued: bool = False) -> int: ...

    @abstractmethod
    def _free(self, row: Row) -> set[str]: ...

    @abstractmethod
    def _follow(
        self, row: Row, end: Settlement, event: Event, *, crashed: bool = False
    ) -> None: ...

    def spawn(self, worker: int, said: Settlement) -> Verdict:
        """See `Store.spawn`."""
        with self._lock:
            row = self._rows.get(said.job_id)
            if row is None or not row.unwanted:
                return self._spawn(worker, said)
        plain = said._replace(ending=Ending.CANCELLED, reason="requested", result=None, spawned=())
        return self.settle(worker, [plain])[0]

    def add_edges(self, job: UUID, after: Sequence[Edge]) -> EdgesAnswer:
        """See `Store.add_edges`."""
        with self._lock:
            row = self._rows.get(self._ids.get(job, 0))
            if row is None:
                return EdgesAnswer.NOT_FOUND
            if row.state is not State.WAITING or row.held_for != PARENTS or row.turn > 1:
                return EdgesAnswer.REFUSED
            self._check_edges(row, after)
            parents = [self._ids[edge.parent] for edge in after]
            self._check_cycle(row, WOULD_WAIT, parents, again=True)
            self._add_ties(row, after)
            for _ in range(1 + len(after) // LINK_MAX):
                self._link(LINK_MAX)
            return EdgesAnswer.ADDED

    def _check_edges(self, row: Row, after: Sequence[Edge]) -> None:
        lacking = [edge.parent for edge in after if edge.parent not in self._ids]
        if lacking:
            text = f"after names job {lacking[0]}, which is not here: submit parents first"
            raise UsageError(text)
        ties = {tie.uuid: tie.rule for tie in row.ties.values()}
        for parent, rule in after:
            if (known := ties.setdefault(parent, rule)) is not rule:
                text = f"job {parent} has the rule {known} there already"
                raise UsageError(f"{text}: leave it out, or write the same rule")
        if len(ties) > PARENTS_MAX:
            text = f"job {row.spec.uuid} would have more than {PARENTS_MAX:,} parents"
            raise UsageError(f"{text}: have some come after each other")

    def _add_ties(self, row: Row, after: Sequence[Edge]) -> None:
        assert row.needs is not None, "it waits for parents"
        new = {self._ids[parent]: Tie(parent, rule, None, added=True) for parent, rule in after}
        new = {job: tie for job, tie in new.items() if job not in row.ties}
        more = needs_of(tie.rule for tie in new.values())
        had_ones = any(tie.rule in ONE_OF for tie in row.ties.values())
        row.needs = row.needs.with_more(more, had_ones=had_ones)
        row.ties |= new
        for job in new:
            self._children[job].append(row)

    def _spawn(self, worker: int, said: Settlement) -> Verdict:
        verdict = self._record(worker, said)
        if verdict is not Verdict.ACCEPTED:
            return verdict
        row, specs = self._rows[said.job_id], said.spawned
        try:
            self._check_parents(specs)
            self._check_cycle(row, SPAWNS, self._starts(specs))
            self._check_depth(specs)
            known = set(self._ids)
            uuids = self._take_keys(specs)
        except BaseException:
            del row.endings[said.turn]
            raise
        self._add_all(specs, uuids)
        self._untie(row)
        for uuid in uuids:
            self._tie(row, uuid, known)
        self._enroll(row, [self._ids[uuid] for uuid in uuids if uuid not in known])
        left = sum(tie.spawned and tie.decided_at is None for tie in row.ties.values())
        row.needs = Needs(left, 0, one_met=True)
        keys = self._free(row) | {spec.key for spec in specs if spec.key}
        self._follow(row, said, Event.AWAIT)
        self._line_up((), keys)
        for _ in range(1 + len(links_of(specs))):
            self._link(LINK_MAX)
        return verdict

    def _add_all(self, specs: Sequence[JobSpec], uuids: Sequence[UUID]) -> None:
        stands_for = {spec.uuid: uuid for spec, uuid in zip(specs, uuids, strict=True)}
        new: set[int] = set()
        for spec in specs:
            if stands_for[spec.uuid] != spec.uuid or spec.uuid in self._ids:
                continue
            row = self._rows[self._add(spec)]
            if comes_after(spec):
                self._join(row, stands_for, new)
            new.add(row.id)

    def _untie(self, row: Row) -> None:
        """Forget what a job spawned before it was revived."""
        for job in [job for job, tie in row.ties.items() if tie.spawned]:
            del row.ties[job]
            if job in self._children:
                self._children[job].remove(row)

    def _tie(self, row: Row, uuid: UUID, known: Collection[UUID]) -> None:
        """Have a job wait for one that it spawns; whether one that was there has ended is asked."""
        job = self._ids[uuid]
        if job not in row.ties:
            self._children[job].append(row)
        counts = uuid not in known and self._rows[job].state not in TERMINAL
        linked_at = self._clock() if counts else None
        row.ties[job] = Tie(uuid, Rule.ALL_DONE, linked_at, spawned=True)

    def _enroll(self, row: Row, spawned: Sequence[int]) -> None:
        """Have the batches that a job is in wait for what it has spawned."""
        for batch in self._children[row.id]:
            home = batch.ties[row.id]
            if home.rule is not Rule.MEMBER or home.met is not None:
                continue
            for job in spawned:
                if job not in batch.ties:
                    batch.ties[job] = Tie(self._rows[job].spec.uuid, Rule.MEMBER, self._clock())
                    self._children[job].append(batch)
            batch.needs = needs_of(tie.rule for tie in batch.ties.values() if tie.met is None)

    def _check_cycle(
        self, row: Row, does: str, starts: Iterable[int], *, again: bool = False
    ) -> None:
        came_from: dict[int, int] = dict.fromkeys(starts, 0)
        queue = deque(came_from)
        while queue and row.id not in came_from:
            job = queue.popleft()
            for parent in self._waits_for(job, again=again):
                if parent not in came_from:
                    came_from[parent] = job
                    queue.append(parent)
        if row.id in came_from:
            path = [row.id]
            while before := came_from[path[-1]]:
                path.append(before)
            raise UsageError(cycle_text(row.id, does, path[::-1]))

    def _starts(self, specs: Sequence[JobSpec]) -> Iterable[int]:
        """Give the jobs that were there before and that spawned ones are, or wait for."""
        for spec in specs:
            yield from (self._ids[edge.parent] for edge in spec.after if edge.parent in self._ids)
            if spec.uuid in self._ids:
                yield self._ids[spec.uuid]
            elif spec.unique is not None and spec.unique.on_clash is OnClash.IGNORE:
                holder = self._clash(spec, {})
                if holder is not None:
                    yield self._ids[holder]

    def _waits_for(self, job: int, *, again: bool) -> Iterable[int]:
        """Return what a job waits for, or would once more where its batch is tried again."""
        row = self._rows.get(job)
        if row is None:
            return ()
        waits = row.state is State.WAITING
        once_more = again and (row.state is not State.SUCCEEDED or row.spec.kind == BATCH)
        return sorted(
            parent
            for parent, tie in row.ties.items()
            if (once_more and not tie.spawned) or (waits and tie.decided_at is None)
        )

    def _awaited(self, row: Row) -> Awaited | None:
        """Return what a job has that has waited for those it spawned, None for any other."""
        past = [turn for turn, end in row.endings.items() if end.how.ending not in _PASSING]
        last = row.endings[max(past)].how if past else None
        if last is None or last.ending is not Ending.AWAITED:
            return None
        bad = {State.FAILED, State.CANCELLED}
        spawned = (self._rows.get(job) for job, tie in row.ties.items() if tie.spawned)
        failed = [str(each.spec.uuid) for each in spawned if each is not None and each.state in bad]
        return Awaited(last.result, min(failed, default=None))
