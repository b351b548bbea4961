"""F, second half: a worker that was given up for dead comes back and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID, uuid4

from timeball.certify.effects import BEGAN
from timeball.certify.fleet import Fleet
from timeball.certify.kinds import HOLD
from timeball.certify.stage import Stage
from timeball.certify.verbs import claim_all, submit, worker_of
from timeball.core.history import JobHistory
from timeball.core.records import JobSpec, Settlement, Turn
from timeball.core.states import Ending, State
from timeball.errors import WorkerExpired

_QUEUE: Final = "zombies"
_GATE: Final = "go"
_LEASE_S: Final = 3.0
"""Of the worker that is cut off: it is given up no sooner."""

_HEIR_LEASE_S: Final = 15.0
"""Of the other one: longer than a busy machine may stand still, for it is not to be given up."""

_SAYS: Final = (Ending.SUCCEEDED, Ending.FAILED, Ending.RETRIED, Ending.RELEASED)


def by_hand(stage: Stage) -> tuple[dict[str, Any], int]:
    """Give a worker up, have another one run its job, and let the first one say all it can.

    Returns:
        What each answer was; and how many of its settlements were refused.
    """
    store = stage.store
    (spec,) = submit(store, queue=_QUEUE)
    dead, living = worker_of(store, _QUEUE), worker_of(store, _QUEUE)
    (first,) = claim_all(store, dead)
    store.expire(dead, beat=None, begun=[(first.job_id, first.turn)])
    (second,) = claim_all(store, living)
    told: dict[str, Any] = {f"says {ending}": _says(stage, dead, first, ending) for ending in _SAYS}
    told["beats"] = "alive" if store.beat([dead]) else "refused"
    try:
        told["claims"] = len(store.claim(dead, limit=1, request=uuid4(), floors={}))
    except WorkerExpired:
        told["claims"] = "refused"
    told["pretends to have the new turn"] = _says(stage, dead, second, Ending.FAILED)
    told["the owner says succeeded"] = _says(stage, living, second, Ending.SUCCEEDED)
    told["says it afterwards"] = _says(stage, dead, first, Ending.FAILED)
    told["state"] = str(store.get(spec.uuid).state)
    store.retire(living)
    refused = len(_history(stage, spec.uuid).stale)
    return told, refused


def expected_by_hand() -> dict[str, Any]:
    """Return what `by_hand` must tell."""
    return {
        **{f"says {ending}": "stale" for ending in _SAYS},
        "beats": "refused",
        "claims": "refused",
        "pretends to have the new turn": "stale",
        "the owner says succeeded": "accepted",
        "says it afterwards": "stale",
        "state": str(State.SUCCEEDED),
    }


def frozen(stage: Stage) -> tuple[dict[str, Any], int]:
    """Freeze a worker and its supervisor in the middle of a job; let both go on afterwards.

    Returns:
        What became of the job; and how many settlements were refused.
    """
    return given_up(
        stage, cut=lambda fleet: fleet.freeze(fleet.pid, *fleet.children()), back=stage.heal
    )


def given_up(
    stage: Stage,
    *,
    cut: Callable[[Fleet], None],
    back: Callable[[], None],
    dsn: str | None = None,
    gate: str = _GATE,
) -> tuple[dict[str, Any], int]:
    """Cut a worker off in the middle of a job until another one has run it.

    Args:
        stage: Where.
        cut: Cuts the worker off.
        back: Lets it go on.
        dsn: By which it reaches the database.
        gate: A name that nobody has had on this stage.

    Returns:
        What became of the job; and how many settlements were refused.
    """
    spec = JobSpec(uuid=uuid4(), kind=HOLD, args=f'{{"gate": "{gate}"}}')
    stage.submit([spec])
    zombie = stage.workers(slots=1, lease_s=_LEASE_S, dsn=dsn)
    stage.until(lambda: _begun(stage, spec.uuid) == {1}, "the job has begun")
    cut(zombie)
    heir = stage.workers(slots=1, lease_s=_HEIR_LEASE_S)
    stage.until(lambda: _begun(stage, spec.uuid) == {1, 2}, "another worker has begun it")
    (stage.folder / gate).touch()
    stage.until(lambda: stage.store.get(spec.uuid).state is State.SUCCEEDED, "it has ended")
    back()
    stage.until(lambda: _history(stage, spec.uuid).stale, "the one cut off has come too late")
    return _became(stage, spec.uuid, zombie, heir)


def expected_frozen() -> dict[str, Any]:
    """Return what `frozen` and `given_up` must tell."""
    return {
        "endings": ["lost", "succeeded"],
        "turns that began": [1, 2],
        "in processes": 2,
        "both fleets live": True,
    }


def _became(stage: Stage, job: UUID, zombie: Fleet, heir: Fleet) -> tuple[dict[str, Any], int]:
    history = _history(stage, job)
    pids = {each.pid for each in stage.effects.read() if each.job == job}
    return {
        "endings": [str(each.ending) for each in history.endings],
        "turns that began": sorted(_begun(stage, job)),
        "in processes": len(pids),
        "both fleets live": not zombie.ended and not heir.ended,
    }, len(history.stale)


def _begun(stage: Stage, job: UUID) -> set[int]:
    found = stage.effects.read()
    return {each.turn for each in found if each.job == job and each.what == BEGAN}


def _says(stage: Stage, worker: int, turn: Turn, ending: Ending) -> str:
    """Return the answer to a worker that says how a turn ended."""
    told = Settlement(
        *(turn.lane, turn.seq, turn.job_id, turn.turn, ending), began_at=turn.granted_at
    )
    (verdict,) = stage.store.settle(worker, [told])
    return str(verdict)


def _history(stage: Stage, job: UUID) -> JobHistory:
    return next(each for each in stage.store.histories() if each.uuid == job)
