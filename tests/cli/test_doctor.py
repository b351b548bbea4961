"""`timeball doctor` on a real database."""

from __future__ import annotations

import json

import psycopg
from tests.cli.invoking import invoke
from tests.store.postgres.test_doctor import schedule


def test_trouble_is_told_first_with_what_mends_it_and_is_the_exit_code(direct: str) -> None:
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute(schedule("error").encode())
    result = invoke("doctor", "--dsn", direct)
    assert result.exit_code == 1
    assert result.stdout.startswith("trouble  ")
    assert "schedules: it's does not fire: no zone\n         timeball cron show" in result.stdout
    assert "\nok       schema: " in result.stdout


def test_for_programs_it_is_one_document(direct: str) -> None:
    result = invoke("doctor", "--json", "--dsn", direct)
    found = json.loads(result.stdout)["findings"]
    assert {one["check"] for one in found} > {"server", "schema", "indexes", "clock"}
    assert result.exit_code == any(one["severity"] == "trouble" for one in found)


def test_a_schema_that_does_not_fit_is_a_finding_and_no_error(direct: str) -> None:
    name = "migrations/9999_later.sql"
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute("INSERT INTO timeball.migration VALUES (%s, '', '9.9')", [name])
        try:
            result = invoke("doctor", "--dsn", direct)
        finally:
            connection.execute("DELETE FROM timeball.migration WHERE name = %s", [name])
    assert result.exit_code == 1
    assert f"schema: the database has {name}" in result.stdout
