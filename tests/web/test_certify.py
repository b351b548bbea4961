"""The page Certify: runs of a folder, whatever is in it, and a run that is started from there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from tests.web.asgi import Browser
from tests.web.conftest import TEXTS, TOKENS
from tests.web.test_pages import POISON, seen

from timeball import __version__
from timeball.certify.results import Run, document
from timeball.certify.scenario import Check, Outcome, Profile, Result, Scenario, Status
from timeball.cli.certify import command
from timeball.client import Client
from timeball.web import Scope, create_app
from timeball.web.rehearsal import Rehearsal
from timeball.web.results import RUNS_MAX, SIZE_MAX, runs_in

ENDLESS = (
    "import os, signal, sys; "
    "print(sys.argv[1:], *(n for n, v in os.environ.items() if 'production' in v), flush=True); "
    "signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)); print('ready', flush=True); "
    "signal.pause()"
)


NOTHING = Outcome(expected={}, observed={})


def told(*statuses: Status, at: str = "2026-11-30T10:00:00Z") -> dict[str, Any]:
    """The document of a run whose scenarios ended like that."""
    results = [
        Result(
            scenario=Scenario(
                id=f"T{n}",
                title=f"title {n}",
                invariants=("I1",),
                run=lambda _: NOTHING,
            ),
            seed=1,
            status=status,
            outcome=Outcome(
                expected={"twice": 0},
                observed={"twice": 0 if status is Status.PASSED else 1},
                witness={"crashes": 3},
                checks=(Check("audit", status is Status.PASSED, POISON),),
            ),
            checks=(Check("audit", status is Status.PASSED, POISON),),
            reason="" if status is Status.PASSED else POISON,
        )
        for n, status in enumerate(statuses)
    ]
    return document(Run(results=results, profile=Profile.QUICK, seed=1, at=at))


def written(folder: Path, *statuses: Status, **facts: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_text(json.dumps(told(*statuses, **facts)))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def shown(client: Client, folder: Path) -> Iterator[Any]:
    app = create_app(client, tokens=TOKENS, results=folder)
    yield app
    app.state.desk.rehearsal.end()
    app.state.desk.look_connections.close()


@pytest.fixture
def endless(shown: Any) -> Browser:
    """Somebody with a dashboard whose runs go on until they are ended."""
    shown.state.desk.rehearsal._argv = (sys.executable, "-P", "-c", ENDLESS)
    return Browser(shown, TEXTS[Scope.ADMIN])


def awaited(holds: Callable[[], object]) -> None:
    until = monotonic() + 60
    while not holds():
        assert monotonic() < until
        sleep(0.02)


def test_without_a_folder_the_page_teaches_the_command(admin: Browser) -> None:
    page = admin.get("/certify")
    assert "timeball certify --out results/first" in page.text
    assert not [form for form in seen(page).of("form") if "/certify/start" in str(form)]
    assert admin.send("POST", "/api/v1/certify").status == 400
    assert "--results FOLDER" in admin.told.json["detail"]


def test_the_latest_run_is_shown_with_what_is_bad_first_and_others_by_their_links(
    shown: Any, folder: Path
) -> None:
    written(folder / "old", Status.PASSED, at="2026-11-29T10:00:00Z")
    written(folder / "a b", Status.PASSED, Status.VIOLATED, Status.SKIPPED)
    browser = Browser(shown, TEXTS[Scope.OPERATE])
    page = seen(browser.get("/certify"))
    rows = [row["id"] for row in page.of("tr") if str(row.get("id")).startswith("r-")]
    assert rows == ["r-T1", "r-T0", "r-T2"]
    said = " ".join(page.said)
    assert "twice: expected 0, seen 1" in said
    assert "timeball certify --profile quick --scenario T1 --seed 1" in said
    assert len(page.of("script")) == 1  # what a scenario has found is text
    links = [str(link.get("href")) for link in page.of("a") if "?run=" in str(link.get("href"))]
    assert links == ["/certify?run=a%20b", "/certify?run=old"]
    assert 'id="r-T1"' not in browser.get(links[1]).text
    assert 'id="r-T1"' in browser.get("/certify?run=../../etc").text
    runs = browser.get("/api/v1/certify").json
    assert [run["verdict"] for run in runs["runs"]] == ["violated", "passed"]
    assert runs["runs"][0]["scenarios"] == {"T0": "passed", "T1": "violated", "T2": "skipped"}


def test_what_no_run_has_written_is_told_of_and_hides_no_other(shown: Any, folder: Path) -> None:
    written(folder, Status.PASSED)
    for name, text in (
        ("empty", ""),
        ("deep", "[" * 100_000),
        ("other", '{"schema": 1}'),
        ("verdict", json.dumps({**told(Status.PASSED), "verdict": "<b>"})),
        ("endless", json.dumps(told(Status.PASSED)).replace('"wall_s": 0.0', '"wall_s": Infinity')),
        ("large", " " * (SIZE_MAX + 1)),
    ):
        (folder / name).mkdir()
        (folder / name / "results.json").write_text(text)
    (folder / "folder" / "results.json").mkdir(parents=True)
    (folder / "lost").symlink_to("nowhere")
    written(Path(os.fsdecode(os.fsencode(folder) + b"/\xff")), at="2026-11-29T10:00:00Z")
    page = Browser(shown, TEXTS[Scope.ADMIN]).get("/certify")
    assert 'id="r-T0"' in page.text
    runs, unread = runs_in(folder)
    assert [run.folder for run in runs] == [".", "\ufffd"]
    names = {each.folder for each in unread}
    assert names == {"empty", "deep", "other", "verdict", "endless", "large", "folder"}


def test_what_never_ends_is_not_read_and_holds_the_page_up_no_moment(
    shown: Any, folder: Path
) -> None:
    written(folder, Status.PASSED)
    for name in ("pipe", "zero", "pipe-link", "long"):
        (folder / name).mkdir()
    os.mkfifo(folder / "pipe" / "results.json")
    (folder / "zero" / "results.json").symlink_to("/dev/zero")
    (folder / "pipe-link" / "results.json").symlink_to(folder / "pipe" / "results.json")
    with (folder / "long" / "results.json").open("wb") as sparse:
        sparse.truncate(2**40)
    page = Browser(shown, TEXTS[Scope.ADMIN]).get("/certify")
    assert 'id="r-T0"' in page.text
    _, unread = runs_in(folder)
    told = {each.folder: each.why for each in unread}
    assert told.pop("long") == f"it has more than {SIZE_MAX:,} bytes"
    assert told == dict.fromkeys(("pipe", "zero", "pipe-link"), "it is no plain file")


def test_of_any_number_of_runs_the_latest_are_read(folder: Path) -> None:
    for n in range(RUNS_MAX + 3):
        written(folder / str(n), Status.PASSED, at=f"2026-11-30T10:00:{n:02}Z")
        os.utime(folder / str(n) / "results.json", (n, n))
    runs, _ = runs_in(folder)
    assert [run.folder for run in runs] == [str(n) for n in range(RUNS_MAX + 2, 2, -1)]


def test_a_run_is_started_alone_and_told_of_no_database_and_no_secret(
    endless: Browser, shown: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses = ("TIMEBALL_DSN", "TIMEBALL_LISTEN_DSN", "DATABASE_URL", "PGAPPNAME", "PGPASSWORD")
    secrets = ("TIMEBALL_SECRET_CALLBACK", "TIMEBALL_SEAL", "AWS_SECRET_ACCESS_KEY", "DB")
    for name in (*addresses, *secrets):
        monkeypatch.setenv(name, "postgresql://production")
    rehearsal = shown.state.desk.rehearsal
    assert endless.send("POST", "/api/v1/certify", {"scenario": "B"}).status == 202
    awaited(lambda: "ready" in rehearsal.said())
    (out,) = folder.iterdir()
    words = ["certify", "--profile", "quick", "--out", str(out), "--scenario", "B"]
    assert rehearsal.said()[0] == str(words)
    command.make_context("certify", words[1:])
    assert endless.send("POST", "/api/v1/certify").status == 409
    assert endless.form("/certify/start").header("location").endswith("told=refused")
    page = endless.get("/certify").text
    assert "data-soon" in page
    assert "Playing B" in page
    assert endless.get("/api/v1/certify").json["playing"]["scenario"] == "B"
    assert len(list(folder.iterdir())) == 1
    rehearsal.end()
    assert rehearsal.latest.code == 143
    assert "data-soon" not in endless.get("/certify").text
    record = endless.get("/api/v1/operations").json["operations"]
    assert [(one["what"], one["target"]) for one in record] == [("certify.start", "scenario B")]


@pytest.mark.parametrize("scenario", ["--dsn", "A,B", "nothing", "", "../x"])
def test_nothing_but_a_scenario_can_be_played(
    endless: Browser, folder: Path, scenario: str
) -> None:
    assert endless.send("POST", "/api/v1/certify", {"scenario": scenario}).status == 400
    assert not folder.exists()


def test_a_folder_that_cannot_be_written_is_said_to_be_that(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    app = create_app(client, results=file / "below")
    answer = Browser(app).send("POST", "/api/v1/certify")
    assert (answer.status, answer.json["detail"]) == (400, "the folder of results: Not a directory")
    app.state.desk.look_connections.close()


def test_a_run_that_takes_too_long_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timeball.web.rehearsal.RUN_S", 0.0)
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); signal.pause()"
    monkeypatch.setattr("timeball.web.rehearsal._END_S", 0.0)
    rehearsal = Rehearsal(folder, (sys.executable, "-P", "-c", stubborn))
    made = rehearsal.begin(None)
    assert made is not None
    awaited(lambda: not rehearsal.is_playing)
    assert made.code is not None
    assert made.code < 0
    assert rehearsal.begin("A") is not None
    rehearsal.end()


def test_what_a_run_is_started_with_is_the_command_line() -> None:
    argv = [*Rehearsal(None)._argv, "--version"]
    assert subprocess.run(argv, capture_output=True, text=True, check=True).stdout == (
        f"timeball {__version__}\n"
    )
