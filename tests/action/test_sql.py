"""SQL jobs on a real server: bound parameters, bounded time and rows, no secret shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from threading import Event, Thread, current_thread
from time import monotonic, sleep
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from tests.action.attempts import turn

import timeball as tb
from timeball.action import sql
from timeball.action.context import StopSign
from timeball.action.python import carry_out
from timeball.action.secret import Secret
from timeball.action.sql_kind import KIND
from timeball.core.outcomes import Outcome, Raised, Returned, Unbegun
from timeball.core.payload import encode_args

DSN = Secret("env:DB")


@pytest.fixture(autouse=True)
def database(direct: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TIMEBALL_SECRET_DB", direct)
    return direct


def outcome(statement: str, *, stop: StopSign | None = None, **args: Any) -> Outcome:
    timeout_s = args.pop("timeout_s", None)
    given = encode_args({"statement": statement, "dsn": DSN, **args})
    return carry_out(KIND, turn(given, timeout_s=timeout_s), stop or StopSign())


def result(statement: str, **args: Any) -> dict[str, Any]:
    found = outcome(statement, **args)
    assert isinstance(found, Returned), found
    value: dict[str, Any] = json.loads(found.result or "null")
    return value


def rows(statement: str, **args: Any) -> Sequence[Any]:
    found: Sequence[Any] = result(statement, **args)["rows"]
    return found


def failure(statement: str, **args: Any) -> Raised:
    found = outcome(statement, **args)
    assert isinstance(found, Raised), found
    return found


def test_rows_come_as_json() -> None:
    assert result("select 1 as one, 'zwei' as two, null as three") == {
        "columns": ["one", "two", "three"],
        "rows": [[1, "zwei", None]],
        "row_count": 1,
        "truncated": False,
    }


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("1.50::numeric", "1.50"),
        ("'NaN'::float8", "nan"),
        ("9007199254740993", "9007199254740993"),
        ("date '2026-01-02'", "2026-01-02"),
        ("timestamptz '2026-01-02 03:04Z' at time zone 'UTC'", "2026-01-02T03:04:00"),
        ("'\\x00ff'::bytea", "\\x00ff"),
        ("array[1, 2]", [1, 2]),
        ("'{\"a\": [1.5, null]}'::jsonb", {"a": [1.5, None]}),
        ("'0193c0de-0000-7000-8000-000000000001'::uuid", "0193c0de-0000-7000-8000-000000000001"),
        ("interval '1 hour'", "1:00:00"),
        ("'10.0.0.1'::inet", "10.0.0.1"),
    ],
)
def test_every_type_becomes_something_that_json_has(expression: str, value: Any) -> None:
    assert rows(f"select {expression}") == [[value]]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None
)
@given(st.text().filter(lambda text: "\0" not in text))
def test_a_parameter_is_bound_and_never_read_as_sql(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    assert rows("select %s::text", params=[text]) == [[text]]
    assert rows("select %(a)s::text", params={"a": f"'; drop table x; --{text}"})[0][0].endswith(
        text
    )


def test_a_percent_sign_without_parameters_is_nothing_else() -> None:
    assert rows("select 'a%s' like 'a%', 7 % 4") == [[True, 3]]


@pytest.mark.parametrize("statement", ["select 1; select 2", "commit; drop schema public", ""])
def test_it_is_one_statement_and_no_more(statement: str) -> None:
    if statement:
        assert failure(statement).error_type == "SqlError"
    else:
        with pytest.raises(tb.UsageError):
            tb.sql(statement, dsn=DSN)


@pytest.mark.parametrize(
    ("statement", "params"),
    [("copy (select 1) to stdout", []), ("; -- nothing", []), ("select %s", [{"a": 1}])],
)
def test_what_the_statement_is_to_blame_for_is_not_tried_again(
    statement: str, params: list[Any]
) -> None:
    found = failure(statement, params=params)
    assert (found.error_type, found.again) == ("SqlError", False)
    assert ("copies" in found.error) is statement.startswith("copy")


def test_a_server_that_goes_away_in_the_middle_is_worth_another_attempt() -> None:
    gone = "select pg_terminate_backend(pg_backend_pid()) from generate_series(1, 3)"
    assert failure(gone).again


def test_letters_are_what_they_were_whatever_the_connection_string_says(
    monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    monkeypatch.setenv("TIMEBALL_SECRET_DB", make_conninfo(database, client_encoding="latin1"))
    found = result("select 'é' as ü, %s, length('é')", params=["Ж"])
    assert (found["columns"][0], found["rows"]) == ("ü", [["é", "Ж", 1]])


def test_read_only_is_the_default_and_what_fails_leaves_nothing(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("drop table if exists sql_job")
        connection.execute("create table sql_job (n int primary key)")
    assert "read-only" in failure("insert into sql_job values (1)").error
    assert not failure("insert into sql_job values (1)").again
    written = result("insert into sql_job values (1), (2)", read_only=False)
    assert (written["row_count"], written["truncated"]) == (2, False)
    returning = "insert into sql_job select n from generate_series(3, 9) n returning n"
    written = result(returning, read_only=False, rows_max=2)
    assert (written["rows"], written["row_count"], written["truncated"]) == ([[3], [4]], 7, True)
    clash = failure("insert into sql_job values (100), (1)", read_only=False)
    assert (clash.error_type, clash.again) == ("SqlError", False)
    assert rows("select count(*), max(n) from sql_job") == [[9, 9]]


def test_rows_are_capped_by_number_and_by_size() -> None:
    found = result("select * from generate_series(1, 5) n", rows_max=2)
    assert (found["rows"], found["truncated"]) == ([[1], [2]], True)
    assert not result("select * from generate_series(1, 2) n", rows_max=2)["truncated"]
    found = result("select repeat('x', 1000) from generate_series(1, 10000)", rows_max=10_000)
    assert 100 < len(found["rows"]) < 200
    assert found["truncated"]


@pytest.mark.slow
def test_the_server_ends_what_takes_too_long() -> None:
    found = failure("select pg_sleep(60)", timeout_s=0.2)
    assert (found.error_type, found.again) == ("SqlTimeout", True)


def test_a_stop_ends_it_and_gives_its_turn_back(database: str) -> None:
    stop = StopSign()

    def once_it_runs() -> None:
        look = "select 1 from pg_stat_activity where query = 'select pg_sleep(600)'"
        with psycopg.connect(database, autocommit=True) as other:
            until = monotonic() + 60
            while other.execute(look).fetchone() is None and monotonic() < until:
                sleep(0.01)
        stop.raise_()
        stop.raise_()  # as it may

    thread = Thread(target=once_it_runs)
    thread.start()
    assert outcome("select pg_sleep(600)", stop=stop, timeout_s=60) == Unbegun("stopped")
    thread.join()


def test_a_stop_that_comes_before_the_statement_ends_it_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What is cancelled between two statements is nothing, and must be said again."""
    words: list[Thread] = []
    stop, said, through = StopSign(), Event(), sql.placed

    class Told(psycopg.Connection[Any]):
        def cancel_safe(self, *, timeout: float = 30.0) -> None:
            super().cancel_safe(timeout=timeout)
            words.append(current_thread())
            said.set()

    def placed(*args: Any) -> Any:
        stop.raise_()
        assert said.wait(60)
        return through(*args)

    monkeypatch.setattr(psycopg, "connect", Told.connect)
    monkeypatch.setattr(sql, "placed", placed)
    assert outcome("select pg_sleep(600)", stop=stop, timeout_s=20) == Unbegun("stopped")
    # The statement's own thread has a last word too; had it been alone, its time had ended it.
    assert len([each for each in words if each is not current_thread()]) > 1


