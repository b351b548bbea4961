"""`timeball db`: start, stop and look after the database."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import click

from timeball.cli.database import dsn_option, given_dsn
from timeball.cli.output import json_option, say, write, write_json
from timeball.errors import UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.store.postgres.connections import Connections


@click.group()
def command() -> None:
    """Start, stop and look after the database.

    start, stop, status and reset are about the embedded PostgreSQL; the others follow --dsn,
    TIMEBALL_DSN and DATABASE_URL too.
    """


@command.command("start")
def start() -> None:
    """Start the embedded PostgreSQL and leave it running."""
    from timeball.store.postgres.embedded import hold, status
    from timeball.store.postgres.migrate import migrate

    folder = _folder()
    hold(folder)
    with _connections(None) as connections:
        migrate(connections)
    found = status(folder)
    write(f"PostgreSQL {found.version} runs on {folder} (pid {found.pid})")


@command.command("stop")
def stop() -> None:
    """Stop the embedded PostgreSQL, whoever uses it."""
    from timeball.store.postgres.embedded import shutdown

    folder = _folder()
    shutdown(folder)
    write(f"stopped: {folder}")


@command.command("status")
@json_option
def status(*, as_json: bool) -> None:
    """Say whether the embedded PostgreSQL runs, where, and for whom."""
    from timeball.store.postgres.embedded import status as status_of

    found = status_of(_folder())
    if as_json:
        write_json(
            {
                "running": found.running,
                "pid": found.pid,
                "users": list(found.users),
                "url_without_password": found.dsn_without_password,
                "version": found.version,
                "data_folder": str(found.data_folder),
            }
        )
        return
    write(f"data     {found.data_folder}")
    write(f"version  {found.version or 'none: it was never started'}")
    write(f"running  {f'yes, pid {found.pid}' if found.running else 'no'}")
    if found.running:
        write(f"used by  {', '.join(map(str, found.users)) or 'nobody'}")
        write(f"url      {found.dsn_without_password}")


@command.command("url")
@click.option("--dsn")
def url(*, dsn: str | None) -> None:
    """Print the URL of the database, password included."""
    given = given_dsn(dsn)
    if given:
        write(given)
        return
    from timeball.store.postgres.embedded import EmbeddedPostgres
    from timeball.store.postgres.embedded import status as status_of

    folder = _folder()
    if not status_of(folder).running:
        raise UsageError("the embedded PostgreSQL does not run: start it with `timeball db start`")
    with EmbeddedPostgres(folder) as server:
        write(server.dsn)


@command.command("psql", context_settings={"ignore_unknown_options": True})
@click.option("--dsn")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def psql(ctx: click.Context, words: tuple[str, ...], *, dsn: str | None) -> None:
    """Open psql on the database; WORDS go to psql, such as -c 'TABLE timeball.jobs'."""
    program = _psql()
    given = given_dsn(dsn)
    if given:
        ctx.exit(_call(program, given, words))
    from timeball.store.postgres.embedded import EmbeddedPostgres

    with EmbeddedPostgres() as server:
        ctx.exit(_call(program, server.dsn, words))


@command.command("migrate")
@click.option("--sql", is_flag=True, help="Print the whole script instead of running it.")
@dsn_option
def migrate_(*, sql: bool, dsn: str | None) -> None:
    """Bring the schema up to this version."""
    from timeball.store.postgres.migrate import migrate, script

    if sql:
        write(script().rstrip("\n"))
        return
    with _connections(dsn) as connections:
        applied = migrate(connections)
    for name in applied:
        write(name)
    say(f"{len(applied)} changes applied" if applied else "nothing to do: the schema is current")


@command.command("verify")
@dsn_option
def verify(*, dsn: str | None) -> None:
    """Say whether the schema fits this version; the exit code is 6 if it does not."""
    from timeball.store.postgres.migrate import check

    with _connections(dsn) as connections:
        check(connections)
    write("the schema fits this version")


@command.command("roles")
@click.option("--apply", is_flag=True, help="Run the script instead of printing it.")
@dsn_option
def roles(*, apply: bool, dsn: str | None) -> None:
    """Print the SQL of the roles with the least rights: worker, client, operator and reader.

    Run it as the schema's owner, after each migration: it takes back what is not in it.
    """
    from timeball.store.postgres.migrate import grant
    from timeball.store.postgres.roles import Role, grants, role_name

    if not apply:
        write(f"BEGIN;\n{grants()}COMMIT;")
        return
    with _connections(dsn) as connections:
        grant(connections)
    write(f"granted to {', '.join(role_name(role) for role in Role)}")
    say(f"now give them to your programs' users: GRANT {role_name(Role.WORKER)} TO …")


@command.command("rebase")
@dsn_option
def rebase(*, dsn: str | None) -> None:
    """Make jobs startable on the server that they were restored to or failed over to.

    Workers do it by themselves before their first claim.
    """
    with _connections(dsn) as connections:
        ((moved,),) = connections.run("move_in")
    if moved is None:
        write("nothing to do: the jobs are at home on this server")
    else:
        write(f"{moved} pending jobs moved; workers of the server before are given up or go on")


@command.command("reset")
@click.option("--yes", is_flag=True, help="Do not ask.")
def reset(*, yes: bool) -> None:
    """Stop the embedded PostgreSQL and remove its data, all jobs included."""
    from timeball.store.postgres.embedded import reset as reset_folder

    if given_dsn(None):
        raise UsageError(
            "reset is for the embedded PostgreSQL, and TIMEBALL_DSN or DATABASE_URL is set: "
            "unset it, or drop the schema with psql yourself"
        )
    folder = _folder()
    if not yes:
        click.confirm(f"Remove {folder} with all its jobs?", abort=True, err=True)
    reset_folder(folder)
    write(f"removed: {folder}")


def _folder() -> Path:
    from timeball.store.postgres.binaries import find_binaries
    from timeball.store.postgres.embedded import default_folder

    return default_folder(find_binaries().major)


@contextmanager
def _connections(dsn: str | None) -> Iterator[Connections]:
    """Lend connections to the database, whatever the state of its schema."""
    from timeball.store.postgres.connections import Connections
    from timeball.store.postgres.embedded import EmbeddedPostgres

    given = given_dsn(dsn)
    server = None if given else EmbeddedPostgres()
    connections = Connections(given or (server.start() if server else ""))
    try:
        yield connections
    finally:
        connections.close()
        if server:
            server.stop()


def _psql() -> str:
    import shutil

    from timeball.errors import EmbeddedUnavailable
    from timeball.store.postgres.binaries import find_binaries

    try:
        beside = find_binaries().folder / "psql"
    except EmbeddedUnavailable:
        beside = Path("psql")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("psql")
    if not found:
        raise UsageError("psql is not on this machine: install postgresql-client")
    return found


def _call(program: str, dsn: str, words: tuple[str, ...]) -> int:
    """Run psql to its end; a URL's password goes past the arguments, which are for all to see."""
    url = urlsplit(dsn)
    account, at, place = url.netloc.rpartition("@")
    user, colon, password = account.partition(":")
    env = dict(os.environ)
    if colon:
        dsn = url._replace(netloc=f"{user}{at}{place}").geturl()
        env["PGPASSWORD"] = unquote(password)
    return subprocess.call([program, dsn, *words], env=env)  # noqa: S603 - the caller's own words
