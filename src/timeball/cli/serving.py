"""Serving the dashboard from commands: alone, or beside workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import click

from timeball.cli.database import given_dsn, opened
from timeball.cli.output import say
from timeball.client import Client
from timeball.errors import UsageError

_ONCE: Final = frozenset({"new_token", "scopes", "expires_in", "dry_run"})
"""Options of what a command does instead of serving."""

_EXTRA: Final = frozenset({"fastapi", "jinja2", "pydantic", "starlette", "uvicorn"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """What is served, where, and to whom."""

    dsn: str | None = None
    host: str = "127.0.0.1"
    port: int
    socket: Path | None = None
    token_file: Path | None = None
    hosts: Sequence[str] = ()
    base_path: str = ""
    title: str = "timeball"
    results: Path | None = None


def web() -> ModuleType:
    """Return the package of the dashboard.

    Raises:
        UsageError: The extra that it needs is not installed.
    """
    try:
        import timeball.web
        import timeball.web.server
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        raise UsageError("the dashboard needs an extra: pip install 'timeball[web]'") from None
    return timeball.web


def serve_until_stopped(how: Serving) -> None:
    """Serve until SIGINT or SIGTERM."""
    package = web()
    tokens = [] if how.token_file is None else package.tokens.read_tokens(how.token_file)
    server = package.server
    if how.socket is not None:
        listening = server.bound_file(how.socket)
    else:
        listening = server.bound(how.host, how.port, tokens=bool(tokens))
    with listening:
        if given_dsn(how.dsn) is None:
            say("starting PostgreSQL, or joining it …")
        with opened(how.dsn) as client:
            app = package.create_app(
                client,
                tokens=tokens,
                hosts=_hosts(how) if tokens else (),
                base_path=how.base_path,
                title=how.title,
                results=how.results,
            )
            app.state.desk.settings.tell(settings_told(package))
            say(f"dashboard at {server.url_of(listening)} (Ctrl-C stops)")
            server.serve(app, listening)


@contextmanager
def beside(
    client: Client, at: tuple[str, int] | None, results: Path | None = None
) -> Iterator[None]:
    """Serve on this machine while the block runs; nothing where there is no address."""
    if at is None:
        yield
        return
    package = web()
    listening = package.server.bound(*at, tokens=False)
    app = package.create_app(client, results=results)
    app.state.desk.settings.tell(settings_told(package))
    with listening, package.server.served(app, listening) as url:
        say(f"dashboard at {url}")
        yield


def _hosts(how: Serving) -> list[str]:
    """Return the names under which it may be asked for: what it is bound to, and what is said."""
    bound = [] if how.host in {"0.0.0.0", "::"} else [how.host]  # noqa: S104 - a name is compared
    return [*how.hosts, *(f"[{host}]" if ":" in host else host for host in bound)]


def settings_told(package: ModuleType) -> list[Any]:
    """Return what the command that runs was told, as the page Settings shows it."""
    settings, ctx = package.settings, click.get_current_context()
    origins = {
        click.core.ParameterSource.COMMANDLINE: settings.Origin.COMMAND,
        click.core.ParameterSource.ENVIRONMENT: settings.Origin.ENVIRONMENT,
    }
    found = []
    for param in ctx.command.params:
        name = param.name or ""
        if name in _ONCE:
            continue
        source = ctx.get_parameter_source(name)
        origin = origins.get(source, settings.Origin.DEFAULT) if source else settings.Origin.DEFAULT
        value = settings.text_of(ctx.params.get(name))
        if name == "dsn":
            value, origin = _database(package, ctx.params[name])
        about = getattr(param, "help", None) or ""
        found.append(settings.Setting(max(param.opts, key=len), value, origin, about))
    return found


def _database(package: ModuleType, dsn: str | None) -> tuple[str, Any]:
    """Return which database a command works on, and who has said so."""
    from timeball.store.postgres.connections import shown

    origin, found = package.settings.Origin, given_dsn(dsn)
    if found is None:
        return "the embedded PostgreSQL", origin.DEFAULT
    return shown(found), origin.COMMAND if dsn else origin.ENVIRONMENT
