"""Statements that write and give rows: carried out whole, kept in part, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.action.test_sql import failure, result, rows

from timeball.action.sql import Reply
from timeball.action.sql_places import placed
from timeball.errors import UsageError


@pytest.fixture(autouse=True)
def database(direct: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TIMEBALL_SECRET_DB", direct)
    with psycopg.connect(direct) as connection:
        connection.execute("drop table if exists sql_rows")
        connection.execute("create table sql_rows (n int primary key, text text)")
    return direct


def there() -> Any:
    return rows("select count(*) from sql_rows")[0][0]


FILL = "insert into sql_rows select n, repeat('x', 100) from generate_series(1, 5000) n"


def test_what_returns_more_rows_than_are_kept_is_carried_out_whole() -> None:
    found = result(f"{FILL} returning n", read_only=False, rows_max=3)
    assert (found["rows"], found["row_count"], found["truncated"]) == ([[1], [2], [3]], 5000, True)
    assert found["columns"] == ["n"]
    assert there() == 5000
    found = result("delete from sql_rows returning text", read_only=False, rows_max=10_000)
    assert found["row_count"] == 5000
    assert found["truncated"]  # by size
    assert there() == 0


def test_what_fails_behind_the_rows_that_are_kept_leaves_nothing() -> None:
    late = "insert into sql_rows select n % 3000, '' from generate_series(0, 3000) n returning n"
    found = failure(late, read_only=False, rows_max=1)
    assert (found.error_type, found.again) == ("SqlError", False)
    assert "23505" in found.error
    assert there() == 0


def test_a_value_that_cannot_be_kept_leaves_nothing() -> None:
    deep = "(repeat('[', 2000) || repeat(']', 2000))::jsonb"
    found = failure(
        f"insert into sql_rows select n from generate_series(1, 9) n returning {deep}",
        read_only=False,
    )
    assert not found.again
    assert there() == 0


@pytest.mark.parametrize(
    ("statement", "columns", "count"),
    [
        (FILL, [], 5000),
        ("update sql_rows set n = n where n < 0", [], 0),
        ("select n from sql_rows", ["n"], 0),
        ("insert into sql_rows values (1, '') returning n, text", ["n", "text"], 1),
        ("create temporary table t (n int)", [], 0),
        ("select", [], 1),
        ("show server_version_num", ["server_version_num"], 1),
        ("do $$ begin perform 1; end $$", [], 0),
    ],
)
def test_it_says_how_many_rows_there_were(statement: str, columns: list[str], count: int) -> None:
    found = result(statement, read_only=False)
    assert (found["columns"], found["row_count"]) == (columns, count)
    if statement != "select":
        assert not found["truncated"]


@pytest.mark.parametrize("read_only", ["reads", "writes"])
def test_what_copies_is_refused_and_holds_up_nobody(read_only: str) -> None:
    for statement in ("copy (select 1) to stdout", "copy sql_rows from stdin"):
        found = failure(statement, read_only=read_only == "reads", timeout_s=30)
        assert found.error_type == "SqlError"


def test_nobody_can_end_the_transaction_from_inside() -> None:
    for word in ("commit", "rollback"):
        found = failure(f"{word}; drop table sql_rows", read_only=False)
        assert found.error_type == "SqlError"
    assert there() == 0


def test_a_reader_that_goes_away_leaves_the_connection_free(database: str) -> None:
    with psycopg.connect(database) as connection:
        reply = Reply(connection)
        with closing(reply.rows("select generate_series(1, 1000000)", None)) as found:
            assert next(found) == (1,)
        connection.rollback()
        assert connection.execute("select 7").fetchone() == (7,)


@pytest.mark.slow
def test_a_hundred_megabytes_of_returned_rows_take_no_memory(database: str) -> None:
    code = """
import resource, sys, psycopg
from timeball.action.sql import Reply
with psycopg.connect(sys.argv[1]) as connection:
    reply = Reply(connection)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    text = "select n, repeat('x', 10000) from generate_series(1, 10000) n"
    for _ in reply.rows(text, None):
        pass
    print(reply.row_count, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    told = subprocess.run(
        [sys.executable, "-c", code, database], capture_output=True, text=True, check=True
    )
    count, grown_kib = map(int, told.stdout.split())
    assert count == 10_000
    assert grown_kib < 20_000


# -- placeholders


@pytest.mark.parametrize(
    ("statement", "params", "text", "values"),
    [
        ("select 7 % 4, '%s'", None, "select 7 % 4, '%s'", []),
        ("select %s, %s", [1, 2], "select $1, $2", [1, 2]),
        ("select %(b)s, %(a)s, %(b)s", {"a": 1, "b": 2}, "select $1, $2, $1", [2, 1]),
        ("select 7 %% %s", [4], "select 7 % $1", [4]),
        ("select '%%s' || %s", ["x"], "select '%s' || $1", ["x"]),
        ("select %(a b)s", {"a b": 1, "more": 2}, "select $1", [1]),
    ],
)
def test_placeholders_are_numbered(
    statement: str, params: Any, text: str, values: list[Any]
) -> None:
    assert placed(statement, params) == (text, tuple(values) if params is None else values)


@pytest.mark.parametrize(
    ("statement", "params"),
    [
        ("select %s, %s", [1]),
        ("select %s", [1, 2]),
        ("select 1", [1]),
        ("select 7 % %s", [1]),
        ("select %d", [1]),
        ("select %(a)s", [1]),
        ("select %s", {"a": 1}),
        ("select %(b)s", {"a": 1}),
        ("select %(a)", {"a": 1}),
        ("select 100%", [1]),
    ],
)
def test_what_does_not_fit_is_told(
    statement: str, params: Sequence[Any] | Mapping[str, Any]
) -> None:
    with pytest.raises(UsageError):
        placed(statement, params)
    assert failure(statement, params=params).error_type == "SqlRefused"


@given(st.lists(st.sampled_from(["%s", "%%", "a", "$1", "'", "é"]), max_size=12))
def test_as_many_numbers_come_as_there_were_placeholders(parts: list[str]) -> None:
    count = parts.count("%s")
    text, values = placed("".join(parts), list(range(count)) or None)
    assert len(values) == count
    if count:
        numbers = iter(range(1, count + 1))
        shown = [f"${next(numbers)}" if part == "%s" else part.replace("%%", "%") for part in parts]
        assert text == "".join(shown)
