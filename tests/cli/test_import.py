"""`timeball import`: what becomes what, what needs a person, and a file that `up` takes."""

from __future__ import annotations

import io
import json
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.cli.invoking import document, invoke

from timeball.cli.commands import timeball

SOURCES = Path(__file__).parents[1] / "data" / "sources"
# File -> its format, the schedules that it gives, and the lines that need a person.
FILES: dict[str, tuple[str, int, list[int]]] = {
    "home.cron": ("crontab", 2, []),
    "system.cron": ("crontab", 3, []),
    "zones.cron": ("crontab", 4, []),
    "edges.cron": ("crontab", 7, [12, 14]),
    "beat.py": ("celery", 3, []),
    "beat_settings.py": ("celery", 6, [6, 21, 22]),
    "clock.py": ("apscheduler", 6, [11, 19]),
    "cronjobs.yaml": ("kubernetes", 2, [5, 23]),
}


@pytest.fixture(autouse=True)
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Now is fixed, this machine is in Paris, and what is written is written elsewhere."""
    monkeypatch.setattr("timeball.chance.now", lambda: datetime(2026, 3, 7, 12, tzinfo=UTC))
    monkeypatch.setenv("TZ", "Europe/Paris")
    monkeypatch.chdir(tmp_path)


def imported(name: str, *words: str) -> str:
    """Import one of the sources; return what was said on stdout."""
    form, _, needs = FILES[name]
    result = invoke("import", form, str(SOURCES / name), *words)
    assert result.exit_code == (8 if needs else 0), result.output
    return result.stdout


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_a_file_that_up_takes(name: str) -> None:
    _, count, _ = FILES[name]
    imported(name)
    found = document("up", "schedules.toml", "--dry-run", "--json")
    assert found["problems"] == []
    assert len(found["schedules"]) == count


@pytest.mark.parametrize("name", FILES)
def test_what_needs_a_person_is_listed_with_file_and_line_and_stands_in_the_file(name: str) -> None:
    form, _, needs = FILES[name]
    told = [line for line in imported(name).splitlines() if line.startswith("needs you: ")]
    path = str(SOURCES / name)
    assert [int(line.removeprefix(f"needs you: {path}:").split(":")[0]) for line in told] == needs
    written = Path("schedules.toml").read_text()
    assert all(f"# needs you, {name}:{line}: " in written for line in needs)
    found = json.loads(invoke("import", form, path, "--dry-run", "--json").stdout)
    assert [each["line"] for each in found["needs_you"]] == needs


def test_the_table_says_what_becomes_what() -> None:
    lines = imported("beat.py", "--dry-run").splitlines()
    assert lines[0].split() == ["LINE", "NAME", "SCHEDULE", "ZONE", "RUNS", "OPTIONS"]
    assert lines[3].startswith("21    freshness  * */4 * * *  UTC   desk.sync.freshness()  ")
    assert lines[3].endswith("queue=watch, catchup_window_s=1800.0")
    assert "[analyse]" in lines[4]


def test_what_would_do_something_else_is_left_out_of_the_file_and_kept_in_it_as_a_comment() -> None:
    assert "left out" in imported("beat_settings.py")
    written = Path("schedules.toml").read_text()
    assert "\n# [schedules.clean]\n# cron = " in written


def test_the_zone_of_what_names_none_is_the_formats_the_machines_or_the_given_one() -> None:
    def zones(name: str, *words: str) -> set[str]:
        found = json.loads(imported(name, "--dry-run", "--json", *words))
        return {each["tz"] for each in found["schedules"]}

    assert zones("home.cron") == {"Europe/Paris"}
    assert zones("home.cron", "--tz", "Asia/Tokyo") == {"Asia/Tokyo"}
    assert zones("beat.py") == {"UTC"}
    assert zones("zones.cron", "--tz", "Asia/Tokyo") == {
        *("Asia/Seoul", "Etc/UTC", "America/New_York")
    }
    assert invoke("import", "celery", str(SOURCES / "beat.py"), "--tz", "Mars/X").exit_code == 2


def test_a_dry_run_writes_nothing() -> None:
    imported("home.cron", "--dry-run")
    assert list(Path().iterdir()) == []


def test_a_file_is_never_written_over_unless_forced() -> None:
    Path("schedules.toml").write_text("mine")
    result = invoke("import", "crontab", str(SOURCES / "home.cron"))
    assert result.exit_code == 2
    assert "schedules.toml exists: name another file with --out" in result.stderr
    assert Path("schedules.toml").read_text() == "mine"
    Path("link.toml").symlink_to("nowhere")
    refused = invoke("import", "crontab", str(SOURCES / "home.cron"), "--out", "link.toml")
    assert refused.exit_code == 2
    imported("home.cron", "--force")
    assert "[schedules." in Path("schedules.toml").read_text()
    assert sorted(each.name for each in Path().iterdir()) == ["link.toml", "schedules.toml"]


def test_a_folder_that_is_missing_is_told() -> None:
    result = invoke("import", "crontab", str(SOURCES / "home.cron"), "--out", "no/such.toml")
    assert result.exit_code == 2
    assert "no/such.toml: No such file or directory" in result.stderr


def test_only_its_owner_can_read_the_file_and_a_secret_in_it_is_said_but_not_shown() -> None:
    Path("a.cron").write_text("PGPASSWORD=hunter2\n0 1 * * * curl -u me:hunter2 https://h/\n")
    result = invoke("import", "crontab", "a.cron")
    assert result.exit_code == 0
    assert "hunter2" not in result.output
    assert "holds what looks like a secret" in result.stderr
    assert stat.S_IMODE(Path("schedules.toml").stat().st_mode) == 0o600
    told = invoke("up", "schedules.toml", "--dry-run")
    assert (told.exit_code, "hunter2" in told.output) == (0, False)
    assert "curl -u me:hunter2" in Path("schedules.toml").read_text()


def test_stdin_is_a_file_too() -> None:
    text = (SOURCES / "cronjobs.yaml").read_bytes()
    result = CliRunner().invoke(timeball, ["import", "kubernetes", "-"], input=io.BytesIO(text))
    assert result.exit_code == 8
    assert "needs you: stdin:5: backup: it ran in the image backup-tool:1" in result.stdout


def test_what_up_would_refuse_needs_a_person() -> None:
    Path("a.py").write_text(
        "from celery import Celery\n"
        "app.conf.beat_schedule = {'a': {'task': 'x', 'schedule': 60, 'options': {'queue': ''}},\n"
        "  'b': {'task': 'x', 'schedule': 60}}\n"
    )
    result = invoke("import", "celery", "a.py")
    assert result.exit_code == 8
    assert "needs you: a.py:2: a: queue '': write 1 to 256 bytes" in result.stdout
    assert [
        each["name"]
        for each in document("up", "schedules.toml", "--dry-run", "--json")["schedules"]
    ] == ["b"]


@pytest.mark.parametrize(
    ("form", "text", "code", "why"),
    [
        ("crontab", "# nothing\n", 1, "nothing in it can run"),
        ("crontab", "@reboot x\n", 1, "nothing in it can run"),
        ("celery", "def f(:", 2, "x: line 1: it is not Python"),
        ("celery", "x" * (1 << 19), 2, "x: it is longer than"),
        ("kubernetes", "a: [", 2, "x: line 1: it is not YAML"),
        ("kubernetes", "a: \udcff", 2, "x: it is not UTF-8"),
    ],
)
def test_a_file_that_gives_nothing_is_told_and_nothing_written(
    form: str, text: str, code: int, why: str
) -> None:
    Path("x").write_bytes(text.encode(errors="surrogateescape"))
    result = invoke("import", form, "x")
    assert (result.exit_code, why in result.stderr) == (code, True)
    assert [each.name for each in Path().iterdir()] == ["x"]


@pytest.mark.parametrize(
    ("file", "why"), [("no.cron", "no.cron: No such file"), ("/dev/zero", "larger than 4,194,304")]
)
def test_a_file_that_cannot_be_read_is_told(file: str, why: str) -> None:
    result = invoke("import", "crontab", file)
    assert (result.exit_code, why in result.stderr) == (2, True)
