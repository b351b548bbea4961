"""What every random story has: its worlds, dice and model; and the verbs about schedules."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from tests.store.model import Model
from tests.store.world import World, schedule

from timeball.core.history import ScheduleRecord
from timeball.core.records import (
    Decision,
    Firing,
    JobSpec,
    OccurrenceDecision,
    Schedule,
    Standing,
)
from timeball.store.base import occurrence_job

HOUR = timedelta(hours=1)
LANES = [("x", 5), ("y", 5), ("x", 8), ("y", 2)]


class Decided(NamedTuple):
    """What was decided about a schedule as each store showed it."""

    read: list[Schedule]
    decisions: list[OccurrenceDecision]
    cursor: datetime


class ScheduleStory:
    """Schedules are declared, withdrawn and fired; jobs come of it, and nothing else happens.

    A job is known by its number, a worker too, a turn by (number of its job, turn): the
    stores have ids of their own.
    """

    def __init__(self, worlds: list[World], random: Random) -> None:
        self.worlds, self.random = worlds, random
        self.stores = [world.store for world in worlds]
        self.model = Model(self.now().timestamp())
        self.serial = count(1)
        self.numbers: dict[UUID, int] = {}
        self.firings: list[Decided] = []

    def same(self, answers: list[Any]) -> Any:
        assert all(answer == answers[0] for answer in answers), f"the stores differ: {answers}"
        return answers[0]

    def now(self) -> datetime:
        return self.worlds[0].store.now()

    def uuid(self) -> UUID:
        return UUID(int=next(self.serial), version=4)

    def likely(self, chance: float) -> bool:
        return self.random.random() < chance

    def expect(self, spec: JobSpec) -> None:
        """There will be one more job."""
        assert spec.uuid not in self.numbers, "I16: an occurrence fires once"
        self.numbers[spec.uuid] = len(self.model.jobs)
        self.model.submit(spec)

    def declare(self) -> None:
        queue, priority = self.random.choice(LANES)
        spec = schedule(
            self.random.choice(["s1", "s2"]),
            args=self.random.choice(["{}", '{"n":1}']),
            queue=queue,
            priority=priority,
        )
        cursor = self.now().replace(minute=0, second=0, microsecond=0)
        for store in self.stores:
            store.declare(spec, Standing(cursor, cursor + HOUR))

    def withdraw(self) -> None:
        keep = [name for name in ("s1", "s2") if self.likely(0.7)]
        self.same([sorted(store.withdraw("app", keep=keep)) for store in self.stores])

    def fire(self) -> None:
        due = [store.due_schedules(1) for store in self.stores]
        self.same([[(s.spec.name, s.cursor, s.next_at) for s in found] for _, found in due])
        now, found = due[0]
        if not found:
            return
        hours = int((now - found[0].cursor) / HOUR)
        decisions = [self.decide(found[0].cursor + n * HOUR) for n in range(1, hours + 1)]
        firing = Decided([read[0] for _, read in due], decisions, decisions[-1].nominal_at)
        self.firings.append(firing)
        specs = [
            occurrence_job(found[0].spec, d) for d in decisions if d.decision is Decision.FIRED
        ]
        for spec in specs:
            self.expect(spec)
        for store, ids in zip(self.stores, self.send(firing), strict=True):
            assert ids == [store.get(spec.uuid).id for spec in specs]

    def decide(self, nominal_at: datetime) -> OccurrenceDecision:
        decision = self.random.choice(list(Decision))
        reason = "missed" if decision is Decision.SKIPPED else None
        return OccurrenceDecision(nominal_at, decision, reason, "{}")

    def send(self, firing: Decided) -> list[list[int] | None]:
        cursor = firing.cursor
        return [
            store.fire([Firing(read, firing.decisions, Standing(cursor, cursor + HOUR))])[0]
            for store, read in zip(self.stores, firing.read, strict=True)
        ]

    def repeat_fire(self) -> None:
        """What was read before the last firing has changed since."""
        if self.firings:
            answers = self.send(self.random.choice(self.firings))
            assert answers == [None] * len(self.stores)


def hourly(record: ScheduleRecord) -> Iterator[datetime]:
    at = record.activated_at
    while True:
        at += HOUR
        yield at
