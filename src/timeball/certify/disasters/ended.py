"""X15: every way in which a worker ends, told to or not, in the middle of a job or of a claim."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID, uuid4

from timeball.certify.disasters import poison_kinds
from timeball.certify.effects import BEGAN
from timeball.certify.faults import AFTER, at_statement
from timeball.certify.fleet import Fleet, processes
from timeball.certify.kinds import HOLD, LOADER
from timeball.certify.scenario import THOROUGH, Outcome, Scenario
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
from timeball.core.states import State
from timeball.worker.child import Load
from timeball.worker.config import WorkerConfig
from timeball.worker.supervisor import SupervisorConfig

_CONTAINER: Final = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
_NO_CONTAINER: Final = "no process namespace can be made: install unshare, and be root"
_LONG_S: Final = 600.0
_LETHAL: Final = "lethal"
_FROZEN: Final = "T"


class Ends:
    """Workers that are ended one after the other, each with a job of its own.

    Args:
        stage: Where.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.killed = 0
        """How many processes were ended without being asked."""

        self.told = 0
        """How many signals to end were sent."""

    def out_of_memory(self) -> dict[str, Any]:
        """Kill a worker process in the middle of a job, as the kernel does that lacks memory."""
        fleet, job, gate = self._holding()
        fleet.kill(self._pid(job))
        self.killed += 1
        return self._run_on(job, gate, fleet)

    def twice(self) -> dict[str, Any]:
        """Tell a supervisor to end, and once more while a job goes on."""
        fleet, job, gate = self._holding(drain_s=_LONG_S)
        self._tell(fleet)
        self.stage.until(lambda: fleet.ended or "once more" in fleet.log.read_text(), "it drains")
        if not fleet.ended:
            self._tell(fleet)
        self.stage.until(lambda: fleet.ended, "the second signal ends it")
        heir = self.stage.workers(slots=1)
        return {"exit": fleet.stop(), **self._run_on(job, gate, heir)}

    def during_a_claim(self) -> dict[str, Any]:
        """Tell a supervisor to end while its worker has claimed and does not know it yet."""
        fleet = self.stage.workers(slots=1, boots=[at_statement("claim", moment=AFTER)])
        self.stage.until(lambda: _FROZEN in self._states(fleet), "it stands still in a claim")
        self._tell(fleet)
        job, gate = self._submitted()
        fleet.thaw()
        self.stage.until(lambda: fleet.ended, "it ends")
        heir = self.stage.workers(slots=1)
        return {"exit": fleet.stop(), **self._run_on(job, gate, heir)}

    def without_parent(self) -> dict[str, Any]:
        """Kill a supervisor: its worker ends with it, and its job runs once its lease is over."""
        fleet, job, gate = self._holding()
        children = fleet.children()
        os.kill(fleet.pid, signal.SIGKILL)
        self.killed += 1
        self.stage.until(lambda: not fleet.left(), "its children end with it")
        self.stage.fleets.remove(fleet)  # it did not end in order
        heir = self.stage.workers(slots=1)
        return {"children": len(children), **self._run_on(job, gate, heir)}

    def lethal(self) -> dict[str, Any]:
        """Run a job that kills its worker each time."""
        spec = JobSpec(uuid=uuid4(), kind=poison_kinds.KILLS, queue=_LETHAL)
        self.stage.submit([spec])
        loads = (Load(target="poison", loader=poison_kinds.LOADER),)
        fleet = self.stage.workers(loads=loads, queues=(_LETHAL,))
        store = self.stage.store
        self.stage.until(lambda: store.get(spec.uuid).state is State.FAILED, "it is given up")
        self.killed += store.get(spec.uuid).crashes
        code, job = fleet.stop(), store.get(spec.uuid)
        return {"exit": code, "ends": f"{job.reason} after {job.crashes}"}

    def contained(self) -> dict[str, Any]:
        """Tell the first process of a container to end, for which the kernel ignores signals."""
        config = SupervisorConfig(
            dsn=self.stage.dsn,
            loads=(Load(target=str(self.stage.folder), loader=LOADER),),
            worker=WorkerConfig(name="contained", slots=1, lease_s=2.0, poll_s=0.2),
        )
        log = self.stage.folder / "contained.log"
        fleet = Fleet(config, log, self.stage.terms.boots, within=_CONTAINER)
        self.stage.fleets.append(fleet)
        job, gate = self._submitted()
        self.stage.until(lambda: self._began(job), "the job has begun")
        (first,) = fleet.children()
        os.kill(first, signal.SIGTERM)
        self.told += 1
        (self.stage.folder / gate).touch()
        self.stage.until(lambda: fleet.ended, "it ends")
        return {"exit": fleet.stop(), **self._ended(job)}

    def _submitted(self) -> tuple[UUID, str]:
        """Submit a job that goes on until its gate is open."""
        spec = JobSpec(uuid=uuid4(), kind=HOLD, args="{}")
        gate = f"go-{spec.uuid}"
        spec = JobSpec(uuid=spec.uuid, kind=HOLD, args=f'{{"gate": "{gate}"}}')
        self.stage.submit([spec])
        return spec.uuid, gate

    def _holding(self, **settings: Any) -> tuple[Fleet, UUID, str]:
        """Return workers in the middle of a job, the job, and its gate."""
        job, gate = self._submitted()
        fleet = self.stage.workers(slots=1, **settings)
        self.stage.until(lambda: self._began(job), "the job has begun")
        return fleet, job, gate

    def _run_on(self, job: UUID, gate: str, fleet: Fleet) -> dict[str, Any]:
        """Let a job end, then its workers; return what became of it."""
        (self.stage.folder / gate).touch()
        store = self.stage.store
        self.stage.until(lambda: store.get(job).state is State.SUCCEEDED, "the job has ended")
        fleet.stop()
        return self._ended(job)

    def _ended(self, job: UUID) -> dict[str, Any]:
        history = next(each for each in self.stage.store.histories() if each.uuid == job)
        endings = [str(each.ending) for each in history.endings]
        return {"endings": endings, "crashes": self.stage.store.get(job).crashes}

    def _tell(self, fleet: Fleet) -> None:
        os.kill(fleet.pid, signal.SIGTERM)
        self.told += 1

    def _began(self, job: UUID) -> list[int]:
        found = self.stage.effects.read()
        return [each.pid for each in found if each.job == job and each.what == BEGAN]

    def _pid(self, job: UUID) -> int:
        return self._began(job)[-1]

    def _states(self, fleet: Fleet) -> set[str]:
        return {state for _, parent, state in processes() if parent == fleet.pid}


