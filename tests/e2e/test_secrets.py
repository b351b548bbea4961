"""A canary goes through a worker, the database and the command line, and is seen nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg import sql
from tests.cli.processes import Home, temporary_home, until

import timeball as tb
from timeball.action.secret import Secret

pytestmark = pytest.mark.slow

CANARY = "kanarie-7f3a9c-vogel"
APP = """
import logging
import timeball as tb

@tb.job(name="sing", retry=tb.Retry(0))
def sing(ctx: tb.Context, token: tb.Secret, well: bool) -> dict:
    logging.getLogger("app").warning("the token is %s", token.reveal())
    ctx.log("it is " + token.reveal())
    ctx.progress(1, 2, "with " + token.reveal())
    if not well:
        raise ValueError("no such token: " + token.reveal())
    return {"echo": token.reveal()}
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    (tmp_path / "canary_app.py").write_text(APP)
    with temporary_home(tmp_path / "home") as home:
        home.env["TIMEBALL_SECRET_CANARY"] = CANARY
        home.env["TIMEBALL_COMMAND_ALLOW"] = "/bin/sh"
        home.said("db", "start")
        yield home


@pytest.mark.parametrize("where", ["--threads", "--processes"])
def test_a_canary_is_seen_nowhere(home: Home, where: str) -> None:
    secret = Secret("env:CANARY")
    dsn = home.said("db", "url").strip()
    script = "echo $TOKEN; echo $TOKEN >&2; exit 9"
    with (
        home.start("worker", "-a", "canary_app.py", where, "2", "--log-format", "json") as worker,
        tb.connect(dsn) as client,
    ):
        handles = [
            client.submit("sing", args={"token": secret, "well": True}),
            client.submit("sing", args={"token": secret, "well": False}, max_retries=0),
            client.submit(
                tb.command(["/bin/sh", "-c", script], env={"TOKEN": secret}), max_retries=0
            ),
            client.submit(tb.http("GET", "https://x.invalid/", auth=secret), max_retries=0),
        ]
        jobs = client.wait(handles, 60)
        until(lambda: "the token is" in worker.written, "the log has come")
        lines = [str(each.info["cmdline"]) for each in psutil.process_iter(["cmdline"])]
        assert [job.state for job in jobs] == ["succeeded", *["failed"] * 3]
        assert jobs[0].result == {"echo": "[secret env:CANARY]"}
        shown = [
            home.said("jobs", "show", str(job.uuid), *how)
            for job in jobs
            for how in ((), ("--json",))
        ]
        shown += [home.said("jobs", "list"), home.said("jobs", "list", "--jsonl"), *lines]
        shown += [repr(job) for job in jobs] + [dump(dsn)]
    assert "[secret env:CANARY]" in worker.written
    for text in [*shown, worker.written]:
        assert CANARY not in text


def dump(dsn: str) -> str:
    """Everything that the database holds, as text."""
    found = []
    with psycopg.connect(dsn) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'timeball'"
        ).fetchall()
        for (name,) in tables:
            table = sql.Identifier("timeball", name)
            query = sql.SQL("SELECT t::text FROM {} t").format(table)
            found += connection.execute(query).fetchall()
    assert "env:CANARY" in str(found)
    return str(found)
