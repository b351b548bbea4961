"""`timeball run`: one HTTP request, one command or one SQL statement as a job."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from timeball.cli.database import dsn_option
from timeball.cli.output import json_option, say, write, write_json, write_table
from timeball.errors import UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.action.sql_request import SqlOptions
    from timeball.core.records import Job

_ALWAYS_GIVEN: Final = ("PATH", "HOME")

_retries_option = click.option(
    "--retries",
    type=click.IntRange(0, 1_000_000),
    default=0,
    show_default=True,
    help="Failures that are followed by another attempt.",
)


@click.group()
def command() -> None:
    """Run a request, a command or an SQL statement as a job: recorded, bounded, and safe."""


@command.command("http")
@click.argument("url")
@click.option("-X", "--method", help="Else GET, or POST where there is content.")
@click.option("-H", "--header", "headers", multiple=True, metavar="NAME:VALUE")
@click.option("--json", "json_text", metavar="TEXT", help="The content, as JSON.")
@click.option("--body", help="The content, as text.")
@click.option("--auth", metavar="SECRET", help="Send this as bearer token, such as env:TOKEN.")
@click.option("--user", help="Send --auth as the password of this user.")
@click.option("--sign", multiple=True, metavar="SECRET", help="Sign with this key.")
@click.option(
    "--allow",
    multiple=True,
    metavar="HOST|CIDR",
    help="Call nothing else. What is not public has to be named, and is, for what runs here.",
)
@click.option("--ca", type=click.Path(exists=True, dir_okay=False), help="Whom to trust: a PEM.")
@click.option("--timeout", default="60s", show_default=True, metavar="DURATION", help="In all.")
@_retries_option
@click.option("--wait", is_flag=True, help="Carry it out here and now, and wait for its end.")
@dsn_option
@click.pass_context
def run_http(ctx: click.Context, /, url: str, **options: Any) -> None:
    """Send one request to URL.

    With --wait this process carries it out and writes the body of the answer; the exit code is 0
    if it succeeded and 1 if not. Else it is left to the next worker, and the id of the job is
    written. An address that is not public is refused, with exit code 2.
    """
    from timeball.action.http_kind import http
    from timeball.cli.hosted import Hosted, carried_out, left_to_workers
    from timeball.cli.times import seconds

    given = _request(options)
    method = options["method"] or ("POST" if given.keys() & {"json", "body"} else "GET")
    call = http(method.upper(), url, timeout_s=seconds(options["timeout"], least_s=0.001), **given)
    if not options["wait"]:
        write(left_to_workers(call, dsn=options["dsn"], max_retries=options["retries"]))
        return
    hosted = Hosted(call=call, max_retries=options["retries"], http_allow=options["allow"])
    job = carried_out(hosted, dsn=options["dsn"])
    ctx.exit(_tell(job, lambda result: _write_text(result["body"])))


@command.command("command")
@click.argument("argv", metavar="-- ARGV…", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--timeout", default="1h", show_default=True, metavar="DURATION", help="In all.")
@click.option("--cwd", type=click.Path(exists=True, file_okay=False), help="Else this folder.")
@click.option("--env", "names", multiple=True, metavar="NAME[=VALUE]", help="Also give it this.")
@_retries_option
@json_option
@dsn_option
@click.pass_context
def run_command(ctx: click.Context, /, argv: tuple[str, ...], **options: Any) -> None:
    """Run a command here and now, and wait for its end: timeball run command -- ls -l.

    Whatever it has started is ended with it. Of the environment it gets PATH, HOME and what --env
    names. Its output is written; the exit code is 0 if it succeeded and 1 if not.
    """
    from timeball.cli.hosted import Hosted, carried_out
    from timeball.cli.times import seconds

    facts = {
        "argv": list(argv),
        "env": _environment(options["names"]),
        "cwd": str(Path(options["cwd"] or ".").resolve()),
        "timeout_s": seconds(options["timeout"], least_s=0.001),
    }
    hosted = Hosted(command=facts, max_retries=options["retries"])
    job = carried_out(hosted, dsn=options["dsn"])
    ctx.exit(_tell(job, lambda result: _write_text(result["output"]), as_json=options["as_json"]))


@command.command("sql")
@click.argument("statement")
@click.option(
    "--on",
    "database",
    required=True,
    metavar="SECRET",
    help="The secret that holds the connection string of the database, such as env:REPORTS_DSN.",
)
@click.option("--param", "params", multiple=True, metavar="NAME=VALUE", help="For %(NAME)s in it.")
@click.option("--role", help="Act as this role.")
@click.option("--write", "writes", is_flag=True, help="Let it change something.")
@click.option("--timeout", default="60s", show_default=True, metavar="DURATION", help="In all.")
@_retries_option
@click.option("--wait", is_flag=True, help="Carry it out here and now, and wait for its end.")
@json_option
@dsn_option
@click.pass_context
def run_sql(ctx: click.Context, /, statement: str, **options: Any) -> None:
    """Run one SQL STATEMENT on a database of your own: timeball run sql 'SELECT 1' --on env:X.

    With --wait this process carries it out and writes the rows; the exit code is 0 if it
    succeeded and 1 if not. Else it is left to the next worker, and the id of the job is written.
    The scheduler's own database, where the job is recorded, is the one of --dsn.
    """
    from timeball.action.secret import Secret
    from timeball.action.sql_kind import sql
    from timeball.cli.hosted import Hosted, carried_out, left_to_workers
    from timeball.cli.named_args import named_args
    from timeball.cli.times import seconds

    more: SqlOptions = {"read_only": not options["writes"]}
    if options["params"]:
        more["params"] = named_args(options["params"])
    if options["role"]:
        more["role"] = options["role"]
    timeout_s = seconds(options["timeout"], least_s=0.001)
    call = sql(statement, dsn=Secret(options["database"]), timeout_s=timeout_s, **more)
    if not options["wait"]:
        write(left_to_workers(call, dsn=options["dsn"], max_retries=options["retries"]))
        return
    job = carried_out(Hosted(call=call, max_retries=options["retries"]), dsn=options["dsn"])
    ctx.exit(_tell(job, _write_rows, as_json=options["as_json"]))


def _request(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `http` that were given."""
    from timeball.action.secret import Secret

    found: dict[str, Any] = {
        "headers": dict(map(_header, options["headers"])),
        "allow": list(options["allow"]),
        "sign": [Secret(reference) for reference in options["sign"]],
        "body": options["body"],
        "ca": options["ca"] and Path(options["ca"]).read_text("utf-8", "replace"),
    }
    found = {name: value for name, value in found.items() if value}
    if options["auth"]:
        secret = Secret(options["auth"])
        found["auth"] = [options["user"], secret] if options["user"] else secret
    elif options["user"]:
        raise UsageError("--user needs the reference of a password: add --auth env:PASSWORD")
    if options["json_text"] is not None:
        try:
            found["json"] = json.loads(options["json_text"])
        except (ValueError, RecursionError) as error:
            raise UsageError(f"--json is no JSON: {error}") from None
    return found


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise UsageError(f"header {name!r} has no value: write NAME:VALUE")
    return name.strip(), value.strip()


