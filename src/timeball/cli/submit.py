"""`timeball submit`: add a job."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any
from uuid import UUID

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.named_args import named_args
from timeball.cli.output import write
from timeball.errors import UsageError

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.client import Handle


@click.command()
@click.argument("kind")
@click.argument("words", metavar="key=value…", nargs=-1)
@click.option("--json", "text", metavar="TEXT|-", help="All arguments as a JSON object; -: stdin.")
@click.option("--in", "delay", metavar="DURATION", help="Not before this has passed, such as 5m.")
@click.option("--at", metavar="INSTANT", help="Not before, such as 2026-12-24T09:00[Europe/Paris].")
@click.option("--expires", metavar="INSTANT", help="Skip it if it has not begun by then.")
@click.option("--queue")
@click.option("--priority", type=int, help="0 to 9; 9 starts first.")
@click.option("--max-retries", type=int)
@click.option("--key", help="Of the jobs with this key only as many at once as its limit, else 1.")
@click.option("--unique", metavar="KEY", help="Add nothing while another job of KIND has this key.")
@click.option("--after", type=click.UUID, multiple=True, metavar="ID", help="Wait for this job.")
@click.option("--rule", help="How those must end: all_success, all_done, one_success …")
@click.option("--ruled-out", help="If they cannot: skip, fail or run.")
@click.option("--uuid", type=click.UUID, help="Submitting the same one again adds nothing.")
@click.option("-a", "--app", multiple=True, metavar="MODULE|FILE", help="Check against these jobs.")
@click.option("--wait", is_flag=True, help="Wait until it has ended; exit with 0 if it succeeded.")
@click.option("--timeout", metavar="DURATION", help="Wait no longer.")
@dsn_option
@click.pass_context
def command(ctx: click.Context, /, kind: str, words: tuple[str, ...], **options: Any) -> None:
    """Add a job of KIND; each value is JSON if it reads as JSON, else text."""
    args = _arguments(words, options["text"])
    target, chosen = _target(kind, options["app"]), _chosen(options)
    timeout_s = _seconds(options["timeout"])
    with opened(options["dsn"]) as client:
        handle = client.submit(target, args=args, **chosen)
        if options["wait"]:
            ctx.exit(_wait(handle, timeout_s))
        write(str(handle.uuid))


def _arguments(words: tuple[str, ...], text: str | None) -> dict[str, Any]:
    if text is None:
        return named_args(words)
    if words:
        raise UsageError("--json holds all arguments: leave key=value out, or --json")
    if text == "-":
        text = sys.stdin.read()
    try:
        args = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--json is no JSON: {error}") from None
    if not isinstance(args, dict):
        raise UsageError('--json is no JSON object: write for example {"user": 7}')
    return args


def _chosen(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `Client.submit` that were given."""
    from timeball.cli.times import instant

    chosen: dict[str, Any] = {
        "queue": options["queue"],
        "priority": options["priority"],
        "max_retries": options["max_retries"],
        "key": options["key"],
        "uuid": options["uuid"],
        "unique": options["unique"],
        "after": options["after"] or None,
        "rule": options["rule"],
        "ruled_out": options["ruled_out"],
        "delay_s": _seconds(options["delay"]),
        "run_at": instant(options["at"]) if options["at"] else None,
        "expires_at": instant(options["expires"]) if options["expires"] else None,
    }
    assert chosen["uuid"] is None or isinstance(chosen["uuid"], UUID)
    return {name: value for name, value in chosen.items() if value is not None}


def _seconds(text: str | None) -> float | None:
    from timeball.cli.times import seconds

    return None if text is None else seconds(text)


def _target(kind: str, apps: tuple[str, ...]) -> Any:
    """Return the function of a kind where its module is given, else its name."""
    if not apps:
        return kind
    from timeball.action.registry import DEFAULT

    for app in apps:
        DEFAULT.load(app)
    return DEFAULT.kind_of(kind).call


def _wait(handle: Handle, timeout_s: float | None) -> int:
    from timeball.cli.job_text import ended_well, summary

    try:
        job = handle.wait(timeout_s)
    except TimeoutError:
        raise click.ClickException(
            f"{handle.uuid} has not ended in time; it goes on: timeball jobs watch {handle.uuid}"
        ) from None
    write(f"{handle.uuid} {job.state} {summary(job)}".rstrip())
    return 0 if ended_well(job) else 1
