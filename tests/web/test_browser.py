"""The pages in a real browser: only where Playwright and a Chromium are installed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from shutil import which
from typing import Any

import pytest
from tests.store.postgres.sessions import worker_of
from tests.web.test_api import ended
from tests.web.test_pages import NAME, POISON

from timeball.client import Client
from timeball.core.states import Ending, State
from timeball.store.postgres import PostgresStore
from timeball.web import create_app, live, tide
from timeball.web.addresses import segment
from timeball.web.server import bound, served
from timeball.web.shell import NAVIGATION

CHROMIUM = which("chromium") or which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
]
PATIENCE_MS = 8_000
SIZES = {"wide": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}
FORMER = "1999-10-31"
PATHS = (
    *(f"/{entry.path}" for entry in NAVIGATION),
    *("/jobs/1", "/jobs/2", "/jobs?q=state:failed", "/jobs?q=nonsense:1", "/login"),
    *("/submit", "/declare"),
    *("/batches/{batch}", "/dependencies/{batch}", "/schedules/{name}", "/backfill/{name}"),
    "/limits/key/{name}",
    f"/schedules?zone=Europe/Berlin&day={FORMER}",  # 25 hours
)
# What nobody can make out who does not see the page: things without a name, twice the same id, no
# or several landmarks of a kind, headings that leave one out, cells of no column.
UNCLEAR = """() => {
  const found = [], all = (what) => [...document.querySelectorAll(what)];
  for (const e of all("a, button, input:not([type=hidden]), select, summary, svg[role=img]")) {
    if (!e.getClientRects().length) continue;
    const said = e.getAttribute("aria-label") || e.title || e.textContent.trim();
    if (!said && !e.labels?.length) found.push(`no name: ${e.outerHTML.slice(0, 90)}`);
  }
  const ids = all("[id]").map((e) => e.id);
  for (const id of ids.filter((id, i) => ids.indexOf(id) !== i)) found.push(`twice: ${id}`);
  for (const one of ["main", "h1", "header.top", "nav.side"])
    if (all(one).length !== 1) found.push(`${all(one).length} of ${one}`);
  let before = 0;
  for (const e of all("main :is(h1, h2, h3, h4)")) {
    if (+e.nodeName[1] > before + 1) found.push(`${e.nodeName} after H${before}`);
    before = +e.nodeName[1];
  }
  for (const e of all("nav:not([aria-label])")) found.push(`nav without a label: ${e.className}`);
  for (const row of all("main tbody tr")) {
    const heads = row.closest("table").querySelectorAll("thead th").length;
    const cells = [...row.children].reduce((sum, cell) => sum + cell.colSpan, 0);
    if (heads && cells !== heads) found.push(`${cells} cells below ${heads} heads`);
  }
  const wide = document.documentElement.scrollWidth - innerWidth;
  if (wide > 0) found.push(`${wide} px too wide`);
  return found;
}"""
# For each text on the page the contrast with what is painted behind it; those below 4.5.
PALE = """() => {
  const read = (text) => {
    const n = text.match(/[\\d.e-]+/g).map(Number), s = text.startsWith("color(") ? 255 : 1;
    return [n[0] * s, n[1] * s, n[2] * s, n[3] ?? 1];
  };
  const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92
    : ((c + 0.055) / 1.055) ** 2.4).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const over = (a, b) => a.slice(0, 3).map((c, i) => c * a[3] + b[i] * (1 - a[3]));
  const found = [];
  for (const e of document.querySelectorAll("main *, .side *, .top *")) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || e.closest("svg, [hidden], .skip") || !e.getClientRects().length) continue;
    const layers = [];
    for (let at = e; at; at = at.parentElement)
      layers.push(read(getComputedStyle(at).backgroundColor));
    let back = matchMedia("(prefers-color-scheme: dark)").matches ? [13, 14, 17] : [246, 246, 244];
    for (const layer of layers.reverse()) back = over(layer, back);
    const fore = over(read(getComputedStyle(e).color), back);
    const [a, b] = [light(fore), light(back)].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) found.push(`${e.className || e.nodeName}: ${e.textContent}`);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def url(client: Client) -> Iterator[str]:
    with served(create_app(client), bound("127.0.0.1", 0, tokens=False)) as url:
        yield url.rstrip("/")


