"""Who is let in: every route, every scope; and what no route is asked from elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from tests.web.asgi import Browser
from tests.web.conftest import TEXTS, TOKENS, path_of

from timeball.chance import now
from timeball.client import Client
from timeball.errors import UsageError
from timeball.store.memory import MemoryStore
from timeball.web import Scope, Token, create_app
from timeball.web.app import ROUTES
from timeball.web.guard import BODY_MAX, SECURITY
from timeball.web.routes import GatedRoute, Route
from timeball.web.scopes import GRANTABLE, IMPLIED
from timeball.web.sessions import AGE_MAX_S, IDLE_MAX_S, SESSIONS_MAX, Sessions
from timeball.web.tokens import Tokens, read_tokens

every_route = pytest.mark.parametrize("route", ROUTES, ids=lambda r: f"{r.method} {r.path}")
FOREIGN = {"origin": "http://evil.example", "content-type": "application/json"}


@every_route
def test_a_route_lets_in_who_has_its_scope_and_nobody_else(app: Any, route: Route) -> None:
    let_in = set()
    for scope in GRANTABLE:
        answer = Browser(app, TEXTS[scope]).send(route.method, path_of(route))
        if answer.status != 403:
            assert answer.status != 401
            let_in.add(scope)
    assert let_in == {scope for scope in GRANTABLE if route.scope in IMPLIED[scope]}


@every_route
def test_a_route_lets_nobody_in_without_a_token(app: Any, route: Route) -> None:
    for token in (None, "", "tb_wrong", "x" * 10_000):
        answer = Browser(app, token).send(route.method, path_of(route))
        if route.scope is Scope.OPEN:
            assert answer.status not in {401, 403}
        elif route.scope is Scope.CALLBACK:  # no token is asked for: its address is none
            assert answer.status == 403
        else:
            assert answer.status == 401
            assert answer.header("www-authenticate") == "Bearer"


@every_route
def test_every_answer_has_the_headers_that_keep_browsers_safe(app: Any, route: Route) -> None:
    for token in (TEXTS[Scope.ADMIN], None):
        answer = Browser(app, token).send(route.method, path_of(route, name="ui.css"))
        assert {name: answer.header(name) for name, _ in SECURITY} == dict(SECURITY)
        assert answer.header("cache-control") == (
            "public, max-age=31536000, immutable" if "/static/" in route.path else "no-store"
        )
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


@every_route
def test_no_other_page_changes_anything_in_a_browsers_name(local: Browser, route: Route) -> None:
    """Where this machine's users need no token, and where a cookie speaks for one."""
    if route.method == "GET":
        return
    for headers in (
        FOREIGN,
        {"origin": "null"},
        {"origin": "null", "sec-fetch-site": "cross-site"},
        {"origin": "null", "sec-fetch-site": "none"},
        {"sec-fetch-site": "cross-site"},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
    ):
        assert local.ask(route.method, path_of(route), headers=headers).status == 403


def test_every_route_of_the_application_is_gated(app: Any) -> None:
    assert all(isinstance(route, GatedRoute) for route in app.router.routes)
    assert len(app.router.routes) == len(ROUTES)


def test_a_route_without_a_scope_cannot_be_built() -> None:
    with pytest.raises(ValueError, match="not a valid Scope"):
        GatedRoute("/", lambda: None)


@pytest.mark.parametrize("path", ["/api/v1/nothing", "/nothing", "/api/v1/jobs/", "//api/v1/jobs"])
def test_what_is_not_there_is_not_found(admin: Browser, path: str) -> None:
    answer = admin.get(path)
    assert (answer.status, answer.json["title"]) == (404, "Not found")
    assert {name: answer.header(name) for name, _ in SECURITY} == dict(SECURITY)


