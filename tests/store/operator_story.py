"""What operators do in a random story: revive, delete, and keep jobs for some time."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from tests.store.schedule_story import LANES, ScheduleStory

from timeball.core.dependencies import OURS, Edge, Rule
from timeball.core.records import JobSpec
from timeball.core.states import State
from timeball.core.uniqueness import OnClash, Unique, UniqueUntil
from timeball.core.upkeep import DeleteAnswer, Keep
from timeball.errors import JobNotFound, QueueFull, UniqueClash, UsageError
from timeball.store.base import Store
from timeball.store.graph import ends_or_waits

KEEP = Keep(60.0, 4_000.0)


class OperatorStory(ScheduleStory):
    """Verbs about jobs that have ended."""

    def revive(self) -> None:
        numbers = self.some()
        answers = self.same([store.revive(self.uuids(numbers)) for store in self.stores])
        assert answers == self.model.revive(numbers)

    def one_that_waits(self) -> int:
        """Mostly: any job now and then."""
        waiting = [n for n, job in enumerate(self.model.jobs) if not job.over]
        return self.random.choice(waiting if waiting and self.likely(0.9) else self.some())

    def snooze(self) -> None:
        n, until = self.one_that_waits(), self.now() + timedelta(seconds=self.random.choice([0, 9]))
        uuid = self.model.jobs[n].spec.uuid
        answer = self.same([store.snooze(uuid, until) for store in self.stores])
        assert answer == self.model.snooze(n, until.timestamp())

    def move(self) -> None:
        n = self.one_that_waits()
        spec = self.model.jobs[n].spec
        queue, priority = self.random.choice(LANES)
        words = {
            "queue": None if queue == spec.queue else queue,
            "priority": None if priority == spec.priority else priority,
        }
        answer = self.same([store.move(spec.uuid, **words) for store in self.stores])
        assert answer == self.model.move(n, **words)

    def add_edges(self) -> None:
        waiting = [n for n, job in enumerate(self.model.jobs) if job.state is State.WAITING]
        n = self.random.choice(waiting if waiting and self.likely(0.9) else self.some())
        here = [m for m, job in enumerate(self.model.jobs) if not job.gone]
        rules = {
            m: self.random.choice(sorted(set(Rule) - OURS)) for m in self.random.choices(here, k=2)
        }
        edges = [Edge(self.model.jobs[m].spec.uuid, rule) for m, rule in rules.items()]
        wanted = self.model.add_edges(n, rules)
        for store in self.stores:
            if " " in wanted:
                with pytest.raises(UsageError, match=wanted):
                    store.add_edges(self.model.jobs[n].spec.uuid, edges)
            else:
                assert store.add_edges(self.model.jobs[n].spec.uuid, edges) == wanted

    def delete(self) -> None:
        numbers = self.some()
        answers = self.same([store.delete(self.uuids(numbers)) for store in self.stores])
        assert answers == self.model.delete(numbers)
        self.same([store.deleted() for store in self.stores])

    def trim(self) -> None:
        old = [n for n, job in enumerate(self.model.jobs) if job.over and self.is_old(n)]
        for store in self.stores:
            after: tuple[int, ...] | None = ()
            while after is not None:
                after = store.trim(KEEP, after=after, limit=7).after
            left = [n for n in old if self.exists(store, n)]
            # A store may keep for a while what was cancelled where nobody has come by since.
            assert not any((n, self.model.jobs[n].turn) in self.model.owner for n in left)
            assert set(store.delete(self.uuids(left))) <= {DeleteAnswer.DELETED}
        self.model.delete(old)

    def pause_queue(self) -> None:
        queue = self.random.choice("xy")
        answer = self.same([store.pause_queue(queue, "ann") for store in self.stores])
        assert answer == self.model.pause_queue(queue)

    def resume_queue(self) -> None:
        queue = self.random.choice("xy")
        answer = self.same([store.resume_queue(queue) for store in self.stores])
        assert answer == self.model.resume_queue(queue)

    def crowd(self) -> None:
        """Submit one more job to a queue that is full, or just not."""
        queue, priority = self.random.choice(LANES)
        depth = self.model.depth(queue)
        most = max(1, depth + self.random.choice([-1, 0, 1]))
        spec = JobSpec(uuid=self.uuid(), kind="a", queue=queue, priority=priority)
        full = depth + 1 > most
        if not full:
            self.expect(spec)
        for store in self.stores:
            store.bound_queue(queue, most)
            if full:
                with pytest.raises(QueueFull):
                    store.submit([spec])
            else:
                store.submit([spec])
            store.bound_queue(queue, None)

    def lapse(self) -> None:
        assert self.same([store.lapse(1_000) for store in self.stores]) == self.model.lapse()

    def unique(self) -> None:
        """Submit a job with a unique key, and see what becomes of it."""
        queue, priority = self.random.choice(LANES)
        unique = Unique(
            key=self.random.choice("kl"),
            until=self.random.choice(list(UniqueUntil)),
            on_clash=self.random.choice(list(OnClash)),
        )
        run_at = self.now() + timedelta(seconds=20) if self.likely(0.5) else None
        spec = JobSpec(uuid=self.uuid(), kind="a", queue=queue, priority=priority, run_at=run_at)
        self.submit_unique(replace(spec, unique=unique), unique)

    def submit_unique(self, spec: JobSpec, unique: Unique) -> None:
        holder = self.model.clash(spec)
        if holder is not None and unique.on_clash is OnClash.REPLACE and self.model.replace(holder):
            holder = None
        if holder is None:
            self.model.keys[unique.key] = len(self.model.jobs)
            self.expect(spec)
        wanted = spec.uuid if holder is None else self.model.jobs[holder].spec.uuid
        for store in self.stores:
            if holder is not None and unique.on_clash is not OnClash.IGNORE:
                with pytest.raises(UniqueClash, match=str(wanted)):
                    store.submit([spec])
            else:
                assert [added.uuid for added in store.submit([spec])] == [wanted]
        clashed = holder is not None and unique.on_clash is not OnClash.IGNORE
        if ends_or_waits(spec) and not clashed:
            self.model.link()

    def is_old(self, n: int) -> bool:
        job = self.model.jobs[n]
        if job.gone or self.model.is_needed(n):
            return False
        ended_at = self.same([store.get(job.spec.uuid).ended_at for store in self.stores])
        kept_s = KEEP.succeeded_s if job.state is State.SUCCEEDED else KEEP.others_s
        assert kept_s is not None
        return bool(ended_at <= self.now() - timedelta(seconds=kept_s))

    def exists(self, store: Store, n: int) -> bool:
        try:
            return bool(store.get(self.model.jobs[n].spec.uuid))
        except JobNotFound:
            return False

    def some(self) -> list[int]:
        """Some jobs, mostly ended ones; one may come twice."""
        every = range(len(self.model.jobs))
        over = [n for n in every if self.model.jobs[n].over]
        return self.random.choices(over or every, k=2) + self.random.choices(every, k=1)

    def uuids(self, numbers: list[int]) -> list[UUID]:
        return [self.model.jobs[n].spec.uuid for n in numbers]
