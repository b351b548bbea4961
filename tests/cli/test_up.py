"""`timeball up --dry-run`: everything is read, shown and told before anything starts."""

from __future__ import annotations

import json
import os
import pwd
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.invoking import document, invoke, said

SPRING = "2026-03-08 02:00 becomes 2026-03-08 03:00: 02:30 does not exist: runs at 03:00 instead"
CRONTABS = Path(__file__).parents[1] / "data" / "crontabs"
APP = """
import timeball as tb

@tb.cron("*/10 * * * * *", "Asia/Seoul", name="pulse", args={"to": "ops"})
@tb.job(queue="mail")
def report(to: str) -> None: ...

@tb.job
def unscheduled() -> None: ...
"""


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Now is fixed, this machine is in Paris, and files are named from where they lie."""
    monkeypatch.setattr("timeball.chance.now", lambda: datetime(2026, 3, 7, 12, tzinfo=UTC))
    monkeypatch.setenv("TZ", "Europe/Paris")
    monkeypatch.chdir(CRONTABS)


def test_every_schedule_is_listed_with_zone_next_occurrences_and_remarks() -> None:
    assert (
        said("up", "zones.cron", "--dry-run")
        == """\
NAME                  SCHEDULE       ZONE              NEXT                       THEN\
                       DOES
