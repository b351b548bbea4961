"""Who lines up where, and who is next: the part of the model that is about queues and limits."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from tests.store.graph_model import Tie

from timeball.core.records import JobSpec
from timeball.core.states import Ending, State

FINAL = {
    Ending.SUCCEEDED: State.SUCCEEDED,
    Ending.FAILED: State.FAILED,
    Ending.CANCELLED: State.CANCELLED,
    Ending.EXPIRED: State.SKIPPED,
    Ending.SKIPPED: State.SKIPPED,
}
Key = tuple[int, int]


@dataclass
class Thing:
    """One job."""

    spec: JobSpec
    state: State = State.PENDING
    turn: int = 1
    attempts: int = 0
    failures: int = 0
    crashes: int = 0
    due: float = 0.0
    orphan_since: float | None = None
    waits_since: float | None = None
    """For room among the jobs of its key."""
    ready: float = 0.0
    """Since when it has been in its lane."""
    asked: bool = False
    forgiven: tuple[int, int] = (0, 0)
    """Failures and crashes from before it was last revived."""
    deadline: bool = True
    """Whether its deadline, if it has one, still counts."""
    edges: dict[int, Tie] = field(default_factory=dict)
    """By parent."""
    gone: bool = False
    """Deleted: it stays in this list, as the terminal job that it was."""

    @property
    def over(self) -> bool:
        return self.state in FINAL.values()


@dataclass
class Lines:
    """Jobs in their lanes, and what counts against which limit."""

    now: float
    jobs: list[Thing] = field(default_factory=list)
    lanes: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    paused: set[str] = field(default_factory=set)
    queues: dict[int, set[str]] = field(default_factory=dict)
    dead: set[int] = field(default_factory=set)
    owner: dict[Key, int] = field(default_factory=dict)
    endings: dict[Key, tuple[int | None, Ending]] = field(default_factory=dict)
    limits: dict[tuple[str, str], int] = field(default_factory=dict)
    counted: dict[tuple[str, str], set[int]] = field(default_factory=lambda: defaultdict(set))
    """Against the limit of a key or a queue: which jobs."""
    coming: list[int] = field(default_factory=list)
    """Who is about to line up: all who do so by one call are put in the order of their ids."""

    def arrive(self) -> int:
        for n in sorted(self.coming):
            spec = self.jobs[n].spec
            self.jobs[n].ready = self.now
            self.lanes.setdefault((spec.queue, spec.priority), []).append(n)
        count, self.coming = len(self.coming), []
        return count

    # Limits

    def limit_of(self, key: str) -> int:
        """A key's own limit, else that of a name with *, else 1."""
        return self.limits.get(("key", key), self.limits.get(("key", f"{key[0]}*"), 1))

    def admit(self, keys: set[str | None]) -> None:
        served = set().union(*(q for w, q in self.queues.items() if w not in self.dead), set())
        served -= self.paused
        for key in keys - {None}:
            waiting = [
                (-job.spec.priority, job.waits_since, n)
                for n, job in enumerate(self.jobs)
                if job.waits_since is not None
                and (job.spec.key, job.spec.queue in served) == (key, True)
            ]
            room = self.limit_of(key) - len(self.counted["key", key])
            for _, _, n in sorted(waiting)[: max(0, room)]:
                self.counted["key", key].add(n)
                self.jobs[n].waits_since = None
                self.coming.append(n)

    def free(self, n: int) -> set[str | None]:
        """What room a job leaves behind, as the keys that have some now."""
        held = [limit for limit, jobs in self.counted.items() if n in jobs]
        for limit in held:
            self.counted[limit].remove(n)
        return {name for scope, name in held if scope == "key"}

    def limit(self, scope: str, name: str, at_once: int | None) -> list[tuple[str, str, int, int]]:
        if at_once is None:
            self.limits.pop((scope, name), None)
        else:
            self.limits[scope, name] = at_once
        return self.used()

    def used(self) -> list[tuple[str, str, int, int]]:
        """What `limits` should answer."""
        return [
            (
                *(scope, name, at_once),
                sum(
                    len(jobs)
                    for (kind, held), jobs in self.counted.items()
                    if kind == scope and (held == name or name == f"{held[0]}*")
                ),
            )
            for (scope, name), at_once in sorted(self.limits.items())
        ]

    def claim(self, worker: int, limit: int) -> list[Key] | None:
        if worker in self.dead:
            return None
        granted: list[Key] = []
        while len(granted) < limit and (lanes := self.open_lanes(worker)):
            # Of equal ones the first, which is the older one.
            self.empty(min(lanes, key=self.age), worker, limit, granted)
        return granted

    def open_lanes(self, worker: int) -> list[tuple[str, int]]:
        queues = {q for q in self.queues[worker] - self.paused if self.room(q, 1) > 0}
        return [lane for lane, jobs in self.lanes.items() if jobs and lane[0] in queues]

    def age(self, lane: tuple[str, int]) -> tuple[float, int]:
        """By what lanes are chosen: a class is worth ten seconds."""
        return self.jobs[self.lanes[lane][0]].ready - 10 * lane[1], -lane[1]

    def depth(self, queue: str) -> int:
        """How many jobs wait in a queue, for whatever."""
        waits = {State.PENDING, State.SCHEDULED, State.WAITING}
        return sum(job.spec.queue == queue and job.state in waits for job in self.jobs)

    def pause_queue(self, queue: str) -> bool:
        """Whether it was not paused before."""
        new = queue not in self.paused
        self.paused.add(queue)
        return new

    def resume_queue(self, queue: str) -> bool:
        found = queue in self.paused
        self.paused.discard(queue)
        return found

    def empty(self, where: tuple[str, int], worker: int, limit: int, granted: list[Key]) -> None:
        """Take as many from the head of a lane as there is room for; late ones are skipped."""
        lane = self.lanes[where]
        for n in lane[: self.room(where[0], limit - len(granted))]:
            if self.is_late(n):
                self.skip(n)
            else:
                lane.remove(n)
                granted.append(self.grant(n, worker))
                if ("queue", where[0]) in self.limits:
                    self.counted["queue", where[0]].add(n)

    def room(self, queue: str, most: int) -> int:
        at_once = self.limits.get(("queue", queue), 10**9)
        return min(most, at_once - len(self.counted["queue", queue]))

    def grant(self, n: int, worker: int) -> Key:
        job = self.jobs[n]
        key = (n, job.turn)
        assert job.state is State.PENDING, "only what is pending is granted"
        assert key not in self.owner, "I3: a turn is granted once"
        assert job.turn == 1 + sum(k[0] == n for k in self.endings), "I3: without a gap"
        assert job.due <= self.now, "I12: never early"
        job.state = State.RUNNING
        self.owner[key] = worker
        return key

    def rule_out(self, n: int, ending: Ending) -> None:
        job = self.jobs[n]
        lane = self.lanes.get((job.spec.queue, job.spec.priority), [])
        if n in lane:
            lane.remove(n)
        job.state, job.orphan_since, job.waits_since = FINAL[ending], None, None
        self.endings[n, job.turn] = (None, ending)
        self.free(n)

    def is_late(self, n: int) -> bool:
        job = self.jobs[n]
        if job.spec.expires_at is None or not job.deadline:
            return False
        waits = job.state in {State.PENDING, State.SCHEDULED, State.WAITING}
        return waits and job.spec.expires_at.timestamp() <= self.now

    def skip(self, n: int) -> None:
        self.rule_out(n, Ending.EXPIRED)
