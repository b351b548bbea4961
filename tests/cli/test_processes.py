"""The whole program, end to end, with a server and workers."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.processes import PATIENCE_S, Home, Running, temporary_home, until

pytestmark = pytest.mark.slow

CRONTAB = """\
GREETING=hello
0 3 1 1 * echo "$GREETING $TIMEBALL_KIND"; cat%first%second
0 4 1 1 * exit 3
"""
APP = """
import timeball as tb

@tb.cron("* * * * * *", "UTC")
@tb.job(name="tick")
def tick() -> str:
    return "tock"

@tb.job(name="add")
def add(a: int, b: int = 2) -> int:
    return a + b

@tb.job(name="doomed", retry=tb.Retry(0))
def doomed() -> None:
    raise tb.PermanentError("for good")
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    place = tmp_path_factory.mktemp("cli")
    (place / "hello.cron").write_text(CRONTAB)
    (place / "process_app.py").write_text(APP)
    with temporary_home(place / "home") as home:
        yield home


@pytest.fixture(scope="module")
def up(home: Home) -> Iterator[Running]:
    with home.start("up", "hello.cron", "process_app.py", "--slots", "4") as running:
        running.wait_for("  tick  succeeded")
        yield running
        assert running.process.poll() is None, running.written


def test_up_lists_runs_and_tells_what_it_runs(up: Running) -> None:
    assert "hello:echo-" in up.written
    assert '  tick  succeeded "tock"' in up.written
    assert "lines that name no zone are in UTC" in up.written


def kind(home: Home, word: str) -> str:
    """The kind of the line of the crontab whose telling word that is."""
    found = json.loads(home.said("cron", "list", "--json"))["schedules"]
    (name,) = [each["kind"] for each in found if f":{word}-" in each["name"]]
    return name


@pytest.mark.usefixtures("up")
def test_a_job_is_submitted_waited_for_and_shown(home: Home) -> None:
    uuid, *rest = home.said("submit", "add", "a=40", "--wait", "--timeout", "30s").split()
    assert rest == ["succeeded", "42"]
    assert "result    42\n" in home.said("jobs", "show", uuid)
    assert home.said("jobs", "watch", uuid).endswith("  succeeded\n")


@pytest.mark.usefixtures("up")
def test_a_job_that_fails_makes_the_waiting_fail(home: Home) -> None:
    done = home.run("submit", "doomed", "--wait", "--timeout", "30s")
    assert done.returncode == 1
    assert "failed (permanent)" in done.stdout
    assert "for good" in done.stdout


@pytest.mark.usefixtures("up")
def test_a_line_of_the_crontab_runs_as_cron_would_run_it(home: Home) -> None:
    name = kind(home, "echo")
    uuid, state, *_ = home.said("submit", name, "--wait", "--timeout", "30s").split()
    assert state == "succeeded"
    job = json.loads(home.said("jobs", "show", uuid, "--json"))["job"]
    assert job["result"] == {"exit_code": 0, "output": f"hello {name}\nfirst\nsecond\n"}


@pytest.mark.usefixtures("up")
def test_a_command_that_fails_is_failed_with_its_exit_code(home: Home) -> None:
    done = home.run("submit", kind(home, "exit"), "--max-retries", "0", "--wait")
    assert done.returncode == 1
    assert "CommandFailed exit code 3" in done.stdout


@pytest.mark.usefixtures("up")
def test_a_job_of_an_unknown_kind_waits_and_can_be_cancelled(home: Home) -> None:
    uuid = home.said("submit", "nobody.knows", "--in", "1h").strip()
    assert uuid in home.said("jobs", "list", "--state", "scheduled")
    assert "it will never start" in home.said("jobs", "cancel", uuid)
    assert home.run("jobs", "cancel", uuid).returncode == 4


def test_ctrl_c_ends_the_watching_and_not_the_job(home: Home, up: Running) -> None:
    uuid = home.said("submit", "add", "a=1", "--in", "1h").strip()
    with home.start("jobs", "watch", uuid) as watching:
        watching.wait_for("scheduled")
        assert watching.stop(signal.SIGINT) == 130
        assert "Traceback" not in watching.written
    assert up.process.poll() is None
    assert "scheduled" in home.said("jobs", "show", uuid)
    home.said("jobs", "cancel", uuid)


@pytest.mark.usefixtures("up")
def test_the_same_file_a_second_time_is_harmless(home: Home) -> None:
    before = home.said("cron", "list", "--json")
    with home.start("up", "process_app.py", "hello.cron") as second:
        second.wait_for("  tick  succeeded")
        assert second.stop() == 0
    after = home.said("cron", "list", "--json")
    unchanged = [
        [(each["id"], each["name"], each["state"]) for each in json.loads(text)["schedules"]]
        for text in (before, after)
    ]
    assert unchanged[0] == unchanged[1]
    assert json.loads(home.said("audit", "--json"))["clean"]


def test_a_worker_of_its_own_serves_its_own_queue(home: Home) -> None:
    words = ("worker", "-a", "process_app.py", "-q", "side", "--threads", "2", "--drain", "5s")
    with home.start(*words) as worker:
        done = home.said("submit", "add", "a=1", "--queue", "side", "--wait", "--timeout", "30s")
        assert done.split()[1:] == ["succeeded", "3"]
        assert worker.stop(signal.SIGINT) == 0


