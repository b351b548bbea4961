"""Roles: each runs the statements that it needs, and is refused all others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.store.postgres.sessions import submit, worker_of

from timeball.core.limits import Scope
from timeball.core.records import JobSpec, Settlement
from timeball.core.states import Ending, State
from timeball.errors import UsageError
from timeball.store.base import JobFilter
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import statement
from timeball.store.postgres.migrate import grant
from timeball.store.postgres.roles import (
    PARTS,
    READS,
    SEQUENCES,
    TABLES,
    VERBS,
    Role,
    grants,
    role_name,
    seal,
)

PASSWORD = "a word"
STATEMENTS = sorted(
    path.name.removesuffix(".sql")
    for path in (files("timeball.store.postgres") / "sql").iterdir()
    if path.name.endswith(".sql")
)
OWNER = {"create_schema", "migration_applied", "migration_table"}
WORKER = {
    *("admit", "beat", "claim", "expire", "lapse", "note", "permits", "promote"),
    *("register", "settle", "settle_within", "take_due", "trim_jobs", "trim_leases"),
    *("spawn", "trim_permits"),
}
CLIENT = {
    *(
        "add_edges",
        "add_members",
        "backfill",
        "call_back",
        "cancel",
        "cancel_many",
        "close_batch",
        "declare",
        "reopen",
        "revive",
    ),
    *("run_now", "submit"),
}
OPERATOR = {
    *("bound_queue", "delete_jobs", "lift_limit", "lift_rate", "move", "pause_queue"),
    *("resume_queue", "set_limit", "set_rate", "snooze"),
}
CLIENT_AND_OPERATOR = {"begin_operation", "end_operation"}
WORKER_AND_CLIENT = {
    *(
        "admit_keys",
        "ensure_lanes",
        "fire",
        "link",
        "notify",
        "pause",
        "remove",
        "resume",
        "suspend",
        "withdraw",
    ),
}
REFUSED: dict[Role, set[str]] = {
    Role.WORKER: OWNER | CLIENT | CLIENT_AND_OPERATOR | OPERATOR,
    Role.CLIENT: OWNER | WORKER | OPERATOR | {"move_in"},
    Role.OPERATOR: OWNER | WORKER,
    Role.READER: OWNER
    | WORKER
    | CLIENT
    | CLIENT_AND_OPERATOR
    | OPERATOR
    | WORKER_AND_CLIENT
    | {"move_in"},
}

TRAP = """
CREATE TABLE trap.caught (who text);
CREATE FUNCTION trap.same(uuid, uuid) RETURNS boolean LANGUAGE plpgsql AS $$BEGIN
    INSERT INTO trap.caught VALUES (current_user);
    RETURN $1::text = $2::text;
END$$;
CREATE OPERATOR trap.= (FUNCTION = trap.same, LEFTARG = uuid, RIGHTARG = uuid);
CREATE TEMP TABLE job (id bigint, uuid uuid, key text);
CREATE TEMP TABLE ended (job_id bigint, turn integer);
CREATE TYPE pg_temp.regclass AS ENUM ('a');
SET search_path = pg_temp, trap, pg_catalog;
"""


@pytest.fixture(scope="module")
def logins(server: str) -> Iterator[dict[Role, str]]:
    """The DSN of a user of each role."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"BEGIN; {grants()} COMMIT".encode())
        for role in Role:
            user = f"CREATE ROLE as_{role} LOGIN PASSWORD '{PASSWORD}' IN ROLE {role_name(role)}"
            connection.execute(user.encode())
        yield {
            role: psycopg.conninfo.make_conninfo(server, user=f"as_{role}", password=PASSWORD)
            for role in Role
        }
        for role in Role:
            connection.execute(f"DROP ROLE as_{role}".encode())
            connection.execute(
                f"DROP OWNED BY {role_name(role)}; DROP ROLE {role_name(role)}".encode()
            )


