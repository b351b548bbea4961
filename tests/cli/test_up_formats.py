"""`timeball up` with a schedules.toml, and with files of other schedulers."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.cli.invoking import document, invoke
from tests.store.world import World

from timeball.action.kind import Kind
from timeball.cli.declaration import Asked, Reading
from timeball.cli.declared import read
from timeball.cli.found_kinds import LOADER, load
from timeball.cli.running import declare

SOURCES = Path(__file__).parents[1] / "data" / "sources"
APP = """
import timeball as tb

@tb.job(queue="mail")
def report(to: str, n: int = 1) -> None: ...
"""


@pytest.fixture(autouse=True)
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Now is fixed, this machine is in Paris, and files lie in a folder of their own."""
    monkeypatch.setattr("timeball.chance.now", lambda: datetime(2026, 3, 7, 12, tzinfo=UTC))
    monkeypatch.setenv("TZ", "Europe/Paris")
    monkeypatch.chdir(tmp_path)


def schedules(text: str, *more: str) -> list[dict[str, Any]]:
    Path("s.toml").write_text(text)
    found = document("up", "s.toml", *more, "--dry-run", "--json")
    assert found["problems"] == []
    listed: list[dict[str, Any]] = found["schedules"]
    return listed


def problems(file: str, *words: str) -> list[str]:
    result = invoke("up", file, "--dry-run", *words)
    assert result.exit_code == 2
    return [line for line in result.stderr.splitlines() if line.startswith(file)]


def test_a_schedule_of_a_kind_has_its_arguments_and_zone() -> None:
    Path("toml_app.py").write_text(APP)
    (found,) = schedules(
        '[schedules.nightly]\ncron = "30 2 * * *"\ntz = "Asia/Seoul"\nkind = "toml_app.report"\n'
        'args = { to = "ops", n = 2 }\n',
        "toml_app.py",
    )
    assert (found["name"], found["expression"], found["tz"]) == (
        *("nightly", "30 2 * * *", "Asia/Seoul"),
    )
    assert found["does"] == "toml_app.report(to='ops', n=2)"
    assert found["place"] == "s.toml:1"
    assert found["remarks"] == []


def test_arguments_are_checked_where_the_kind_is_known_whatever_the_order_of_the_files() -> None:
    Path("toml_args.py").write_text(APP)
    text = '[schedules.a]\ncron = "@daily"\nkind = "toml_args.report"\nargs = { two = "x" }\n'
    Path("s.toml").write_text(text)
    (told,) = problems("s.toml", "toml_args.py")
    assert told.startswith("s.toml:1: a — toml_args.report cannot be called like this")


GRAPH = """
[schedules.etl]
cron = "@daily"
tz = "UTC"
[schedules.etl.jobs.load]
kind = "toml_graph.report"
args = { to = "ops" }
after = ["left", "other"]
[schedules.etl.jobs.left]
kind = "toml_graph.report"
args = { to = "ops" }
queue = "reports"
[schedules.etl.jobs.other]
kind = "no.such"
"""


def test_a_graph_is_a_schedule_and_its_strangers_are_named() -> None:
    Path("toml_graph.py").write_text(APP)
    (found,) = schedules(GRAPH, "toml_graph.py")
    assert found["name"] == "etl"
    assert found["does"].startswith("timeball.graph(jobs={'load': ")
    assert found["remarks"] == [
        "note: no.such: no file given here defines them: their jobs wait for a worker that does"
    ]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('["left", "other"]', '["left", "othr"]', "job load comes after othr, .* mean other?"),
        ('kind = "no.such"', 'kind = "no.such"\nafter = ["load"]', "of the jobs .* a cycle"),
        ('to = "ops" }\nafter', 'two = "ops" }\nafter', "job load: .* cannot be called like this"),
        ("[schedules.etl.jobs.load]", "kind = 'a'\n[schedules.etl.jobs.load]", "runs two things"),
        ('queue = "reports"', "queue = 7", "job left has a queue that is no text"),
    ],
)
def test_what_is_wrong_in_a_graph_is_told_and_nothing_starts(old: str, new: str, told: str) -> None:
    Path("toml_graph.py").write_text(APP)
    assert old in GRAPH
    Path("s.toml").write_text(GRAPH.replace(old, new, 1))
    (line,) = problems("s.toml", "toml_graph.py")
    assert re.search(told, line), line


