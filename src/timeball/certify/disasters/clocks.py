"""X16: a machine is suspended, a worker's wall clock is wrong, and the database's jumps."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

from timeball import chance
from timeball.certify.boot import Boot
from timeball.certify.effects import BEGAN
from timeball.certify.kinds import HOLD, NOTE
from timeball.certify.scenario import THOROUGH, Outcome, Scenario
from timeball.certify.stage import Stage
from timeball.certify.verbs import KIND
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.limits import Scope
from timeball.core.rate import Rate
from timeball.core.records import JobSpec
from timeball.core.standing import standing
from timeball.core.states import State
from timeball.observe.transitions import Happening
from timeball.store.base import JobFilter
from timeball.store.limiting import Ask
from timeball.worker.ticker import Ticker

_LEASE_S: Final = 1.0
_LEASES: Final = 3
_HOUR_S: Final = 3_600
_HOUR: Final = timedelta(hours=1)
_SOON_S: Final = 1.0
_YEARS: Final = timedelta(days=3_652)
_NOON: Final = datetime(2026, 3, 1, 12, 0, 1, tzinfo=UTC)
_NAME: Final = "hourly"
_MAIL: Final = "mail"
_LIMIT: Final = 100
_OFF: Final = "off"


def off(seconds: float, folder: Path) -> Boot:
    """Return the change by which a process takes it to be so much later; it is noted there."""
    call = "timeball.certify.disasters.clocks:set_off"
    return Boot(call=call, options={"seconds": seconds, "folder": str(folder)})


def set_off(seconds: float, folder: str) -> None:
    """Have this process's wall clock be off; a preloaded library would do it for others too.

    In `folder` it notes by how much the program, which is not asked about it, is off then.
    """
    wall = vars(time)
    seconds_s, nanoseconds = wall["time"], wall["time_ns"]

    class Off(datetime):
        """An instant of a clock that is off."""

        @classmethod
        def now(cls, tz: Any = None) -> Off:
            """See `datetime.now`."""
            return cls.fromtimestamp(seconds_s() + seconds, tz)

    wall["time"] = lambda: seconds_s() + seconds
    wall["time_ns"] = lambda: nanoseconds() + int(seconds * 1e9)
    chance.datetime = Off  # type: ignore[attr-defined] # one of the two places that look at it
    found = round(chance.now().timestamp() - seconds_s())
    Path(folder, f"{_OFF}-{os.getpid()}").write_text(str(found))


def noted_off(folder: Path, seconds: float) -> int:
    """Return how many processes have noted that they were off by so much."""
    return sum(int(file.read_text()) == seconds for file in folder.glob(f"{_OFF}-*"))


class Clocks:
    """One leg after the other.

    Args:
        stage: Where.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.jumps = 0
        """How often the database's clock was not where it should be."""

        self.leases_slept = 0
        """How many leases passed while all stood still."""

    def suspended(self) -> dict[str, Any]:
        """Stop a worker and its supervisor in the middle of a job for three leases."""
        job = self._held("wakes up")
        fleet = self.stage.workers(slots=1, lease_s=_LEASE_S)
        self.stage.until(lambda: self._began(job), "the job has begun")
        fleet.freeze(fleet.pid, *fleet.children())
        over_s = time.monotonic() + _LEASES * _LEASE_S
        self.stage.until(lambda: time.monotonic() > over_s, "its lease has run out")
        self.leases_slept += _LEASES
        fleet.thaw()
        (self.stage.folder / "wakes up").touch()
        self._succeeds(job)
        return {
            "exit": fleet.stop(),
            "attempts": self.stage.store.get(job).attempts,
            "told as stalls": fleet.log.read_text("utf-8").count(Happening.WORKER_STALLED),
        }

    def of_a_worker(self, seconds: int) -> dict[str, Any]:
        """Have a worker's wall clock be off while it runs what is due, and what is not yet.

        What is due a second later is run only after the worker has looked again for what is due.
        """
        store, seen = self.stage.store, set[str]()
        due, soon, later = (
            JobSpec(uuid=uuid4(), kind=NOTE, delay_s=delay_s)
            for delay_s in (0.0, _SOON_S, _HOUR_S / 2)
        )
        self.stage.submit([due, later])
        fleet = self.stage.workers(slots=1, boots=[off(seconds, self.stage.folder)])
        self._succeeds(due.uuid)
        seen.add(str(store.get(later.uuid).state))
        self.stage.submit([soon])
        self._succeeds(soon.uuid)
        seen.add(str(store.get(later.uuid).state))
        (history,) = (each for each in store.histories() if each.uuid == due.uuid)
        began_at, granted_at = history.endings[-1].began_at, history.grants[-1].at
        exit_code = fleet.stop()
        seen.add(str(store.get(later.uuid).state))
        store.cancel(later.uuid)
        return {
            "exit": exit_code,
            "by the store's clock": abs((began_at or 0.0) - granted_at) < _HOUR_S / 2,
            "what is not due": sorted(seen),
        }

    def of_the_database(self) -> dict[str, Any]:
        """Set the database's clock back and forth, and ten years on, while a job runs."""
        self.stage.travel(_NOON)
        spec = schedule_spec(_NAME, KIND, cron="0 * * * *", tz="UTC", queue="nobody's")
        store = self.stage.store
        store.declare(spec, standing(agenda_of(spec), store.now()))
        store.limit_starts(Scope.QUEUE, _MAIL, Rate(2, _HOUR_S))
        self.stage.travel(_NOON + timedelta(seconds=2))  # from then on the limit holds
        later = JobSpec(uuid=uuid4(), kind=NOTE, run_at=_NOON + _HOUR / 2)
        held = self._held("goes on")
        self.stage.submit([later])
        fleet = self.stage.workers(slots=2, lease_s=_LEASE_S)
        self.stage.until(lambda: self._began(held), "the job has begun")
        steps = (-_HOUR, timedelta(0), _HOUR, timedelta(0), _HOUR, _YEARS)
        told = [self._at(_NOON + step, later) for step in steps]
        (self.stage.folder / "goes on").touch()
        self._succeeds(held)
        self._succeeds(later.uuid)
        for job in store.jobs(JobFilter(kind=KIND, limit=_LIMIT)):
            store.cancel(job.uuid)
        attempts = [store.get(job).attempts for job in (held, later.uuid)]
        return {"steps": told, "attempts": attempts, "exit": fleet.stop()}

    def _at(self, at: datetime, later: JobSpec) -> list[Any]:
        """Set the clock; return how often the schedule has fired, permits, and one job's state."""
        store = self.stage.store
        self.stage.travel(at)
        self.jumps += 1
        ticker = Ticker(store)

        def decided() -> bool:
            ticker.tick()
            due_at = store.schedule(_NAME).due_at
            return due_at is None or due_at > at

        self.stage.until(decided, "what is due is decided")
        if later.run_at is not None and later.run_at <= at:
            self._succeeds(later.uuid)
        fired = len(store.jobs(JobFilter(kind=KIND, limit=_LIMIT)))
        (granted,) = store.permits([Ask([f"queue:{_MAIL}"], 1)], []).granted
        return [fired, granted.permits, str(store.get(later.uuid).state)]

    def _held(self, gate: str) -> UUID:
        spec = JobSpec(uuid=uuid4(), kind=HOLD, args=f'{{"gate": "{gate}"}}')
        self.stage.submit([spec])
        return spec.uuid

    def _began(self, job: UUID) -> bool:
        return any(each.job == job and each.what == BEGAN for each in self.stage.effects.read())

    def _succeeds(self, job: UUID) -> None:
        store = self.stage.store
        self.stage.until(lambda: store.get(job).state is State.SUCCEEDED, "the job has succeeded")


