"""Counters near the largest number that they can hold: nothing stops, and nobody else is harmed."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from tests.store.postgres.sessions import Session, claim_all, submit, until, worker_of

from timeball.core.outcomes import TURN_MAX, Outcome, Raised, Run, Snoozed, Unbegun, decide
from timeball.core.records import Settlement, Turn
from timeball.core.retry import Retry
from timeball.core.states import TERMINAL, Ending, State
from timeball.core.upkeep import ReviveAnswer
from timeball.store.postgres import PostgresStore

Make = Callable[[], Session]
FAR = 2**63 - 10_000
SEQUENCES = ("job", "worker", "event", "schedule")
FIRST_LEASE = """INSERT INTO timeball.lease (lane, seq, prev, cur, pos_xid, pos_id, job_ids, turns)
    VALUES (1, %s, '1:1:', '1:1:', '0', 0, '{}', '{}')"""


def end(store: PostgresStore, worker: int, turn: Turn, how: Outcome) -> str:
    said = decide(turn, how, Run(turn.granted_at, 0.0), Retry(base_s=0.0), 0.0)
    (verdict,) = store.settle(worker, [said])
    return verdict


def test_ids_and_leases_near_the_largest_number_change_nothing(
    ledger: PostgresStore, session: Make
) -> None:
    one = session()
    for table in SEQUENCES:
        one.run(f"ALTER TABLE timeball.{table} ALTER id RESTART WITH {FAR}")
    try:
        ledger.ensure_lanes([("default", 5)])
        one.run(FIRST_LEASE, [FAR])
        specs = submit(ledger, 30)
        worker, dying = worker_of(ledger), worker_of(ledger)
        turns = ledger.claim(dying, limit=10, request=uuid4(), floors={})
        assert ledger.get(specs[0].uuid).worker == dying  # found by bisection of the leases
        assert ledger.cancel(specs[0].uuid) == "requested"
        ledger.expire(dying, beat=None, begun=[turns[1][2:4]])
        ledger.cancel(specs[-1].uuid)
        raised = Raised(error_type="E", error="e", again=True)

        def done() -> bool:
            ledger.promote(1_000)
            for turn in claim_all(ledger, worker):
                how = (
                    raised if turn.failures == 0 else Raised(error_type="E", error="", again=False)
                )
                assert end(ledger, worker, turn, how) == "accepted"
            return set(ledger.counts()) <= TERMINAL

        until(done, "all have ended")
        assert ledger.counts() == {State.FAILED: 28, State.CANCELLED: 2}
    finally:
        for table in SEQUENCES:
            one.run(f"ALTER TABLE timeball.{table} ALTER id RESTART WITH 1")


def last_turn(store: PostgresStore, session: Session) -> Turn:
    """A job that has had all the turns that can be counted, but for this one."""
    (spec,) = submit(store, delay_s=3_600.0)
    number = store.get(spec.uuid).id
    session.run("UPDATE timeball.held SET turn = %s, run_at = now() WHERE job_id = %s",
                [TURN_MAX, number])  # fmt: skip
    store.promote(1_000)
    worker = worker_of(store)
    (turn,) = store.claim(worker, limit=1, request=uuid4(), floors={})
    return turn


@pytest.mark.parametrize(
    "how", [Snoozed(0.0), Unbegun(), Raised(error_type="E", error="", again=True)]
)
def test_a_job_that_needs_more_turns_than_can_be_counted_fails_alone(
    store: PostgresStore, session: Make, how: Outcome
) -> None:
    last = last_turn(store, session())
    (worker,) = (pulse.worker for pulse in store.pulses())
    submit(store, 2)
    said = [decide(last, how, Run(last.granted_at, 0.0), Retry(), 0.0)]
    said += [
        Settlement(*turn[:4], Ending.SUCCEEDED, began_at=turn.granted_at)
        for turn in claim_all(store, worker)
    ]
    assert store.settle(worker, said) == ["accepted"] * 3
    assert store.counts() == {State.FAILED: 1, State.SUCCEEDED: 2}
    assert store.get(last.uuid).reason == "turns"
    assert store.revive([last.uuid]) == [ReviveAnswer.REFUSED]


@pytest.mark.parametrize("begun", [None, ()])
def test_a_dead_worker_with_such_a_job_is_given_up_all_the_same(
    store: PostgresStore, session: Make, begun: tuple | None
) -> None:
    last = last_turn(store, session())
    (worker,) = (pulse.worker for pulse in store.pulses())
    submit(store)
    store.claim(worker, limit=1, request=uuid4(), floors={last.lane: last.seq})
    assert store.expire(worker, beat=None, begun=begun) is not None
    assert (store.get(last.uuid).state, store.get(last.uuid).reason) == (State.FAILED, "turns")
    assert store.counts() == {State.FAILED: 1, State.PENDING: 1}


def test_such_a_job_whose_process_dies_has_failed(store: PostgresStore, session: Make) -> None:
    last = last_turn(store, session())
    (worker,) = (pulse.worker for pulse in store.pulses())
    lost = Settlement(*last[:4], Ending.LOST, reason="process died", began_at=last.granted_at)
    assert store.settle(worker, [lost]) == ["accepted"]
    assert store.get(last.uuid).reason == "turns"
