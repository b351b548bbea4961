"""The pages in a real browser: only where Playwright and a Chromium are installed."""

from __future__ import annotations

from collections.abc import Iterator
from shutil import which
from typing import Any

import pytest
from tests.web.test_pages import NAME, POISON

from timeball.client import Client
from timeball.core.states import State
from timeball.web import create_app
from timeball.web.server import bound, served

CHROMIUM = which("chromium") or which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here"),
]
PATIENCE_MS = 8_000
PATHS = (
    "/",
    "/jobs",
    "/jobs/1",
    "/queues",
    "/schedules",
    "/workers",
    "/limits",
    "/record",
    "/batches",
)
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


@pytest.fixture(params=["light", "dark"])
def page(chromium: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page that lists in `faults` whatever the browser complains of."""
    context = chromium.new_context(color_scheme=request.param)
    page = context.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.faults = []
    page.on("console", lambda said: page.faults.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: page.faults.append(str(error)))
    page.on("dialog", lambda dialog: (page.faults.append(dialog.message), dialog.dismiss()))
    yield page
    context.close()


def test_poison_is_inert_and_every_text_can_be_read(client: Client, url: str, page: Any) -> None:
    client.submit(NAME, queue=NAME, args={POISON: POISON})
    client.schedule(NAME, NAME, cron="@daily", tz="UTC")
    client.pause_queue(NAME, by=NAME)
    client.limit(key=NAME, at_once=2)
    for path in PATHS:
        page.goto(url + path)
        page.locator("#live:not([hidden])").wait_for()
        assert page.evaluate(PALE) == [], path
        assert page.locator("main script, main img").count() == 0
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
