"""A: several claim at the same instant, and each job starts once."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final
from uuid import uuid4

from timeball.certify.kinds import NOTE
from timeball.certify.queries import query
from timeball.certify.scenario import Outcome, Scenario
from timeball.certify.sessions import Blocked, Refused, Rows
from timeball.certify.stage import Stage
from timeball.certify.verbs import claim_of, settle_of, submit, worker_of
from timeball.core.records import JobSpec, Turn
from timeball.core.states import State

WORKERS: Final = 8
JOBS: Final = 200
_LEASE_S: Final = 60.0
"""Longer than a busy machine may stand still: nobody is to be given up here."""

_STEPPED: Final = "stepped"
_NONE: Final = "nothing"


def run(stage: Stage) -> Outcome:
    """Step two claimers over one job, then release eight processes on two hundred."""
    stood, taken_back = _stepped(stage, commit=True), _stepped(stage, commit=False)
    held_up = _released_at_once(stage)
    began = stage.effects.began()
    by_process = Counter(each.pid for each in stage.effects.read())
    counts = stage.store.counts("default")
    starts = sorted(set(began.values()))
    return Outcome(
        expected={
            "the first claim stands": {"first": 1, "second": _NONE, "grants": 1},
            "the first claim is taken back": {"first": 1, "second": 1, "grants": 1},
            "jobs": JOBS,
            "starts of each": [1],
            "succeeded": JOBS,
            "processes that ran some": WORKERS,
        },
        observed={
            "the first claim stands": stood[0],
            "the first claim is taken back": taken_back[0],
            "jobs": len(began),
            "starts of each": starts,
            "succeeded": counts.get(State.SUCCEEDED, 0),
            "processes that ran some": len(by_process),
        },
        witness={"stepped claims blocked": stood[1] + taken_back[1], "claims held up": held_up},
    )


def _stepped(stage: Stage, *, commit: bool) -> tuple[dict[str, Any], int]:
    """Have one claim between the other's reading and its commit; return what each was granted."""
    store = stage.store
    (spec,) = submit(store, queue=_STEPPED)
    workers = [worker_of(store, _STEPPED) for _ in range(2)]
    first, second = stage.session().begin(), stage.session()
    rows = first.verb("claim", **claim_of(workers[0]))
    step = second.verb_steps("claim", **claim_of(workers[1]))
    first.commit() if commit else first.rollback()
    answer = second.outcome()
    turns = _turns(stage, spec)
    told = {"first": _granted(rows), "second": _granted(answer), "grants": len(turns)}
    for worker, turn in turns:
        store.connections.run("settle", **settle_of(worker, turn))
    for worker in workers:
        store.retire(worker)
    return told, isinstance(step, Blocked)


def _granted(answer: Rows | Blocked | Refused) -> object:
    """Return how many leases a claim was answered with, or the error in its place."""
    if isinstance(answer, Refused):
        return answer.sqlstate
    assert isinstance(answer, list)
    return 1 if answer[0][0] is not None else _NONE


def _turns(stage: Stage, spec: JobSpec) -> list[tuple[int, Turn]]:
    """Return who was granted which turns of a job, from the record, in order to settle them."""
    rows = stage.ask("leases_of", job=spec.uuid)
    return [
        (worker, _turn(lane, seq, job_id, turn, spec)) for worker, lane, seq, job_id, turn in rows
    ]


def _turn(lane: int, seq: int, job_id: int, turn: int, spec: JobSpec) -> Turn:
    return Turn(
        *(lane, seq, job_id, turn, spec.uuid, spec.kind, spec.args, 0, 0, 0, 0.0, 0, None, 0.0)
    )


def _released_at_once(stage: Stage) -> int:
    """Hold up the claims of all workers at the lane's lock, then let go; return how many."""
    stage.store.ensure_lanes([("default", JobSpec(uuid=uuid4(), kind=NOTE).priority)])
    stage.workers(WORKERS, slots=2, lease_s=_LEASE_S)
    stage.until(lambda: len(stage.store.pulses()) == WORKERS, "all workers have registered")
    gate = stage.session().begin()
    gate.run(query("lock_lane"), {"queue": "default"})
    stage.submit([JobSpec(uuid=uuid4(), kind=NOTE) for _ in range(JOBS)])

    most = 0

    def all_wait() -> bool:
        nonlocal most
        most = max(most, stage.ask("held_up", pid=gate.pid)[0][0])
        passed = stage.store.counts("default").get(State.PENDING, 0) < JOBS
        return most == WORKERS or passed

    stage.until(all_wait, "every worker waits for the lane")
    gate.commit()
    stage.heal()
    stage.drain()
    return most


A: Final = Scenario(
    id="A",
    title="two claimers stepped over one job; 8 processes released at once on 200",
    run=run,
    invariants=("I1", "I2", "I3", "I4", "I5", "I6", "I23", "I26"),
    founding="sc_A",
)
