"""`timeball cron lint`: files of every format, on stdout and as exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.cli.invoking import invoke

from timeball.cli import cron_lint

CELERY = """\
from celery import Celery
from celery.schedules import crontab

app = Celery("shop")
app.conf.timezone = "UTC"
app.conf.beat_schedule = {
    # stock report at 6:00 PM UTC (1:00 PM EST)
    "stock": {"task": "shop.stock", "schedule": crontab(hour=18, minute=0)},
    # every Sunday morning
    "digest": {"task": "shop.digest", "schedule": crontab(day_of_week=6, hour=8, minute=0)},
    # every 4 hours
    "sync": {"task": "shop.sync", "schedule": crontab(hour="*/4")},
    "hourly": {"task": "shop.hourly", "schedule": crontab(minute=5)},
    "vacuum": {"task": "shop.vacuum", "schedule": 86400.0},
}
"""
APSCHEDULER = """\
from apscheduler.schedulers.background import BackgroundScheduler

def report(): ...

scheduler = BackgroundScheduler(timezone="UTC")
scheduler.add_job(report, "cron", day_of_week=0, hour=7, id="by-number")
scheduler.add_job(report, "cron", day_of_week="mon", hour=7, id="by-name")
"""
KUBERNETES = """\
apiVersion: batch/v1
kind: CronJob
metadata: { name: cleanup }
spec:
  schedule: "30 1 * * *"
  timeZone: "America/New_York"
  concurrencyPolicy: Forbid
  jobTemplate:
    spec:
      template:
        spec:
          containers: [{ name: c, image: "busybox:1", command: ["true"] }]
"""
HAZARDS = """\
CRON_TZ=America/Los_Angeles
00 */3 15-25/2 May 1-5 some-command
@reboot warm-the-cache
30 2 * * * in-the-gap
30 1 * * * in-the-fold
0 0 30 feb * never
*/7 * * * * uneven
"""
NIGHTLY = """\
SHELL=/bin/bash
PATH=/srv/app/bin:/usr/bin:/bin