_WORKER: Final = {
    "exit": 0,
    "by the store's clock": True,
    "what is not due": ["scheduled"],
}
_BEFORE, _AFTER = str(State.SCHEDULED), str(State.SUCCEEDED)
EXPECTED: Final[Mapping[str, Any]] = {
    "suspended for three leases": {"exit": 0, "attempts": 1, "told as stalls": 0},
    "a worker's clock an hour on": _WORKER,
    "a worker's clock an hour back": _WORKER,
    "the database's clock": {
        "steps": [
            *([0, 1, _BEFORE], [0, 1, _BEFORE], [1, 1, _AFTER], [1, 0, _AFTER], [1, 0, _AFTER]),
            [2, 1, _AFTER],
        ],
        "attempts": [1, 1],
        "exit": 0,
    },
}


def run(stage: Stage) -> Outcome:
    """Play all; the database's clock last, for it stands still from then on."""
    clocks = Clocks(stage)
    legs: Mapping[str, Callable[[], dict[str, Any]]] = {
        "suspended for three leases": clocks.suspended,
        "a worker's clock an hour on": lambda: clocks.of_a_worker(_HOUR_S),
        "a worker's clock an hour back": lambda: clocks.of_a_worker(-_HOUR_S),
        "the database's clock": clocks.of_the_database,
    }
    observed = {name: leg() for name, leg in legs.items()}
    stage.drain()
    return Outcome(
        expected=EXPECTED,
        observed=observed,
        witness={
            "jumps of the database's clock": clocks.jumps,
            "leases slept": clocks.leases_slept,
            "processes an hour on": noted_off(stage.folder, _HOUR_S),
            "processes an hour back": noted_off(stage.folder, -_HOUR_S),
        },
    )


X16: Final = Scenario(
    id="X16",
    title="a machine is suspended, and wall clocks are an hour off, jump, and jump by ten years",
    run=run,
    invariants=("I5", "I8", "I12", "I16"),
    profiles=THOROUGH,
)
