"""The examples that `timeball up` is given: they are read without a remark, and they run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.invoking import document, invoke
from tests.cli.processes import temporary_home

from timeball.action.registry import DEFAULT

EXAMPLES = Path(__file__).parents[2] / "examples"
LINES_MAX = 120  # two pages


@pytest.mark.parametrize("path", sorted(EXAMPLES.iterdir()), ids=lambda path: path.name)
def test_an_example_is_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) < LINES_MAX


@pytest.mark.parametrize("name", ["hello.py", "crontab"])
def test_an_example_has_no_problems(name: str) -> None:
    found = document("up", str(EXAMPLES / name), "--dry-run", "--json")
    assert found["problems"] == []
    assert found["schedules"] != []


def test_the_function_of_the_example_is_still_a_function() -> None:
    invoke("up", str(EXAMPLES / "hello.py"), "--dry-run")
    assert DEFAULT.kind_of("hello.greet").call("Ada") == "Hello, Ada!"


@pytest.mark.slow
def test_the_examples_run(tmp_path: Path) -> None:
    paths = [str(EXAMPLES / name) for name in ("hello.py", "crontab")]
    with temporary_home(tmp_path / "home") as home, home.start("up", *paths) as up:
        up.wait_for("Ctrl-C stops")
        words = ("submit", "hello.greet", "name=Ada", "--wait", "--timeout", "30s")
        assert home.said(*words).endswith('succeeded "Hello, Ada!"\n')
        (name,) = re.findall(r"crontab:cat-\w+(?= +0 9)", home.said("cron", "list"))
        done = home.said("submit", name, "--wait", "--timeout", "30s")
        assert done.endswith("succeeded Good morning,\n")
        assert up.stop() == 0
