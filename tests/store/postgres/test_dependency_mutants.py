"""The classic defects of dependencies, put back one by one: a scenario and the audit see each.

The unmutated functions pass the same scenarios; a pattern that is not there any more fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib.resources import files
from typing import NamedTuple

import psycopg
import pytest
from tests.store.postgres.sessions import Session, claim_all, settle_of, until
from tests.store.postgres.test_dependency_races import child_json, child_of, running, state

from timeball.core.audit import audit
from timeball.core.dependencies import Rule
from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import statement
from timeball.store.postgres.roles import seal

Make = Callable[[], Session]
FOLDER = files("timeball.store.postgres") / "functions"
pytestmark = pytest.mark.slow


def fan_in(store: PostgresStore, _: Make) -> bool:
    """One of two parents has ended: the child waits."""
    worker, turns = running(store, 2)
    child = child_of(store, *(turn.uuid for turn in turns))
    store.connections.run("settle", **settle_of(worker, turns[0]))
    waits = state(store, child) is State.WAITING
    store.connections.run("settle", **settle_of(worker, turns[1]))
    return waits and state(store, child) is State.PENDING


def failure(store: PostgresStore, _: Make) -> bool:
    """A parent has failed: the child is skipped."""
    worker, (turn,) = running(store, 1)
    child = child_of(store, turn.uuid)
    store.connections.run("settle", **settle_of(worker, turn, "failed"))
    return state(store, child) is State.SKIPPED


def added_late(store: PostgresStore, _: Make) -> bool:
    """A child is added once its parent has ended."""
    worker, (turn,) = running(store, 1)
    store.connections.run("settle", **settle_of(worker, turn))
    return state(store, child_of(store, turn.uuid)) is State.PENDING


def added_meanwhile(store: PostgresStore, session: Make) -> bool:
    """An edge is linked while its parent ends."""
    worker, (turn,) = running(store, 1)
    child, text = child_json(turn.uuid)
    one, two = session(), session()
    one.verb("submit", jobs=text)
    one.begin().verb("link", limit=10)
    call = two._send(statement("settle"), settle_of(worker, turn))
    until(lambda: call.done() or two.blockers(), "it waits, or it is done")
    one.commit()
    call.result(30)
    return state(store, child) is State.PENDING


def ended_twice(store: PostgresStore, _: Make) -> bool:
    """A parent ends, is revived and ends again: it counts once."""
    worker, turns = running(store, 3)
    child = child_of(store, *(turn.uuid for turn in turns), rule=Rule.ALL_DONE)
    store.connections.run("settle", **settle_of(worker, turns[0], "failed"))
    store.revive([turns[0].uuid])
    child_of(store, turns[0].uuid)
    (again,) = claim_all(store, worker)
    store.connections.run("settle", **settle_of(worker, again, "failed"))
    store.connections.run("settle", **settle_of(worker, turns[1]))
    waits = state(store, child) is State.WAITING
    store.connections.run("settle", **settle_of(worker, turns[2]))
    return waits and state(store, child) is State.PENDING


def ended_together(store: PostgresStore, session: Make) -> bool:
    """Two parents end at the same time: the second one releases the child."""
    worker, turns = running(store, 2)
    child = child_of(store, *(turn.uuid for turn in turns))
    one, two = session(), session()
    one.begin().verb("settle", **settle_of(worker, turns[0]))
    call = two._send(statement("settle"), settle_of(worker, turns[1]))
    until(lambda: call.done() or two.blockers(), "it waits, or it is done")
    one.commit()
    call.result(30)
    return state(store, child) is State.PENDING


class Mutant(NamedTuple):
    """One defect: what is written in a function in place of what, and perhaps in another one."""

    function: str
    old: str
    new: str
    scenario: Callable[[PostgresStore, Make], bool]
    also: tuple[str, str, str] | None = None

    @property
    def edits(self) -> dict[str, list[tuple[str, str]]]:
        """What is put in place of what, by function."""
        found = {self.function: [(self.old, self.new)]}
        if self.also is not None:
            found.setdefault(self.also[0], []).append(self.also[1:])
        return found


LOCK = "PERFORM pg_advisory_xact_lock_shared('timeball.dependency'::regclass::oid::integer, 0);"
REREAD = """(
    SELECT count(*)::integer FROM timeball.dependency AS open
    WHERE open.child = held.job_id AND open.decided_at IS NULL) - told.alls AS all_left"""
IN_ONE = """SELECT EXISTS (
    SELECT FROM timeball.dependency AS edge
    WHERE edge.parent = ANY (p_job_ids) AND edge.decided_at IS NULL AND edge.linked_at IS NOT NULL
) INTO v_parents FROM timeball.share_graph();
"""
OPEN = "WHERE edge.parent = ANY (p_ended) AND edge.decided_at IS NULL AND"
MUTANTS = {
    "M11 dependency checked at submit only": Mutant(
        "link", "timeball.tell_children(v_looked)", "NULL::text[]", added_late
    ),
    "M12 graph lock dropped": Mutant("settle", LOCK, "", added_meanwhile),
    "M13 release by re-reading parents": Mutant(
        *("decide_edges", "held.all_left - told.alls AS all_left", REREAD, ended_together),
        also=("tell_children", "ORDER BY held.job_id\n    FOR UPDATE;", ";"),
    ),
    "M14 complete and release in one statement": Mutant(
        *("settle", LOCK, IN_ONE, added_meanwhile),
        also=("settle", "v_parents := EXISTS (", "v_limited := EXISTS ("),
    ),
    "M15 unmet <= 1": Mutant("sentence", "AND p_all_left = 0", "AND p_all_left <= 1", fan_in),
    "M16 failed parent satisfies": Mutant(
        "is_met", "WHEN 'all_success' THEN p_event = 'succeeded'", "", failure
    ),
    "M17 release left out of the transaction": Mutant(
        "settle", "IF v_parents THEN", "IF false THEN", fan_in
    ),
    "M50 edge decided twice": Mutant(
        "decide_edges", OPEN, "WHERE edge.parent = ANY (p_ended) AND", ended_twice
    ),
}


@contextmanager
def replaced(dsn: str, mutant: Mutant) -> Iterator[None]:
    texts = {name: (FOLDER / f"{name}.sql").read_text("utf-8") for name in mutant.edits}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for name, edits in mutant.edits.items():
            text = texts[name]
            for old, new in edits:
                assert old in text, "the function has changed: mend the mutant"
                text = text.replace(old, new)
            connection.execute(text.encode())
        try:
            yield
        finally:
            connection.execute(f"BEGIN; {' '.join(texts.values())} {seal()} COMMIT".encode())


@pytest.mark.parametrize("name", MUTANTS)
def test_a_defect_that_is_put_back_is_seen(dsn: str, session: Make, name: str) -> None:
    mutant = MUTANTS[name]
    with closing(PostgresStore(dsn)) as store:
        with replaced(dsn, mutant):
            assert not mutant.scenario(store, session)
        found = set(audit(store.histories(), quiesced=False).found)
    assert found & {"I13", "I14"}


@pytest.mark.parametrize("name", MUTANTS)
def test_the_functions_as_they_are_pass_the_same_scenario(
    ledger: PostgresStore, session: Make, name: str
) -> None:
    assert MUTANTS[name].scenario(ledger, session)
