"""What the README shows can be done, and what it points to is there."""

from __future__ import annotations

import re
import shlex
import signal
import sys
from pathlib import Path

import psycopg
import pytest
from tests.e2e.conftest import Demo
from tests.e2e.programs import Place

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
PROGRAM = ".venv/bin/timeball"
CRONTAB = "/etc/cron.d/backup"


def block(start: str, language: str = "") -> str:
    """The one block of the README that begins with that."""
    (found,) = [text for kind, text in BLOCKS if kind == language and text.startswith(start)]
    return found


def commands(text: str) -> list[list[str]]:
    """The words after the program's name, of each command of a block."""
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    assert {line[0] for line in lines} == {PROGRAM}
    return [line[1:] for line in lines]


def test_every_file_that_the_readme_names_exists() -> None:
    promises = re.findall(r"^\| (.+) \| (.+) \|$", README, re.MULTILINE)
    named = [path for _, cell in promises for path in re.findall(r"`(tests/[\w/.]*)`", cell)]
    links = [path for path in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in path]
    scripts = re.findall(r"`python3? ([\w/]+\.py)", README)
    assert len(named) >= 7
    assert [path for path in (*named, *links, *scripts) if not (ROOT / path).exists()] == []


def test_every_promise_has_a_test() -> None:
    _, table = README.split("| promise | tests |\n|---|---|\n")
    rows = table.partition("\n\n")[0].splitlines()
    assert len(rows) >= 7
    assert [row for row in rows if "`tests/" not in row.split("|")[2]] == []


@pytest.mark.slow
def test_the_table_of_the_demo_has_the_rows_and_the_sums_of_the_real_one(demo: Demo) -> None:
    def rows(text: str) -> dict[str, tuple[int, str]]:
        found = re.findall(r"^(\w[\w ]*?) {2,}(\d+) *(.*)$", text, re.MULTILINE)
        return {name: (int(count), remark) for name, count, remark in found}

    shown, real = rows(block("WHAT ")), rows(demo.table)
    assert [(name, remark) for name, (_, remark) in shown.items()] == [
        (name, remark) for name, (_, remark) in real.items()
    ]
    for name in ("submitted", "failed", "workers killed", "lost", "twice"):
        assert shown[name] == real[name]


@pytest.mark.slow
def test_a_crontab_runs_with_the_commands_of_the_readme(place: Place) -> None:
    crontab = place.write("backup", "30 1 * * * true\n")
    dry, run, *rest = commands(block(f"{PROGRAM} up {CRONTAB}").replace(CRONTAB, str(crontab)))
    assert "30 1 * * *" in place.said(*dry)
    up = place.start(*run)
    up.wait_for("Ctrl-C stops")
    for words in rest:
        place.said(*words)
    assert up.stop(signal.SIGINT) == 0


@pytest.mark.slow
def test_functions_run_with_the_code_and_the_commands_of_the_readme(place: Place) -> None:
    place.write("app.py", block("# app.py", "python"))
    run, submit = commands(block(f"{PROGRAM} up app.py"))
    up = place.start(*run)
    up.wait_for("Ctrl-C stops")
    done = place.run(*submit, "--timeout", "30s")
    assert done.stdout.split(maxsplit=1)[1] == 'succeeded "welcomed 7"\n'

    code = block("import timeball as tb\nfrom app", "python").replace("delay_s=60", "delay_s=0.1")
    dsn = place.said("db", "url").strip()
    code = "import psycopg\nconnection = psycopg.connect(sys.argv[1])\n" + code
    code = f"import sys\n{code}connection.commit()\nprint(welcome(7))\n"
    done = place.call(sys.executable, "-W", "error", "-c", code, dsn)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "welcomed 7\nwelcomed 7\n"
    assert "greet" in place.said("cron", "list")
    with psycopg.connect(dsn) as connection:
        query = b"SELECT count(*) FROM timeball.jobs WHERE args = '{\"user\": 8}'"
        assert connection.execute(query).fetchone() == (1,)
    assert up.stop(signal.SIGINT) == 0
