"""What the end of a parent should do to its children, worked out from all edges each time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from timeball.core.dependencies import Rule
from timeball.core.states import Ending, State

if TYPE_CHECKING:
    from tests.store.model_lines import Thing

MET_BY = {
    "all_success": "succeeded",
    "one_success": "succeeded",
    "none_failed": "succeeded skipped",
    "one_failed": "failed cancelled",
    "all_done": "succeeded failed cancelled skipped",
    "always": "succeeded failed cancelled skipped",
}


@dataclass
class Tie:
    """One edge."""

    rule: Rule
    linked: bool = False
    met: bool | None = None


class GraphModel:
    """The edges of all jobs."""

    now: float
    jobs: list[Thing]

    def rule_out(self, n: int, ending: Ending) -> None:
        raise NotImplementedError

    def enter(self, n: int) -> None:
        raise NotImplementedError

    def admit(self, keys: set[str | None]) -> None:
        raise NotImplementedError

    def arrive(self) -> int:
        raise NotImplementedError

    def link(self) -> int:
        found = [
            (parent, tie)
            for job in self.jobs
            for parent, tie in job.edges.items()
            if not tie.linked and not job.gone
        ]
        for _, tie in found:
            tie.linked = True
        self.admit(self.tell([parent for parent, _ in found]))
        self.arrive()
        return len(found)

    def add_edges(self, n: int, rules: dict[int, Rule]) -> str:
        """What becomes of edges that are added; more than a word where it is an error."""
        job = self.jobs[n]
        if job.gone:
            return "not_found"
        if job.state is not State.WAITING or job.turn > 1:
            return "refused"
        if any(parent in job.edges and job.edges[parent].rule != rules[parent] for parent in rules):
            return "has the rule"
        if any(self.waits_for(parent, n) for parent in rules):
            return "a cycle"
        job.edges |= {p: Tie(rule) for p, rule in rules.items() if p not in job.edges}
        self.link()
        return "added"

    def waits_for(self, n: int, other: int) -> bool:
        """Whether one job waits for another, or would once more, by whatever way, or is it."""
        job = self.jobs[n]
        edges = () if job.gone or job.state is State.SUCCEEDED else job.edges
        return n == other or any(self.waits_for(parent, other) for parent in edges)

    def unlink(self, n: int) -> None:
        for job in self.jobs:
            if n in job.edges and job.edges[n].met is None:
                job.edges[n].linked = False

    def is_needed(self, n: int) -> bool:
        return any(job.edges[n].met is None for job in self.jobs if n in job.edges and not job.gone)

    def tell(self, parents: Iterable[int]) -> set[str | None]:
        """Decide the edges of those that have ended; return the keys of who may start."""
        keys: set[str | None] = set()
        todo = list(parents)
        for parent in todo:
            open_ = [n for n, job in enumerate(self.jobs) if self.waits(job, parent)]
            for n in open_ if self.jobs[parent].over else ():
                job = self.jobs[n]
                tie = job.edges[parent]
                tie.met = str(self.jobs[parent].state) in MET_BY[tie.rule].split()
                if job.state is State.WAITING and self.decide(n):
                    keys.add(job.spec.key)
                elif job.over:
                    todo.append(n)
        return keys

    def waits(self, job: Thing, parent: int) -> bool:
        tie = job.edges.get(parent)
        return tie is not None and tie.linked and tie.met is None and not job.gone

    def decide(self, n: int) -> bool:
        """Bring a waiting job to where its edges lead; return whether it may start now."""
        job = self.jobs[n]
        ones = [tie.met for tie in job.edges.values() if tie.rule.startswith("one_")]
        alls = [tie.met for tie in job.edges.values() if not tie.rule.startswith("one_")]
        lost = False in alls or (ones != [] and set(ones) == {False})
        open_ = None in alls + ones
        if lost and job.spec.ruled_out != "run":
            skip = job.spec.ruled_out == "skip"
            self.rule_out(n, Ending.SKIPPED if skip else Ending.FAILED)
            return False
        free = not open_ if lost else None not in alls and (True in ones or not ones)
        if free and job.spec.run_at is not None and job.spec.run_at.timestamp() > self.now:
            job.state, job.due = State.SCHEDULED, job.spec.run_at.timestamp()
            return False
        if free:
            self.enter(n)
        return free
