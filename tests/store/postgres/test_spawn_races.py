"""Jobs that spawn while others end them, cancel them, or spawn too: stepped."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from tests.store.batches import batch
from tests.store.postgres.sessions import (
    Session,
    claim_all,
    expire_of,
    settle_of,
    submit,
    worker_of,
)
from tests.store.postgres.test_dependency_races import child_json, child_of, running, state

from timeball.core.audit import audit
from timeball.core.batches import ReopenAnswer
from timeball.core.dependencies import Edge, Rule
from timeball.core.records import JobSpec, Turn
from timeball.core.states import State
from timeball.core.uniqueness import Unique
from timeball.errors import UsageError
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.encoding import encode_specs

Make = Callable[[], Session]


def spec(*after: UUID, **fields: Any) -> JobSpec:
    return JobSpec(uuid=uuid4(), kind="a", after=tuple(map(Edge, after)), **fields)


def spawn_of(worker: int, turn: Turn, *specs: JobSpec) -> dict[str, Any]:
    lane, seq, job_id, number = turn[:4]
    facts = {"worker": worker, "lane": lane, "seq": seq, "job_id": job_id, "turn": number}
    return facts | {
        "began": turn.granted_at,
        "ran_s": 0.0,
        "result": None,
        "jobs": encode_specs(specs),
    }


def assert_sound(store: PostgresStore, *, quiesced: bool = False) -> None:
    report = audit(store.histories(), quiesced=quiesced)
    assert report.clean, report.violations[:3]


def finish(store: PostgresStore, worker: int) -> None:
    while turns := claim_all(store, worker):
        for turn in turns:
            store.connections.run("settle", **settle_of(worker, turn))


def test_who_was_given_up_for_dead_spawns_nothing_whichever_came_first(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns = running(ledger, 2)
    one, two = session().begin(), session()
    one.verb("expire", **expire_of(worker))
    two.verb_blocks("spawn", **spawn_of(worker, turns[0], spec()))
    one.commit()
    assert two.answer() == [("stale",)]
    assert sum(ledger.counts().values()) == 2
    assert_sound(ledger)


def test_who_spawns_is_not_given_up_for_dead_in_the_middle_of_it(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,) = running(ledger, 1)
    one, two = session().begin(), session()
    assert one.verb("spawn", **spawn_of(worker, turn, spec())) == [("accepted",)]
    two.verb_blocks("expire", **expire_of(worker))
    one.commit()
    two.answer()
    assert state(ledger, turn.uuid) is State.WAITING
    other = worker_of(ledger)
    finish(ledger, other)
    assert state(ledger, turn.uuid) is State.SUCCEEDED
    assert_sound(ledger, quiesced=True)


def test_a_cancel_that_comes_first_is_obeyed_and_one_that_comes_second_finds_it_waiting(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns = running(ledger, 2)
    one, two = session().begin(), session()
    one.verb("cancel", uuid=turns[0].uuid)
    two.verb_blocks("spawn", **spawn_of(worker, turns[0], spec()))
    one.commit()
    assert two.answer() == [("accepted",)]
    assert state(ledger, turns[0].uuid) is State.CANCELLED
    one.begin().verb("spawn", **spawn_of(worker, turns[1], spec()))
    two.verb_blocks("cancel", uuid=turns[1].uuid)
    one.commit()
    assert two.answer() == [("cancelled",)]
    assert state(ledger, turns[1].uuid) is State.CANCELLED
    assert sum(ledger.counts().values()) == 3
    assert_sound(ledger)


def test_a_batch_is_not_tried_again_before_what_was_spawned_after_it_knows_how_it_ended(
    ledger: PostgresStore,
) -> None:
    first = spec()
    later = spec(first.uuid)
    ledger.submit([first, later, batch(later)])
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    ledger.cancel(later.uuid)
    child = JobSpec(uuid=uuid4(), kind="a", after=(Edge(later.uuid, Rule.ALL_DONE),))
    answer = ledger.connections.run("spawn", **spawn_of(worker, turn, child))  # and dies: no link
    assert answer == [("accepted",)]
    again = ledger.get(later.uuid)
    answers = [ledger.reopen([(again.id, again.turn)]) for _ in range(2)]
    assert answers == [ReopenAnswer.BUSY, ReopenAnswer.DONE]
    while ledger.link(1_000):
        pass
    finish(ledger, worker)
    assert {state(ledger, each.uuid) for each in (first, later, child)} == {State.SUCCEEDED}
    assert_sound(ledger, quiesced=True)


def test_no_child_of_who_spawns_starts_before_what_was_spawned_has_ended(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (turn,) = running(ledger, 1)
    before = child_of(ledger, turn.uuid)
    one, two = session().begin(), session()
    one.verb("spawn", **spawn_of(worker, turn, spec(), spec()))
    meanwhile, text = child_json(turn.uuid)
    two.verb("submit", jobs=text)
    one.commit()
    two.verb("link", limit=10)
    after = child_of(ledger, turn.uuid)
    parts = claim_all(ledger, worker)
    assert len(parts) == 2
    one.begin().verb("settle", **settle_of(worker, parts[0]))
    two.verb_blocks("settle", **settle_of(worker, parts[1]))
    one.commit()
    two.answer()
    assert {state(ledger, each) for each in (before, meanwhile, after)} == {State.WAITING}
    (last,) = claim_all(ledger, worker)
    assert last.uuid == turn.uuid
    ledger.connections.run("settle", **settle_of(worker, last))
    assert {state(ledger, each) for each in (before, meanwhile, after)} == {State.PENDING}
    assert_sound(ledger)


def test_of_two_that_spawn_what_waits_for_the_other_one_is_refused(
    ledger: PostgresStore, session: Make
) -> None:
    worker, (first, second) = running(ledger, 2)
    one, two = session().begin(), session()
    assert one.verb("spawn", **spawn_of(worker, first, spec(second.uuid))) == [("accepted",)]
    two.verb_blocks("spawn", **spawn_of(worker, second, spec(first.uuid)))
    one.commit()
    with suppress(psycopg.Error):
        assert two.answer() == [(None,)]  # the lock was not to be had for so long: ask again
    with pytest.raises(UsageError, match=f"for job {first.job_id}, which waits for job .* a cycle"):
        ledger.connections.run("spawn", **spawn_of(worker, second, spec(first.uuid)))
    assert sum(ledger.counts().values()) == 3
    assert state(ledger, second.uuid) is State.RUNNING
    assert_sound(ledger)


def test_what_is_spawned_waits_for_a_key_of_somebody_and_holds_up_nobody_meanwhile(
    ledger: PostgresStore, session: Make
) -> None:
    worker, turns = running(ledger, 2)
    user, one = session().begin(), session()
    user.verb("submit", jobs=encode_specs([spec(unique=Unique(key="u"))]))
    one.verb_blocks("spawn", **spawn_of(worker, turns[0], spec(unique=Unique(key="u"))))
    child = child_of(ledger, turns[1].uuid)
    ledger.connections.run("settle", **settle_of(worker, turns[1]))
    assert state(ledger, child) is State.PENDING
    user.commit()
    one.answer()
    ledger.link(10)
    assert state(ledger, turns[0].uuid) is State.WAITING
    finish(ledger, worker)
    assert state(ledger, turns[0].uuid) is State.SUCCEEDED
    assert_sound(ledger, quiesced=True)


def test_a_long_way_is_followed_once_and_without_recursion(ledger: PostgresStore) -> None:
    worker, (turn,) = running(ledger, 1)
    specs, last = [], turn.uuid
    for _ in range(300):
        specs.append(spec(last))
        last = specs[-1].uuid
    ledger.submit(specs)
    with pytest.raises(UsageError, match="a cycle") as error:
        ledger.connections.run("spawn", **spawn_of(worker, turn, spec(last)))
    assert str(error.value).count("which waits for job") == 300
    submit(ledger, 1)


@pytest.mark.parametrize("first", ["settle", "spawn"])
def test_what_was_spawned_before_a_revival_and_just_ends_is_not_waited_for_for_ever(
    ledger: PostgresStore, session: Make, first: str
) -> None:
    worker, (turn,) = running(ledger, 1)
    ledger.connections.run("spawn", **spawn_of(worker, turn, spec()))
    ledger.cancel(turn.uuid)
    (old,) = claim_all(ledger, worker)
    ledger.revive([turn.uuid])
    (again,) = claim_all(ledger, worker)
    one, two = session().begin(), session()
    settled, spawned = settle_of(worker, old), spawn_of(worker, again, spec())
    if first == "settle":
        one.verb("settle", **settled)
        two.verb_blocks("spawn", **spawned)
    else:
        one.verb("spawn", **spawned)
        two.verb_blocks("settle", **settled)
    one.commit()
    two.answer()
    ledger.link(10)
    assert ledger.get(turn.uuid).state is State.WAITING
    finish(ledger, worker)
    assert ledger.get(turn.uuid).state is State.SUCCEEDED
    assert_sound(ledger, quiesced=True)


@pytest.mark.parametrize("first", ["spawn", "settle"])
def test_a_batch_whose_other_job_ends_while_one_spawns_waits_for_what_is_spawned(
    ledger: PostgresStore, session: Make, first: str
) -> None:
    worker, turns = running(ledger, 2)
    whole = batch(*(turn.uuid for turn in turns))
    ledger.submit([whole])
    one, two = session().begin(), session()
    verbs = {"spawn": spawn_of(worker, turns[0], spec()), "settle": settle_of(worker, turns[1])}
    one.verb(first, **verbs.pop(first))
    ((second, params),) = verbs.items()
    two.verb(second, **params)
    one.commit()
    assert (state(ledger, whole.uuid), ledger.batch(whole.uuid).jobs) == (State.WAITING, 3)
    finish(ledger, worker)
    assert state(ledger, whole.uuid) is State.SUCCEEDED
    assert_sound(ledger, quiesced=True)


def test_an_empty_batch_that_a_job_of_a_batch_spawns_has_no_edge_that_nobody_looks_at(
    ledger: PostgresStore,
) -> None:
    member, inner = spec(), batch()
    ledger.submit([member, whole := batch(member)])
    worker = worker_of(ledger)
    (turn,) = claim_all(ledger, worker)
    ledger.connections.run("spawn", **spawn_of(worker, turn, inner))  # and dies: no link
    assert_sound(ledger)
    while ledger.link(1_000):
        pass
    finish(ledger, worker)
    assert {state(ledger, each.uuid) for each in (member, whole, inner)} == {State.SUCCEEDED}
    assert_sound(ledger, quiesced=True)