def test_a_kind_that_no_file_defines_waits_and_that_is_said() -> None:
    (found,) = schedules('[schedules.a]\ncron = "@daily"\nkind = "no.such"\n')
    assert found["tz"] == "Europe/Paris"
    assert found["remarks"] == [
        "note: no file given here defines its kind: its jobs wait for a worker that does"
    ]


def test_secrets_are_not_shown() -> None:
    found = schedules(
        '[schedules.a]\ncron = "@daily"\nkind = "x"\nargs = { api_key = "hunter2" }\n'
        '[schedules.b]\ncron = "@daily"\ncommand = "pg_dump postgres://u:hunter2@h/db"\n'
        '[schedules.c]\ncron = "@daily"\ncommand = ["x", "--password=hunter2"]\n'
    )
    assert "hunter2" not in json.dumps(found)
    assert [each["does"] for each in found] == [
        *("x(api_key='…')", "pg_dump postgres://u:…@h/db", "x --password=…")
    ]


def test_the_command_of_a_crontab_is_shown_without_its_secrets() -> None:
    Path("a.cron").write_text("0 1 * * * x --token hunter2\n61 * * * * x --token hunter2\n")
    result = invoke("up", "a.cron", "--dry-run", "--keep-going")
    assert (result.exit_code, "hunter2" in result.output) == (0, False)
    assert "x --token …" in result.stdout


def test_every_mistake_of_every_schedule_is_told_at_once_with_its_line() -> None:
    Path("s.toml").write_text(
        '[schedules.a]\ncron = "61 * * * *"\nkind = "x"\n'
        '[schedules.b]\ncron = "@daily"\ntz = "Mars/X"\nkind = "x"\n'
        '[schedules.c]\ncron = "@daily"\nkind = "x"\ncatchup = "some"\n'
        '[schedules.d]\ncron = "@daily"\ncommand = "x"\ncwd = "relative"\n'
        '[schedules.e]\ncron = "@daily"\nkind = "x"\nqueu = "x"\n'
    )
    told = problems("s.toml")
    assert sorted(line.split(" — ")[0] for line in told) == [
        *("s.toml:12: d", "s.toml:19: e", "s.toml:2: a", "s.toml:4: b", "s.toml:8: c")
    ]
    assert "did you mean queue?" in "".join(told)


def test_a_user_that_is_missing_here_is_said_in_a_dry_run_and_refused_in_earnest() -> None:
    text = '[schedules.a]\ncron = "@daily"\ncommand = "x"\nuser = "nobody-of-that-name"\n'
    (found,) = schedules(text)
    assert found["does"] == "x (as nobody-of-that-name)"
    assert found["remarks"][0].startswith("note: on this machine it will not start: there is no")
    result = invoke("up", "s.toml")
    assert result.exit_code == 2
    assert "s.toml:1: a — there is no user nobody-of-that-name here" in result.stderr


def test_a_paused_schedule_says_so() -> None:
    (found,) = schedules('[schedules.a]\ncron = "@daily"\nkind = "x"\npaused = true\n')
    assert "note: paused: it runs once it is resumed" in "".join(found["remarks"])


def test_a_paused_schedule_is_paused_where_it_is_declared(world: World) -> None:
    two = '[schedules.{}]\ncron = "@daily"\nkind = "x"\npaused = {}\n'
    Path("s.toml").write_text(two.format("a", "true") + two.format("b", "false"))
    declare(world.store, read(["s.toml"], Asked(tz="UTC")))
    assert [each.state for each in world.store.schedules()] == ["paused", "active"]


# What workers are handed --------------------------------------------------------------------


def reading(text: str) -> Reading:
    Path("s.toml").write_text(text)
    return read(["s.toml"], Asked(tz="UTC"))


