"""Properties of the SQL itself: it says what it does, and agrees with the table of transitions."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import pytest

from timeball.core.cron import Gap, Overlap
from timeball.core.misfire import Catchup
from timeball.core.records import Decision, Delivery, OverlapRuns
from timeball.core.states import INITIAL, Ending, Event, State, allowed

FOLDER = Path(__file__).parents[2] / "src" / "timeball" / "store" / "postgres"
MIGRATION = (FOLDER / "migrations" / "0001_initial.sql").read_text("utf-8")
FILES = sorted([*(FOLDER / "sql").glob("*.sql"), *(FOLDER / "functions").glob("*.sql")])
TABLES = re.findall(r"CREATE TABLE timeball\.(\w+)", MIGRATION)

HEADER = re.compile(r"-- event: (?P<events>[\w, ]+?)\s*\((?P<from>[\w, ]*?) ?-> (?P<to>[\w, ]+)\)")
MOVES = re.compile(r"(?:INSERT INTO|DELETE FROM) timeball\.(?:entry|held|ended|lease)\b")
LOCKS = re.compile(
    r"(?:SELECT|PERFORM)(?:(?!\bSELECT\b|\bPERFORM\b).)*?\bFOR (?:NO KEY |KEY )?(?:UPDATE|SHARE)"
    r"(?: SKIP LOCKED)?",
    re.DOTALL,
)
ONE_ROW = re.compile(r"WHERE \w+\.(?:id|name) = [pv]_\w+")
LISTS = re.compile(r"CHECK \((\w+) IN \(([^)]*)\)")
# Files that append to the ledger without a transition -> why that is none.
NO_TRANSITION = {
    "functions/admit_keys.sql": "who waited for room in his key is pending before and after",
    "functions/disown.sql": "takes back what its own transaction wrote about a deleted job",
    "functions/erase.sql": "deleting: a terminal job has no next state",
    "functions/trim_leases.sql": "deleting: of none of its jobs anything is left",
    "functions/line_up.sql": "a part of others, which say why what was held may start now",
}


class Header(NamedTuple):
    events: list[str]
    sources: list[str]
    targets: list[str]


def name(path: Path) -> str:
    return path.relative_to(FOLDER).as_posix()


def header(path: Path) -> Header | None:
    """The events and states that a file's first lines name."""
    text = re.sub(r"\n-- +", " ", path.read_text("utf-8"))
    found = HEADER.match(text)
    if found is None:
        assert not text.startswith("-- event"), f"{name(path)}: -- event: … (… -> …)"
        return None
    return Header(*(re.findall(r"\w+", found[group]) for group in ("events", "from", "to")))


def code(path: Path) -> str:
    return re.sub(r"--.*", "", path.read_text("utf-8"))


WITH_EVENTS = [path for path in FILES if header(path)]


@pytest.mark.parametrize("path", FILES, ids=name)
def test_a_file_says_what_it_does(path: Path) -> None:
    first, *_ = path.read_text("utf-8").splitlines()
    assert re.match(r"-- \w.{10,}", first)
    assert all(len(line) <= 120 for line in path.read_text("utf-8").splitlines())


@pytest.mark.parametrize("path", FILES, ids=name)
def test_what_moves_a_job_names_its_event(path: Path) -> None:
    if MOVES.search(code(path)):
        assert (header(path) is None) == (name(path) in NO_TRANSITION)


@pytest.mark.parametrize("path", WITH_EVENTS, ids=name)
def test_an_event_leads_from_and_to_the_states_of_the_table(path: Path) -> None:
    said = header(path)
    assert said is not None
    targets = {State(target) for target in said.targets}
    if said.events == ["submit"]:
        assert not said.sources
        assert targets <= INITIAL
        return
    steps = {
        (source, event): allowed(State(source), Event(event))
        for source in said.sources
        for event in said.events
    }
    assert {source for (source, _), found in steps.items() if found} == set(said.sources)
    assert {event for (_, event), found in steps.items() if found} == set(said.events)
    assert targets <= frozenset().union(*steps.values())


@pytest.mark.parametrize("path", sorted((FOLDER / "sql").glob("*.sql")), ids=name)
def test_a_statement_has_the_events_of_the_function_that_it_calls(path: Path) -> None:
    for function in re.findall(r"timeball\.(\w+)\(", code(path)):
        called = FOLDER / "functions" / f"{function}.sql"
        if called.exists() and header(called):
            assert header(path) == header(called)


@pytest.mark.parametrize("path", FILES, ids=name)
def test_every_table_is_named_with_its_schema(path: Path) -> None:
    text = code(path)
    parts = set(re.findall(r"\b(\w+) AS (?:MATERIALIZED )?\(", text))
    bare = set(re.findall(r"\b(?:FROM|JOIN|INTO|UPDATE|USING) (\w+)\b(?!\.|\()", text))
    assert not bare & set(TABLES) - parts


@pytest.mark.parametrize("path", FILES, ids=name)
def test_rows_are_locked_in_order_or_only_where_free(path: Path) -> None:
    for lock in LOCKS.findall(code(path)):
        assert "SKIP LOCKED" in lock or "ORDER BY" in lock or ONE_ROW.search(lock), lock


@pytest.mark.parametrize("path", FILES, ids=name)
def test_many_rows_are_updated_only_once_they_are_locked_in_order(path: Path) -> None:
    for update in re.findall(r"\bUPDATE timeball\.\w+\s+SET.*?;", code(path), re.DOTALL):
        one = re.search(r"WHERE \w+\.(?:id|key|name) = (?:[pv]_\w+|v_old\.id|%\(\w+\)s)", update)
        assert one or re.search(r"ORDER BY.*FOR NO KEY UPDATE", update, re.DOTALL), update


def test_no_lock_on_a_whole_table_is_taken() -> None:
    assert [name(path) for path in FILES if "LOCK TABLE" in code(path).upper()] == []


def checks(table: str) -> dict[str, set[str]]:
    """The lists of words that a table's columns are held to."""
    found = re.search(rf"CREATE TABLE timeball\.{table} \((.*?)\n\);", MIGRATION, re.DOTALL)
    assert found is not None
    return {column: set(re.findall(r"'(\w+)'", words)) for column, words in LISTS.findall(found[1])}


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        ("ended", "event", Ending),
        ("held", "state", INITIAL),
        ("occurrence", "decision", Decision),
        ("schedule", "gap", Gap),
        ("schedule", "overlap", Overlap),
        ("schedule", "catchup", Catchup),
        ("schedule", "overlap_runs", OverlapRuns),
        ("schedule", "delivery", Delivery),
    ],
)
def test_a_column_takes_the_words_of_the_code(
    table: str, column: str, words: type[StrEnum] | frozenset[State]
) -> None:
    assert checks(table)[column] == {str(word) for word in words}