# m h dom mon dow cmd
15 6 * * * cd /srv/app/loaders && ./nightly.sh &>> /var/log/app/nightly.log
20 6 * * * cd /srv/app/reports && ./nightly.sh &>> /var/log/app/reports.log
"""


@pytest.fixture
def write(tmp_path: Path):
    def put(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return put


def found(file: str, *words: str) -> list[tuple[int, str, str]]:
    result = document_of(file, *words)
    return [(each["line"], each["rule"], each["severity"]) for each in result["findings"]]


def document_of(file: str, *words: str):
    result = invoke("cron", "lint", file, "--json", *words)
    assert result.exit_code in {0, 1}, result.output
    read = json.loads(result.stdout)
    assert read["schema_version"] == 1
    (only,) = read["files"]
    return only


def test_the_mistakes_of_a_celery_file_are_found_and_nothing_else(write) -> None:
    assert found(write("beat.py", CELERY)) == [
        (8, "zone-in-comment", "warning"),
        (10, "weekday-numbering", "error"),
        (12, "missing-minute", "error"),
        (12, "no-overlap-guard", "hint"),
        (14, "day-long-interval", "warning"),
    ]


def test_the_hazards_of_a_crontab_are_found(write) -> None:
    assert found(write("x.cron", HAZARDS)) == [
        (2, "day-or-weekday", "warning"),
        (3, "needs-you", "warning"),
        (4, "dst-gap", "warning"),
        (5, "dst-fold", "warning"),
        (6, "never-fires", "error"),
        (7, "uneven-step", "warning"),
        (7, "no-overlap-guard", "hint"),
    ]


def test_a_number_of_a_weekday_is_found_in_apscheduler(write) -> None:
    assert found(write("jobs.py", APSCHEDULER)) == [(6, "weekday-numbering", "warning")]


def test_a_fold_is_found_in_kubernetes(write) -> None:
    (only,) = document_of(write("job.yaml", KUBERNETES))["findings"]
    assert (only["rule"], only["name"]) == ("dst-fold", "cleanup")
    assert "Kubernetes runs it twice" in only["says"]


def test_an_own_file_is_linted_too(write) -> None:
    text = '[schedules.odd]\ncron = "*/7 * * * *"\ntz = "UTC"\nkind = "app.odd"\n'
    assert (1, "uneven-step", "warning") in found(write("schedules.toml", text))


@pytest.mark.parametrize("tz", ["UTC", "Europe/Paris", "America/New_York"])
def test_a_plain_file_is_silent_in_every_zone(write, tz: str) -> None:
    result = invoke("cron", "lint", write("nightly.cron", NIGHTLY), "--tz", tz)
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "2 schedules: 0 errors, 0 warnings, 0 hints\n"


def test_people_get_place_severity_rule_and_what_to_write(write) -> None:
    file = write("x.cron", "*/7 * * * * flock -n /tmp/x.lock uneven\n")
    result = invoke("cron", "lint", file)
    assert result.exit_code == 0
    first, second = result.stdout.splitlines()
    assert first.startswith(f"{file}:1: warning [uneven-step] x:uneven-")
    assert first.endswith("after minute 56 it starts again 4 minutes later")
    assert second == "    write */6, which divides 60, or an interval: @every 7m in Timeball"


def test_only_an_error_makes_exit_code_1(write) -> None:
    file = write("x.cron", "0 0 30 2 * never\n")
    assert invoke("cron", "lint", file).exit_code == 1
    assert invoke("cron", "lint", file, "--ignore", "never-fires").exit_code == 0


def test_several_files_are_summed_up(write) -> None:
    files = (write("a.cron", NIGHTLY), write("b.py", CELERY))
    result = invoke("cron", "lint", *files, "--tz", "UTC")
    assert result.exit_code == 1
    assert result.stderr == "7 schedules: 2 errors, 2 warnings, 1 hint\n"


def test_a_format_can_be_said_and_a_pipe_be_read() -> None:
    result = invoke("cron", "lint", "-", "--format", "celery", "--tz", "UTC", given=CELERY)
    assert result.exit_code == 1
    assert result.stdout.startswith("-:8: warning [zone-in-comment] stock:")


def test_a_secret_never_reaches_the_screen(write) -> None:
    file = write("x.cron", "0 3 * * * backup --password=hunter2hunter2\n")
    result = invoke("cron", "lint", file)
    assert "secret-on-command-line" in result.stdout
    assert "hunter2" not in result.output


def test_what_a_file_says_orders_no_terminal_around(write) -> None:
    result = invoke("cron", "lint", write("x.cron", "0 0 30 2 * \x1b]0;owned\x07\n"))
    assert "\x1b" not in result.stdout


@pytest.mark.parametrize(
    ("name", "text"), [("broken.py", "def ("), ("none.txt", None)], ids=["no Python", "no file"]
)
def test_what_cannot_be_read_is_a_usage_error(write, name: str, text: str | None) -> None:
    file = write(name, text) if text is not None else f"/nowhere/{name}"
    result = invoke("cron", "lint", file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert name in result.stderr


def test_its_help_says_its_exit_codes() -> None:
    assert "exit code is 1 if there is an error" in invoke("cron", "lint", "--help").output


def on_a_terminal(file: str, monkeypatch: pytest.MonkeyPatch, capsys) -> str:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    given = {"tz": "UTC", "format_": "crontab", "form": "user", "ignore": ()}
    cron_lint._write(file, cron_lint._linted(file, given).remarks[0])
    return capsys.readouterr().out


def test_on_a_terminal_the_severity_is_in_colour(write, monkeypatch, capsys) -> None:
    file = write("x.cron", "0 0 30 2 * never\n")
    assert "\x1b[1;31merror" in on_a_terminal(file, monkeypatch, capsys)


def test_in_colour_too_a_file_orders_no_terminal_around(write, monkeypatch, capsys) -> None:
    file = write("x.cron", "0 0 30 2 * \x1b]0;owned\x07\n")
    text = on_a_terminal(file, monkeypatch, capsys)
    assert "\x1b]0;owned" not in text
    assert "\\x1b]0;owned" in text


def test_own_python_is_left_to_who_may_run_it(write) -> None:
    result = invoke("cron", "lint", write("app.py", "import timeball as tb\n"))
    assert result.exit_code == 2
    assert "timeball up FILE --dry-run" in result.stderr


def test_a_user_column_can_be_said(write) -> None:
    file = write("x", "*/10 * * * * root /bin/x\n")
    system, user = (invoke("cron", "lint", file, "--form", form) for form in ("system", "user"))
    assert "] x:x-" in system.stdout
    assert "] x:root-" in user.stdout


def test_a_file_without_schedules_says_what_it_was_read_as(write) -> None:
    result = invoke("cron", "lint", write("x.yaml", "on: push\n"))
    assert result.exit_code == 0
    assert "no schedule is in it, read as kubernetes" in result.stderr
