"""The factory of the application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from timeball import __version__
from timeball.client import Client
from timeball.errors import UsageError
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.operations import Operations
from timeball.store.postgres.panorama import Panorama
from timeball.store.postgres.reading import ReadingStore
from timeball.web import live
from timeball.web.api import ROUTES as API_ROUTES
from timeball.web.desk import Desk
from timeball.web.gate import Gate
from timeball.web.guard import LOCAL_HOSTS, Guard
from timeball.web.pages import ROUTES as PAGES
from timeball.web.problems import ProblemDetail, answer_with_problems
from timeball.web.rehearsal import Rehearsal
from timeball.web.routes import add_routes
from timeball.web.sessions import Sessions
from timeball.web.settings import TITLE, Settings, of_program
from timeball.web.shell import trouble
from timeball.web.tide import Tide
from timeball.web.tokens import Token, Tokens

ROUTES: Final = (*API_ROUTES, *PAGES, *live.routes.declared)
"""All that can be asked for."""


def create_app(
    source: str | Client,
    *,
    tokens: Iterable[Token] = (),
    hosts: Collection[str] = (),
    base_path: str = "",
    title: str = TITLE,
    results: Path | None = None,
) -> FastAPI:
    """Return the API and the dashboard as an ASGI application, to serve or to mount in another.

    It opens at most two connections to look at the database, read-only and with every statement
    ended after 2 seconds, and others only to change something.

    Args:
        source: The address of the database, or a client of it.
        tokens: Who may do what. Without any, only this machine is answered: over a loopback
            address or a Unix socket.
        hosts: Names under which it may be asked for, besides localhost; without ports.
        base_path: Where a proxy that takes it away has put the application, such as "/jobs". What
            an application that mounts this one says counts without it.
        title: What to call this instance.
        results: A folder of runs of `timeball certify`: the page Certify shows them, and starts
            others there. None: it shows how to make one.

    Raises:
        UsageError: The client's jobs are not in PostgreSQL, a token is wrong, or there is none and
            others than this machine are to be answered.
    """
    known = Tokens(tokens)
    if hosts and not known:
        raise UsageError("hosts= lets others than this machine ask: give tokens= too")
    if base_path and not base_path.startswith("/"):
        raise UsageError(f"base_path is {base_path!r}: write one that begins with /, or none")
    client = Client(PostgresStore(source)) if isinstance(source, str) else source
    store = client.store
    if not isinstance(store, PostgresStore):
        raise UsageError("the dashboard needs jobs in PostgreSQL: pass a client of tb.connect()")
    rehearsal = Rehearsal(results)
    reading = ReadingStore(store.connections.dsn, schema=store.connections.schema)
    app = FastAPI(
        title=f"{title}: API",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        lifespan=_closing(rehearsal, reading, store if isinstance(source, str) else None),
    )
    app.state.desk = Desk(
        client=client,
        look=Client(reading),
        look_connections=reading.connections,
        panorama=Panorama(reading.connections),
        operations=Operations(store.connections, reading.connections),
        tide=Tide(reading.connections),
        gate=Gate(known, Sessions()),
        rehearsal=rehearsal,
        settings=_settings(hosts, base_path=base_path, title=title, results=results),
        title=title,
        base_path=base_path.rstrip("/"),
    )
    add_routes(app, ROUTES)
    answer_with_problems(app, trouble)
    app.add_middleware(Guard, hosts=app.state.desk.settings.hosts)
    _describe(app)
    return app


def _settings(hosts: Collection[str], **given: Any) -> Settings:
    """Return what a program has said, until a command says what it was told itself."""
    return Settings(of_program(hosts=sorted(hosts), **given), {*LOCAL_HOSTS, *hosts})


def _closing(rehearsal: Rehearsal, *stores: PostgresStore | None) -> Any:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        rehearsal.end()
        for store in stores:
            if store is not None:
                store.close()

    return lifespan


def _describe(app: FastAPI) -> None:
    """Let the description of the API name its tokens."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
            parts = schema.setdefault("components", {})
            parts["schemas"][ProblemDetail.__name__] = ProblemDetail.model_json_schema()
            parts.setdefault("securitySchemes", {})["token"] = {
                "type": "http",
                "scheme": "bearer",
                "description": "Each operation names in x-scope the scope that its token needs.",
            }
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]  # how FastAPI wants it to be replaced
