"""Turns: how they end, what follows them, and what a cancel or a crash makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final
from uuid import uuid4

from timeball.certify.probes.claims import said
from timeball.certify.probes.probe import Probe
from timeball.certify.sessions import Blocked, Refused
from timeball.certify.stage import Stage
from timeball.certify.verbs import KIND, claim_all, claim_of, settle_of, submit, worker_of
from timeball.core.payload import decode_args, storable
from timeball.core.records import JobSpec, Settlement, Turn, Verdict
from timeball.core.states import TERMINAL, Ending, State
from timeball.errors import UsageError
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.within import JobTransaction


def _again(stage: Stage) -> Any:
    """Retry a job; return the turns that it is granted."""
    submit(stage.store)
    worker = worker_of(stage.store)
    (turn,) = claim_all(stage.store, worker)
    stage.store.connections.run("settle", **settle_of(worker, turn, "released"))
    return [each.turn for each in (turn, *claim_all(stage.store, worker))]


def _crashes(stage: Stage) -> Any:
    """Have workers die under one job; return how its turns end, and what it is said to cost."""
    (spec,) = submit(stage.store, max_crashes=2)
    for _ in range(2):
        worker = worker_of(stage.store)
        (turn,) = claim_all(stage.store, worker)
        stage.store.expire(worker, beat=None, begun=[(turn.job_id, turn.turn)])
    job = stage.store.get(spec.uuid)
    return {"state": str(job.state), "reason": job.reason}


def _not_begun(stage: Stage) -> Any:
    """Have a worker die that has begun one of its two turns."""
    specs = submit(stage.store, 2)
    worker = worker_of(stage.store)
    first, _second = claim_all(stage.store, worker)
    stage.store.expire(worker, beat=None, begun=[(first.job_id, first.turn)])
    return [stage.store.get(spec.uuid).crashes for spec in specs]


def _cancel_then_retry(stage: Stage) -> Any:
    """Ask a running attempt to stop; it fails and would be tried again."""
    (spec,) = submit(stage.store)
    worker = worker_of(stage.store)
    (turn,) = claim_all(stage.store, worker)
    answer = str(stage.store.cancel(spec.uuid))
    stage.store.connections.run("settle", **settle_of(worker, turn, "retried", 60.0))
    return [answer, str(stage.store.get(spec.uuid).state)]


def _cancel_meanwhile(stage: Stage) -> Any:
    """Have an attempt fail while the request to stop it has not committed."""
    (spec,) = submit(stage.store)
    worker = worker_of(stage.store)
    (turn,) = claim_all(stage.store, worker)
    one, two = stage.session().begin(), stage.session()
    one.verb("cancel", uuid=spec.uuid)
    step = two.verb_steps("settle", **settle_of(worker, turn, "retried", 60.0))
    one.commit()
    two.outcome()
    return {"waits": isinstance(step, Blocked), "state": str(stage.store.get(spec.uuid).state)}


def _claimed_meanwhile(stage: Stage) -> Any:
    """Cancel a job while the claim that grants it has not committed."""
    (spec,) = submit(stage.store)
    worker = worker_of(stage.store)
    one, two = stage.session().begin(), stage.session()
    granted = said(one.verb("claim", **claim_of(worker)))
    two.verb_steps("cancel", uuid=spec.uuid)
    one.commit()
    answer = two.outcome()
    told = answer.sqlstate if isinstance(answer, Refused) else answer[0][0]
    return {"granted": granted, "cancel": told}


def _poison(stage: Stage) -> Any:
    """End a job with a text that no database stores, beside another one."""
    specs = submit(stage.store, 2)
    worker = worker_of(stage.store)
    bad, good = claim_all(stage.store, worker)
    error = storable("a\0b")
    settlements = [
        Settlement(*bad[:4], Ending.FAILED, began_at=bad.granted_at, error=error),
        Settlement(*good[:4], Ending.SUCCEEDED, began_at=good.granted_at),
    ]
    try:
        verdicts = [str(verdict) for verdict in stage.store.settle(worker, settlements)]
    except Unstorable:
        verdicts = []
    return [verdicts, *[str(stage.store.get(spec.uuid).state) for spec in specs]]


class Unstorable(Exception):
    """A settlement failed for a text in it."""


def fails_all(_store: Any, _worker: int, _settlements: Any, error: Exception) -> Any:
    """Give up a flush for one row of it: a defect."""
    raise Unstorable from error


def not_made_storable(text: str) -> str:
    """Return the text as it is: a defect."""
    return text


def _undecodable(stage: Stage) -> Any:
    """Claim two jobs, of which one has arguments that nobody can decode."""
    specs = submit(stage.store, 2)
    stage.ask("spoil_args", job=specs[0].uuid)
    try:
        return len(claim_all(stage.store, worker_of(stage.store)))
    except UsageError:
        return "nobody has any"


_claim = PostgresStore.claim


def claims_and_decodes(store: PostgresStore, worker: int, **asked: Any) -> list[Turn]:
    """Decode the arguments of all that are granted before any is handed out: a defect."""
    found = _claim(store, worker, **asked)
    for turn in found:
        decode_args(turn.args)
    return found


def _many_attempts(stage: Stage) -> Any:
    """Give back a job that has been tried forty thousand times."""
    (spec,) = submit(stage.store)
    worker = worker_of(stage.store)
    (turn,) = claim_all(stage.store, worker)
    stage.store.connections.run("settle", **settle_of(worker, turn, "retried", 0.0))
    stage.ask("set_attempts", job=spec.uuid, attempts=40_000)
    stage.store.promote(10)
    (turn,) = claim_all(stage.store, worker)
    answer = stage.session().verb_steps("settle", **settle_of(worker, turn, "retried", 60.0))
    if isinstance(answer, Refused):
        return answer.sqlstate
    return str(stage.store.get(spec.uuid).state)


def _counted(stage: Stage) -> Any:
    """Count while a job ends between any two statements of the counting."""
    with closing(PostgresStore(stage.dsn)) as store:
        submit(store, 3)
        worker = worker_of(store)
        turns = claim_all(store, worker)
        plain = store._run  # noqa: SLF001 - stands between the store and its statements

        def between(name: str, /, **params: Any) -> Any:
            rows = plain(name, **params)
            if name == "counts" and turns:
                store.connections.run("settle", **settle_of(worker, turns.pop()))
            return rows

        store._run = between  # noqa: SLF001
        return sum(store.counts().values())


def counts_twice(store: PostgresStore, queue: str | None = None) -> dict[State, int]:
    """Count what is over by one statement, and the rest by another one: a defect."""
    over = store._run("counts", queue=queue)  # noqa: SLF001 - it stands in for a method
    rest = store._run("counts", queue=queue)  # noqa: SLF001
    found = {State(state): count for state, count in over if state in TERMINAL}
    return found | {State(state): count for state, count in rest if state not in TERMINAL}


def _taken_back(stage: Stage) -> Any:
    """Submit within a caller's transaction that is rolled back."""
    connection = stage.store.connections.connect_isolated()
    with closing(connection), connection.transaction(force_rollback=True):
        stage.store.submit_within(connection, [JobSpec(uuid=uuid4(), kind=KIND)])
    return sum(stage.store.counts().values())