@pytest.mark.parametrize(
    "path", ["/api/v1/../v1/jobs", "/api//v1/jobs", "/API/v1/jobs", "/api/v1/jobs%2f", "/./metrics"]
)
def test_a_path_trick_opens_nothing(app: Any, path: str) -> None:
    assert Browser(app).get(path).status in {401, 404}


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/api/v1/jobs", "GET, POST"),
        ("/api/v1/jobs/1", "DELETE, GET"),
        ("/api/v1/schedules/a/b/pause", "POST"),  # and no schedule called a/b/pause
        ("/api/v1/schedules/a/b", "DELETE, GET"),
        ("/jobs/cancel", "POST"),
    ],
)
def test_a_wrong_method_is_said_to_be_one_and_which_are_right(
    admin: Browser, path: str, allowed: str
) -> None:
    answer = admin.send("PATCH", path, {})
    assert (answer.status, answer.header("allow")) == (405, allowed)


@pytest.mark.parametrize("path", ["/api/v1/schedules/a/pause", "/jobs/cancel"])
def test_what_can_be_sent_only_and_is_no_name_either_is_not_called_unknown(
    admin: Browser, client: Client, path: str
) -> None:
    answer = admin.get(path)
    assert (answer.status, answer.header("allow")) == (405, "POST")
    client.schedule("a/pause", "k", cron="@daily", tz="UTC")
    assert admin.get("/api/v1/schedules/a/pause").status == 200


@pytest.mark.parametrize("host", ["evil.example", "localhost.evil.example", "", "a b", "[::2]"])
def test_another_host_name_gets_nothing(admin: Browser, host: str) -> None:
    """However a name was made to point here."""
    assert admin.get("/api/v1/counts", host=host).status == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:8642", "[::1]:8642"])
def test_this_machines_names_are_known(admin: Browser, host: str) -> None:
    assert admin.get("/api/v1/counts", host=host).status == 200


def test_a_name_that_is_allowed_is_known(client: Client) -> None:
    app = create_app(client, tokens=TOKENS, hosts=["jobs.example"])
    browser = Browser(app, TEXTS[Scope.READ])
    assert browser.get("/api/v1/counts", host="jobs.example:443").status == 200
    app.state.desk.look_connections.close()


def test_without_tokens_others_than_this_machine_cannot_be_let_in(client: Client) -> None:
    with pytest.raises(UsageError, match="tokens="):
        create_app(client, hosts=["jobs.example"])


@pytest.mark.parametrize(
    ("here", "asks", "status"),
    [
        (("127.0.0.1", 80), ("127.0.0.1", 9), 200),
        (("::1", 80), ("::1", 9), 200),
        (("/run/timeball.sock", None), None, 200),
        (("10.0.0.7", 80), ("10.0.0.8", 9), 401),
        (("127.0.0.1", 80), ("10.0.0.8", 9), 401),
        (("0.0.0.0", 80), ("127.0.0.1", 9), 401),
        (("/run/timeball.sock", None), ("10.0.0.8", 9), 401),
        (None, None, 401),
        (("somewhere", 80), ("127.0.0.1", 9), 401),
    ],
)
def test_without_tokens_only_this_machine_is_let_in(
    local: Browser, here: Any, asks: Any, status: int
) -> None:
    browser = Browser(local.app, server=here, client=asks)
    assert browser.get("/api/v1/counts").status == status


@pytest.mark.parametrize("header", ["forwarded", "via", "x_forwarded_for", "x_real_ip"])
def test_a_proxy_on_this_machine_is_not_taken_for_it(local: Browser, header: str) -> None:
    assert local.get("/api/v1/counts", **{header: "203.0.113.7"}).status == 401


def test_a_store_in_memory_is_no_database() -> None:
    with pytest.raises(UsageError, match="PostgreSQL"):
        create_app(Client(MemoryStore(now)))


# Bodies ---------------------------------------------------------------------------------------


def test_a_large_body_is_not_read(admin: Browser) -> None:
    body = b'{"kind": "' + b"x" * BODY_MAX + b'"}'
    assert admin.ask("POST", "/api/v1/jobs", body).status == 413
    short = {"content-length": "5", "content-type": "application/json"}
    assert admin.ask("POST", "/api/v1/jobs", body, headers=short).status == 413


