"""Pausing and moving beside claims, statement by statement; and what lists of queues read."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest
from tests.store.postgres.plans import Explained
from tests.store.postgres.sessions import (
    Session,
    claim_all,
    claim_of,
    jobs_json,
    submit,
    worker_of,
)

from timeball.errors import QueueFull
from timeball.store.postgres import PostgresStore

Make = Callable[[], Session]
PAUSE = {"queue": "default", "by": "ann"}
NOTHING = [(None, None, None)]


def test_a_pause_returns_only_once_a_claim_that_did_not_see_it_has_ended(
    ledger: PostgresStore, session: Make
) -> None:
    submit(ledger)
    worker = worker_of(ledger)
    claim, pause = session().begin(), session()
    assert claim.verb("claim", **claim_of(worker)) != NOTHING
    pause.verb("pause_queue", **PAUSE)
    pause.verb_blocks("pass_lanes", queue="default")
    claim.commit()
    pause.answer()
    submit(ledger)
    assert claim.verb("claim", **claim_of(worker)) == NOTHING


def test_a_claim_that_waits_for_a_lane_sees_what_was_paused_meanwhile(
    ledger: PostgresStore, session: Make
) -> None:
    (spec,) = submit(ledger)
    worker = worker_of(ledger)
    holder, claim = session().begin(), session()
    holder.verb("pass_lanes", queue="default")
    claim.verb_blocks("claim", **claim_of(worker))
    ledger.connections.run("pause_queue", **PAUSE)
    holder.commit()
    assert claim.answer() == NOTHING
    ledger.resume_queue("default")
    assert [turn.uuid for turn in claim_all(ledger, worker)] == [spec.uuid]


def test_a_pause_waits_for_no_other_queue(ledger: PostgresStore, session: Make) -> None:
    submit(ledger)
    submit(ledger, queue="other")
    claim = session().begin()
    assert claim.verb("claim", **claim_of(worker_of(ledger, "other"))) != NOTHING
    assert ledger.pause_queue("default", "ann")
    claim.commit()


def test_a_lane_that_is_made_during_a_pause_is_paused_too(
    ledger: PostgresStore, session: Make
) -> None:
    ledger.ensure_lanes([("default", 5)])
    worker, one = worker_of(ledger), session()
    one.verb("pause_queue", **PAUSE)
    submit(ledger, priority=9)
    assert claim_all(ledger, worker) == []
    one.verb("pass_lanes", queue="default")


def test_who_finds_a_lane_empty_and_the_next_one_taken_asks_again(
    ledger: PostgresStore, session: Make
) -> None:
    submit(ledger, queue="x")
    submit(ledger, queue="y")
    both = worker_of(ledger, "x", "y")
    first, second, late = session().begin(), session().begin(), session()
    first.verb("claim", **claim_of(worker_of(ledger, "x")))
    second.verb("claim", **claim_of(worker_of(ledger, "y")))
    late.verb_blocks("claim", **claim_of(both))
    first.commit()
    assert late.answer() == [(None, None, True)]
    second.rollback()
    assert len(claim_all(ledger, both)) == 1


def test_a_list_of_queues_reads_no_job_that_has_ended_and_stops_counting(
    ledger: PostgresStore, session: Make
) -> None:
    one = session()
    ledger.ensure_lanes([("default", 5)])
    one.run("SELECT count(*) FROM timeball.submit(%s::jsonb)", [jobs_json(3_000)])
    worker = worker_of(ledger)
    for _ in range(2):
        ledger.claim(worker, limit=1_000, request=uuid4(), floors={})
    before = read(one)
    ((_, pending, _, running, *_),) = one.verb("queues", most=100, budget=1_000)
    assert (pending, running) == (100, 100)
    assert read(one) - before <= 300


def read(session: Session) -> int:
    """Entries read through their index by this session so far."""
    session.run("SELECT pg_stat_force_next_flush()")
    rows = session.run(
        "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'entry_order'"
    )
    return int(rows[0][0])


def test_submissions_of_the_same_moment_may_exceed_a_depth_and_the_next_one_is_refused(
    ledger: PostgresStore, session: Make
) -> None:
    """The bound as it is stated: nobody waits for somebody else's transaction."""
    ledger.ensure_lanes([("default", 5)])
    ledger.bound_queue("default", 3)
    one, two = session().begin(), session().begin()
    one.verb("submit", jobs=jobs_json(2))
    two.verb("submit", jobs=jobs_json(2))
    one.commit()
    two.commit()
    assert [queue.pending for queue in ledger.queues()] == [4]
    with pytest.raises(QueueFull):
        submit(ledger)


def test_a_queue_without_a_limit_pays_no_statement_for_those_that_have_one(
    ledger: PostgresStore, dsn: str
) -> None:
    ledger.bound_queue("mail", 3)
    ledger.ensure_lanes([("default", 5)])
    explained = Explained(dsn)
    _, free = explained.run("submit", {"jobs": jobs_json(2)})
    ledger.bound_queue("default", 10)
    _, limited = explained.run("submit", {"jobs": jobs_json(2)})
    assert not [plan for plan in free if "line_of" in plan.query]
    assert [plan for plan in limited if "line_of" in plan.query]
    assert len(free) < len(limited)
    explained.close()
