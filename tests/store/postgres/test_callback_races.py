"""A call that meets a deadline, a cancel or another call, stepped: exactly one of them ends it."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.store.batches import job
from tests.store.postgres.sessions import Session, claim_all, worker_of
from tests.store.postgres.test_dependency_races import running
from tests.store.postgres.test_spawn_races import spawn_of

from timeball.core.audit import audit
from timeball.core.callbacks import CALLBACK, CallAnswer
from timeball.core.dependencies import Rule
from timeball.core.records import JobSpec
from timeball.core.states import Ending, State
from timeball.store.postgres import PostgresStore

Make = Callable[[], Session]


def asked(store: PostgresStore, within_s: float = 3600) -> tuple[UUID, UUID]:
    """A callback that waits, and a child that goes on however it ends."""
    expires_at = store.now() + timedelta(seconds=within_s)
    one = JobSpec(uuid=uuid4(), kind=CALLBACK, expires_at=expires_at)
    child = job(one.uuid, rule=Rule.ALL_DONE)
    store.submit([one, child])
    return one.uuid, child.uuid


def said(callback: UUID, value: object = "ok") -> dict[str, object]:
    return {"callback": callback, "result": json.dumps(value)}


def ends(store: PostgresStore, callback: UUID) -> list[Ending]:
    """How the callback has ended; its child was told once, and nothing is wrong with the record."""
    while store.link(100):
        pass
    worker = worker_of(store)
    assert len(claim_all(store, worker)) == 1
    assert claim_all(store, worker) == []
    assert list(audit(store.histories(), quiesced=False).violations) == []
    (history,) = (each for each in store.histories() if each.uuid == callback)
    return [each.ending for each in history.endings]


def expired(session: Session) -> Session:
    """The session lives two hours from now."""
    session.run("SELECT set_config('timeball.now', (now() + interval '2 h')::text, false)")
    return session


def pass_deadline(store: PostgresStore) -> None:
    """It is over for the one callback that there is."""
    with psycopg.connect(store.connections.dsn, autocommit=True) as connection:
        connection.execute(
            "UPDATE timeball.job SET expires_at = now() WHERE expires_at IS NOT NULL"
        )
        connection.execute("UPDATE timeball.held SET expires_at = now() WHERE reason = 'call'")
        connection.execute("UPDATE timeball.deadline SET look_at = now()")


@pytest.mark.parametrize("first", ["call", "cancel"])
def test_of_a_call_and_a_cancel_the_first_ends_it(
    ledger: PostgresStore, session: Make, first: str
) -> None:
    callback, _ = asked(ledger)
    one, two = session().begin(), session()
    if first == "call":
        assert one.verb("call_back", **said(callback)) == [("accepted", None)]
        two.verb_blocks("cancel", uuid=callback)
    else:
        assert one.verb("cancel", uuid=callback) == [("cancelled",)]
        two.verb_blocks("call_back", **said(callback))
    one.commit()
    told = {"call": [("finished",)], "cancel": [("cancelled", None)]}
    assert two.answer() == told[first]
    assert ends(ledger, callback) == [Ending.SUCCEEDED if first == "call" else Ending.CANCELLED]


@pytest.mark.parametrize("first", ["call", "deadline"])
def test_of_a_call_and_its_deadline_the_first_ends_it(
    ledger: PostgresStore, session: Make, first: str
) -> None:
    callback, _ = asked(ledger)
    one, two = session().begin(), session()
    if first == "call":
        assert one.verb("call_back", **said(callback)) == [("accepted", None)]
        assert expired(two).verb("lapse", limit=10) == [(0,)]  # waits for nobody, and looks again
        one.commit()
        assert two.verb("lapse", limit=10) == [(0,)]
    else:
        pass_deadline(ledger)
        assert one.verb("lapse", limit=10) == [(1,)]
        # Whoever calls now is late by the clock; who looked at it before is late by the row.
        assert two.verb("call_back", **said(callback)) == [("expired", None)]
        one.commit()
        assert ledger.call_back(callback, '"ok"') is CallAnswer.EXPIRED
    assert ends(ledger, callback) == [Ending.SUCCEEDED if first == "call" else Ending.EXPIRED]


@pytest.mark.parametrize("order", [("first", "first"), ("first", "second")])
def test_of_two_calls_at_once_one_is_kept_and_the_other_is_told_so(
    ledger: PostgresStore, session: Make, order: tuple[str, str]
) -> None:
    callback, _ = asked(ledger)
    one, two = session().begin(), session()
    assert one.verb("call_back", **said(callback, order[0])) == [("accepted", None)]
    two.verb_blocks("call_back", **said(callback, order[1]))
    one.commit()
    assert two.answer() == [("succeeded", '"first"')]
    assert ledger.get(callback).result == "first"
    same = order[0] == order[1]
    kept = ledger.call_back(callback, json.dumps(order[1]))
    assert kept is (CallAnswer.ACCEPTED if same else CallAnswer.OTHERWISE)
    assert ends(ledger, callback) == [Ending.SUCCEEDED]


def test_a_call_and_a_cancel_lock_who_has_spawned_the_callback_in_one_order(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,) = running(ledger, 1)  # who is older than what it spawns, and waits for it
    one = JobSpec(uuid=uuid4(), kind=CALLBACK, expires_at=ledger.now() + timedelta(hours=1))
    ledger.connections.run("spawn", **spawn_of(worker, turn, one))
    other, cancel, call = session().begin(), session(), session()
    other.run("SELECT 1 FROM timeball.held WHERE reason = 'spawned' FOR UPDATE")
    cancel.verb_blocks("cancel", uuid=one.uuid)
    call.verb_blocks("call_back", **said(one.uuid))
    other.commit()
    assert cancel.answer() == [("cancelled",)]
    assert call.answer() == [("cancelled", None)]
    assert ends(ledger, one.uuid) == [Ending.CANCELLED]


def test_a_call_that_is_taken_back_has_not_happened_and_may_come_again(
    ledger: PostgresStore, session: Make
) -> None:
    """As when the server is killed in the middle of it, or its answer is lost."""
    callback, child = asked(ledger)
    one = session().begin()
    one.verb("call_back", **said(callback))
    one.rollback()
    assert (ledger.get(callback).state, ledger.get(child).state) == (State.WAITING,) * 2
    assert ledger.call_back(callback, '"ok"') is CallAnswer.ACCEPTED
    assert ledger.call_back(callback, '"ok"') is CallAnswer.ACCEPTED
    assert ends(ledger, callback) == [Ending.SUCCEEDED]


def test_a_call_and_the_submission_of_a_child_meet_and_the_child_starts(
    ledger: PostgresStore, session: Make
) -> None:
    callback, _ = asked(ledger)
    one = session().begin()
    one.verb("call_back", **said(callback))
    late = job(callback)
    two = session()
    two.verb("submit", jobs=json.dumps([{
        "uuid": str(late.uuid), "kind": "a", "after": [{"job": str(callback)}]}]))  # fmt: skip
    one.commit()
    while ledger.link(100):
        pass
    assert {turn.uuid for turn in claim_all(ledger, worker_of(ledger))} >= {late.uuid}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"expires_at": "2999-01-01Z", "key": "a"},
        {"expires_at": "2999-01-01Z", "delay_s": 9},
        {"expires_at": "2999-01-01Z", "after": True},
    ],
)
def test_what_could_wait_for_ever_or_for_more_than_a_call_is_refused(
    ledger: PostgresStore, fields: dict[str, object]
) -> None:
    ledger.submit([other := job()])
    spec = {"uuid": str(uuid4()), "kind": CALLBACK, **fields}
    if "after" in spec:
        spec["after"] = [{"job": str(other.uuid)}]
    with pytest.raises(psycopg.errors.CheckViolation, match="job_callback"):
        ledger.connections.run("submit", jobs=json.dumps([spec]))