zones:nightly-3a958c  15 6 * * *     Europe/Paris      2026-03-08 06:15:00+01:00  \
2026-03-09 06:15:00+01:00  cd /srv/app && ./nightly.sh >> log/nightly.log 2>&1
zones:report-03d04d   30 2 * * *     America/New_York  2026-03-08 03:00:00-04:00  \
2026-03-09 02:30:00-04:00  /srv/app/report --date "$(date +%F)"
zones:update-e7b096   7 */5 * * 1-5  Asia/Seoul        2026-03-09 00:07:00+09:00  \
2026-03-09 05:07:00+09:00  /usr/bin/flock -n /tmp/ticker.lock /srv/ticker/update.sh
note: MAILTO=ops@…: output is kept with the job instead of mailed [all]
DST: 2026-03-08 02:00 becomes 2026-03-08 03:00: 02:30 does not exist: runs at 03:00 instead \
[zones:report-03d04d]
warning: the step of */5 in the hour field does not divide 24: after 20 it starts again, 4 later \
[zones:update-e7b096]
"""
    )


def test_the_default_zone_is_said() -> None:
    result = invoke("up", "zones.cron", "--dry-run")
    assert "lines that name no zone are in Europe/Paris" in result.stderr
    chosen = document("up", "zones.cron", "--dry-run", "--json", "--tz", "Asia/Tokyo")
    assert chosen["default_tz"] == "Asia/Tokyo"
    assert [each["tz"] for each in chosen["schedules"]] == [
        *("Asia/Tokyo", "America/New_York", "Asia/Seoul")
    ]


def test_utc_is_one_more_column() -> None:
    line = said("up", "zones.cron", "--dry-run", "--utc").splitlines()[1]
    assert "2026-03-08 06:15:00+01:00" in line
    assert "2026-03-08T05:15:00Z" in line


def test_json_says_all_of_it() -> None:
    found = document("up", "zones.cron", "--dry-run", "--json")
    assert found["problems"] == []
    assert found["schedules"][1] == {
        "name": "zones:report-03d04d",
        "place": "zones.cron:7",
        "expression": "30 2 * * *",
        "tz": "America/New_York",
        "gap": "next_valid",
        "overlap": "first",
        "does": '/srv/app/report --date "$(date +%F)"',
        "next": [
            {"at": "2026-03-08T07:00:00Z", "local": "2026-03-08T03:00:00-04:00"},
            {"at": "2026-03-09T06:30:00Z", "local": "2026-03-09T02:30:00-04:00"},
        ],
        "remarks": [
            "note: MAILTO=ops@…: output is kept with the job instead of mailed",
            f"DST: {SPRING}",
        ],
    }


def problems(*words: str) -> list[str]:
    result = invoke("up", *words)
    assert result.exit_code == 2
    return [line for line in result.stderr.splitlines() if " — " in line or ".py" in line]


def test_all_problems_of_all_files_are_told_at_once_and_nothing_starts() -> None:
    told = problems("faults.cron", "system.cron")
    assert [line.split(": ")[0] for line in told] == [
        *("faults.cron:3", "faults.cron:4", "faults.cron:5", "faults.cron:6", "faults.cron:7"),
        *("faults.cron:8", "system.cron:4"),
    ]
    assert told[0].startswith("faults.cron:3: 61 * * * * ./no-such-minute — ")
    assert "there is no user nobody-of-that-name here" in told[-1]


def test_problems_stop_it_even_where_it_would_have_started() -> None:
    result = invoke("up", "faults.cron")
    assert result.exit_code == 2
    assert result.stderr.endswith("6 problems: nothing was started\n")
    assert "good-before" in result.stdout


def test_keep_going_takes_the_good_lines_and_tells_the_bad_ones() -> None:
    result = invoke("up", "faults.cron", "--dry-run", "--keep-going")
    assert result.exit_code == 0
    assert "faults.cron:3: " in result.stderr
    assert "nothing was started" not in result.stderr
    assert ["good-before" in result.stdout, "good-after" in result.stdout] == [True, True]
    assert "under-a-zone-that-is-none" not in result.stdout


def test_with_json_the_problems_are_data_too() -> None:
    result = invoke("up", "system.cron", "--json", "--dry-run")
    (problem,) = json.loads(result.stdout)["problems"]
    assert (problem["file"], problem["line"]) == ("system.cron", 4)
    assert result.exit_code == 2


def test_the_form_can_be_insisted_on() -> None:
    found = document("up", "system.cron", "--dry-run", "--json", "--form", "user")
    assert [each["does"][:16] for each in found["schedules"]] == [
        *("root run-parts /", "nobody-of-that-n")
    ]


def test_only_root_can_run_commands_as_others(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = pwd.getpwnam("nobody").pw_uid
    monkeypatch.setattr(os, "geteuid", lambda: nobody)
    told = problems("system.cron", "--dry-run")
    assert told[0].startswith("system.cron:3: 17 * * * * root run-parts /etc/cron.hourly — ")
    assert "only root can run commands as root" in told[0]


def test_the_same_crontab_twice_under_one_name_is_told(tmp_path: Path) -> None:
    (tmp_path / "zones.cron").write_bytes(Path("zones.cron").read_bytes())
    told = invoke("up", "zones.cron", str(tmp_path / "zones.cron"), "--dry-run")
    assert told.exit_code == 2
    assert told.stderr.count("zones.cron:4 declares the same schedule") == 1
    assert document("up", "zones.cron", "zones.cron", "--dry-run", "--json")["problems"] == []


def test_a_crontab_that_is_no_utf_8_is_told_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "latin.cron"
    path.write_bytes(b"0 3 * * * echo good\n0 4 * * * echo gr\xfc\xdf\n")
    (told,) = problems(str(path), "--dry-run")
    assert told.startswith(f"{path}:2: ")
    assert "UTF-8" in told


def test_a_name_that_is_neither_a_file_nor_a_module_is_told() -> None:
    result = invoke("up", "backupp.cron", "backupp", "--dry-run")
    assert result.exit_code == 2
    told = "there is neither a file nor a module of that name: name a crontab"
    assert result.stderr.count(told) == 2


def test_a_file_without_an_end_is_told() -> None:
    result = invoke("up", "/dev/zero", "--dry-run")
    assert result.exit_code == 2
    assert "/dev/zero: larger than 4,194,304 bytes: split it" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        *(("up", "zones.cron", "--children"), ("up", "zones.cron", "--slots")),
        *(("worker", "-a", "app", "--children"), ("worker", "-a", "app", "--threads")),
        ("worker", "-a", "app", "--processes"),
    ],
)
def test_a_slip_of_the_finger_does_not_bring_the_machine_down(words: tuple[str, ...]) -> None:
    result = invoke(*words, "100000")
    assert result.exit_code == 2
    assert "100000 is not in the range" in result.stderr


@pytest.mark.parametrize("option", ["--lease", "--poll"])
def test_a_worker_that_would_never_rest_is_refused(option: str) -> None:
    result = invoke("worker", "-a", "app", option, "0")
    assert result.exit_code == 2
    assert "0 is too short: write " in result.stderr


@pytest.mark.parametrize("option", ["--threads", "--async"])
def test_a_worker_is_told_once_how_many_jobs_run_at_once(option: str) -> None:
    result = invoke("worker", "-a", "app", option, "8", "--processes", "2")
    assert result.exit_code == 2
    assert "write --threads or --processes" in result.stderr


def test_a_file_that_is_missing_or_no_file_is_told(tmp_path: Path) -> None:
    result = invoke("up", "no/such.cron", str(tmp_path), "--dry-run")
    assert result.exit_code == 2
    assert "no/such.cron: No such file or directory: name a file of schedules" in result.stderr
    assert f"{tmp_path}: Is a directory: name a file of schedules" in result.stderr


def test_files_are_needed() -> None:
    assert invoke("up").exit_code == 2


# Python -------------------------------------------------------------------------------------


def app(tmp_path: Path, name: str, text: str = APP) -> str:
    """A Python file whose module name no other test has used."""
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    return str(path)


def test_the_schedules_of_a_python_file_are_listed(tmp_path: Path) -> None:
    found = document("up", app(tmp_path, "up_listed"), "--dry-run", "--json")
    (schedule,) = found["schedules"]
    assert schedule["name"] == "pulse"
    assert schedule["expression"] == "*/10 * * * * *"
    assert schedule["tz"] == "Asia/Seoul"
    assert schedule["does"] == "up_listed.report(to='ops')"
    assert schedule["next"][0]["at"] == "2026-03-07T12:00:10Z"


def test_a_module_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app(tmp_path, "up_module")
    monkeypatch.syspath_prepend(tmp_path)
    (schedule,) = document("up", "up_module", "--dry-run", "--json")["schedules"]
    assert schedule["does"] == "up_module.report(to='ops')"


BROKEN = {
    "up_raises": ("import os\n\nraise RuntimeError('not today')\n", 3, "not today"),
    "up_syntax": ("x = 1\ndef f(:\n", 2, "SyntaxError"),
    "up_expression": (
        "import timeball as tb\n@tb.cron('61 * * * *')\ndef f(): ...\n",
        2,
        "61",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_python_file_that_cannot_be_loaded_is_told_by_its_line(tmp_path, name: str) -> None:
    text, line, why = BROKEN[name]
    path = app(tmp_path, name, text)
    (told,) = problems(path, "--dry-run")
    assert told.startswith(f"{path}:{line}: ")
    assert why in told


def test_a_python_file_without_jobs_is_told(tmp_path: Path) -> None:
    (told,) = problems(app(tmp_path, "up_empty", "x = 1\n"), "--dry-run")
    assert "it defines no job" in told


def test_a_module_that_does_not_exist_is_told_beside_all_else() -> None:
    result = invoke("up", "no_such_module_of_that_name", "faults.cron", "--dry-run")
    assert result.exit_code == 2
    assert "no_such_module_of_that_name: " in result.stderr
    assert "faults.cron:3: " in result.stderr
