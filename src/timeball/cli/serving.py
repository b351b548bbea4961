"""Serving the dashboard from commands: alone, or beside workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from timeball.cli.database import given_dsn, opened
from timeball.cli.output import say
from timeball.client import Client
from timeball.errors import UsageError

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
    with listening, package.server.served(app, listening) as url:
        say(f"dashboard at {url}")
        yield


def _hosts(how: Serving) -> list[str]:
    """Return the names under which it may be asked for: what it is bound to, and what is said."""
    bound = [] if how.host in {"0.0.0.0", "::"} else [how.host]  # noqa: S104 - a name is compared
    return [*how.hosts, *(f"[{host}]" if ":" in host else host for host in bound)]
