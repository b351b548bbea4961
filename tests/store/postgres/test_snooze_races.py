"""Snoozes beside the verbs that meet them on one job, in every order in which they can."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from urllib.parse import quote

import pytest
from tests.store.postgres.sessions import (
    Session,
    claim_all,
    claim_of,
    settle_of,
    submit,
    worker_of,
)

from timeball.core.audit import audit
from timeball.core.records import JobSpec
from timeball.core.states import State
from timeball.core.upkeep import SnoozeAnswer
from timeball.store.postgres import PostgresStore

Make = Callable[[], Session]
SNOOZED = [("snoozed",)]
PROMOTE = {"limit": 10, "after": ""}


def off(ledger: PostgresStore, spec: JobSpec, delay_s: float = 60.0) -> dict[str, object]:
    return {"uuid": spec.uuid, "until": ledger.now() + timedelta(seconds=delay_s)}


def clean(store: PostgresStore) -> bool:
    return not audit(store.histories(), quiesced=False).violations


def test_a_claim_that_waits_for_a_snooze_does_not_get_the_turn(
    ledger: PostgresStore, session: Make
) -> None:
    first, second = submit(ledger, 2)
    worker = worker_of(ledger)
    one, two = session().begin(), session()
    assert one.verb("snooze", **off(ledger, first)) == SNOOZED
    two.verb_blocks("claim", **claim_of(worker))
    one.commit()
    lane, seq, _ = two.answer()[0]
    turns = ledger.connections.run("lease_turns", lane=lane, seq=seq, worker=worker)
    assert [turn[2] for turn in turns] == [second.uuid]
    assert ledger.get(first.uuid).state is State.SCHEDULED
    assert clean(ledger)


def test_a_snooze_that_waits_for_a_claim_finds_the_job_running_or_takes_hold(
    ledger: PostgresStore, session: Make
) -> None:
    for ends, answer in (("commit", "running"), ("rollback", "snoozed")):
        (spec,) = submit(ledger)
        one, two = session().begin(), session()
        one.verb("claim", **claim_of(worker_of(ledger)))
        two.verb_blocks("snooze", **off(ledger, spec))
        getattr(one, ends)()
        assert two.answer() == [(answer,)]
    assert clean(ledger)


def test_an_instant_on_record_is_the_same_in_every_date_style(
    ledger: PostgresStore, dsn: str
) -> None:
    one, two = submit(ledger, 2)
    until = ledger.now() + timedelta(days=90)
    styles = ("German,DMY", "SQL,MDY"), ("Asia/Tokyo", "America/St_Johns")
    for spec, style, zone in zip((one, two), *styles, strict=True):
        options = quote(f"-cdatestyle={style} -ctimezone={zone}")
        with closing(PostgresStore(f"{dsn}&options={options}")) as store:
            assert store.snooze(spec.uuid, until) is SnoozeAnswer.SNOOZED
    told = [row.until for history in ledger.histories() for row in history.snoozes]
    assert told == [pytest.approx(until.timestamp(), abs=1e-5)] * 2


def test_a_snooze_taken_back_leaves_the_job_in_its_place(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    one = session().begin()
    one.verb("snooze", **off(ledger, spec))
    one.rollback()
    (turn,) = claim_all(ledger, worker_of(ledger))
    assert (turn.uuid, turn.turn) == (spec.uuid, 1)


def test_of_a_cancel_and_a_snooze_the_cancel_is_final_in_either_order(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    one, two = session().begin(), session()
    one.verb("snooze", **off(ledger, spec))
    two.verb_blocks("cancel", uuid=spec.uuid)
    one.commit()
    assert two.answer() == [("cancelled",)]
    (spec,) = submit(ledger)
    three, four = session().begin(), session()
    three.verb("cancel", uuid=spec.uuid)
    four.verb_blocks("snooze", **off(ledger, spec))
    three.commit()
    assert four.answer() == [("finished",)]
    assert ledger.counts() == {State.CANCELLED: 2}
    assert clean(ledger)


def test_of_two_snoozes_the_later_instant_counts(ledger: PostgresStore, session: Make) -> None:
    (spec,) = submit(ledger)
    one, two = session().begin(), session()
    later = off(ledger, spec, 90.0)
    one.verb("snooze", **later)
    two.verb_blocks("snooze", **off(ledger, spec))
    one.commit()
    assert two.answer() == SNOOZED
    job = ledger.get(spec.uuid)
    assert (job.turn, job.run_at) == (2, later["until"])


def test_a_promotion_leaves_a_job_alone_that_is_being_put_off(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger, delay_s=60.0)
    one, two = session().begin(), session()
    one.run("UPDATE timeball.held SET run_at = run_at - interval '2 minutes'")
    one.commit()
    one.begin()
    assert one.verb("snooze", **off(ledger, spec)) == SNOOZED
    assert two.verb("promote", **PROMOTE)[0][0] == 0
    one.commit()
    assert ledger.promote(10).moved == 0


def test_a_snooze_that_waits_for_a_promotion_ends_the_turn_that_lined_up(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger, delay_s=60.0)
    one, two = session(), session()
    for table in ("held", "job"):
        one.run(f"UPDATE timeball.{table} SET run_at = run_at - interval '2 minutes'")
    one.begin()
    assert one.verb("promote", **PROMOTE)[0][0] == 1
    two.verb_blocks("snooze", **off(ledger, spec))
    one.commit()
    assert two.answer() == SNOOZED
    assert claim_all(ledger, worker_of(ledger)) == []
    assert clean(ledger)


def test_a_snooze_beside_a_settlement_takes_the_running_turn_or_the_next_one(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turn, "released"))
    assert two.verb("snooze", **off(ledger, spec)) == [("running",)]
    one.commit()
    assert two.verb("snooze", **off(ledger, spec)) == SNOOZED
    assert (ledger.get(spec.uuid).turn, clean(ledger)) == (3, True)


def test_a_snooze_on_another_server_moves_the_ledger_in_before(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    session().run("UPDATE timeball.home SET system = system + 1")
    assert ledger.snooze(spec.uuid, ledger.now() + timedelta(seconds=60)) is SnoozeAnswer.SNOOZED
    assert claim_all(ledger, worker_of(ledger)) == []
    assert (ledger.get(spec.uuid).state, clean(ledger)) == (State.SCHEDULED, True)


def test_a_snooze_runs_alone(ledger: PostgresStore, session: Make) -> None:
    (spec,) = submit(ledger)
    one = session().begin()
    one.run("SELECT pg_current_xact_id()")
    with pytest.raises(Exception, match="alone"):
        one.verb("snooze", **off(ledger, spec))