def containers() -> bool:
    """Return whether this machine lets this user make a process namespace."""
    if shutil.which(_CONTAINER[0]) is None:
        return False
    tried = subprocess.run([*_CONTAINER, "true"], capture_output=True, check=False)  # noqa: S603 - no input
    return tried.returncode == 0


_CONTAINED: Final = "PID 1 is told"
_LOST: Final = {"endings": ["lost", "succeeded"], "crashes": 1}
EXPECTED: Final[Mapping[str, Any]] = {
    "killed as out of memory": _LOST,
    "told twice": {"exit": 0, "endings": ["released", "succeeded"], "crashes": 0},
    "told during a claim": {"exit": 0, "endings": ["succeeded"], "crashes": 0},
    "its parent dies": {"children": 1, **_LOST},
    _CONTAINED: {"exit": 0, "endings": ["succeeded"], "crashes": 0},
    "kills its worker each time": {"exit": 0, "ends": "quarantined after 3"},
}


def run(stage: Stage) -> Outcome:
    """Play all, one after the other."""
    ends = Ends(stage)
    legs: dict[str, Callable[[], dict[str, Any]]] = {
        "killed as out of memory": ends.out_of_memory,
        "told twice": ends.twice,
        "told during a claim": ends.during_a_claim,
        "its parent dies": ends.without_parent,
        "kills its worker each time": ends.lethal,
        _CONTAINED: ends.contained,
    }
    left_out = {} if containers() else {_CONTAINED: _NO_CONTAINER}
    observed, took_s = {}, {}
    for name in stage.dice.shuffled(each for each in legs if each not in left_out):
        began_s = time.monotonic()
        observed[name] = legs[name]()
        took_s[name] = round(time.monotonic() - began_s, 1)
    stage.drain()
    return Outcome(
        expected={name: EXPECTED[name] for name in observed},
        observed=observed,
        witness={"processes killed": ends.killed, "signals to end": ends.told},
        measured={"took_s": took_s},
        left_out=left_out,
    )


X15: Final = Scenario(
    id="X15",
    title="workers end in every way: killed, told once or twice, as PID 1, without their parent",
    run=run,
    invariants=("I3", "I5", "I6", "I23"),
    profiles=THOROUGH,
)