@pytest.fixture
def as_role(direct: str, logins: dict[Role, str]) -> Iterator[Callable[[Role], PostgresStore]]:
    """Opens stores on the empty database as a user of a role."""
    assert direct
    made: list[PostgresStore] = []

    def open_as(role: Role) -> PostgresStore:
        made.append(PostgresStore(logins[role]))
        return made[-1]

    yield open_as
    for each in made:
        each.close()


def _names(server: str, sql: str) -> set[str]:
    with psycopg.connect(server) as connection:
        return {row[0] for row in connection.execute(sql.encode()).fetchall()}


def _of_kind(server: str, kinds: str) -> set[str]:
    return _names(
        server,
        "SELECT relname FROM pg_class WHERE relnamespace = 'timeball'::regnamespace"
        f" AND relkind::text = ANY ('{{{kinds}}}')",
    )


def test_every_object_of_the_schema_is_named_once(server: str) -> None:
    """Whoever adds a table, sequence or function says in roles.py who may use it."""
    assert _of_kind(server, "r,p,v,m,f") == set(TABLES)
    assert _of_kind(server, "S") == set(SEQUENCES)
    functions = [*READS, *VERBS, *PARTS]
    assert len(functions) == len(set(functions))
    there = "SELECT proname FROM pg_proc WHERE pronamespace = 'timeball'::regnamespace"
    assert _names(server, there) == set(functions)


def test_what_everybody_may_call_cannot_write(server: str) -> None:
    """PostgreSQL refuses to write in a function that is not volatile.

    `clock` is an expression; `check_deferred` runs the caller's own triggers, with its own rights.
    """
    volatile = _names(
        server,
        "SELECT proname FROM pg_proc"
        " WHERE pronamespace = 'timeball'::regnamespace AND provolatile = 'v'",
    )
    assert volatile & set(READS) == {"check_deferred", "clock"}


def test_verbs_alone_have_their_owners_rights_on_a_pinned_search_path(server: str) -> None:
    definer = "pronamespace = 'timeball'::regnamespace AND prosecdef"
    assert _names(server, f"SELECT proname FROM pg_proc WHERE {definer}") == set(VERBS)
    pinned = "'search_path=pg_catalog, pg_temp' = ANY (proconfig)"
    assert _names(server, f"SELECT proname FROM pg_proc WHERE {definer} AND {pinned}") == set(VERBS)


@pytest.fixture
def trap(direct: str, logins: dict[Role, str]) -> Iterator[psycopg.Connection[Any]]:
    """A client's connection where names of verbs mean its own objects, which note who calls."""
    with psycopg.connect(direct, autocommit=True) as owner:
        owner.execute("CREATE SCHEMA trap AUTHORIZATION as_client")
        with psycopg.connect(logins[Role.CLIENT], autocommit=True) as client:
            client.execute(TRAP.encode())
            yield client
        owner.execute(b"DROP SCHEMA trap CASCADE")
        owner.execute(seal().encode())


def test_a_verb_runs_nothing_that_its_caller_has_put_in_the_way(
    trap: psycopg.Connection[Any], store: PostgresStore, direct: str
) -> None:
    """Operators in front of the system's, tables and types in front of ours."""
    cancel, caught = "SELECT timeball.cancel(%s)", "SELECT who FROM trap.caught"
    first, second = submit(store, 2)
    assert trap.execute(cancel, [first.uuid]).fetchone() == ("cancelled",)
    assert trap.execute(caught).fetchall() == []
    assert store.get(first.uuid).state is State.CANCELLED
    trap.execute("DROP TYPE pg_temp.regclass")  # a verb on its caller's path would only fail by it
    with psycopg.connect(direct, autocommit=True) as owner:
        owner.execute("ALTER FUNCTION timeball.cancel RESET search_path")
        assert trap.execute(cancel, [second.uuid]).fetchone() == ("cancelled",)
        assert (owner.info.user,) in trap.execute(caught).fetchall()


def test_no_verb_builds_sql_from_what_it_is_given() -> None:
    """With its owner's rights that would be anything at all."""
    folder = files("timeball.store.postgres") / "functions"
    texts = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    dynamic = [name for name, text in texts.items() if re.search(r"(?m)^\s*EXECUTE\b", text)]
    assert dynamic == []