def watched(context: Any) -> Any:
    """A page that lists in `faults` whatever the browser complains of."""
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.faults = []
    page.on("console", lambda said: page.faults.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("dialog", lambda dialog: (page.faults.append(dialog.message), dialog.dismiss()))
    return page


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    context = chromium.new_context()
    yield watched(context)
    context.close()


@pytest.fixture
def poisoned(client: Client, store: PostgresStore) -> dict[str, str]:
    """Every text that a stranger may choose is poison; the names in addresses."""
    handle = client.submit(NAME, queue=NAME, args={POISON: POISON})
    worker = worker_of(store, NAME)
    (turn,) = store.claim(worker, limit=1, request=handle.uuid, floors={})
    ended(store, Ending.FAILED, turn=turn, worker=worker, error_type=POISON[:80], error=POISON)
    client.submit(NAME, queue=NAME, key=NAME)
    client.schedule(NAME, NAME, cron="*/20 * * * *", tz="Europe/Berlin")
    with client.batch(NAME) as batch:
        batch.submit(NAME, after=[batch.submit(NAME, args={POISON: POISON})])
    client.pause_queue(NAME, by=NAME)
    client.limit(key=NAME, at_once=2, rate="5/s")
    return {"batch": str(client.batches()[0].uuid), "name": segment(NAME)}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_page_is_inert_readable_and_clear_whatever_it_shows(
    url: str, chromium: Any, poisoned: dict[str, str], theme: str, size: str
) -> None:
    context = chromium.new_context(color_scheme=theme, viewport=SIZES[size])
    page = watched(context)
    for path in PATHS:
        page.goto(url + path.format(**poisoned))
        page.locator("#live:not([hidden])").wait_for()
        assert page.evaluate(PALE) == [], path
        assert page.evaluate(UNCLEAR) == [], path
        assert page.locator("main script, main img").count() == 0
    context.close()
    assert page.faults == []


def test_a_schedule_is_looked_at_and_added_with_a_keyboard_alone(
    client: Client, url: str, page: Any
) -> None:
    page.goto(f"{url}/declare")
    page.locator("#f-name").focus()
    for text in ("nightly", "k", "30 2 * * *", "Europe/Berlin"):
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type(text)
        page.keyboard.press("Tab")
    page.locator("[value=look]").press("Enter")
    page.locator("#preview").wait_for()
    assert client.schedules() == []
    page.locator("[value=add]").press("Enter")
    page.wait_for_url("**/schedules/nightly?told=declared")
    assert client.get_schedule("nightly").spec.tz == "Europe/Berlin"
    assert page.faults == []


def test_a_refresh_keeps_what_is_ticked_and_focused(client: Client, url: str, page: Any) -> None:
    first = client.submit("k")
    page.goto(f"{url}/jobs")
    page.locator("#live:not([hidden])").wait_for()
    box = page.locator(f"input[value='{first.uuid}']")
    box.check()
    box.focus()
    second = client.submit("later")
    page.locator(f"#j{second.id}").wait_for()
    assert box.is_checked()
    assert page.evaluate("document.activeElement.value") == str(first.uuid)
    assert page.faults == []


def test_keys_lead_to_pages_and_a_button_changes_a_job_without_leaving(
    client: Client, url: str, page: Any
) -> None:
    handle = client.submit("k")
    page.goto(url)
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.wait_for_url("**/queues")
    page.goto(f"{url}/jobs/{handle.id}")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled: it never starts.").wait_for()
    page.locator("h1 .s-cancelled").wait_for()
    assert client.get(handle).state is State.CANCELLED
    assert page.url == f"{url}/jobs/{handle.id}"
    assert page.faults == []


def test_it_all_works_without_a_script(client: Client, url: str, chromium: Any) -> None:
    handle = client.submit("k")
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{url}/jobs/{handle.id}")
    page.get_by_role("button", name="Cancel").click()
    page.get_by_text("Cancelled: it never starts.").wait_for()
    context.close()
    assert client.get(handle).state is State.CANCELLED


def test_keys_walk_the_rows_tick_them_and_say_what_they_do(
    client: Client, url: str, page: Any
) -> None:
    first, second = client.submit("a"), client.submit("b")
    page.goto(f"{url}/jobs")
    for key, focused in (("j", second), ("j", first), ("k", second)):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.pathname") == f"/jobs/{focused.id}"
    page.keyboard.press("x")
    assert page.locator(f"input[value='{second.uuid}']").is_checked()
    page.keyboard.press("?")
    page.get_by_text("g and a letter: a page").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{second.id}")
    for _ in range(40):  # the first that Tab leads to leads past the navigation
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Cancel":
            break
    page.keyboard.press("Enter")
    page.get_by_text("Cancelled: it never starts.").wait_for()
    assert client.get(second).state is State.CANCELLED
    assert page.faults == []


def test_a_page_follows_no_faster_than_twice_a_second_and_not_at_all_when_hidden(
    client: Client, url: str, page: Any
) -> None:
    asked: list[float] = []
    page.goto(f"{url}/jobs")
    page.on("request", lambda sent: asked.append(time.monotonic()) if "/jobs" in sent.url else None)
    for _ in range(30):
        page.keyboard.press("r")
        page.wait_for_timeout(50)
    assert len(asked) >= 2
    assert min(asked[n + 2] - asked[n] for n in range(len(asked) - 2)) > 0.7
    hide = "Object.defineProperty(document, 'hidden', {value: %s, configurable: true})"
    page.evaluate(hide % "true" + "; document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_timeout(700)
    before = len(asked)
    handle = client.submit("while it is hidden")
    page.wait_for_timeout(2_500)
    assert len(asked) == before
    page.evaluate(hide % "false" + "; document.dispatchEvent(new Event('visibilitychange'))")
    page.locator(f"#j{handle.id}").wait_for()
    assert page.faults == []


def test_a_page_finds_its_server_again_and_a_stream_that_ends_in_time_is_no_server_away(
    client: Client, page: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening = bound("127.0.0.1", 0, tokens=False)
    port = listening.getsockname()[1]
    with served(create_app(client), listening) as url:
        page.goto(f"{url}jobs")
        page.locator("#live:not([hidden]):not([data-off])").wait_for()
    page.locator("#live[data-off]").wait_for()
    handle = client.submit("meanwhile")
    monkeypatch.setattr(live, "OPEN_S", 0.0)
    monkeypatch.setattr(tide, "BEAT_S", 0.3)
    with served(create_app(client), bound("127.0.0.1", port, tokens=False)):
        page.locator("#live:not([data-off])").wait_for(timeout=4 * PATIENCE_MS)
        page.locator(f"#j{handle.id}").wait_for()
        page.evaluate(
            "window.off = 0; new MutationObserver(() => window.off++).observe("
            "document.querySelector('#live'), {attributes: true})"
        )
        with page.expect_request(f"http://127.0.0.1:{port}/events"):
            pass  # the stream has ended, and is asked for again
        assert page.evaluate("window.off") == 0
