"""What every random story has: its worlds, dice and model; and the verbs about schedules."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

from tests.store.model import Model
from tests.store.schedule_model import ScheduleModel
from tests.store.world import World, schedule

from timeball.client import Client
from timeball.core.history import ScheduleRecord
from timeball.core.records import (
    Decision,
    Firing,
    JobSpec,
    OccurrenceDecision,
    OverlapRuns,
    Schedule,
    Standing,
)
from timeball.store.base import schedule_job

HOUR = timedelta(hours=1)
NAMES = ("s1", "s2")
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
        self.plans = ScheduleModel(self.model, self.expect)
        self.clients = [Client(store) for store in self.stores]

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
            self.random.choice(NAMES),
            args=self.random.choice(["{}", '{"n":1}']),
            terms=self.random.choice(["{}", "{}", '{"max_runs":3}']),
            overlap_runs=self.random.choice(list(OverlapRuns)),
            queue=queue,
            priority=priority,
        )
        cursor = self.now().replace(minute=0, second=0, microsecond=0)
        self.plans.declare(spec)
        for store in self.stores:
            store.declare(spec, Standing(cursor, cursor + HOUR))

    def withdraw(self) -> None:
        keep = [name for name in NAMES if self.likely(0.7)]
        gone = self.same([sorted(store.withdraw("app", keep=keep)) for store in self.stores])
        for name in gone:
            self.plans.plans[name].state = "retired"

    def listed(self, *states: str) -> str | None:
        """A schedule in one of these states."""
        plans = self.plans.plans.items()
        names = [name for name, plan in plans if plan.state in states]
        return self.random.choice(names) if names else None

    def pause(self) -> None:
        name = self.listed("active", "paused")
        if name:
            self.plans.plans[name].state = "paused"
            for client in self.clients:
                client.pause_schedule(name)

    def resume(self) -> None:
        name = self.listed("paused")
        if name is None:
            return
        cursor = self.same([store.schedule(name).cursor for store in self.stores])
        backfill = self.likely(0.5)
        decision = Decision.FIRED if backfill else Decision.SKIPPED
        hours = int((self.now() - cursor) / HOUR)
        decisions = [
            OccurrenceDecision(cursor + n * HOUR, decision, "paused", "{}")
            for n in range(1, hours + 1)
        ]
        self.plans.fire(name, decisions)
        self.plans.plans[name].state = "active"
        for client in self.clients:
            client.resume_schedule(name, backfill=backfill)

    def run_now(self) -> None:
        name = self.listed("active", "paused")
        if name:
            spec = schedule_job(self.plans.plans[name].spec, self.uuid(), "{}")
            self.plans.run_now(name, spec)
            for store in self.stores:
                assert store.run_now(store.schedule(name), spec) == store.get(spec.uuid).id

    def backfill(self) -> None:
        name = self.listed("active", "paused")
        if name is None:
            return
        start, end = self.now() - self.random.randrange(1, 6) * HOUR, self.now()
        first = start.replace(minute=0, second=0, microsecond=0)
        instants = [first + n * HOUR for n in range(7) if start <= first + n * HOUR <= end]
        dry = [client.backfill(name, start, end, dry_run=True) for client in self.clients]
        fired = self.plans.backfill(name, instants)
        for client, beforehand in zip(self.clients, dry, strict=True):
            done = client.backfill(name, start, end)
            assert list(done.fired) == fired == list(beforehand.fired)
            assert sorted(done.fired + done.already) == instants

    def admit(self) -> None:
        admitted = self.plans.admit()
        assert [store.admit(100) for store in self.stores] == [admitted] * len(self.stores)

    def look(self) -> None:
        """The records of what was decided agree with each other and with the model."""
        for name, plan in self.plans.plans.items():
            if plan.state == "retired":
                continue
            held = [store.schedule(name) for store in self.stores]
            found = self.same([(s.state, s.fired, s.fired_at, s.last_job) for s in held])
            assert found[:2] == (plan.state, plan.fired)
            pages = [store.occurrences(name, limit=1_000) for store in self.stores]
            self.same(pages)
            assert {o.nominal_at: o.decision for o in pages[0]} == plan.decided
            part = self.same([store.occurrences(name, limit=2) for store in self.stores])
            assert part == pages[0][:2]

    def fire(self) -> None:
        due = [world.due(1) for world in self.worlds]
        self.same([[(s.spec.name, s.cursor, s.next_at) for s in found] for _, found in due])
        now, found = due[0]
        if not found:
            return
        hours = int((now - found[0].cursor) / HOUR)
        decisions = [self.decide(found[0].cursor + n * HOUR) for n in range(1, hours + 1)]
        firing = Decided([read[0] for _, read in due], decisions, decisions[-1].nominal_at)
        self.firings.append(firing)
        specs = self.plans.fire(found[0].spec.name, decisions)
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
