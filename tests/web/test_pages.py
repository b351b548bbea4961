"""The pages: all of them come whatever jobs hold, and nothing that jobs hold is obeyed."""

from __future__ import annotations

import gzip
import re
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import pytest
from tests.store.postgres.sessions import worker_of
from tests.web.asgi import Answer, Browser
from tests.web.conftest import TEXTS, TOKENS, path_of
from tests.web.test_api import ended

from timeball.client import Client
from timeball.core.notes import Line, Note
from timeball.core.states import Ending, State
from timeball.store.postgres import PostgresStore
from timeball.web import Scope, create_app, parts
from timeball.web.app import ROUTES
from timeball.web.pages import overview as pages_overview
from timeball.web.sessions import COOKIE

POISON = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>\"' onclick=alert(3) {{1237*9871}} </pre>"
)
NAME = "<b onclick=x>\"'&{{1237*9871}}"
STATIC = files("timeball.web") / "static"
PAGES = [
    route
    for route in ROUTES
    if route.method == "GET" and route.gives == "text/html" and "static" not in route.path
]


class Seen(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.said.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture
def poisoned(client: Client, store: PostgresStore) -> Client:
    """Every text that a stranger may choose is poison."""
    first = client.submit(NAME, queue=NAME, args={POISON: POISON})
    worker = worker_of(store, NAME)
    (turn,) = store.claim(worker, limit=1, request=first.uuid, floors={})
    store.note([Note(turn.job_id, 1, (1.0, 2.0, POISON), [Line(1, 0.0, POISON)])])
    ended(store, Ending.FAILED, turn=turn, worker=worker, error_type=POISON[:80], error=POISON)
    client.submit(NAME, queue=NAME, key=NAME, delay_s=60)
    client.schedule(NAME, NAME, cron="@daily", tz="UTC", args={"a": POISON}, source=POISON[:90])
    with client.batch(NAME) as batch:
        batch.submit(NAME, after=[batch.submit(NAME, args={POISON: POISON})])
    client.pause_queue(NAME, by=NAME)
    client.limit(key=NAME, at_once=2, rate="5/s")
    return client


def seen(answer: Answer) -> Seen:
    assert answer.status == 200
    assert answer.header("content-type") == "text/html; charset=utf-8"
    return Seen(answer.text)


@pytest.mark.parametrize("route", PAGES, ids=lambda route: route.path)
def test_what_a_job_holds_is_shown_and_never_obeyed(
    poisoned: Client, admin: Browser, route: Any
) -> None:
    batch = str(poisoned.batches()[0].uuid)
    names = {"schedule": quote(NAME, safe=""), "about": "key", "limit": quote(NAME, safe="")}
    page = seen(admin.get(path_of(route, **names, batch=batch)))
    assert len(page.of("script")) == 1
    assert not [tag for tag, _ in page.tags if tag in {"img", "iframe", "object", "b "}]
    for tag, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on") or name == "style"], tag
    assert "12210427" not in "".join(page.said)


@pytest.mark.parametrize("route", PAGES, ids=lambda route: route.path)
def test_an_empty_database_has_pages_too(admin: Browser, route: Any) -> None:
    if "{" in route.path:
        assert admin.get(path_of(route), accept="text/html").status == 404
    else:
        seen(admin.get(path_of(route)))


@pytest.mark.parametrize("scope", [Scope.READ, Scope.OPERATE, Scope.ADMIN])
def test_a_page_offers_what_its_reader_may_do_and_nothing_else(
    app: Any, client: Client, scope: Scope
) -> None:
    client.submit("k", queue="q")
    client.schedule("s", "k", cron="@daily", tz="UTC")
    browser = Browser(app, TEXTS[scope])
    declared = {route.path: route for route in ROUTES if route.method == "POST"}
    offered = set()
    for path in ("/", "/jobs", "/jobs/1", "/queues", "/schedules", "/schedules/s"):
        page = seen(browser.get(path))
        forms = [f.get("action") for f in page.of("form") if f.get("method") == "post"]
        forms += [button["formaction"] for button in page.of("button") if "formaction" in button]
        offered |= {route for form in forms for route in declared.values() if fits(route, form)}
        for form in forms:
            assert any(fits(route, form) for route in declared.values()), form
    needed = {route.scope for route in offered} - {Scope.OPEN}
    assert (
        needed
        == {
            Scope.READ: set(),
            Scope.OPERATE: {Scope.OPERATE},
            Scope.ADMIN: {Scope.OPERATE, Scope.ADMIN},
        }[scope]
    )


def fits(route: Any, action: str | None) -> bool:
    pattern = re.sub(r"\\{\w+(:path)?\\}", ".+", re.escape(route.path))
    return re.fullmatch(pattern, action or "") is not None


def test_every_button_that_changes_a_job_names_the_transition(
    client: Client, admin: Browser
) -> None:
    client.submit("k")
    titles = [button.get("title") for button in seen(admin.get("/jobs/1")).of("button")]
    assert "pending → cancelled" in titles


def test_a_change_is_made_and_said_by_a_form_alone(client: Client, local: Browser) -> None:
    """Without a script: a POST, and the way back to a page that says so."""
    handle = client.submit("k")
    answer = local.form(f"/jobs/{handle.uuid}/cancel")
    assert answer.status == 303
    assert "Cancelled: it never starts." in local.get(answer.header("location")).text
    assert client.get(handle).state is State.CANCELLED
    again = local.form(f"/jobs/{handle.uuid}/cancel").header("location")
    assert "Refused" in local.get(again).text


def test_ticked_jobs_are_changed_together_and_each_is_on_record(
    client: Client, local: Browser
) -> None:
    handles = client.submit_many("k", [{} for _ in range(3)])
    first, second, _ = (str(handle.uuid) for handle in handles)
    body = f"job={first}&job={second}".encode()
    headers = {
        "origin": "http://localhost",
        "content-type": "application/x-www-form-urlencoded",
    }
    assert local.ask("POST", "/jobs/cancel", body, headers).header("location").endswith("told=all")
    assert [client.get(h).state for h in handles] == [*[State.CANCELLED] * 2, State.PENDING]
    body += f"&job={handles[2].uuid}".encode()
    assert local.ask("POST", "/jobs/cancel", body, headers).header("location").endswith("told=some")
    assert local.get("/record").text.count("job.cancel") == 5


def test_queues_and_schedules_are_paused_and_resumed_by_forms(
    client: Client, local: Browser
) -> None:
    client.submit("k", queue="a/b ü")
    client.schedule("s", "k", cron="@daily", tz="UTC")
    for word, paused in (("pause", "local"), ("resume", None)):
        page = seen(local.get("/queues"))
        actions = [str(form["action"]) for form in page.of("form")]
        local.form(next(each for each in actions if "a%2Fb" in each and each.endswith(word)))
        assert client.queues()[0].paused_by == paused
    for word, state in (("pause", "paused"), ("resume", "active")):
        assert local.form(f"/schedules/s/{word}").header("location").startswith("/schedules/s")
        assert client.get_schedule("s").state == state
    local.form("/schedules/s/run")
    assert client.jobs()[0].kind == "k"


# Signing in ------------------------------------------------------------------------------------


def test_a_page_leads_to_where_one_signs_in_and_back(app: Any, client: Client) -> None:
    browser = Browser(app)
    client.submit("k")
    asked = browser.get("/jobs?q=x", accept="text/html")
    assert (asked.status, asked.header("location")) == (303, "/login?next=%2Fjobs%3Fq%3Dx")
    assert browser.form("/login", token="wrong").status == 400
    signed = browser.form("/login", token=TEXTS[Scope.OPERATE], next="/jobs?q=x")
    assert (signed.status, signed.header("location")) == (303, "/jobs?q=x")
    cookie = signed.header("set-cookie")
    assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
    assert browser.get("/jobs").status == 200
    assert browser.get("/record", accept="text/html").status == 403
    assert browser.form("/jobs/1/cancel").status == 303
    stolen = Browser(app)
    stolen.cookies[COOKIE] = browser.cookies[COOKIE]
    foreign = {"origin": "http://evil.example", "content-type": "text/plain"}
    assert stolen.ask("POST", "/jobs/1/cancel", headers=foreign).status == 403
    browser.form("/logout")
    assert stolen.get("/jobs").status == 401


@pytest.mark.parametrize("path", ["//evil.example", "http://evil.example", "/\\evil", "/a\nb", ""])
def test_signing_in_leads_nowhere_else(app: Any, path: str) -> None:
    answer = Browser(app).form("/login", token=TEXTS[Scope.READ], next=path)
    assert (answer.status, answer.header("location")) == (303, "/")


@pytest.mark.parametrize("scope", TEXTS)
def test_who_signs_in_comes_to_a_page_that_opens(app: Any, scope: Scope) -> None:
    browser = Browser(app)
    signed = browser.form("/login", token=TEXTS[scope])
    assert browser.get(signed.header("location")).status == 200


def test_a_session_cookie_is_secure_where_the_connection_is(app: Any) -> None:
    browser = Browser(app, scheme="https")
    signed = browser.form("/login", token=TEXTS[Scope.READ])
    assert "Secure" in signed.header("set-cookie").split("; ")


@pytest.mark.parametrize(
    ("host", "site", "secure"),
    [
        ("jobs.example", "same-origin", True),  # behind a proxy that ends TLS
        ("jobs.example:8642", None, False),
        ("localhost:8642", "same-origin", False),
        ("[::1]:8642", "same-origin", False),
    ],
)
def test_a_session_cookie_is_secure_where_the_browser_sees_tls(
    client: Client, host: str, site: str | None, *, secure: bool
) -> None:
    app = create_app(client, tokens=TOKENS, hosts=["jobs.example"])
    headers = {"host": host, "origin": f"https://{host}"}
    if site is not None:
        headers["sec-fetch-site"] = site
    body = f"token={TEXTS[Scope.READ]}".encode()
    cookie = Browser(app).ask("POST", "/login", body, headers).header("set-cookie")
    assert cookie
    assert ("Secure" in cookie.split("; ")) == secure
    app.state.desk.look_connections.close()


# Mounting, weight, links ------------------------------------------------------------------------


def test_mounted_below_a_path_every_link_stays_below_it(client: Client, app: Any) -> None:
    client.submit("k")
    client.schedule("s", "k", cron="@daily", tz="UTC")
    browser = Browser(app, TEXTS[Scope.ADMIN], root_path="/ops/jobs")
    for path in ("", "jobs", "jobs/1", "queues", "schedules", "schedules/s", "workers", "record"):
        page = seen(browser.get(f"/ops/jobs/{path}"))
        for tag, attributes in page.tags:
            for name in ("href", "src", "action", "formaction"):
                value = attributes.get(name) or "#"
                assert value.startswith(("#", "?", "/ops/jobs/")), (tag, value)


@pytest.fixture
def crowded(client: Client, store: PostgresStore) -> Client:
    """More of everything than a page shows."""
    names = [f"{n}: {'a long name ' * 4}" for n in range(parts.PART + 5)]
    store.ensure_lanes((name, 5) for name in names)
    for name in names:
        client.schedule(name, "k", queue=name, cron="*/5 * * * *", tz="Europe/Berlin")
        client.limit(key=name, at_once=2, rate="5/s")
        client.pause_queue(name, by="somebody")
    client.limit(queue=names[0], rate="5/s")
    client.submit_many("a kind with a long name", [{"n": n, "text": "x" * 99} for n in range(60)])
    with client.batch("a batch") as batch:
        before = batch.submit("k")
        for _ in range(150):
            before = batch.submit("k", after=[before])
    return client


@pytest.mark.slow
def test_every_page_is_light_however_much_there_is(crowded: Client, admin: Browser) -> None:
    """Without pictures: there are none; with all that it is made of, as a browser gets it."""
    assert len((STATIC / "ui.js").read_bytes()) < 12_000
    sent = {"accept_encoding": "gzip, deflate, br"}
    made_of = sum(len(admin.get(f"/static/{each.name}", **sent).body) for each in STATIC.iterdir())
    queue = quote(crowded.limits()[-1].name, safe="")
    names = {"schedule": quote(crowded.schedules()[0].spec.name, safe=""), "about": "queue"}
    batch = str(crowded.batches()[0].uuid)
    for job in crowded.jobs(kind="a kind with a long name", limit=50):
        admin.send("POST", f"/api/v1/jobs/{job.uuid}/cancel")
    weights = {}
    every = [path_of(route, **names, limit=queue, batch=batch) for route in PAGES]
    for path in (*every, f"/dependencies/{batch}"):
        answer = admin.get(path, **sent)
        assert (answer.status, answer.header("content-encoding")) == (200, "gzip"), path
        weights[path] = made_of + len(answer.body)
    heavy = {path: weight for path, weight in weights.items() if weight > 60_000}
    assert not heavy


@pytest.mark.parametrize("accepted", ["", "gzip;q=0", "identity", "br", "xgzip"])
def test_who_takes_no_compressed_page_gets_a_plain_one(admin: Browser, accepted: str) -> None:
    plain = admin.get("/login", accept_encoding=accepted)
    assert plain.header("content-encoding") == ""
    packed = admin.get("/login", accept_encoding="br, GZIP; q=0.5")
    assert packed.header("vary") == "accept-encoding"
    assert gzip.decompress(packed.body) == plain.body


def test_what_pages_are_made_of_is_there_and_has_another_address_when_it_changes(
    admin: Browser,
) -> None:
    page = seen(admin.get("/"))
    links = [each["href"] for each in page.of("link")] + [s["src"] for s in page.of("script")]
    for link in links:
        assert re.fullmatch(r"/static/[a-z.]+\?v=[0-9a-f]{12}", str(link))
        assert admin.get(str(link)).status == 200


def test_the_theme_is_what_one_chose(local: Browser) -> None:
    assert "data-theme" not in local.get("/").text.split("<head>")[0]
    local.form("/theme", theme="dark")
    assert 'data-theme="dark"' in local.get("/").text
    local.form("/theme", theme="<script>")
    assert 'data-theme="dark"' in local.get("/").text


def test_templates_hold_no_script_and_no_style_of_their_own() -> None:
    for each in (files("timeball.web") / "templates").iterdir():
        text = each.read_text("utf-8")
        assert not re.search(r"\sstyle=|\son\w+=|<style|\|\s*safe", text), each.name
        assert text.count("<script") == (each.name == "base.html")


def test_of_many_names_a_page_shows_a_part_and_the_next_goes_on_after_it(
    client: Client, local: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART", 3)
    names = sorted(["a", "B", "ä", "b c", "&x", "z/1", ".."])
    for name in names:
        client.schedule(name, "k", queue=name, cron="@daily", tz="UTC")
        client.submit("k", queue=name)
        client.limit(key=name, at_once=2)
    for path, mark in (("/queues", "q-"), ("/schedules", "s-"), ("/limits", "l-key-")):
        found: list[str] = []
        following: str | None = path
        while following:
            told = local.get(following).text
            found += [unescape(name) for name in re.findall(f'<tr id="{mark}([^"]*)"', told)]
            more = re.search(r'rel="next" href="([^"]*)"', told)
            following = more and unescape(more[1])
        assert found == names, path
    overview = local.get("/").text
    assert overview.count('class="note"') == len(names)  # no worker serves any of them
    monkeypatch.setattr(pages_overview, "_ALERTS", 2)
    assert "and 5 more" in local.get("/").text
