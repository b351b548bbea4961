"""An application on the empty database, with one token for each scope."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from tests.web.asgi import Browser

from timeball.client import Client
from timeball.store.postgres import PostgresStore
from timeball.web import Scope, Token, create_app
from timeball.web.routes import Route
from timeball.web.scopes import GRANTABLE

NEW = {scope: Token.new(scope.value, [scope]) for scope in GRANTABLE}
TEXTS = {scope: text for scope, (_, text) in NEW.items()}
TOKENS = [token for token, _ in NEW.values()]
CALLBACK_KEY = "whsec_" + b64encode(b"a key of callbacks, for tests only").decode()


def path_of(route: Route, **names: str) -> str:
    """A path of the route; what has no name is called 1."""
    return re.sub(
        r"\{(\w+)(?::path)?\}",
        lambda found: names.get(found[1], str(UUID(int=1)) if found[1] == "batch" else "1"),
        route.path,
    )


@pytest.fixture(autouse=True)
def callback_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_CALLBACK", CALLBACK_KEY)


@pytest.fixture
def client(store: PostgresStore) -> Client:
    return Client(store)


@pytest.fixture(scope="session")
def made(server: str, pooler: str | None) -> Iterator[tuple[Any, Any]]:
    """One with tokens and one without: to build them takes longer than to ask them."""
    with Client(PostgresStore(pooler or server)) as client:
        apps = create_app(client, tokens=TOKENS), create_app(client)
        yield apps
        for app in apps:
            app.state.desk.look_connections.close()
        client.store.close()  # type: ignore[attr-defined]


@pytest.fixture
def app(made: tuple[Any, Any], direct: str) -> Any:
    """With tokens."""
    assert direct
    return made[0]


@pytest.fixture
def admin(app: Any) -> Browser:
    return Browser(app, TEXTS[Scope.ADMIN])


@pytest.fixture
def local(made: tuple[Any, Any], direct: str) -> Browser:
    """Somebody on this machine, where no token was set."""
    assert direct
    return Browser(made[1])
