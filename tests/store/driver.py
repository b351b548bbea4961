"""Random verbs, sent alike to several stores, whose answers must be equal and as expected."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from tests.store.model_lines import Key
from tests.store.operator_story import OperatorStory
from tests.store.schedule_story import LANES, hourly
from tests.store.world import World, end

from timeball.core.audit import audit_schedules
from timeball.core.dependencies import OURS, Edge, Rule, RuledOut
from timeball.core.limits import Scope
from timeball.core.records import Delivery, JobSpec, Settlement, Turn
from timeball.core.states import Ending
from timeball.errors import WorkerExpired
from timeball.store.base import NO_WORKER, JobFilter
from timeball.store.graph import ends_or_waits

GHOST = (-1, 1)
"""A turn of a job that never was."""


class Claim(NamedTuple):
    """One claim that one store has answered with some turns."""

    world: int
    worker: int
    request: UUID
    turns: list[Turn]


class Driver(OperatorStory):
    """Draws verbs, sends each to every world, and compares the answers."""

    def __init__(self, worlds: list[World], random: Random) -> None:
        super().__init__(worlds, random)
        self.workers: list[list[int]] = []
        self.turns: dict[Key, list[Turn]] = {}
        self.claims: list[Claim] = []
        self.said: list[tuple[int, Key, dict[str, Any]]] = []
        for queue, priority in LANES:  # so that lanes have the same order everywhere
            self.add(JobSpec(uuid=self.uuid(), kind="a", queue=queue, priority=priority))
        self.register()

    def run(self, steps: int) -> None:
        verbs: list[Callable[[], None]] = [
            *[self.submit] * 5,
            *[self.claim, self.settle] * 6,
            *[self.travel, self.promote] * 3,
            *[self.cancel, self.repeat_claim, self.fire, self.revive, self.unique] * 2,
            *[self.add_edges] * 3,
            *[self.delete, self.trim, self.lapse, self.crowd, self.move, self.snooze],
            *[self.expire, self.register, self.retire, self.beat, self.repeat_submit],
            *[self.limit, self.pause_queue] * 2,
            *[self.resume_queue] * 3,
            *[self.link, self.submit_child, self.submit_child, self.submit_child],
            *[self.declare, self.withdraw, self.repeat_fire, self.look],
            *[self.pause, self.resume, self.run_now, self.backfill, self.admit],
        ]
        for _ in range(steps):
            self.random.choice(verbs)()
            self.compare()
        self.audit()

    # What must hold after every step, and at the end

    def compare(self) -> None:
        """I1, I2, and every count: each job is where it should be, in every store."""
        expected = {
            n: (*bare_of(job), job.spec.queue, job.spec.priority)
            for n, job in enumerate(self.model.jobs)
            if not job.gone
        }
        for store in self.stores:
            found = {
                self.numbers[job.uuid]: (*bare_of(job), job.queue, job.priority)
                for job in store.jobs(JobFilter(limit=10_000))
            }
            wrong = {n: (found[n], expected[n]) for n in expected if found[n] != expected[n]}
            assert not wrong, f"job: (is, should be): {wrong}"
            assert len(found) == len(expected)
            assert store.counts() == self.model.counts()
        queues = [store.queues() for store in self.stores]
        self.same([[each._replace(counted_to=0) for each in found] for found in queues])

    def audit(self) -> None:
        for world in self.worlds:
            assert world.violations() == []
            assert world.stale() == self.model.stale
            found = audit_schedules(world.store.schedule_histories(), hourly)
            assert [str(violation) for violation in found] == []
        for jobs in zip(*(store.histories() for store in self.stores), strict=True):
            self.same([self.bare(history) for history in jobs])

    def bare(self, history: Any) -> tuple:
        """A history without the ids that each store makes for itself."""
        return (
            self.numbers[history.uuid],
            history.entries,
            [(grant.turn, grant.at) for grant in history.grants],
            [(row.turn, row.ending, row.at) for row in history.endings],
            history.held,
            history.cancels_requested_at,
            history.revivals,
            sorted((row.at, row.turn) for row in history.stale),
            [edge[1:] for edge in history.edges],
        )

    # Drawing

    def any_worker(self) -> int:
        """A worker, mostly one that lives."""
        alive = [w for w in range(len(self.workers)) if w not in self.model.dead]
        every = range(len(self.workers))
        return self.random.choice(alive if alive and self.likely(0.9) else every)

    # Verbs about jobs

    def add(self, spec: JobSpec) -> None:
        self.expect(spec)
        for store in self.stores:
            store.submit([spec])

    def submit(self) -> None:
        queue, priority = self.random.choice(LANES)
        later = self.now() + timedelta(seconds=self.random.choice([-5, 10, 30]))
        self.add(
            JobSpec(
                uuid=self.uuid(),
                kind=self.random.choice("aaab"),
                queue=queue,
                priority=priority,
                run_at=later if self.likely(0.4) else None,
                expires_at=later + timedelta(seconds=20) if self.likely(0.3) else None,
                max_retries=self.random.randrange(3),
                max_crashes=self.random.randrange(1, 3),
                delivery=self.random.choice(list(Delivery)),
                key=self.random.choice([None, None, "k1", "k2", "t1"]),
            )
        )

    def submit_child(self) -> None:
        here = [job.spec.uuid for job in self.model.jobs if not job.gone]
        parents = set(self.random.choices(here[-25:], k=self.random.randrange(1, 4)))
        queue, priority = self.random.choice(LANES)
        later = self.now() + timedelta(seconds=self.random.choice([-5, 10, 30]))
        self.add(
            JobSpec(
                uuid=self.uuid(),
                kind="a",
                queue=queue,
                priority=priority,
                run_at=later if self.likely(0.2) else None,
                expires_at=later + timedelta(seconds=20) if self.likely(0.1) else None,
                key=self.random.choice([None, None, None, "k1"]),
                after=tuple(
                    Edge(parent, self.random.choice(sorted(set(Rule) - OURS)))
                    for parent in here
                    if parent in parents
                ),
                ruled_out=self.random.choice(list(RuledOut)),
            )
        )

    def link(self) -> None:
        assert self.same([store.link(1_000) for store in self.stores]) == self.model.link()

    def repeat_submit(self) -> None:
        spec = self.random.choice([job for job in self.model.jobs if not job.gone]).spec
        for store in self.stores:
            assert store.submit([spec]) == [(store.get(spec.uuid).id, spec.uuid)]
        self.model.admit({spec.key})
        self.model.arrive()
        if ends_or_waits(spec):
            self.model.link()

    def limit(self) -> None:
        scope, name = self.random.choice(
            [*[(Scope.KEY, key) for key in ("k1", "k*", "t1")], *[(Scope.QUEUE, q) for q in "xy"]]
        )
        at_once = self.random.choice([None, 1, 2, 3])
        for store in self.stores:
            store.limit(scope, name, at_once)
            told = [limit[:4] for limit in store.limits()]
            assert told == self.model.limit(scope, name, at_once)

    def cancel(self) -> None:
        n = self.random.randrange(len(self.model.jobs))
        uuid = self.model.jobs[n].spec.uuid
        answer = self.same([store.cancel(uuid) for store in self.stores])
        assert answer == self.model.cancel(n)

    def promote(self) -> None:
        moved = self.model.promote()
        for promoted in [store.promote(1_000) for store in self.stores]:
            assert promoted.moved == moved
            assert promoted.next_due_s == pytest.approx(self.model.next_due(), abs=1e-4)

    def travel(self) -> None:
        seconds = self.random.choice([1, 7, 30, 3_600])
        for world in self.worlds:
            world.travel(seconds)
        self.model.now = self.now().timestamp()

    # Verbs of workers

    def register(self) -> None:
        kinds = set(self.random.choice(["a", "b", "ab"]))
        queues = set(self.random.choice(["x", "y", "xy", "xy"]))
        self.workers.append(
            [
                store.register("w", kinds=sorted(kinds), queues=sorted(queues), lease_s=30.0)
                for store in self.stores
            ]
        )
        self.model.register(len(self.workers) - 1, kinds, queues)

    def claim(self) -> None:
        worker, limit = self.any_worker(), self.random.randrange(1, 6)
        floors = [self.floors(worker, world) for world in range(len(self.worlds))]
        expected = self.model.claim(worker, limit)
        if expected is None:
            for store, number in zip(self.stores, self.workers[worker], strict=True):
                with pytest.raises(WorkerExpired):
                    store.claim(number, limit=limit, request=self.uuid(), floors={})
            return
        for world, floor in enumerate(floors):
            turns = self.claim_all(world, worker, limit, floor)
            found = [(self.numbers[t.uuid], t.turn) for t in turns]
            assert found == expected, f"{found}, not {expected}"
            for key, turn in zip(expected, turns, strict=True):
                self.turns.setdefault(key, []).append(turn)
        for key in expected:
            turn = self.same([self.plain(turn) for turn in self.turns[key]])
            assert turn[0] <= self.model.now

    def claim_all(self, world: int, worker: int, limit: int, floors: dict[int, int]) -> list[Turn]:
        """Claim until all that can be had is there: a store may give one lane at a time."""
        turns: list[Turn] = []
        while len(turns) < limit:
            request, number = self.uuid(), self.workers[worker][world]
            more = self.stores[world].claim(
                number, limit=limit - len(turns), request=request, floors=floors
            )
            if not more:
                break
            for turn in more:
                floors.setdefault(turn.lane, turn.seq)
            self.claims.append(Claim(world, worker, request, more))
            turns += more
        return turns

    def floors(self, worker: int, world: int) -> dict[int, int]:
        floors: dict[int, int] = {}
        for key in self.model.open_turns(worker):
            turn = self.turns[key][world]
            floors[turn.lane] = min(turn.seq, floors.get(turn.lane, turn.seq))
        return floors

    def plain(self, turn: Turn) -> tuple:
        """A turn without the ids that each store makes for itself."""
        facts = (*turn[3:6], *turn[7:13], turn.at_most_once, turn.ready_at)
        return (turn.granted_at, json.loads(turn.args), *facts)

    def repeat_claim(self) -> None:
        self.claims = [claim for claim in self.claims if not self.forgotten(claim)]
        if not self.claims:
            return
        world, worker, request, turns = self.random.choice(self.claims)
        store, number = self.stores[world], self.workers[worker][world]
        if worker in self.model.dead:
            with pytest.raises(WorkerExpired):
                store.claim(number, limit=5, request=request, floors={})
        else:
            assert store.claim(number, limit=5, request=request, floors={}) == turns

    def forgotten(self, claim: Claim) -> bool:
        return any(self.model.jobs[self.numbers[turn.uuid]].gone for turn in claim.turns)

    def settle(self) -> None:
        worker = self.any_worker()
        batch = [self.draw(worker) for _ in range(self.random.randrange(1, 5))]
        batch = [item for item in batch if item is not None]
        said = [self.words(key, how) for key, how in batch]
        expected = self.model.settle(
            worker,
            [
                (key, "seq" not in how, words[0])
                for (key, how), words in zip(batch, said, strict=True)
            ],
        )
        self.said += [(worker, key, how) for key, how in batch]
        for world, (store, number) in enumerate(
            zip(self.stores, self.workers[worker], strict=True)
        ):
            assert store.settle(number, [words[world] for words in said]) == expected

    def draw(self, worker: int) -> tuple[Key, dict[str, Any]] | None:
        """A turn, and what to say of it: mostly the truth."""
        mine = self.model.open_turns(worker)
        if mine and self.likely(0.7):
            key = self.random.choice(mine)
            return key, self.truth(worker, key)
        lie = self.random.choice(["again", "other", "theft", "forged", "ghost"])
        if lie == "ghost":
            return GHOST, {"ending": Ending.SUCCEEDED}
        if lie in {"again", "other"} and self.said:
            _, key, how = self.random.choice(self.said)
            return key, how if lie == "again" else {"ending": Ending.CANCELLED, "began": True}
        if lie == "forged" and mine:
            return self.random.choice(mine), {"ending": Ending.SUCCEEDED, "seq": 1_000_000}
        if lie == "theft":
            others = [k for k in self.turns if self.model.owner[k] != worker]
            return (self.random.choice(others), {"ending": Ending.SUCCEEDED}) if others else None
        return None

    def truth(self, worker: int, key: Key) -> dict[str, Any]:
        turn, job = self.turns[key][0], self.model.jobs[key[0]]
        if turn.kind not in self.model.kinds[worker]:
            return {"ending": Ending.RELEASED, "began": False, "reason": NO_WORKER}
        ways: list[dict[str, Any]] = [
            {"ending": Ending.SUCCEEDED, "result": "1"},
            {"ending": Ending.FAILED, "reason": "permanent"},
            {"ending": Ending.CANCELLED},
            {"ending": Ending.RELEASED, "began": False},
            {"ending": Ending.LOST, "reason": "process died"},
        ]
        if job.spec.delivery is not Delivery.AT_MOST_ONCE:
            delay_s = float(self.random.choice([0, 5, 40]))
            ways += [{"ending": Ending.SNOOZED, "delay_s": delay_s}, {"ending": Ending.RELEASED}]
            if turn.failures < turn.max_retries:
                ways += [{"ending": Ending.RETRIED, "delay_s": delay_s}] * 3
        return self.random.choice(ways)

    def words(self, key: Key, how: dict[str, Any]) -> list[Settlement]:
        """The same words for every store, each about its own turn."""
        if key == GHOST:
            return [Settlement(1, 1, 10**9, 1, Ending.SUCCEEDED) for _ in self.stores]
        how = dict(how)
        seq = {"seq": how.pop("seq")} if "seq" in how else {}
        return [end(turn, **how)._replace(**seq) for turn in self.turns[key]]

    def beat(self) -> None:
        every = range(len(self.workers))
        for world, store in enumerate(self.stores):
            numbers = {self.workers[w][world]: w for w in every}
            alive = {numbers[number] for number in store.beat(list(numbers))}
            assert alive == set(every) - self.model.dead
            assert {numbers[pulse.worker] for pulse in store.pulses()} == alive

    def expire(self) -> None:
        worker = self.any_worker()
        mine = self.model.open_turns(worker)
        begun = None if self.likely(0.3) else {key for key in mine if self.likely(0.5)}
        known = worker not in self.model.dead and self.likely(0.5)
        if known and self.likely(0.3):
            return self.expire_too_late(worker)
        expected = self.model.expire(worker, begun)
        for world, store in enumerate(self.stores):
            number = self.workers[worker][world]
            beats = {pulse.worker: pulse.beat for pulse in store.pulses()}
            pairs = begun and [self.turns[key][world][2:4] for key in begun]
            answer = store.expire(
                number,
                beat=beats[number] if known else None,
                begun=None if begun is None else [*(pairs or ()), (10**9, 1)],
            )
            assert answer == expected
        return None

    def expire_too_late(self, worker: int) -> None:
        for world, store in enumerate(self.stores):
            number = self.workers[worker][world]
            beats = {pulse.worker: pulse.beat for pulse in store.pulses()}
            store.beat([number])
            assert store.expire(number, beat=beats[number], begun=None) is None

    def retire(self) -> None:
        worker = self.any_worker()
        self.model.expire(worker, set())
        for store, number in zip(self.stores, self.workers[worker], strict=True):
            store.retire(number)


def bare_of(job: Any) -> tuple:
    """Where a job is and what it has gone through, in a store or in the model."""
    return job.state, job.turn, job.attempts, job.failures, job.crashes