def submits_apart(store: PostgresStore, _connection: Any, specs: Sequence[JobSpec]) -> Any:
    """Submit on a connection of the store's own: a defect."""
    return store.submit(specs)


def _cut_off(stage: Stage) -> Any:
    """End the session of a transactional job once it has said that it succeeded."""
    (spec,) = submit(stage.store)
    worker = worker_of(stage.store)
    (turn,) = claim_all(stage.store, worker)
    success = Settlement(*turn[:4], Ending.SUCCEEDED, began_at=turn.granted_at)
    with stage.store.transactions.begin() as own:
        stage.store.submit_within(own.connection, [JobSpec(uuid=uuid4(), kind=KIND)])
        own.settle(worker, success)
        stage.ask("end_session", pid=own.connection.info.backend_pid)
    written = sum(stage.store.counts().values()) - 1
    return {"job": str(stage.store.get(spec.uuid).state), "written": written}


def settles_apart(own: JobTransaction, worker: int, success: Settlement) -> None:
    """Record the success of a transactional job in a transaction of its own: a defect."""
    info = own.connection.info
    with closing(PostgresStore(f"{info.dsn} password={info.password}")) as store:
        (verdict,) = store.settle(worker, [success])
    own.accepted = verdict is Verdict.ACCEPTED


AGAIN: Final = Probe(name="who is given back has the next turn", run=_again, expected=[1, 2])
CRASHES: Final = Probe(
    name="who kills too many workers is quarantined",
    run=_crashes,
    expected={"state": "failed", "reason": "quarantined"},
)
NOT_BEGUN: Final = Probe(name="what had not begun is not to blame", run=_not_begun, expected=[1, 0])
CANCEL_THEN_RETRY: Final = Probe(
    name="nothing follows a cancelled attempt",
    run=_cancel_then_retry,
    expected=["requested", "cancelled"],
)
CANCEL_MEANWHILE: Final = Probe(
    name="a request that comes meanwhile is heeded",
    run=_cancel_meanwhile,
    expected={"waits": True, "state": "cancelled"},
)
CLAIMED_MEANWHILE: Final = Probe(
    name="a cancel looks again under the lane's lock",
    run=_claimed_meanwhile,
    expected={"granted": 1, "cancel": "requested"},
)
POISON: Final = Probe(
    name="a bad text fails alone",
    run=_poison,
    expected=[["accepted", "accepted"], "failed", "succeeded"],
)
UNDECODABLE: Final = Probe(name="a bad argument holds up nobody", run=_undecodable, expected=2)
MANY_ATTEMPTS: Final = Probe(
    name="attempts are counted on", run=_many_attempts, expected="scheduled"
)
COUNTED: Final = Probe(name="counts are one snapshot", run=_counted, expected=3)
TAKEN_BACK: Final = Probe(
    name="a submission is its caller's transaction", run=_taken_back, expected=0
)
CUT_OFF: Final = Probe(
    name="what a job writes and its success are one commit",
    run=_cut_off,
    expected={"job": "running", "written": 0},
)