def kinds(found: Reading) -> list[Kind]:
    (handed,) = found.loads
    assert handed.loader == LOADER
    return list(load(handed.target, **json.loads(json.dumps(handed.options))).values())


def test_a_command_is_a_kind_that_changes_its_name_with_what_it_runs() -> None:
    first = '[schedules.a]\ncron = "@daily"\nqueue = "q"\ncommand = "x"\nenv = { A = "1" }\n'
    names = [kinds(reading(text))[0].name for text in (first, first, first.replace("1", "2"))]
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("a-")
    found = reading(first)
    assert found.schedules[0].spec.kind == names[0]
    assert found.schedules[0].spec.queue == "q"
    assert found.queues == {"default", "q"}
    assert found.sources == [f"file:{Path('s.toml').resolve()}"]


def test_a_command_gets_what_its_table_says_and_its_accounts_name() -> None:
    found = reading(
        '[schedules.a]\ncron = "@daily"\ncommand = ["/bin/echo", "x"]\ncwd = "/tmp"\n'
        'stdin = "in"\nenv = { A = "1", USER = "other" }\n'
    )
    (facts,) = found.loads[0].options["commands"]
    assert (facts["argv"], facts["cwd"], facts["stdin"]) == (["/bin/echo", "x"], "/tmp", "in")
    assert facts["env"]["A"] == "1"
    assert facts["env"]["PATH"] == "/usr/bin:/bin"
    assert facts["env"]["USER"] == facts["env"]["LOGNAME"] != "other"
    assert len(kinds(found)) == 1


def test_a_lock_of_a_crontab_makes_its_schedule_skip() -> None:
    Path("a.cron").write_text("0 1 * * * flock -n /tmp/x a\n0 2 * * * b\n")
    found = read(["a.cron"], Asked(tz="UTC"))
    assert [each.spec.overlap_runs for each in found.schedules] == ["skip", "allow"]


# Files of other schedulers ------------------------------------------------------------------


def test_what_needs_a_person_stops_it_and_keep_going_takes_the_rest() -> None:
    told = problems(str(SOURCES / "beat_settings.py"))
    assert [line.removeprefix(str(SOURCES)).split(":")[1] for line in told] == ["6", "21", "22"]
    path = str(SOURCES / "beat_settings.py")
    found = json.loads(invoke("up", path, "--dry-run", "--keep-going", "--json").stdout)
    assert len(found["schedules"]) == 6
    assert {each["tz"] for each in found["schedules"]} == {"Asia/Riyadh"}


def test_the_given_zone_counts_more_than_the_formats_own() -> None:
    path = str(SOURCES / "beat.py")
    found = document("up", path, "--dry-run", "--json")["schedules"]
    assert {each["tz"] for each in found} == {"UTC"}
    found = document("up", path, "--dry-run", "--json", "--tz", "Asia/Tokyo")["schedules"]
    assert {each["tz"] for each in found} == {"Asia/Tokyo"}


def test_a_file_of_another_scheduler_is_not_run(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    Path("b.py").write_text(
        f"from celery import Celery\nopen({str(trace)!r}, 'w')\n"
        "CELERY_BEAT_SCHEDULE = {'a': {'task': 'x', 'schedule': 60}}\n"
    )
    (found,) = document("up", "b.py", "--dry-run", "--json")["schedules"]
    assert (found["name"], found["expression"]) == ("a", "@every 1m")
    assert not trace.exists()


def test_the_format_can_be_insisted_on() -> None:
    Path("plain").write_text('[schedules.a]\ncron = "@daily"\nkind = "x"\n')
    assert document("up", "plain", "--dry-run", "--json")["schedules"][0]["name"] == "a"
    assert "plain:1: " in "".join(problems("plain", "--format", "crontab"))
    Path("empty.py").write_text("from celery import Celery\n")
    (told,) = problems("empty.py")
    assert "holds no schedule, read as celery: choose another with --format" in told
    (told,) = problems("empty.py", "--format", "python")
    assert "celery" in told