@pytest.mark.parametrize(
    "body",
    [
        b'{"kind": "a", "kind": "b"}',
        b'{"kind": "a", "args": {"x": {"y": 1, "y": 2}}}',
        b'{"kind": "a", "args": {"x": NaN}}',
        b'{"kind": "a", "args": {"x": 1e999}}',
        b'{"kind": "a", "args": {"x": ' + b"9" * 400 + b"}}",
        b'{"kind": "a", "args": {"x": "\\u0000"}}',
        b'{"kind": "a", "args": {"x": "\\ud800"}}',
        b'{"kind": "a", "args": ' + b"[" * 100_000,
        b'{"kind": "\xff"}',
        b"{",
    ],
)
def test_what_two_readers_would_read_differently_is_refused(admin: Browser, body: bytes) -> None:
    answer = admin.ask("POST", "/api/v1/jobs", body, headers={"content-type": "application/json"})
    assert answer.status in {400, 422}
    assert answer.header("content-type") == "application/problem+json"


def test_a_client_sees_neither_a_traceback_nor_sql(
    app: Any, admin: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("SELECT secret FROM timeball.job")

    monkeypatch.setattr(app.state.desk.look, "jobs", broken)
    with pytest.raises(RuntimeError, match="secret"):  # it goes on to the log
        admin.get("/api/v1/jobs")
    answer = admin.told
    assert (answer.status, answer.json["title"]) == (500, "Internal error")
    assert b"secret" not in answer.body


# Tokens and sessions --------------------------------------------------------------------------


def test_of_a_token_only_the_hash_is_kept() -> None:
    token, text = Token.new("ci", [Scope.READ])
    assert text not in token.line
    assert text not in repr(token)
    assert token.hash not in repr(token)
    assert Tokens([token]).of(text) is token
    assert Tokens([token]).of(text + " ") is None
    assert Tokens([token]).of(token.hash) is None


def test_a_token_file_gives_the_tokens_that_are_in_it(tmp_path: Any) -> None:
    made = [Token.new(f"t{n}", scopes)[0] for n, scopes in enumerate([[Scope.READ], GRANTABLE])]
    file = tmp_path / "tokens"
    file.write_text("# who may\n\n" + "".join(f"{token.line}\n" for token in made))
    assert read_tokens(file) == made


@pytest.mark.parametrize("text", ["", "a read", "a read sha256:12", "a root sha256:" + "0" * 64])
def test_a_token_file_that_is_wrong_is_not_shown(tmp_path: Any, text: str) -> None:
    file = tmp_path / "tokens"
    file.write_text(text)
    with pytest.raises(UsageError) as told:
        read_tokens(file)
    assert "sha256:12" not in str(told.value)


def test_two_tokens_of_one_name_are_refused() -> None:
    with pytest.raises(UsageError, match="its own name"):
        Tokens([TOKENS[0], TOKENS[0]])


def test_a_session_is_over_after_its_time_and_when_nobody_uses_it() -> None:
    now = [0.0]
    sessions = Sessions(clock=lambda: now[0])
    secret = sessions.begin(TOKENS[0])
    assert sessions.token(secret) is TOKENS[0]
    now[0] += IDLE_MAX_S + 1
    assert sessions.token(secret) is None
    busy = sessions.begin(TOKENS[0])
    for _ in range(int(AGE_MAX_S / IDLE_MAX_S) * 2):
        now[0] += IDLE_MAX_S / 2
        assert sessions.token(busy)
    now[0] += IDLE_MAX_S / 2
    assert sessions.token(busy) is None


def test_a_new_session_ends_the_old_one_and_there_are_not_too_many() -> None:
    sessions = Sessions()
    first = sessions.begin(TOKENS[0])
    second = sessions.begin(TOKENS[0], old=first)
    assert sessions.token(first) is None
    assert sessions.token(second) is TOKENS[0]
    for _ in range(SESSIONS_MAX):
        sessions.begin(TOKENS[1])
    assert sessions.token(second) is None