def test_it_acts_as_the_role_that_is_named(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute("drop role if exists sql_reader")
        connection.execute("create role sql_reader")
    assert rows("select current_user::text", role="sql_reader") == [["sql_reader"]]
    odd = failure("select 1", role='x"; drop role sql_reader; --')
    assert (odd.error_type, odd.again) == ("SqlError", False)
    assert rows("select count(*) from pg_roles where rolname = 'sql_reader'") == [[1]]


def test_a_connection_string_is_never_shown(monkeypatch: pytest.MonkeyPatch, database: str) -> None:
    parts = {**conninfo_to_dict(database), "password": "geheim-geheim", "dbname": "no_such_db"}
    monkeypatch.setenv("TIMEBALL_SECRET_DB", make_conninfo(**parts))
    found = failure("select 1")
    assert found.error_type == "SqlError"
    assert "geheim" not in str(found)


@pytest.mark.parametrize("dsn", ["dbname=x user=y", "host=h dbname=x", "no dsn at all", "host=''"])
def test_what_a_connection_string_leaves_out_is_not_taken_from_the_worker(
    monkeypatch: pytest.MonkeyPatch, dsn: str
) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_DB", dsn)
    monkeypatch.setenv("PGPASSWORD", "of-the-worker")
    found = failure("select 1")
    assert (found.error_type, found.again) == ("SqlRefused", False)


def test_a_server_that_is_not_there_is_worth_another_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_DB", "host=/no/such/folder user=a dbname=b")
    assert failure("select 1").again
    monkeypatch.delenv("TIMEBALL_SECRET_DB")
    assert "TIMEBALL_SECRET_DB" in failure("select 1").error


@pytest.mark.parametrize(
    "options",
    [
        {"dsn": "postgresql://u:geheim@h/d"},
        {"params": "x"},
        {"role": ""},
        {"rows_max": 10_001},
        {"rows_max": True},
        {"read_only": "yes"},
        {"params": [float("inf")]},
        {"other": 1},
    ],
)
def test_what_can_never_work_is_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(tb.UsageError) as caught:
        tb.sql("select 1", **{"dsn": DSN, **options})
    assert "geheim" not in str(caught.value)


def test_it_runs_in_the_in_process_engine_too() -> None:
    with tb.Scheduler() as scheduler:
        handle = scheduler.submit(tb.sql("select 7", dsn=DSN))
        scheduler.wait()
    assert handle.result()["rows"] == [[7]]


def test_nothing_that_the_worker_has_set_for_itself_takes_part(
    monkeypatch: pytest.MonkeyPatch, database: str
) -> None:
    user = conninfo_to_dict(database)["user"]
    with psycopg.connect(database, autocommit=True) as connection:
        found = connection.execute("select 1 from pg_database where datname = %s", [user])
        if found.fetchone() is None:
            connection.execute(f'create database "{user}"')
    for name, value in (
        ("PGDATABASE", "no_such_db"),
        ("PGPORT", "1"),
        ("PGHOSTADDR", "192.0.2.1"),
        ("PGOPTIONS", "-c application_name=of-the-worker"),
        ("PGSSLCERT", "/no/such/file"),
    ):
        monkeypatch.setenv(name, value)
    parts = {**conninfo_to_dict(database), "dbname": None}
    monkeypatch.setenv("TIMEBALL_SECRET_DB", make_conninfo(**parts))
    shown = "select current_database()::text, current_setting('application_name')"
    assert rows(shown) == [[user, "timeball"]]


def test_what_is_nested_too_deep_fails_for_good() -> None:
    for depth in (100, 2_000):
        deep = f"select (repeat('[', {depth}) || repeat(']', {depth}))::jsonb"
        found = failure(deep)
        assert not found.again
        assert "Traceback" not in found.error
