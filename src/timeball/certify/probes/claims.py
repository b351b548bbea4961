"""Claims: each turn is granted once, to one who may have it, and nobody is held up."""

from __future__ import annotations

from itertools import chain
from typing import Any, Final
from uuid import uuid4

from timeball.certify.probes.probe import Probe
from timeball.certify.sessions import Blocked, Refused, Rows
from timeball.certify.stage import Stage
from timeball.certify.verbs import (
    claim_all,
    claim_of,
    expire_of,
    jobs_json,
    settle_of,
    submit,
    worker_of,
)
from timeball.core.records import JobSpec, Turn
from timeball.errors import WorkerExpired

_NOTHING: Final = "nothing"
_WEAK: Final = {"AccessShareLock", "RowShareLock", "RowExclusiveLock"}


def said(answer: Rows | Blocked | Refused) -> Any:
    """Return a claim's answer in a word: the code of an error, or how many leases it gave."""
    if isinstance(answer, Refused):
        return answer.sqlstate
    assert isinstance(answer, list)
    return 1 if answer[0][0] is not None else _NOTHING


def _two_at_once(stage: Stage) -> Any:
    """Have a second claim come between the first one's reading and its commit."""
    (spec,) = submit(stage.store)
    workers = [worker_of(stage.store) for _ in range(2)]
    one, two = stage.session().begin(), stage.session()
    one.verb("claim", **claim_of(workers[0]))
    step = two.verb_steps("claim", **claim_of(workers[1]))
    one.commit()
    answer = said(two.outcome())
    grants = len(stage.ask("leases_of", job=spec.uuid))
    return {"waits": isinstance(step, Blocked), "second": answer, "grants": grants}


def _late_commit(stage: Stage) -> Any:
    """Submit one job in a transaction that commits after a later one's job was granted."""
    stage.store.ensure_lanes([("default", JobSpec(uuid=uuid4(), kind="a").priority)])
    worker, one = worker_of(stage.store), stage.session().begin()
    one.verb("submit", jobs=jobs_json(1))
    submit(stage.store)
    before = len(claim_all(stage.store, worker))
    one.commit()
    return [before, len(claim_all(stage.store, worker))]


def _window(stage: Stage) -> Any:
    """Return which of the transactions 1 to 20 lie in the window of two snapshots.

    Of those in progress at first 8 has ended since; 12 is in progress in the second.
    """
    rows = stage.ask("window", prev="7:10:7,8", cur="7:15:7,12")
    bounds = [
        (int(low), int(low_id), int(high), int(high_id)) for low, low_id, high, high_id in rows
    ]
    return [
        xid
        for xid in range(1, 21)
        if any(low <= (xid, 1) <= high for low, high in [((a, b), (c, d)) for a, b, c, d in bounds])
    ]


def _dirty(stage: Stage) -> Any:
    """Claim in a transaction that has submitted, and in one of a stronger isolation."""
    stage.store.ensure_lanes([("default", JobSpec(uuid=uuid4(), kind="a").priority)])
    worker, one = worker_of(stage.store), stage.session().begin()
    one.verb("submit", jobs=jobs_json(1))
    dirty = said(one.verb_steps("claim", **claim_of(worker)))
    one.rollback()
    one.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    strong = said(one.verb_steps("claim", **claim_of(worker)))
    one.rollback()
    return {"after a submit": dirty, "repeatable read": strong}


def _weak_locks(stage: Stage) -> Any:
    """Return which locks of whole tables a claim has that are stronger than it needs."""
    submit(stage.store)
    one = stage.session().begin()
    one.verb("claim", **claim_of(worker_of(stage.store)))
    modes = {mode for (mode,) in stage.ask("table_locks", pid=one.pid)}
    one.rollback()
    return sorted(modes - _WEAK)


def _cancelled(stage: Stage) -> Any:
    """Cancel a job that is ahead of its lane's cursor, then claim."""
    (spec,) = submit(stage.store)
    worker = worker_of(stage.store)
    answer = str(stage.store.cancel(spec.uuid))
    return {"cancel": answer, "granted": len(claim_all(stage.store, worker))}


def _many_cancelled(stage: Stage) -> Any:
    """Claim ten at a time behind three hundred that were cancelled."""
    specs = submit(stage.store, 301)
    for spec in specs[:-1]:
        stage.store.cancel(spec.uuid)
    worker, one = worker_of(stage.store), stage.session()
    for _ in range(9):
        lane, seq, _again = one.verb("claim", **claim_of(worker, 10))[0]
        found = one.verb("lease_turns", lane=lane, seq=seq, worker=worker) if lane else []
        if found:
            return "found"
    return "walks the same ones again and again"


