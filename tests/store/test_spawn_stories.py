"""Jobs that spawn, wait, fail, are cancelled and revived at random: every store tells the same."""

from __future__ import annotations

from random import Random
from uuid import UUID

import pytest
from tests.store.world import World, end, memory_world

from timeball.core.dependencies import Edge, Rule, RuledOut
from timeball.core.records import JobSpec, Turn
from timeball.core.states import TERMINAL, Ending
from timeball.core.uniqueness import Unique
from timeball.errors import UsageError
from timeball.store.base import JobFilter

RULES = (Rule.ALL_SUCCESS, Rule.ALL_DONE, Rule.NONE_FAILED, Rule.ONE_SUCCESS, Rule.ONE_FAILED)


class Story:
    """Draws what happens next, and has it happen in every world."""

    def __init__(self, worlds: list[World], random: Random) -> None:
        self.worlds, self.random = worlds, random
        self.uuids: list[UUID] = []
        self.running: list[list[Turn]] = []
        """Turns, one for each world."""
        self.workers = [world.worker() for world in worlds]
        self.refused = self.spawned = 0

    def run(self, steps: int) -> None:
        verbs = [self.submit, *[self.claim] * 2, *[self.settle] * 2, *[self.spawn] * 3]
        verbs += [self.cancel, self.revive]
        for _ in range(steps):
            self.random.choice(verbs)()
            self.compare()
        for _ in range(1_000):
            self.claim()
            if not self.running:
                break
            self.settle()
            self.compare()
        assert self.worlds[0].store.counts().keys() <= TERMINAL
        for world in self.worlds:
            assert world.violations(quiesced=True) == []

    def compare(self) -> None:
        every = JobFilter(limit=10_000)
        first, *others = (
            {(job.uuid, job.state, job.reason, job.turn, job.attempts) for job in jobs}
            for jobs in (world.store.jobs(every) for world in self.worlds)
        )
        for other in others:
            assert first == other or not sorted(map(str, first ^ other))[:4]

    def spec(self, earlier: list[UUID]) -> JobSpec:
        known = [*self.uuids[-12:], *earlier]
        parents = {*self.random.choices(known, k=self.random.randrange(3))} if known else set()
        return JobSpec(
            uuid=UUID(int=self.random.getrandbits(128)),
            kind="a",
            after=tuple(Edge(p, self.random.choice(RULES)) for p in known if p in parents),
            ruled_out=self.random.choice(list(RuledOut)),
            unique=Unique(key="u") if self.random.random() < 0.1 else None,
            key="k" if self.random.random() < 0.1 else None,
        )

    def specs(self, count: int) -> list[JobSpec]:
        specs: list[JobSpec] = []
        for _ in range(count):
            specs.append(self.spec([each.uuid for each in specs]))
        return specs

    def submit(self) -> None:
        specs = self.specs(self.random.randrange(1, 4))
        self.uuids += {job.uuid: 0 for world in self.worlds for job in world.store.submit(specs)}
        self.uuids = list(dict.fromkeys(self.uuids))

    def claim(self) -> None:
        granted = [world.claim(w) for world, w in zip(self.worlds, self.workers, strict=True)]
        assert len({tuple(turn.uuid for turn in turns) for turns in granted}) == 1
        self.running += [list(turns) for turns in zip(*granted, strict=True)]

    def turns(self) -> list[Turn]:
        return self.running.pop(self.random.randrange(len(self.running)))

    def settle(self) -> None:
        if not self.running:
            return
        turns = self.turns()
        told = {turn.awaited for turn in turns}
        assert len(told) == 1
        (awaited,) = told
        how = self.random.choice([Ending.SUCCEEDED] * 3 + [Ending.FAILED])
        if awaited is not None:
            how = Ending.FAILED if awaited.failed else Ending.SUCCEEDED
        for world, worker, turn in zip(self.worlds, self.workers, turns, strict=True):
            world.settle(worker, end(turn, how))

    def spawn(self) -> None:
        if not self.running or self.running[0][0].awaited is not None:
            return
        turns, specs = self.running[0], self.specs(self.random.randrange(1, 4))
        answers = []
        for world, worker, turn in zip(self.worlds, self.workers, turns, strict=True):
            try:
                said = end(turn, Ending.AWAITED, spawned=tuple(specs))
                answers.append(str(world.store.spawn(worker, said)))
            except UsageError as error:
                answers.append("cycle" if "a cycle" in str(error) else str(error))
        assert len(set(answers)) == 1, answers
        if answers[0] == "cycle":
            self.refused += 1
            return
        assert answers[0] == "accepted"
        self.running.pop(0)
        self.spawned += 1
        there = {job.uuid for job in self.worlds[0].store.jobs(JobFilter(limit=10_000))}
        self.uuids += [each.uuid for each in specs if each.uuid in there]

    def cancel(self) -> None:
        if self.uuids:
            uuid = self.random.choice(self.uuids)
            assert len({world.store.cancel(uuid) for world in self.worlds}) == 1

    def revive(self) -> None:
        if self.uuids:
            uuid = self.random.choice(self.uuids)
            assert len({world.store.revive([uuid])[0] for world in self.worlds}) == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_store_tells_the_same_story(worlds: list[World], seed: int) -> None:
    story = Story(worlds, Random(seed))
    story.run(60)
    assert story.spawned > 0


@pytest.mark.slow
def test_no_story_leaves_a_job_waiting_for_ever_and_some_would_have_been_cycles() -> None:
    refused = 0
    for seed in range(25):
        story = Story([memory_world()], Random(100 + seed))
        story.run(60)
        refused += story.refused
    assert refused > 0
