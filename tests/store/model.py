"""What random verbs should lead to, kept in plain dictionaries and lists.

Written apart from the memory store on purpose: it knows jobs by the order of their
submission and workers by that of their registration, has no ids, leases or lock, and
says beforehand what every verb must answer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from tests.store.graph_model import GraphModel, Tie
from tests.store.model_lines import FINAL, Key, Lines, Thing
from tests.store.unique_model import UniqueModel

from timeball.core.records import Delivery, JobSpec, Settlement
from timeball.core.states import Ending, State


@dataclass
class Model(Lines, GraphModel, UniqueModel):
    """All jobs, and who holds what."""

    kinds: dict[int, set[str]] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    """Who took each unique key last."""

    refused: Counter[int] = field(default_factory=Counter)
    """Stale settlements by job."""

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

    def register(self, worker: int, kinds: set[str], queues: set[str]) -> None:
        self.kinds[worker], self.queues[worker] = kinds, queues
        for n, job in enumerate(self.jobs):
            if job.orphan_since is not None and job.spec.kind in kinds:
                self.enter(n)
        self.arrive()

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

    def move(self, n: int, queue: str | None, priority: int | None) -> str:
        job = self.jobs[n]
        if job.over:
            return "not_found" if job.gone else "finished"
        if job.state is State.RUNNING:
            return "running"
        old = (job.spec.queue, job.spec.priority)
        new = (queue or old[0], old[1] if priority is None else priority)
        if new != old:
            job.spec = replace(job.spec, queue=new[0], priority=new[1])
            if n in self.lanes.get(old, []):
                self.lanes[old].remove(n)
                self.endings[n, job.turn] = (None, Ending.MOVED)
                job.turn += 1
                self.coming.append(n)
                self.arrive()
        return "moved"

    def snooze(self, n: int, until: float) -> str:
        job = self.jobs[n]
        if job.over:
            return "not_found" if job.gone else "finished"
        if job.state in {State.RUNNING, State.WAITING}:
            return job.state.value
        if job.state is State.SCHEDULED:
            job.due = max(job.due, until)
            return "snoozed"
        lane = self.lanes.get((job.spec.queue, job.spec.priority), [])
        if n in lane:
            lane.remove(n)
        self.endings[n, job.turn] = (None, Ending.SNOOZED)
        job.turn, job.state, job.due = job.turn + 1, State.SCHEDULED, until
        job.orphan_since = job.waits_since = None
        self.admit(self.free(n))
        self.arrive()
        return "snoozed"

    def skip(self, n: int) -> None:
        super().skip(n)
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