def _given_up(stage: Stage) -> Any:
    """Have a worker claim that was given up."""
    submit(stage.store)
    worker = worker_of(stage.store)
    stage.store.expire(worker, beat=None, begun=None)
    try:
        return len(stage.store.claim(worker, limit=1, request=uuid4(), floors={}))
    except WorkerExpired:
        return "refused"


def _beats_on(stage: Stage) -> Any:
    """Have a worker beat that was given up."""
    worker = worker_of(stage.store)
    stage.store.expire(worker, beat=None, begun=None)
    return "alive" if stage.store.beat([worker]) else "refused"


def _not_its_own(stage: Stage) -> Any:
    """Have a worker settle what another one was granted."""
    (spec,) = submit(stage.store)
    owner, other = worker_of(stage.store), worker_of(stage.store)
    (turn,) = claim_all(stage.store, owner)
    ((verdicts,),) = stage.store.connections.run("settle", **settle_of(other, turn))
    return {"verdicts": verdicts, "state": str(stage.store.get(spec.uuid).state)}


def _in_order(stage: Stage) -> Any:
    """Have two verbs lock the rows of three jobs, of which a third session holds the middle one."""
    specs = submit(stage.store, 3)
    worker = worker_of(stage.store)
    turns = claim_all(stage.store, worker)
    gate, one, two = stage.session().begin(), stage.session(), stage.session()
    gate.verb("cancel", uuid=specs[1].uuid)
    one.verb_blocks("settle", **_retried(worker, turns))
    two.verb_blocks("delete_jobs", uuids=[spec.uuid for spec in specs])
    gate.commit()
    answers = [one.outcome(), two.outcome()]
    return [answer.sqlstate for answer in answers if isinstance(answer, Refused)]


def _retried(worker: int, turns: list[Turn]) -> dict[str, Any]:
    each = [settle_of(worker, turn, "retried", 60.0) for turn in turns]
    columns = {
        name: [*chain.from_iterable(one[name] for one in each)]
        for name in each[0]
        if name != "worker"
    }
    return {**columns, "worker": worker}


def _expired_meanwhile(stage: Stage) -> Any:
    """Have a worker be given up while its claim has not committed."""
    submit(stage.store)
    worker = worker_of(stage.store)
    one, two = stage.session().begin(), stage.session()
    one.verb("claim", **claim_of(worker))
    step = two.verb_steps("expire", **expire_of(worker))
    one.commit()
    answer = two.outcome()
    assert isinstance(answer, list)
    return {"waits": isinstance(step, Blocked), "lost": answer[0][1]}


TWO_AT_ONCE: Final = Probe(
    name="of two claims at once one has the turn",
    run=_two_at_once,
    expected={"waits": True, "second": _NOTHING, "grants": 1},
)
LATE_COMMIT: Final = Probe(name="what commits late is granted", run=_late_commit, expected=[1, 1])
WINDOW: Final = Probe(
    name="a window has what one snapshot shows and the other does not",
    run=_window,
    expected=[8, 10, 11, 13, 14],
)
DIRTY: Final = Probe(
    name="a claim runs alone",
    run=_dirty,
    expected={"after a submit": "TB002", "repeatable read": "TB002"},
)
WEAK_LOCKS: Final = Probe(name="a claim locks no table", run=_weak_locks, expected=[])
CANCELLED: Final = Probe(
    name="what was cancelled never starts",
    run=_cancelled,
    expected={"cancel": "cancelled", "granted": 0},
)
MANY_CANCELLED: Final = Probe(
    name="what was cancelled is walked once", run=_many_cancelled, expected="found"
)
GIVEN_UP: Final = Probe(
    name="who was given up is granted nothing", run=_given_up, expected="refused"
)
BEATS_ON: Final = Probe(name="who was given up is told so", run=_beats_on, expected="refused")
NOT_ITS_OWN: Final = Probe(
    name="only who was granted a turn ends it",
    run=_not_its_own,
    expected={"verdicts": ["stale"], "state": "running"},
)
IN_ORDER: Final = Probe(name="rows are locked in one order", run=_in_order, expected=[])
EXPIRED_MEANWHILE: Final = Probe(
    name="no lease escapes the expiry",
    run=_expired_meanwhile,
    expected={"waits": True, "lost": 1},
)
