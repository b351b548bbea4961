"""`timeball db roles`: the script, and running it."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.cli.invoking import invoke, said

from timeball.store.postgres.roles import Role, role_name


@pytest.fixture
def owner(server: str) -> Iterator[str]:
    """The DSN of the schema's owner; the roles that are made are gone afterwards."""
    yield server
    with psycopg.connect(server, autocommit=True) as connection:
        for role in Role:
            name = role_name(role)
            connection.execute(f"DROP OWNED BY {name}; DROP ROLE {name}".encode())


def test_the_script_can_be_run_as_it_is_any_number_of_times(owner: str) -> None:
    script = said("db", "roles")
    with psycopg.connect(owner, autocommit=True) as connection:
        for _ in range(2):
            connection.execute(script.encode())
        asked = "SELECT has_function_privilege('timeball_worker', oid, 'EXECUTE') FROM pg_proc"
        (may,) = connection.execute(f"{asked} WHERE proname = 'claim'".encode()).fetchall()
    assert may == (True,)


def test_apply_runs_it_and_names_the_roles(owner: str) -> None:
    assert "timeball_reader" in said("db", "roles", "--apply", "--dsn", owner)


def test_who_does_not_own_the_schema_is_told_so(owner: str) -> None:
    said("db", "roles", "--apply", "--dsn", owner)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("CREATE ROLE not_owner LOGIN PASSWORD 'word' IN ROLE timeball_operator")
    other = psycopg.conninfo.make_conninfo(owner, user="not_owner", password="word")
    refused = invoke("db", "roles", "--apply", "--dsn", other)
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute("DROP ROLE not_owner")
    assert refused.exit_code == 2
    assert "as the schema's owner" in refused.output
