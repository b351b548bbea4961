"""X4: the database is down for three leases while long jobs run, exclusive ones among them."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from timeball.certify.disasters.long_kinds import ALONE, LOADER
from timeball.certify.disasters.workload import answers, totals
from timeball.certify.effects import BEGAN, Effect
from timeball.certify.faults import HELD, came, held_back
from timeball.certify.fleet import processes
from timeball.certify.kinds import HOLD
from timeball.certify.scenario import THOROUGH, Outcome, Scenario, Skipped
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
from timeball.store.postgres.embedded import status
from timeball.worker.child import Load

LEASES: Final = 3
_LEASE_S: Final = 3.0
_JOBS: Final = 2
_SUPERVISORS: Final = 2
_GATE: Final = "go"
_NS: Final = 1e9


class Run(NamedTuple):
    """One attempt, as it was seen to be alive."""

    first_ns: int
    last_ns: int


def runs(effects: Iterable[Effect]) -> dict[UUID, list[Run]]:
    """Return the attempts of each job, in the order of their turns."""
    seen: dict[tuple[UUID, int], list[int]] = {}
    for effect in effects:
        seen.setdefault((effect.job, effect.turn), []).append(effect.at_ns)
    found: dict[UUID, list[Run]] = {}
    for (job, _), times_ns in sorted(seen.items()):
        found.setdefault(job, []).append(Run(min(times_ns), max(times_ns)))
    return found


def told(attempts: Collection[list[Run]], *, until_ns: float) -> dict[str, int]:
    """Return what became of exclusive jobs whose worker heard nothing from some time on.

    Args:
        attempts: Of each job.
        until_ns: When the lease was over, and the first attempts with it.
    """
    return {
        "stopped in time": sum(each[0].last_ns < until_ns for each in attempts),
        "ran again": sum(len(each) > 1 for each in attempts),
        "at once": sum(
            second.first_ns <= first.last_ns
            for each in attempts
            for first, second in pairwise(each)
        ),
    }


@contextmanager
def down(own: Path) -> Iterator[None]:
    """Kill a server of our own, and have it come back when the block has ended, not before.

    Args:
        own: Its folder.
    """
    postmaster = status(own).pid
    assert postmaster is not None
    (minder,) = (parent for pid, parent, _ in processes() if pid == postmaster)
    try:
        os.kill(minder, signal.SIGSTOP)  # else it would start another one at once
        os.kill(postmaster, signal.SIGKILL)
        yield
    finally:
        os.kill(minder, signal.SIGCONT)


def run(stage: Stage) -> Outcome:
    """Have the server down for three leases in the middle of long jobs, and look a lease longer."""
    own = stage.terms.own_server
    if own is None:
        raise Skipped("only certify's own server is stopped: leave --dsn out")
    loads = (Load(target=str(stage.folder), loader=LOADER),)
    boots = [held_back(stage.folder, "beat", until="pulses")]
    for _ in range(_SUPERVISORS):  # supervisors, each of which could give the other one's worker up
        stage.workers(lease_s=_LEASE_S, loads=loads, boots=boots)
    long, alone = _begun(stage, HOLD), _begun(stage, ALONE)
    down_ns, away_s, looked = _outage(stage, own)
    stage.until(lambda: _again(stage, alone), "what was stopped begins again")
    _wait(stage, 1)  # for whoever would take the silence for a death
    (stage.folder / _GATE).touch()
    stage.drain()
    seen = runs(stage.effects.read())
    exclusive = told([seen[job] for job in alone], until_ns=down_ns + _LEASE_S * _NS)
    return Outcome(
        expected={
            "attempts of long jobs": {"1": _JOBS},
            "exclusive jobs": {"stopped in time": _JOBS, "ran again": _JOBS, "at once": 0},
            "jobs": 2 * _JOBS,
            "succeeded": 2 * _JOBS,
            "refused": 0,
        },
        observed={
            "attempts of long jobs": dict(Counter(str(len(seen[job])) for job in long)),
            "exclusive jobs": exclusive,
            **totals(stage),
            "refused": sum(len(each.stale) for each in stage.store.histories()),
        },
        witness={
            "leases without a database": int(away_s / _LEASE_S),
            "exclusive attempts stopped": exclusive["stopped in time"],
            "looked before a beat came": looked,
        },
        measured={"away_s": round(away_s, 1)},
    )


def _begun(stage: Stage, kind: str) -> set[UUID]:
    """Submit jobs of a kind that go on until the gate is opened; return those, once they run."""
    specs = [JobSpec(uuid=uuid4(), kind=kind, args=f'{{"gate": "{_GATE}"}}') for _ in range(_JOBS)]
    stage.submit(specs)
    wanted = {spec.uuid for spec in specs}
    stage.until(lambda: wanted <= stage.effects.began().keys(), f"{kind} has begun")
    return wanted


def _wait(stage: Stage, leases: int) -> None:
    until_s = time.monotonic() + leases * _LEASE_S
    stage.until(lambda: time.monotonic() > until_s, f"{leases} leases pass")


def _outage(stage: Stage, own: Path) -> tuple[int, float, int]:
    """Have the server be down, and all look for the dead before anybody gives a sign of life.

    Returns:
        When it went down, in nanoseconds; for how many seconds; and how many looked afterwards.
    """
    (stage.folder / HELD).touch()
    _all_look(stage)
    stage.reconnect()
    with down(own):
        down_ns = time.monotonic_ns()
        stage.until(lambda: not answers(stage), "the server is down")
        _wait(stage, LEASES)
        away_s = (time.monotonic_ns() - down_ns) / _NS
    stage.until(lambda: answers(stage), "the server comes back")
    looked = _all_look(stage)
    (stage.folder / HELD).unlink()
    return down_ns, away_s, looked


def _all_look(stage: Stage) -> int:
    """Have every supervisor look after the others' beats; return how many did."""
    came(stage.folder, anew=True)
    stage.until(lambda: came(stage.folder) == _SUPERVISORS, "all have looked for the dead")
    return came(stage.folder)


def _again(stage: Stage, jobs: set[UUID]) -> bool:
    began = [each.job for each in stage.effects.read() if each.what == BEGAN and each.turn > 1]
    return jobs <= set(began)


X4: Final = Scenario(
    id="X4",
    title="the database is down for three leases while long jobs run",
    run=run,
    invariants=("I3", "I5", "I6"),
    own_server=True,
    profiles=THOROUGH,
)