def _environment(names: Iterable[str]) -> dict[str, str]:
    found = {name: os.environ[name] for name in _ALWAYS_GIVEN if name in os.environ}
    for each in names:
        name, equals, value = each.partition("=")
        if not equals and name not in os.environ:
            raise UsageError(f"--env {name}: it is not set here: write {name}=VALUE")
        found[name] = value if equals else os.environ[name]
    return found


def _write_text(text: str) -> None:
    if text:
        write(text.removesuffix("\n"))


def _write_rows(result: Mapping[str, Any]) -> None:
    if result["columns"]:
        rows = [["" if cell is None else cell for cell in row] for row in result["rows"]]
        write_table(result["columns"], rows)
    else:
        say(f"{result['row_count']} rows")
    if result["truncated"]:
        say(f"only the first {len(result['rows']):,} rows: select fewer")


def _tell(job: Job, show: Callable[[Mapping[str, Any]], None], *, as_json: bool = False) -> int:
    """Write what a job gave, and return the exit code."""
    from timeball.cli.job_text import ended_well, job_record, summary

    good = ended_well(job)
    if as_json:
        write_json({"job": job_record(job)})
    elif good and job.result:
        show(job.result)
    elif not good:
        say((job.error or "").rstrip())
    say(f"{job.uuid} {job.state} {'' if good else summary(job)}".rstrip())
    return 0 if good else 1
