"""Edges between the statements of one submission, and who waits for whom because of them."""

from __future__ import annotations

import json
from collections.abc import Callable

import psycopg
import pytest
from tests.store.postgres.sessions import Session, jobs_json, settle_of
from tests.store.postgres.test_batch_races import many
from tests.store.postgres.test_dependency_races import child_json, running, state

from timeball.core.states import State
from timeball.store.postgres import PostgresStore

Make = Callable[[], Session]


def test_a_child_whose_parent_is_deleted_while_it_is_submitted_is_not_lost(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,) = running(ledger, 1)
    ledger.connections.run("settle", **settle_of(worker, turn))
    child, text = child_json(turn.uuid, "all_done")
    deletion, index, one = session().begin(), session().begin(), session()
    deletion.run("SELECT timeball.delete_jobs(ARRAY[%s]::uuid[])", [turn.uuid])
    # As an index that is being made: the submission has read the parent and waits to write.
    index.blocks("LOCK TABLE timeball.dependency IN SHARE MODE")
    one.verb_blocks("submit", jobs=text)
    deletion.commit()
    index.answer()
    index.commit()
    one.answer()
    assert ledger.link(10) == 1
    assert state(ledger, child) is State.PENDING


def test_who_ends_a_parent_and_who_deletes_its_cancelled_children_meet_nowhere(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,) = running(ledger, 1)
    writers, children = [session().begin() for _ in range(3)], []
    for writer in writers:
        child, text = child_json(turn.uuid)
        writer.verb("submit", jobs=text)
        children.append(child)
    for writer in reversed(writers):  # so that the edges lie on disk in the other order
        writer.commit()
        assert ledger.link(1) == 1
    for child in children:
        assert ledger.cancel(child) == "cancelled"

    blocker, end = session().begin(), session()
    blocker.run("SELECT FROM timeball.dependency ORDER BY child OFFSET 1 LIMIT 1 FOR UPDATE")
    end.verb_blocks("settle", **settle_of(worker, turn))
    answers = session().run("SELECT (timeball.delete_jobs(%s::uuid[])).answer", [children])
    assert ("refused",) in answers
    blocker.rollback()
    assert end.answer() == [(["accepted"],)]
    assert ledger.delete(children)[answers.index(("refused",))] == "deleted"


def test_who_ends_two_parents_and_who_deletes_their_cancelled_children_do_not_wait_for_each_other(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (one, two) = running(ledger, 2)
    children = [child_json(two.uuid), child_json(one.uuid), child_json(one.uuid)]
    for _, text in children:
        session().verb("submit", jobs=text)
    assert ledger.link(10) == 3
    gone = [child for child, _ in children[:2]]
    assert [ledger.cancel(child) for child in gone] == ["cancelled"] * 2
    blocker, end = session().begin(), session()
    blocker.run("SELECT FROM timeball.dependency ORDER BY child DESC LIMIT 1 FOR UPDATE")
    # It has decided the edge to the second child, and that to the first is still ahead.
    end.verb_blocks("settle", **many(worker, [one, two]))
    deletion = session().begin()
    answers = deletion.run("SELECT (timeball.delete_jobs(%s::uuid[])).answer", [gone])
    assert answers == [("deleted",), ("refused",)]
    blocker.rollback()
    deletion.commit()
    assert end.answer() == [(["accepted", "accepted"],)]


def test_what_a_job_has_deferred_is_checked_before_a_scheduler_lock_is_taken(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns = running(ledger, 2)
    other, job, two = session(), session(), session()
    other.run("CREATE TABLE public.paid (n integer UNIQUE DEFERRABLE INITIALLY DEFERRED)")
    other.begin().run("INSERT INTO public.paid VALUES (1)")
    ((xid,),) = job.begin().verb("begin_within")
    job.run("INSERT INTO public.paid VALUES (1)")
    job.verb_blocks("settle_within", xid=xid, **settle_of(worker, turns[0]))
    child, text = child_json(turns[1].uuid)
    two.verb("submit", jobs=text)
    assert two.verb("link", limit=10) == [(1,)]
    assert two.verb("settle", **settle_of(worker, turns[1])) == [(["accepted"],)]
    assert state(ledger, child) is State.PENDING
    other.rollback()
    assert job.answer() == [(["accepted"],)]
    job.commit()
    other.run("DROP TABLE public.paid")


def test_a_worker_that_stands_still_before_its_commit_holds_the_graph_for_seconds_only(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,) = running(ledger, 1)
    job = session()
    patience = "SELECT current_setting('idle_in_transaction_session_timeout')"
    before = job.run(patience)
    ((xid,),) = job.begin().verb("begin_within")
    assert job.run(patience) == before  # its own code may take as long as it likes
    job.verb("settle_within", xid=xid, **settle_of(worker, turn))
    assert job.run(patience) == [("10s",)]
    job.commit()
    assert job.run(patience) == before


@pytest.mark.parametrize("form", ['"{}"', '{{"job": "{}"}}', '["{}"]', '[{{}}, {{"job": "{}"}}]'])
def test_parents_in_another_form_are_refused_and_never_overlooked(
    ledger: PostgresStore, session: Make, form: str
) -> None:
    _, (turn,) = running(ledger, 1)
    after = json.loads(form.format(turn.uuid))
    with pytest.raises(psycopg.Error):
        session().verb("submit", jobs=jobs_json(1, after=after))


@pytest.mark.parametrize("after", [None, []])
def test_no_parents_may_be_said_in_either_way(
    ledger: PostgresStore, session: Make, after: list | None
) -> None:
    _, (turn,) = running(ledger, 1)
    child, text = child_json(turn.uuid)
    free = json.loads(jobs_json(1, after=after))
    session().verb("submit", jobs=json.dumps(free + json.loads(text)))
    assert state(ledger, child) is State.WAITING
    assert ledger.counts() == {State.RUNNING: 1, State.PENDING: 1, State.WAITING: 1}


def test_a_number_of_another_server_s_transaction_makes_no_parent_one_of_this_one(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,) = running(ledger, 1)
    child, text = child_json(turn.uuid)
    other, one = session(), session()
    next_number = "(pg_current_xact_id()::text::bigint + 1)::text::xid8"
    # As after pg_restore on a server whose transactions are numbered from less.
    while True:
        other.run(f"UPDATE timeball.job SET xid = {next_number} WHERE id = %s", [turn.job_id])
        one.begin().run("SELECT pg_current_xact_id()")
        same = "SELECT 1 FROM timeball.job WHERE id = %s AND xid = pg_current_xact_id()"
        if one.run(same, [turn.job_id]):
            break
        one.rollback()  # somebody else has had that number
    one.verb("submit", jobs=text)
    ledger.connections.run("settle", **settle_of(worker, turn))
    one.commit()
    assert ledger.link(10) == 1
    assert state(ledger, child) is State.PENDING
