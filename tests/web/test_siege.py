"""Attacks: by names, addresses, bodies that never end, pages of others, and who may see less."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from tests.store.postgres.sessions import worker_of
from tests.web.asgi import HERE, LOCAL, Browser
from tests.web.conftest import TEXTS, TOKENS, path_of

from timeball.client import Client
from timeball.core.notes import Line, Note
from timeball.core.records import Settlement
from timeball.core.states import Ending, State
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.reading import ReadingConnections
from timeball.web import Scope, create_app, guard, shell
from timeball.web.addresses import segment
from timeball.web.app import ROUTES
from timeball.web.sessions import COOKIE
from timeball.web.tide import Tide

GETS = [route for route in ROUTES if route.method == "GET"]
FORM = {
    "content-type": "application/x-www-form-urlencoded",
    "origin": "http://localhost",
    "sec-fetch-site": "same-origin",
}


# Who may see less ------------------------------------------------------------------------------


@pytest.fixture
def canaries(client: Client, store: PostgresStore) -> dict[str, str]:
    """A canary in all that jobs are given, give and say; the names of what holds them."""
    with client.batch("b") as batch:
        handle = batch.submit("k", queue="q", args={"canary": "canary"})
        batch.submit("k", queue="q", args={"x": "canary"}, after=[handle])
    worker = worker_of(store, "q")
    (turn,) = store.claim(worker, limit=1, request=uuid4(), floors={})
    store.note([Note(turn.job_id, 1, (1.0, 2.0, "canary"), [Line(1, 0.0, "canary")])])
    facts: dict[str, Any] = {"error_type": "E", "error": "canary", "result": '"canary"'}
    began = store.now().timestamp()
    settled = Settlement(
        turn.lane, turn.seq, turn.job_id, 1, Ending.FAILED, began_at=began, ran_s=0.1, **facts
    )
    store.settle(worker, [settled])
    client.schedule("s", "k", cron="@daily", tz="UTC", args={"x": "canary"})
    return {"job": str(handle.uuid), "batch": str(client.batches()[0].uuid), "schedule": "s"}


def everything(browser: Browser, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    for route in GETS:
        yield route.path, browser.get(path_of(route, **names)).text


@pytest.mark.parametrize("scope", [Scope.READ, Scope.OPERATE, Scope.SUBMIT])
def test_no_address_at_all_shows_a_payload_to_who_may_not_see_it(
    app: Any, canaries: dict[str, str], scope: Any
) -> None:
    found = everything(Browser(app, TEXTS[scope]), canaries)
    assert [path for path, text in found if "canary" in text] == []


@pytest.mark.parametrize("word", ["args.x:{}", "error:{}", "result:{}", "args.canary:{}"])
def test_no_search_tells_what_a_job_was_given(
    app: Any, canaries: dict[str, str], word: str
) -> None:
    """It finds as many jobs where it is right as where it is not."""
    assert canaries
    blind = Browser(app, TEXTS[Scope.READ])
    right, wrong = (blind.get(f"/jobs?q={word.format(it)}").text for it in ("canary", "x"))
    assert right.count("<tr") == wrong.count("<tr")


def test_who_may_see_payloads_does(app: Any, canaries: dict[str, str]) -> None:
    """So that the walk above has something to miss."""
    seeing = dict(everything(Browser(app, TEXTS[Scope.READ_PAYLOAD]), canaries))
    for path in ("/jobs/{job}", "/api/v1/jobs/{job}", "/api/v1/jobs", "/api/v1/schedules"):
        assert "canary" in seeing[path]


# Addresses and methods --------------------------------------------------------------------------


@pytest.mark.parametrize("route", GETS, ids=lambda route: route.path)
def test_another_method_is_no_way_around_the_gate(app: Any, route: Any) -> None:
    for method in ("HEAD", "OPTIONS", "TRACE", "PROPFIND", "get"):
        answer = Browser(app).send(method, path_of(route, name="ui.css"))
        assert answer.status in {401, 404, 405}, method
        assert "access-control-allow-methods" not in answer.headers


def test_a_method_is_what_the_request_says_and_no_header_of_it(app: Any, client: Client) -> None:
    handle = client.submit("k")
    for name in ("x_http_method_override", "x_method_override", "x_http_method"):
        path = f"/api/v1/jobs/{handle.uuid}"
        assert Browser(app, TEXTS[Scope.ADMIN]).get(path, **{name: "DELETE"}).status == 200
    assert client.get(handle).state is State.PENDING


@pytest.mark.parametrize(
    "headers",
    [
        {"x_forwarded_for": "127.0.0.1"},
        {"x_real_ip": "127.0.0.1"},
        {"forwarded": "for=127.0.0.1;host=localhost"},
        {"x_forwarded_host": "localhost", "host": "evil.example"},
        {"x_original_url": "/static/ui.css", "x_rewrite_url": "/login"},
    ],
    ids=str,
)
def test_what_a_client_says_of_where_it_comes_from_is_not_believed(
    local: Browser, headers: dict[str, str]
) -> None:
    far = Browser(local.app, client=("10.0.0.8", 9), server=HERE)
    assert far.get("/api/v1/jobs", **headers).status in {401, 421}


def test_the_record_names_where_a_change_really_came_from(client: Client, admin: Browser) -> None:
    handle = client.submit("k")
    path = f"/api/v1/jobs/{handle.uuid}/cancel"
    assert admin.send("POST", path, x_forwarded_for="6.6.6.6").status == 200
    assert admin.get("/api/v1/operations").json["operations"][0]["origin"] == LOCAL[0]


# Pages of others --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin", ["http://[", "http://a]b", "://", "", "\xff", "http://localhost:1", "localhost"]
)
def test_an_origin_that_is_none_of_ours_is_refused(local: Browser, origin: str) -> None:
    assert local.ask("POST", "/jobs/cancel", headers={**FORM, "origin": origin}).status == 403


def test_a_session_that_somebody_else_has_chosen_is_never_taken_up(app: Any) -> None:
    browser = Browser(app)
    browser.cookies[COOKIE] = planted = "A" * 43
    assert browser.form("/login", token=TEXTS[Scope.READ]).status == 303
    assert browser.cookies[COOKIE] != planted
    other = Browser(app)
    other.cookies[COOKIE] = planted
    assert other.get("/jobs").status == 401


def test_below_a_path_of_a_proxy_signing_in_leads_back_below_it(client: Client) -> None:
    app = create_app(client, tokens=TOKENS, base_path="/ops")
    browser = Browser(app)
    asked = browser.get("/queues?x=1", accept="text/html").header("location")
    assert asked == "/ops/login?next=%2Fops%2Fqueues%3Fx%3D1"
    for following, led in (
        ("/ops/queues?x=1", "/ops/queues?x=1"),
        ("/queues", "/ops/"),
        ("/opsy/queues", "/ops/"),
        ("", "/ops/"),
    ):
        signed = browser.form("/login", token=TEXTS[Scope.READ], next=following)
        assert signed.header("location") == led
    app.state.desk.look_connections.close()


# Names and values -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["run_at", "expires_at"])
@pytest.mark.parametrize("at", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00"])
def test_an_instant_beyond_all_calendars_is_refused(admin: Browser, name: str, at: str) -> None:
    answer = admin.send("POST", "/api/v1/jobs", {"kind": "k", name: at})
    assert answer.status == 400
    assert name in answer.json["detail"]


@pytest.mark.parametrize("field", ["kind", "queue", "key", "unique"])
@pytest.mark.parametrize(
    "name", ["a\r\nSet-Cookie: x=1", "\u202egpj.exe", "\x1b[31m", "x" * 10_000]
)
def test_a_name_that_could_be_more_than_a_name_is_refused(
    admin: Browser, field: str, name: str
) -> None:
    assert admin.send("POST", "/api/v1/jobs", {"kind": "k", field: name}).status in {400, 422}


@pytest.mark.parametrize("name", ['a"b\\c{d="e"} 1', "javascript:alert(1)", "=1+1", "..", "%2e%0a"])
def test_a_name_of_signs_breaks_neither_metrics_nor_links_nor_headers(
    client: Client, admin: Browser, name: str
) -> None:
    client.submit("k", queue=name)
    client.schedule(name, "k", cron="@daily", tz="UTC")
    for path in ("/", "/jobs", "/queues", "/schedules"):
        for link in re.findall(r'(?:href|action)="([^"]*)"', admin.get(path).text):
            assert link.startswith(("/", "#", "?")), link
    lines = admin.get("/metrics").text.splitlines()
    labelled = r'\w+(\{(\w+="([^"\\]|\\[\\n"])*",?)*\})? [-+.e\d]+'
    assert [line for line in lines if line[0] != "#" and not re.fullmatch(labelled, line)] == []


@pytest.mark.parametrize(
    "name", ["a b", "a%20b", "50 %", "%2520", "kind:x state:failed", "a+b&c#d"]
)
def test_a_link_to_the_jobs_of_a_name_finds_them_and_no_others(
    client: Client, admin: Browser, name: str
) -> None:
    client.submit(name, queue=name)
    client.submit("a", queue="a")
    client.schedule("s", name, cron="@daily", tz="UTC")
    for path, word in (("/", "queue"), ("/queues", "queue"), ("/schedules/s", "kind")):
        links = re.findall(rf'href="(/jobs\?q={word}:[^"]*)"', admin.get(path).text)
        rows = [re.findall(r'<tr id="(j\d+)"', admin.get(unescape(link)).text) for link in links]
        assert ["j1"] in rows, path
        assert all(len(found) <= 1 for found in rows)  # a queue of schedules has none


@pytest.mark.parametrize(
    "name", [".", "..", "../", "a/../b", "/", "a//b", " ", "a/pause", "🙂" * 64]
)
def test_whatever_a_name_holds_its_buttons_are_its_own(
    client: Client, local: Browser, name: str
) -> None:
    """Asked as browsers do, which take the parts . and .. away."""
    client.schedule(name, "k", queue=name, cron="@daily", tz="UTC")
    for path in ("/queues", "/schedules", f"/schedules/{segment(name)}"):
        (button,) = re.findall(r'action="(/[^"]*/pause)"', local.get(path).text)
        assert not {".", "..", "%2e", "%2e%2e"} & set(button.lower().split("/"))
        page, _, told = local.form(button).header("location").partition("?")
        assert told == "told=paused"
        assert local.get(page).status == 200
        client.resume_schedule(name)
    assert [queue.name for queue in client.queues() if queue.paused_at] == [name]
    assert local.get(f"/api/v1/schedules/{segment(name)}").json["schedule"]["name"] == name
    assert local.send("POST", f"/api/v1/queues/{segment(name)}/resume").json["answer"] == "resumed"


def test_a_ticked_job_that_is_gone_does_not_spare_the_others(
    client: Client, local: Browser
) -> None:
    handle = client.submit("k")
    body = f"job={uuid4()}&job=nonsense&job={handle.uuid}".encode()
    assert local.ask("POST", "/jobs/cancel", body, FORM).header("location").endswith("told=some")
    assert client.get(handle).state is State.CANCELLED


@pytest.mark.parametrize("skew_s", [-86_400.0, 86_400.0])
def test_a_clock_that_is_wrong_draws_nothing_backwards(
    client: Client, store: PostgresStore, admin: Browser, skew_s: float
) -> None:
    with client.batch("b") as batch:
        handle = batch.submit("k")
    worker = worker_of(store)
    (turn,) = store.claim(worker, limit=1, request=uuid4(), floors={})
    began = store.now().timestamp() + skew_s
    settled = Settlement(
        turn.lane, turn.seq, turn.job_id, 1, Ending.SUCCEEDED, began_at=began, ran_s=0.5
    )
    store.settle(worker, [settled])
    for path in (f"/jobs/{handle.uuid}", f"/batches/{client.batches()[0].uuid}", "/", "/jobs"):
        text = admin.get(path).text
        assert not re.search(r'(width|height)="-|="nan|[^"]-\d+(\.\d+)? (ms|min|h|d)\b', text), path


# What keeps others waiting ----------------------------------------------------------------------


def asked(app: Any, receive: Any, path: str = "/api/v1/jobs") -> int:
    """The status of a POST by somebody with a token whose body comes as `receive` has it."""
    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    token = f"Bearer {TEXTS[Scope.ADMIN]}".encode()
    kind = (b"content-type", b"application/json")
    headers = [(b"host", b"localhost"), (b"authorization", token), kind]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": LOCAL,
        "server": HERE,
        "root_path": "",
    }
    asyncio.run(asyncio.wait_for(app(scope, receive, send), 30))
    return int(sent[0]["status"])


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/login", "/theme"])
def test_a_body_that_drips_is_not_waited_for_for_ever(
    app: Any, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """Each drop in time, and all of them not; meanwhile no connection is held."""
    monkeypatch.setattr(guard, "BODY_S", 0.05)
    lent: set[int] = set()

    async def drop() -> dict[str, Any]:
        await asyncio.sleep(0.001)
        lent.add(app.state.desk.look_connections._lent)
        return {"type": "http.request", "body": b" ", "more_body": True}

    assert asked(app, drop, path) == 408
    assert lent == {0}


def test_a_body_in_pieces_is_as_bounded_as_one(app: Any) -> None:
    async def piece() -> dict[str, Any]:
        return {"type": "http.request", "body": b" " * 65_536, "more_body": True}

    assert asked(app, piece) == 413


def test_what_strangers_ask_for_is_not_kept(app: Any) -> None:
    def kept() -> int:
        caches = [each for each in vars(shell).values() if hasattr(each, "cache_info")]
        return sum(cache.cache_info().currsize for cache in caches)

    stranger = Browser(app)
    stranger.get("/login")
    stranger.get("/static/none")
    before = kept()
    for n in range(5):
        assert stranger.get(f"/static/{n}").status == 404
    assert kept() == before


def test_many_open_pages_look_at_the_database_once(dsn: str) -> None:
    connections = ReadingConnections(dsn)
    looks: list[str] = []
    run = connections.run

    def counted(name: str, /, **params: Any) -> list[tuple[Any, ...]]:
        looks.append(name)
        return run(name, **params)

    connections.run = counted  # type: ignore[method-assign]  # to see what is asked
    tide = Tide(connections, look_s=3_600)

    async def story() -> None:
        pages = [tide.changes() for _ in range(50)]
        waits = [asyncio.ensure_future(anext(page)) for page in pages]
        while tide.listeners < 50 or not tide.looked:
            await asyncio.sleep(0)
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
        assert (tide.listeners, tide.looks) == (0, False)

    asyncio.run(story())
    connections.close()
    assert looks.count("latest_change") == 1
