"""`timeball limits`: how many jobs may be under way at once, and how many may start in a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from timeball.cli.database import dsn_option, opened
from timeball.cli.output import json_option, write, write_json, write_table

if TYPE_CHECKING:  # a command imports what it needs when it runs
    from timeball.core.permits import Proof

_VIOLATED: Final = 7
_Command = TypeVar("_Command", bound=Callable[..., Any])


def _about_options(command: _Command) -> _Command:
    for name, text in (
        ("--queue", "Jobs in this queue."),
        ("--kind", "Jobs of this kind."),
        ("--key", "Jobs with this key; tenant-* is for each key that begins so."),
    ):
        command = click.option(name, help=text)(command)
    return command


@click.group()
def command() -> None:
    """Limit the jobs of a queue, a kind or a key: how many at once, how many starts in a time."""


@command.command("list")
@json_option
@dsn_option
def list_(*, as_json: bool, dsn: str | None) -> None:
    """List the limits that were set, and how many jobs count against each."""
    with opened(dsn) as client:
        found = client.limits()
    if as_json:
        rates = [None if limit.rate is None else str(limit.rate) for limit in found]
        rows = zip(found, rates, strict=True)
        write_json({"limits": [{**limit._asdict(), "rate": rate} for limit, rate in rows]})
    else:
        rows_shown = [["" if cell is None else cell for cell in limit] for limit in found]
        write_table(("what", "name", "at once", "used", "starts"), rows_shown)


@command.command("set")
@_about_options
@click.option("--rate", metavar="RATE|none", help="Starts in a time: 5/s, 100/m, '9/s burst 3'.")
@click.argument("at_once", metavar="[N|none]", required=False)
@dsn_option
def set_(*, at_once: str | None, rate: str | None, dsn: str | None, **about: Any) -> None:
    """Let at most N jobs be under way at once, at most so many start in a time, or both.

    none takes a limit away; then of a key 1 may be under way at once.
    """
    if at_once is not None and at_once != "none" and not at_once.isdecimal():
        raise click.BadParameter(f"{at_once!r}: write a number, or none", param_hint="N")
    limits: dict[str, Any] = {}
    if at_once is not None:
        limits["at_once"] = None if at_once == "none" else int(at_once)
    if rate is not None:
        limits["rate"] = None if rate == "none" else rate
    with opened(dsn) as client:
        client.limit(**limits, **about)
    write("from now on")


@command.command("prove")
@_about_options
@json_option
@dsn_option
@click.pass_context
def prove(ctx: click.Context, /, *, as_json: bool, dsn: str | None, **about: Any) -> None:
    """Say from the record how many starts any window had at most; exit 7 if there were too many.

    A start is on record once its attempt has been settled, or its worker has died in the middle of
    it while the supervisor lived on.
    """
    with opened(dsn) as client:
        found = client.prove_rates(**about)
    if as_json:
        write_json({"rates": [_record(proof) for proof in found]})
    else:
        for proof in found:
            write(_line(proof))
        if not found:
            write("no start on record that a rate holds for")
    ctx.exit(_VIOLATED if any(proof.early for proof in found) else 0)


def _line(proof: Proof) -> str:
    name = proof.name.replace(":", " ", 1)
    verdict = f"{len(proof.early)} too early" if proof.early else "kept"
    return (
        f"{name}: at most {proof.most} starts in any {float(proof.rate.per_s):g} s, "
        f"{proof.allowed} allowed by {proof.rate}, in {proof.starts} starts on record: {verdict}"
    )


def _record(proof: Proof) -> dict[str, Any]:
    scope, _, name = proof.name.partition(":")
    return {
        "scope": scope,
        "name": name,
        "rate": str(proof.rate),
        "window_s": float(proof.rate.per_s),
        "starts": proof.starts,
        "most": proof.most,
        "allowed": proof.allowed,
        "early": len(proof.early),
    }