def test_nobody_may_call_anything_unnamed(server: str) -> None:
    public = "has_function_privilege('public', oid, 'EXECUTE')"
    here = "pronamespace = 'timeball'::regnamespace"
    assert _names(server, f"SELECT proname FROM pg_proc WHERE {here} AND {public}") == set()


@pytest.mark.parametrize("role", Role)
def test_a_role_is_refused_these_statements_and_no_others(
    role: Role, logins: dict[Role, str]
) -> None:
    refused = set()
    with psycopg.connect(logins[role]) as connection:
        for name in STATEMENTS:
            text = statement(name)
            nothing = dict.fromkeys(re.findall(r"%\((\w+)\)s", text))
            try:
                connection.execute(text, nothing)
            except psycopg.errors.InsufficientPrivilege:
                refused.add(name)
            except psycopg.Error:
                pass  # nothing makes no sense to it: the right to call it was looked at before
            connection.rollback()
    assert refused == REFUSED[role]


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO timeball.ended (job_id, turn, event) VALUES (1, 1, 'succeeded')",
        "UPDATE timeball.job SET kind = 'x'",
        "DELETE FROM timeball.entry",
        "TRUNCATE timeball.job",
        "CREATE TABLE timeball.mine (n integer)",
        "ALTER TABLE timeball.job ADD COLUMN n integer",
        "DROP FUNCTION timeball.claim",
        "SELECT nextval('timeball.job_id_seq')",
        "SELECT setval('timeball.job_id_seq', 1)",
        "UPDATE timeball.worker SET ended_at = now(), end_reason = 'expired'",
        "SELECT timeball.cancel_job(1)",
        "SELECT timeball.erase('{1}')",
        "SET ROLE timeball",
    ],
)
def test_no_role_writes_the_ledger_or_changes_the_schema(
    role: Role, sql: str, logins: dict[Role, str]
) -> None:
    with (
        psycopg.connect(logins[role]) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(sql.encode())


def test_a_job_goes_from_role_to_role(as_role: Callable[[Role], PostgresStore]) -> None:
    client, working = as_role(Role.CLIENT), as_role(Role.WORKER)
    done, other = submit(client, 2)
    keyed = JobSpec(uuid=uuid4(), kind="a", key="k")
    client.submit([keyed])
    worker = worker_of(working)
    working.promote(10)
    turns = working.claim(worker, limit=10, request=uuid4(), floors={})
    assert working.beat([worker]) == {worker}
    said = [Settlement(*turn[:4], Ending.SUCCEEDED, began_at=turn.granted_at) for turn in turns]
    assert len(said) >= 2
    assert set(working.settle(worker, said)) == {"accepted"}
    assert client.get(done.uuid).state is State.SUCCEEDED
    late = submit(client)[0]
    assert client.cancel(late.uuid) == "cancelled"
    assert client.revive([late.uuid])
    working.retire(worker)
    reader = as_role(Role.READER)
    assert {job.uuid for job in reader.jobs(JobFilter())} == {
        *(done.uuid, other.uuid, keyed.uuid, late.uuid)
    }


def test_a_refusal_says_what_to_do(as_role: Callable[[Role], PostgresStore]) -> None:
    client = as_role(Role.CLIENT)
    for refused in (
        lambda: worker_of(client),
        lambda: client.limit(Scope.KEY, "k", 3),
        lambda: client.pause_queue("default", by="me"),
    ):
        with pytest.raises(UsageError, match="`timeball db roles`"):
            refused()


def test_granting_again_takes_back_what_is_not_in_the_list(
    store: PostgresStore, server: str, logins: dict[Role, str]
) -> None:
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("GRANT INSERT ON timeball.ended TO timeball_client")
    grant(store.connections)
    with psycopg.connect(logins[Role.CLIENT]) as connection:
        asked = "SELECT has_table_privilege('timeball.ended', 'INSERT')"
        assert connection.execute(asked).fetchone() == (False,)
