"""What the verbs about schedules should lead to, decided one occurrence after the other."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from tests.store.model import Model

from timeball.core.records import Decision, JobSpec, OccurrenceDecision, ScheduleSpec
from timeball.core.states import State
from timeball.store.base import occurrence_job


@dataclass
class Plan:
    """One schedule; jobs are known by their numbers."""

    spec: ScheduleSpec
    state: str = "active"
    fired: int = 0
    runs: list[int] = field(default_factory=list)
    queued: set[int] = field(default_factory=set)
    decided: dict[datetime, Decision] = field(default_factory=dict)

    @property
    def max_runs(self) -> int | None:
        return json.loads(self.spec.terms).get("max_runs")


@dataclass
class ScheduleModel:
    """All schedules, and what becomes of their jobs in `model`."""

    model: Model
    expect: Callable[[JobSpec], None]
    """Told of each job that there will be, once it is in the model."""

    plans: dict[str, Plan] = field(default_factory=dict)

    def declare(self, spec: ScheduleSpec) -> None:
        plan = self.plans.setdefault(spec.name, Plan(spec))
        if plan.state == "retired" or plan.spec.terms != spec.terms:
            plan.fired = 0
        plan.state = "paused" if plan.state == "paused" else "active"
        plan.spec = spec

    def open_runs(self, plan: Plan) -> list[int]:
        return [n for n in plan.runs if not self.model.jobs[n].over]

    def fire(self, name: str, decisions: list[OccurrenceDecision]) -> list[JobSpec]:
        """The jobs that come of it."""
        plan = self.plans[name]
        new = [each for each in decisions if each.nominal_at not in plan.decided]
        wanted = [each for each in new if each.decision is Decision.FIRED]
        ahead, added = self.open_runs(plan), list[JobSpec]()
        if plan.spec.overlap_runs == "replace" and wanted and self.more(plan):
            for n in ahead:
                self.model.stop(n)
                self.model.unlink(n)
        for each in new:
            meets = len(ahead) + len(added)
            if each in wanted and self.passes(plan, meets, last=each is wanted[-1]):
                plan.decided[each.nominal_at] = Decision.FIRED
                plan.fired += 1
                queued = plan.spec.overlap_runs == "queue_one" and meets > 0
                added.append(self.add(plan, each, queued=queued))
            else:
                plan.decided[each.nominal_at] = Decision.SKIPPED
        self.note(plan, ahead, len(added))
        return added

    def more(self, plan: Plan) -> bool:
        return plan.max_runs is None or plan.fired < plan.max_runs

    def passes(self, plan: Plan, meets: int, *, last: bool) -> bool:
        room = {"allow": True, "skip": meets == 0, "queue_one": meets < 2, "replace": last}
        return self.more(plan) and room[plan.spec.overlap_runs]

    def add(self, plan: Plan, each: OccurrenceDecision, *, queued: bool = False) -> JobSpec:
        spec = occurrence_job(plan.spec, each)
        self.expect(spec)
        n = len(self.model.jobs) - 1
        if queued:
            self.model.lanes[spec.queue, spec.priority].remove(n)
            plan.queued.add(n)
        return spec

    def note(self, plan: Plan, ahead: list[int], added: int) -> None:
        """The last `added` jobs of the model are runs of it."""
        if added:
            numbers = list(range(len(self.model.jobs)))[-added:]
            waits = plan.queued.intersection(self.open_runs(plan))
            latest = plan.spec.overlap_runs == "allow" and not waits.intersection(ahead)
            left = [n for n in ahead if not self.model.jobs[n].over]
            plan.runs = numbers[-1:] if latest else [*left, *numbers]

    def admit(self) -> int:
        first = [runs[0] for plan in self.plans.values() if (runs := self.open_runs(plan))]
        queued = set().union(*(plan.queued for plan in self.plans.values()))
        free = sorted(queued.intersection(first))
        for n in free:
            assert self.model.jobs[n].state is State.PENDING
            self.model.enter(n)
            self.model.arrive()
        for plan in self.plans.values():
            plan.queued -= set(free)
        return len(free)

    def run_now(self, name: str, spec: JobSpec) -> None:
        plan = self.plans[name]
        ahead = self.open_runs(plan)
        self.expect(spec)
        self.note(plan, ahead, 1)

    def backfill(self, name: str, instants: list[datetime]) -> list[datetime]:
        """Those that run by it."""
        plan = self.plans[name]
        fresh = [at for at in instants if plan.decided.get(at) is not Decision.FIRED]
        ahead = self.open_runs(plan)
        for at in fresh:
            self.add(plan, OccurrenceDecision(at, Decision.FIRED, None, "{}"))
            plan.decided[at] = Decision.FIRED
        self.note(plan, ahead, len(fresh))
        return fresh