def test_a_worker_whose_module_cannot_be_loaded_says_so(home: Home) -> None:
    done = home.run("worker", "-a", "no_such_module_anywhere")
    assert done.returncode == 1
    assert "no_such_module_anywhere" in done.stderr


def test_the_database_can_be_asked(home: Home, up: Running) -> None:
    status = json.loads(home.said("db", "status", "--json"))
    assert status["running"] is True
    assert up.process.pid in status["users"]
    assert home.said("db", "url").startswith("postgresql://timeball:")
    assert home.said("db", "verify") == "the schema fits this version\n"
    assert home.said("db", "psql", "-Atc", "select 6 * 7") == "42\n"


def test_up_stops_gracefully_and_leaves_a_clean_record(home: Home) -> None:
    with home.start("up", "process_app.py") as running:
        running.wait_for("  tick  succeeded")
        assert running.stop() == 0
    report = json.loads(home.said("audit", "--json"))
    assert (report["clean"], report["twice"]) == (True, 0)
    assert report["states"].get("running", 0) == 0


def test_an_occurrence_of_a_crontab_is_run_within_its_minute(home: Home) -> None:
    crontab = home.folder.parent / "minute.cron"
    crontab.write_text('* * * * * echo "at $TIMEBALL_NOMINAL_AT"\n')
    with home.start("up", str(crontab)) as running:
        until(lambda: "succeeded at 2" in running.written, "an occurrence", PATIENCE_S + 10)


# Without workers ----------------------------------------------------------------------------


def test_the_server_starts_stays_stops_and_is_removed(tmp_path: Path) -> None:
    with temporary_home(tmp_path / "home") as home:
        assert "running  no" in home.said("db", "status")
        refused = home.run("db", "url")
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "runs on" in home.said("db", "start")
        assert "running  yes" in home.said("db", "status")
        assert home.said("db", "migrate") == ""
        assert home.run("db", "reset", given="n\n").returncode == 1
        assert home.said("db", "stop").startswith("stopped: ")
        assert "running  no" in home.said("db", "status")
        assert home.said("db", "reset", "--yes").startswith("removed: ")
        assert list(home.folder.iterdir()) == []


def test_the_schema_can_be_had_as_a_script(home: Home) -> None:
    text = home.said("db", "migrate", "--sql")
    assert text.startswith("BEGIN;\n")
    assert text.endswith("COMMIT;\n")


def test_a_database_without_the_schema_is_exit_code_6_until_it_is_migrated(home: Home) -> None:
    home.said("db", "start")
    home.said("db", "psql", "-qc", "create database bare")
    dsn = home.said("db", "url").strip().replace("/postgres?", "/bare?")
    refused = home.run("jobs", "list", "--dsn", dsn)
    assert (refused.returncode, refused.stdout) == (6, "")
    assert "timeball db migrate" in refused.stderr
    assert home.run("db", "verify", TIMEBALL_DSN=dsn).returncode == 6
    assert home.run("db", "migrate", DATABASE_URL=dsn).returncode == 0
    assert home.run("db", "verify", "--dsn", dsn).returncode == 0
    assert home.run("jobs", "list", TIMEBALL_DSN=dsn).returncode == 0
    refused = home.run("db", "reset", "--yes", TIMEBALL_DSN=dsn)
    assert refused.returncode == 2


def test_a_database_that_is_not_there_is_exit_code_5(home: Home, tmp_path: Path) -> None:
    done = home.run("jobs", "list", "--dsn", f"postgresql:///x?host={tmp_path}")
    assert (done.returncode, done.stdout) == (5, "")
    assert "Traceback" not in done.stderr


def test_a_folder_without_postgres_is_exit_code_5(home: Home, tmp_path: Path) -> None:
    done = home.run("jobs", "list", TIMEBALL_POSTGRES_BIN=str(tmp_path))
    assert done.returncode == 5
    assert "pip install 'timeball[embedded]'" in done.stderr


# The demo -----------------------------------------------------------------------------------


def figures(text: str) -> dict[str, int]:
    return {line[:16].strip(): int(line[16:].split()[0]) for line in text.splitlines()[1:]}


def test_the_demo_loses_nothing_runs_nothing_twice_and_leaves_nothing(tmp_path: Path) -> None:
    home = Home(tmp_path)
    done = home.run("demo", TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    count = figures(done.stdout)
    assert count["submitted"] == 300
    assert count["occurrences"] >= 4
    assert count["succeeded"] == 299 + count["occurrences"]
    assert (count["failed"], count["workers killed"]) == (1, 1)
    assert (count["lost"], count["twice"]) == (0, 0)
    assert count["retried"] >= 1
    assert done.stderr.splitlines()[0].startswith("Timeball: 300 jobs")
    assert home.processes() == []
    assert list(tmp_path.glob("timeball-demo-*")) == []


def test_a_demo_that_is_ended_leaves_nothing_either(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.env["TMPDIR"] = str(tmp_path)
    home.folder = tmp_path / "f"
    with home.start("demo") as demo:
        demo.wait_for("jobs have ended")
        assert demo.stop() == 143
    home.folder = tmp_path
    until(lambda: not home.processes(), "its processes have ended")
    assert list(tmp_path.glob("timeball-demo-*")) == []
