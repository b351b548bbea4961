"""Pictures of every page of the dashboard, light and dark, wide and narrow, to be looked at.

    python bench/screenshots.py [FOLDER] [PAGE…]
    python bench/screenshots.py --docs FOLDER    what of them docs/images shows, of 256 colours

Needs Playwright (`pip install playwright`) and a Chromium; takes about a minute. The database is a
new one, filled by what `timeball demo --web` shows; the page Certify shows the runs in the folder
`TIMEBALL_RESULTS`, where it is set. Errors in the console end it with code 1.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from shutil import which
from threading import Event, Thread
from urllib.parse import quote

from playwright.sync_api import Browser, ConsoleMessage, sync_playwright

from timeball.cli.demo_story import LOADS, QUEUES, begin, go_on
from timeball.client import Client
from timeball.core.batches import BATCH
from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.embedded import EmbeddedPostgres
from timeball.store.postgres.migrate import migrate
from timeball.web import create_app
from timeball.web.server import bound, served
from timeball.worker.child import Load
from timeball.worker.config import WorkerConfig
from timeball.worker.supervisor import Supervisor, SupervisorConfig

WIDTHS = {"wide": (1440, 900), "phone": (390, 844)}
SETTLE_S = 25.0
RESULTS = Path(folder) if (folder := os.environ.get("TIMEBALL_RESULTS")) else None
LOOK_MS = 700
DOCS_HEIGHT = 1_050
TROUBLE = "/jobs/999999999"


@contextmanager
def dashboard() -> Iterator[tuple[str, Client]]:
    with tempfile.TemporaryDirectory(prefix="timeball-shots-") as folder:
        server = EmbeddedPostgres(Path(folder) / "data", linger_s=0.0)
        store = PostgresStore(server.start())
        migrate(store.connections)
        client, stop = Client(store), Event()
        config = SupervisorConfig(
            dsn=store.connections.dsn,
            loads=(Load(target=LOADS),),
            worker=WorkerConfig(name="demo", queues=QUEUES, slots=6),
            children=2,
        )
        supervisor = Supervisor(config)
        story = Thread(target=go_on, args=(client, stop))
        try:
            begin(client)
            supervisor.start()
            story.start()
            app = create_app(client, results=RESULTS)
            with served(app, bound("127.0.0.1", 0, tokens=False)) as url:
                yield url.rstrip("/"), client
        finally:
            stop.set()
            if story.ident:
                story.join()
            supervisor.stop(now=True)
            supervisor.wait()
            store.close()
            server.stop()


def pages(client: Client) -> dict[str, str]:
    ended = client.jobs(state=State.FAILED, limit=100)
    failed = [job for job in ended if job.kind != BATCH]
    done = client.jobs(kind="report.render", state=State.SUCCEEDED, limit=1)[0]
    retried = next((job for job in client.jobs(kind="hook.call", limit=500) if job.failures), done)
    return {
        "overview": "/",
        "jobs": "/jobs",
        "jobs-failed": "/jobs?q=" + quote("state:failed"),
        "jobs-none": "/jobs?q=" + quote("queue:nothing"),
        "job": f"/jobs/{done.id}",
        "job-retried": f"/jobs/{retried.id}",
        "job-failed": f"/jobs/{failed[0].id}" if failed else "/",
        "batches": "/batches",
        "batch": f"/batches/{client.batches(limit=50)[-1].uuid}",
        "dependencies": "/dependencies",
        "dependency": f"/dependencies/{client.batches(limit=50)[-1].uuid}",
        "queues": "/queues",
        "schedules": "/schedules",
        "schedules-autumn": "/schedules?zone=Europe/Berlin&day=2026-10-25",
        "schedules-spring": "/schedules?zone=Europe/Berlin&day=2027-03-28",
        "schedule": "/schedules/ping-hook",
        "backfill": "/backfill/sync-ledger?start=2026-11-29T00:00",
        "workers": "/workers",
        "limits": "/limits",
        "limit": "/limits/queue/mail",
        "doctor": "/doctor",
        "certify": "/certify",
        "record": "/record",
        "settings": "/settings",
        "submit": "/submit",
        "declare": "/declare",
        "login": "/login",
        "trouble": TROUBLE,
    }


def is_fault(said: ConsoleMessage) -> bool:
    # Chromium tells of the page of trouble itself, which is meant to be there.
    return said.type == "error" and not said.location["url"].endswith(TROUBLE)


def shoot(browser: Browser, url: str, found: dict[str, str], folder: Path) -> list[str]:
    faults: list[str] = []
    for theme, (name, size) in product(("light", "dark"), WIDTHS.items()):
        context = browser.new_context(
            color_scheme=theme, viewport={"width": size[0], "height": size[1]}
        )
        page = context.new_page()
        page.on("console", lambda said: faults.append(said.text) if is_fault(said) else 0)
        page.on("pageerror", lambda error: faults.append(str(error)))
        for title, path in found.items():
            page.goto(url + path, wait_until="load")
            page.wait_for_timeout(LOOK_MS)
            over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            if over > 0:
                faults.append(f"{title} {name}: {over} px too wide")
            page.screenshot(path=folder / f"{title}-{name}-{theme}.png", full_page=True)
        context.close()
    return faults


def publish(folder: Path) -> int:
    """Write the tops of the wide pictures of a folder to docs/images; needs Pillow."""
    from PIL import Image

    for path in sorted(folder.glob("*-wide-*.png")):
        image = Image.open(path).convert("RGB")
        top = image.crop((0, 0, image.width, min(image.height, DOCS_HEIGHT)))
        name = f"dashboard-{path.name.replace('-wide', '')}"
        top.quantize(256, dither=Image.Dither.NONE).save(Path("docs/images", name), optimize=True)
    return 0


def main() -> int:
    if sys.argv[1:2] == ["--docs"]:
        return publish(Path(sys.argv[2]))
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "out/screenshots")
    folder.mkdir(parents=True, exist_ok=True)
    with dashboard() as (url, client), sync_playwright() as playwright:
        time.sleep(SETTLE_S)
        client.pause_queue("etl", by="somebody@example")
        found = pages(client)
        only = {name: path for name, path in found.items() if name in sys.argv[2:]} or found
        browser = playwright.chromium.launch(executable_path=which("chromium"))
        faults = shoot(browser, url, only, folder)
        browser.close()
    for fault in faults:
        print(fault)
    print(f"{4 * len(only)} pictures in {folder}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
