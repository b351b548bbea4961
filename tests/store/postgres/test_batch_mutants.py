"""Defects of batches, put in one by one: a scenario sees each, and so does the audit.

The functions as they are pass the same scenarios; a pattern that is not there any more fails.
"""

from __future__ import annotations

from contextlib import closing
from uuid import UUID

import pytest
from tests.store.batches import batch, job
from tests.store.postgres.sessions import claim_all, settle_of, until, worker_of
from tests.store.postgres.test_dependency_mutants import Make, Mutant, replaced

from timeball.core.audit import audit
from timeball.core.records import Turn
from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import statement
from timeball.store.postgres.encoding import encode_specs

pytestmark = pytest.mark.slow


def running(store: PostgresStore, count: int) -> tuple[int, list[Turn], UUID]:
    """A worker, the jobs of a batch that it runs, and the batch."""
    members = [job() for _ in range(count)]
    whole = batch(*members)
    store.submit([*members, whole])
    worker = worker_of(store)
    return worker, claim_all(store, worker), whole.uuid


def together(store: PostgresStore, session: Make) -> bool:
    """The last two jobs end at the same time: the second ends the batch."""
    worker, turns, whole = running(store, 2)
    one, two = session().begin(), session()
    one.verb("settle", **settle_of(worker, turns[0]))
    call = two._send(statement("settle"), settle_of(worker, turns[1]))
    until(lambda: call.done() or two.blockers(), "it waits, or it is done")
    waits = store.get(whole).state is State.WAITING
    one.commit()
    call.result(30)
    return waits and store.get(whole).state is State.SUCCEEDED


def in_hand(store: PostgresStore, session: Make) -> bool:
    """One ends a job while another one is about to decide the last edge: the batch waits."""
    worker, turns, whole = running(store, 2)
    one = session().begin()
    edge = "SELECT 1 FROM timeball.dependency WHERE parent = %s FOR NO KEY UPDATE"
    one.run(edge, [turns[0].job_id])
    store.connections.run("settle", **settle_of(worker, turns[1]))
    waits = store.get(whole).state is State.WAITING
    one.commit()
    if waits:
        store.connections.run("settle", **settle_of(worker, turns[0]))
    return waits and store.get(whole).state is State.SUCCEEDED


def added(store: PostgresStore, session: Make) -> bool:
    """The last job ends while another one is being added: the batch waits for that."""
    worker, (turn,), whole = running(store, 1)
    one, two = session().begin(), session()
    one.verb("add_members", batch=whole, jobs=encode_specs([job()]))
    call = two._send(statement("settle"), settle_of(worker, turn))
    until(lambda: call.done() or two.blockers(), "it waits, or it is done")
    one.commit()
    call.result(30)
    return store.get(whole).state is State.WAITING


MUTANTS = {
    "the edge that is left is not held": Mutant("is_left", "FOR SHARE SKIP LOCKED", "", together),
    "who may be the last does not look again": Mutant(
        "batch_end", "AND edge.decided_at IS NULL) THEN NULL", "AND false) THEN NULL", in_hand
    ),
    "a batch is not held while jobs are added": Mutant(
        "add_members", "ORDER BY held.job_id FOR KEY SHARE", "", added
    ),
    "the end is left out of the transaction": Mutant(
        *("tell_children", "|| timeball.end_batches(v_told.o_ended, v_told.o_events)", ""),
        together,
    ),
    "a batch ends with its first job": Mutant(
        *("end_batches", "CONTINUE WHEN timeball.is_left(v_batch);", "", in_hand),
        also=("batch_end", "AND edge.decided_at IS NULL) THEN NULL", "AND false) THEN NULL"),
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_defect_of_batches_is_seen(dsn: str, session: Make, name: str) -> None:
    mutant = MUTANTS[name]
    with closing(PostgresStore(dsn)) as store:
        with replaced(dsn, mutant):
            assert not mutant.scenario(store, session)
        assert "I14" in audit(store.histories(), quiesced=False).found


@pytest.mark.parametrize("scenario", [together, in_hand, added])
def test_the_functions_as_they_are_pass(ledger: PostgresStore, session: Make, scenario) -> None:
    assert scenario(ledger, session)
