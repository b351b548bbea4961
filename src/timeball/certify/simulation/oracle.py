"""What must be so after every step, reckoned from the answers alone: the store is not looked into.

Each check takes as long as the answer is large. The audit of the whole record comes in between.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from timeball.core.records import (
    CancelAnswer,
    Delivery,
    Expired,
    Firing,
    JobSpec,
    Settlement,
    Turn,
    Verdict,
)
from timeball.core.states import FINAL_STATE, Ending
from timeball.core.uniqueness import Submitted
from timeball.core.upkeep import DeleteAnswer, ReviveAnswer

if TYPE_CHECKING:  # which has one
    from timeball.certify.simulation.world import World

_GRAIN_S: Final = 0.001


class Broken(Exception):
    """A promise was broken.

    Attributes:
        check: Which one.
    """

    def __init__(self, check: str, text: str) -> None:
        super().__init__(f"{check}: {text}")
        self.check = check


@dataclass(slots=True)
class Known:
    """What is known of one job."""

    id: int
    spec: JobSpec
    submitted_at: datetime
    turn: int = 0
    """The newest that was granted."""

    owner: tuple[int, int, int] | None = None
    """Who has it now: worker, lane and number of the lease."""

    endings: dict[int, tuple[int, Ending]] = field(default_factory=dict)
    """By turn: who ended it, and how."""

    final: bool = False
    succeeded: bool = False
    began: bool = False
    crashes: int = 0
    unwanted: bool = False
    revived: bool = False
    deleted: bool = False


class Oracle:
    """Reckons along."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.jobs: dict[int, Known] = {}
        self.ids: dict[UUID, int] = {}
        self.gone: set[int] = set()
        self._of_worker: defaultdict[int, set[int]] = defaultdict(set)
        self._under_way: Counter[str] = Counter()
        self._fired: dict[tuple[str, datetime], int] = {}

    def saw(
        self, who: str, verb: str, args: tuple[Any, ...], named: dict[str, Any], answer: Any
    ) -> None:
        """Check what a verb has answered, and remember it.

        Raises:
            Broken: It must not be so.
        """
        match verb:
            case "claim":
                self._granted(who, args[0], answer)
            case "settle":
                self._settled(who, args[0], args[1], answer)
            case "submit":
                self._submitted(args[0], answer)
            case "expire":
                self._expired(who, args[0], named["begun"], answer)
            case "cancel":
                self._cancelled(who, args[0], answer)
            case "fire":
                self._decided(args[0], answer)
            case "revive" | "delete":
                self._operated(args[0], answer)
            case _:
                pass

    def began(self, turn: Turn) -> None:
        """Note that an attempt has begun."""
        self.jobs[turn.job_id].began = True

    # What verbs answer

    def _submitted(self, specs: Sequence[JobSpec], answer: Sequence[Submitted]) -> None:
        for spec, (job_id, uuid) in zip(specs, answer, strict=True):
            if uuid != spec.uuid:
                self._world.seen("a unique job is there already")
                continue
            known = self.ids.get(uuid, job_id)
            if known != job_id:  # its answer was lost, and then it ran, ended and was deleted
                _hold(self.jobs[known].deleted, "I1", f"{uuid} is job {known}, and job {job_id}")
                self._world.seen("a deleted job is submitted again")
            self.ids[uuid] = job_id
            if job_id not in self.jobs:
                self.jobs[job_id] = Known(job_id, spec, self._world.now)

    def _granted(self, who: str, worker: int, turns: Sequence[Turn]) -> None:
        world = self._world
        _hold(not turns or worker not in self.gone, "I5", f"worker {worker} was given up")
        for turn in turns:
            job = self.jobs.get(turn.job_id) or self._scheduled(turn)
            owner = (worker, turn.lane, turn.seq)
            if job.turn == turn.turn and job.owner == owner:
                world.seen("a claim is answered again")
                continue
            world.note(who, "is granted", (turn.job_id, turn.turn))
            if turn.turn in job.endings and job.endings[turn.turn][0] == worker:
                continue  # an answer that comes late: it was ended meanwhile
            self._check_grant(job, turn)
            job.turn, job.owner = turn.turn, owner
            self._of_worker[worker].add(job.id)
            if job.spec.key is not None:
                self._under_way[job.spec.key] += 1
                at_once = self._under_way[job.spec.key]
                _hold(at_once <= 1, "I9", f"{at_once} of key {job.spec.key} are under way")

    def _check_grant(self, job: Known, turn: Turn) -> None:
        it = f"turn {turn.turn} of job {job.id}"
        _hold(turn.turn == job.turn + 1 or _skipped(job, turn), "I3", f"{it} follows {job.turn}")
        _hold(job.owner is None, "I5", f"{it} was granted while {job.owner} has turn {job.turn}")
        _hold(not job.unwanted, "I19", f"{it} was granted after a request to stop")
        _hold(not job.final, "I2", f"{it} was granted, and the job has ended")
        once = job.spec.delivery is Delivery.AT_MOST_ONCE
        _hold(not (once and job.began), "I6'", f"{it} was granted, and one has begun before")
        if not job.revived:
            self._check_time(job, it)
            for edge in job.spec.after:
                parent = self.jobs.get(self.ids.get(edge.parent, 0))
                met = parent is None or parent.succeeded or parent.deleted
                _hold(met, "I13", f"{it} was granted before its parent {edge.parent} had succeeded")

    def _check_time(self, job: Known, it: str) -> None:
        slack_s = self._world.set_back_s + _GRAIN_S
        delay_s = job.spec.delay_s or 0.0
        waited_s = (self._world.now - job.submitted_at).total_seconds()
        _hold(
            waited_s >= delay_s - slack_s, "I12", f"{it} was granted {delay_s - waited_s} s early"
        )

    def _scheduled(self, turn: Turn) -> Known:
        """Return what is known of a job that a schedule has added."""
        self.jobs[turn.job_id] = job = Known(
            turn.job_id, JobSpec(uuid=turn.uuid, kind=turn.kind), self._world.now
        )
        self.ids[turn.uuid] = job.id
        return job

    def _settled(
        self, who: str, worker: int, said: Sequence[Settlement], answer: Sequence[Verdict]
    ) -> None:
        for each, verdict in zip(said, answer, strict=True):
            job = self.jobs.get(each.job_id)
            if job is None or job.deleted:
                continue
            self._world.note(who, "settles", (each.job_id, each.turn, each.ending, verdict))
            it = f"turn {each.turn} of job {each.job_id}, by worker {worker}"
            before = job.endings.get(each.turn)
            has_it = job.turn == each.turn and job.owner == (worker, each.lane, each.seq)
            match verdict:
                case Verdict.ACCEPTED:
                    _hold(before is None, "I4", f"{it}: it had ended {before}")
                    _hold(has_it, "I4", f"{it}: it has turn {job.turn}, {job.owner}")
                    self._end(job, worker, each)
                case Verdict.ALREADY:
                    _hold(before is not None, "I4", f"{it} is said to be known")
                    self._world.seen("a settlement is said again")
                case Verdict.STALE:
                    _hold(not has_it, "I4", f"{it} is refused, which has it")
                    self._world.seen("a settlement is refused")

    def _end(self, job: Known, worker: int, said: Settlement) -> None:
        ending = said.ending
        if ending is Ending.LOST:
            job.crashes += 1
            once = job.spec.delivery is Delivery.AT_MOST_ONCE
            if once or job.crashes >= job.spec.max_crashes:
                ending = Ending.FAILED
        job.endings[said.turn] = (worker, ending)
        self._let_go(job, worker)
        if ending in FINAL_STATE or job.unwanted:
            if ending not in FINAL_STATE:
                self._world.seen("what was to stop is not tried again")
            job.final = True
            job.succeeded = ending is Ending.SUCCEEDED

    def _let_go(self, job: Known, worker: int) -> None:
        job.owner = None
        self._of_worker[worker].discard(job.id)
        if job.spec.key is not None:
            self._under_way[job.spec.key] -= 1

    def _expired(self, who: str, worker: int, begun: Any, answer: Expired | None) -> None:
        if answer is None:
            return
        self._world.note(who, "gives up", (worker, *answer))
        self.gone.add(worker)
        for job_id in sorted(self._of_worker[worker]):
            job = self.jobs[job_id]
            dead = begun is None or (job_id, job.turn) in begun
            job.endings[job.turn] = (worker, Ending.LOST if dead else Ending.RELEASED)
            self._let_go(job, worker)
            job.crashes += dead
            job.began |= dead
            once = job.spec.delivery is Delivery.AT_MOST_ONCE
            if dead and (once or job.crashes >= job.spec.max_crashes):
                job.final = True
                self._world.seen("lost, at most once" if once else "quarantined")
            job.final |= job.unwanted
            self._world.seen("a worker died in the middle" if dead else "a turn had not begun")

    def _cancelled(self, who: str, uuid: UUID, answer: CancelAnswer) -> None:
        job = self.jobs.get(self.ids.get(uuid, 0))
        if job is None:
            return
        self._world.note(who, "cancels", (job.id, answer))
        self._world.seen(f"a cancel is answered {answer}")
        if answer is CancelAnswer.CANCELLED:
            _hold(job.owner is None, "I19", f"job {job.id} is said to be over, and is running")
            job.final = True
        elif answer is CancelAnswer.REQUESTED:
            job.unwanted = True

    def _decided(self, firings: Sequence[Firing], answer: Sequence[list[int] | None]) -> None:
        for firing, jobs in zip(firings, answer, strict=True):
            if jobs is None:
                self._world.seen("a ticker comes second")
                continue
            _hold(len(jobs) <= len(firing.decisions), "I16", f"{jobs} for {firing.decisions}")
            for each, job_id in zip(firing.decisions, jobs, strict=False):
                key = firing.schedule.spec.name, each.nominal_at
                before = self._fired.setdefault(key, job_id)
                _hold(before == job_id, "I16", f"{key} fired as {before}, and as {job_id}")
                self._world.seen("a schedule fires")

    def _operated(self, uuids: Sequence[UUID], answer: Sequence[Any]) -> None:
        for uuid, told in zip(uuids, answer, strict=True):
            job = self.jobs.get(self.ids.get(uuid, 0))
            if job is None:
                continue
            if told is ReviveAnswer.REVIVED:
                self._world.seen("a job is revived")
                job.final = job.unwanted = job.began = False
                job.revived, job.crashes = True, 0
            elif told is DeleteAnswer.DELETED:
                self._world.seen("a job is deleted")
                job.deleted = True


def _skipped(job: Known, turn: Turn) -> bool:
    """Return whether turns between ended before they were granted: a cancel, and a revival."""
    return job.revived and turn.turn > job.turn


def _hold(true: bool, check: str, text: str) -> None:  # noqa: FBT001 - as an assertion has it
    if not true:
        raise Broken(check, text)
