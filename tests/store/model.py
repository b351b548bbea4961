"""What random verbs should lead to, kept in plain dictionaries and lists.

Written apart from the memory store on purpose: it knows jobs by the order of their
submission and workers by that of their registration, has no ids, leases or lock, and
says beforehand what every verb must answer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from tests.store.graph_model import GraphModel, Tie
from tests.store.unique_model import UniqueModel

from timeball.core.records import Delivery, JobSpec, Settlement
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
class Model(GraphModel, UniqueModel):
    """All jobs, and who holds what."""

    now: float
    jobs: list[Thing] = field(default_factory=list)
    lanes: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    kinds: dict[int, set[str]] = field(default_factory=dict)
    queues: dict[int, set[str]] = field(default_factory=dict)
    dead: set[int] = field(default_factory=set)
    owner: dict[Key, int] = field(default_factory=dict)
    endings: dict[Key, tuple[int | None, Ending]] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    """Who took each unique key last."""

    refused: Counter[int] = field(default_factory=Counter)
    """Stale settlements by job."""
    limits: dict[tuple[str, str], int] = field(default_factory=dict)
    counted: dict[tuple[str, str], set[int]] = field(default_factory=lambda: defaultdict(set))
    """Against the limit of a key or a queue: which jobs."""
    coming: list[int] = field(default_factory=list)
    """Who is about to line up: all who do so by one call are put in the order of their ids."""

    @property
    def stale(self) -> int:
        return sum(count for n, count in self.refused.items() if not self.jobs[n].gone)

    def counts(self) -> dict[State, int]:
        return dict(Counter(job.state for job in self.jobs if not job.gone))

    def open_turns(self, worker: int) -> list[Key]:
        return [k for k, w in self.owner.items() if w == worker and k not in self.endings]

    # What verbs do; what they return is the answer that is expected.

    def submit(self, spec: JobSpec) -> None:
        job = Thing(spec)
        self.jobs.append(job)
        if spec.after:
            numbers = {other.spec.uuid: n for n, other in enumerate(self.jobs)}
            job.state = State.WAITING
            job.edges = {numbers[parent]: Tie(rule) for parent, rule in spec.after}
        elif spec.run_at is not None and spec.run_at.timestamp() > self.now:
            job.state, job.due = State.SCHEDULED, spec.run_at.timestamp()
        else:
            self.enter(len(self.jobs) - 1)
        self.arrive()
        self.admit({spec.key})
        self.arrive()
        if spec.after:
            self.link()

    def enter(self, n: int) -> None:
        job = self.jobs[n]
        job.state, job.orphan_since = State.PENDING, None
        if job.spec.key is None:
            self.coming.append(n)
        else:
            job.waits_since = self.now

    def arrive(self) -> int:
        for n in sorted(self.coming):
            spec = self.jobs[n].spec
            self.lanes.setdefault((spec.queue, spec.priority), []).append(n)
        count, self.coming = len(self.coming), []
        return count

    # Limits

    def limit_of(self, key: str) -> int:
        """A key's own limit, else that of a name with *, else 1."""
        return self.limits.get(("key", key), self.limits.get(("key", f"{key[0]}*"), 1))

    def admit(self, keys: set[str | None]) -> None:
        served = set().union(*(q for w, q in self.queues.items() if w not in self.dead), set())
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

    def register(self, worker: int, kinds: set[str], queues: set[str]) -> None:
        self.kinds[worker], self.queues[worker] = kinds, queues
        for n, job in enumerate(self.jobs):
            if job.orphan_since is not None and job.spec.kind in kinds:
                self.enter(n)
        self.arrive()

    def claim(self, worker: int, limit: int) -> list[Key] | None:
        if worker in self.dead:
            return None
        granted: list[Key] = []
        # Python sorts stably, so that of equal classes the older lane comes first.
        for queue, priority in sorted(self.lanes, key=lambda lane: -lane[1]):
            if queue in self.queues[worker]:
                self.empty((queue, priority), worker, limit, granted)
        return granted

    def empty(self, where: tuple[str, int], worker: int, limit: int, granted: list[Key]) -> None:
        lane = self.lanes[where]
        while lane and len(granted) < limit and self.has_room(where[0]):
            n = lane.pop(0)
            if self.is_late(n):
                self.skip(n)
            else:
                granted.append(self.grant(n, worker))
                if ("queue", where[0]) in self.limits:
                    self.counted["queue", where[0]].add(n)

    def has_room(self, queue: str) -> bool:
        at_once = self.limits.get(("queue", queue))
        return at_once is None or len(self.counted["queue", queue]) < at_once

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

    def settle(self, worker: int, said: list[tuple[Key, bool, Settlement]]) -> list[str]:
        """Each: the turn, whether it names the lease of it, and the words."""
        verdicts, accepted = [], []
        for key, true_lease, settlement in said:
            known = key[0] in range(len(self.jobs)) and not self.jobs[key[0]].gone
            ours = known and true_lease and self.owner.get(key) == worker
            if ours and key not in self.endings:
                self.endings[key] = (worker, settlement.ending)
                accepted.append((key, settlement))
                verdicts.append("accepted")
            elif ours and self.endings[key] == (worker, settlement.ending):
                verdicts.append("already")
            else:
                self.refused[key[0]] += known
                verdicts.append("stale")
        room = {key for (n, _), _ in accepted for key in self.free(n)}
        for key, settlement in sorted(accepted, key=lambda pair: pair[0]):
            if settlement.ending is Ending.LOST:
                self.crash(key, began=True)
                self.endings[key] = (worker, Ending.LOST)
            else:
                self.after(key[0], settlement)
        room |= self.tell([n for (n, _), _ in accepted])
        self.admit(room)
        self.arrive()
        return verdicts

    def after(self, n: int, said: Settlement) -> None:
        job = self.jobs[n]
        job.attempts += said.began_at is not None
        job.deadline = job.deadline and said.began_at is None
        job.failures += said.ending in {Ending.RETRIED, Ending.FAILED}
        if said.ending in FINAL:
            job.state = FINAL[said.ending]
            return
        self.next_turn(n)
        if job.over:
            return
        if said.ending in {Ending.RETRIED, Ending.SNOOZED}:
            job.state, job.due = State.SCHEDULED, self.now + said.delay_s
        elif said.reason == "no_worker":
            job.state, job.orphan_since = State.PENDING, self.now
        else:
            self.enter(n)

    def next_turn(self, n: int) -> None:
        job = self.jobs[n]
        job.turn += 1
        if job.asked:
            job.state = State.CANCELLED
            self.endings[n, job.turn] = (None, Ending.CANCELLED)

    def cancel(self, n: int) -> str:
        answer = self.stop(n)
        if answer == "cancelled":
            self.admit(self.tell([n]) | {self.jobs[n].spec.key})
            self.arrive()
        return answer

    def stop(self, n: int) -> str:
        job = self.jobs[n]
        if job.over:
            return "not_found" if job.gone else "finished"
        if job.state is State.RUNNING:
            job.asked = True
            return "requested"
        self.rule_out(n, Ending.CANCELLED)
        return "cancelled"

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
        self.unlink(n)

    def lapse(self) -> int:
        late = [n for n in range(len(self.jobs)) if self.is_late(n)]
        for n in late:
            self.skip(n)
        return len(late)

    def revive(self, numbers: list[int]) -> list[str]:
        answers = {}
        for n in sorted(set(numbers)):
            job = self.jobs[n]
            answers[n] = "not_found" if job.gone else "refused"
            if self.lost(n):
                answers[n] = "clashed"
            elif job.over and not job.gone and job.state is not State.SUCCEEDED:
                if job.spec.unique is not None:
                    self.keys[job.spec.unique.key] = n
                answers[n] = "revived"
                job.turn, job.asked, job.due = job.turn + 1, False, 0.0
                job.deadline = False
                job.forgiven = (job.failures, job.crashes)
                self.enter(n)
        self.admit({self.jobs[n].spec.key for n in numbers if not self.jobs[n].gone})
        self.arrive()
        return [answers[n] for n in numbers]

    def delete(self, numbers: list[int]) -> list[str]:
        answers = {}
        for n in set(numbers):
            job = self.jobs[n]
            ripe = job.over and not self.is_needed(n)
            answers[n] = "not_found" if job.gone else "deleted" if ripe else "refused"
            job.gone = job.gone or ripe
        return [answers[n] for n in numbers]

    def promote(self) -> int:
        known = set().union(*(k for w, k in self.kinds.items() if w not in self.dead), set())
        ripe = [
            n
            for n, job in enumerate(self.jobs)
            if (job.state is State.SCHEDULED and job.due <= self.now)
            or (
                job.orphan_since is not None
                and job.orphan_since <= self.now - 1
                and job.spec.kind in known
            )
        ]
        for n in ripe:
            self.enter(n)
        self.admit({job.spec.key for job in self.jobs})
        return self.arrive()

    def next_due(self) -> float | None:
        return min(
            (j.due - self.now for j in self.jobs if j.state is State.SCHEDULED), default=None
        )

    def expire(self, worker: int, begun: set[Key] | None) -> tuple[int, ...] | None:
        """The fates, in the order of `Expired`."""
        if worker in self.dead:
            return None
        fates: Counter[str] = Counter()
        left = sorted(self.open_turns(worker))
        self.dead.add(worker)
        room = {key for n, _ in left for key in self.free(n)}
        for key in left:
            fates[self.crash(key, began=begun is None or key in begun)] += 1
        room |= self.tell([n for n, _ in left])
        self.admit(room)
        self.arrive()
        return tuple(fates[fate] for fate in ("released", "lost", "failed", "cancelled"))

    def crash(self, key: Key, *, began: bool) -> str:
        job = self.jobs[key[0]]
        job.attempts += began
        job.crashes += began
        job.deadline = job.deadline and not began
        counted = job.crashes - job.forgiven[1]
        fatal = job.spec.delivery is Delivery.AT_MOST_ONCE or counted >= job.spec.max_crashes
        if began and fatal:
            job.state = State.FAILED
            self.endings[key] = (None, Ending.FAILED)
            return "failed"
        ending = Ending.LOST if began else Ending.RELEASED
        self.endings[key] = (None, ending)
        self.next_turn(key[0])
        if job.over:
            return "cancelled"
        self.enter(key[0])
        return ending.value
