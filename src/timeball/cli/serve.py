"""`timeball serve`: the dashboard and the API."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from timeball.cli.database import dsn_option
from timeball.cli.monitoring import results_option
from timeball.cli.output import say, write
from timeball.errors import UsageError

PORT: Final = 8642
_SCOPES: Final = ("read", "read_payload", "submit", "operate", "admin")


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to serve.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=PORT,
    show_default=True,
    help="0 takes any that is free.",
)
@click.option(
    "--socket",
    type=click.Path(path_type=Path),
    help="Serve on this Unix socket instead, which only this user can open.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Who may do what. Without it, only this machine is answered, and whatever it asks.",
)
@click.option(
    "--allow-host", "hosts", multiple=True, help="A name under which it may be asked for."
)
@click.option("--base-path", default="", help="Where a proxy that takes it away has put it.")
@click.option("--title", default="timeball", help="What to call this instance.")
@click.option("--new-token", metavar="NAME", help="Only make a token, and show it once.")
@click.option(
    "--scope",
    "scopes",
    multiple=True,
    type=click.Choice(_SCOPES),
    help="With --new-token: what it allows; read where none is given.",
)
@click.option(
    "--expires-in", metavar="DURATION", help="With --new-token: it lets nobody in after that."
)
@results_option
@dsn_option
def command(**options: Any) -> None:
    """Serve the dashboard and the API, on this machine only unless tokens say who else may ask.

    Whoever can open the port without tokens may do everything: on a machine that others use, take
    --socket or --token-file.
    """
    if options["new_token"]:
        scopes, expires_in = options["scopes"] or ("read",), options["expires_in"]
        _new_token(options["new_token"], scopes, expires_in)
        return
    if options["scopes"] or options["expires_in"]:
        raise UsageError("--scope and --expires-in go with --new-token")
    from timeball.cli.serving import Serving, serve_until_stopped

    serve_until_stopped(
        Serving(
            dsn=options["dsn"],
            host=options["host"],
            port=options["port"],
            socket=options["socket"],
            token_file=options["token_file"],
            hosts=options["hosts"],
            base_path=options["base_path"],
            title=options["title"],
            results=options["results"],
        )
    )


def _new_token(name: str, scopes: tuple[str, ...], expires_in: str | None) -> None:
    from timeball.cli.serving import web
    from timeball.cli.times import seconds

    expires_s = None if expires_in is None else seconds(expires_in, least_s=1.0)
    given = [web().Scope(scope) for scope in scopes]
    token, text = web().Token.new(name, given, expires_s=expires_s)
    write(token.line)
    say(f"the token, which is shown only now: {text}")
    say("the line above goes into the file of --token-file, and lets nobody in by itself")
