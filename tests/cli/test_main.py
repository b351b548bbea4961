"""The command itself: what it loads, how it tells errors, and how it ends."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest
from tests.cli.invoking import invoke, said

from timeball import __version__
from timeball.cli.commands import COMMANDS
from timeball.errors import (
    EmbeddedUnavailable,
    IllegalTransition,
    InvalidPayload,
    JobNotFound,
    SchemaMismatch,
    StoreUnavailable,
    TimeballError,
    UsageError,
)

HEAVY = {"asyncio", "msgspec", "psycopg", "rich", "timeball.core", "timeball.store"}


def loaded_by(*words: str) -> set[str]:
    """The modules that a process has loaded when it has done this."""
    code = f"""
import sys
sys.argv[1:] = {words!r}
from timeball.cli.main import main
try:
    main()
finally:
    sys.stderr.write(" ".join(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    return set(done.stderr.split())


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("--help",),
        *((name, "--help") for name in COMMANDS),
        ("cron", "next", "--help"),
        ("jobs", "list", "--help"),
    ],
    ids=" ".join,
)
def test_to_say_its_version_or_its_help_it_loads_nothing_heavy(words: tuple[str, ...]) -> None:
    loaded = loaded_by(*words)
    assert "timeball.cli.main" in loaded
    assert loaded & HEAVY == set()


@pytest.mark.slow
def test_to_say_its_version_it_does_not_even_load_click() -> None:
    assert "click" not in loaded_by("--version")


@pytest.mark.slow
def test_a_command_loads_no_other_command() -> None:
    loaded = loaded_by("cron", "next", "* * * * *", "--tz", "UTC")
    assert "timeball.cli.cron" in loaded
    others = {f"timeball.cli.{name}" for name in COMMANDS} - {"timeball.cli.cron"}
    assert loaded & (others | {"psycopg", "rich"}) == set()


def test_the_version_is_that_of_the_package() -> None:
    assert said("--version") == f"timeball {__version__}\n"


def test_help_names_every_command() -> None:
    text = said("--help")
    assert [name for name in COMMANDS if f"\n  {name} " not in text] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help(name: str) -> None:
    assert said(name, "-h").startswith(f"Usage: timeball {name}")


def test_an_unknown_command_is_a_mistake_of_the_caller() -> None:
    assert invoke("cronn").exit_code == 2


ERRORS = [
    (UsageError("write this instead"), 2),
    (InvalidPayload("a NaN"), 2),
    (JobNotFound("17"), 3),
    (IllegalTransition("17", "it has ended"), 4),
    (StoreUnavailable("connection refused"), 5),
    (EmbeddedUnavailable("no binaries"), 5),
    (SchemaMismatch("run db migrate"), 6),
    (TimeballError("something else"), 1),
    (PermissionError(13, "Permission denied", "/x"), 1),
    (KeyboardInterrupt(), 130),
]


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch):
    """Make `timeball audit` raise what it is given."""

    def fail_with(error: BaseException) -> None:
        @click.command()
        def command() -> None:
            raise error

        monkeypatch.setattr("timeball.cli.audit.command", command)

    return fail_with


@pytest.mark.parametrize(("error", "code"), ERRORS, ids=lambda it: type(it).__name__)
def test_each_expected_error_has_its_exit_code(failing, error: BaseException, code: int) -> None:
    failing(error)
    result = invoke("audit")
    assert result.exit_code == code
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_an_error_is_told_in_one_harmless_sentence(failing) -> None:
    failing(StoreUnavailable("no\x1b[2Jserver"))
    assert invoke("audit").stderr == "timeball: no\\x1b[2Jserver\n"


def test_debugging_shows_where_it_came_from(failing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_DEBUG", "1")
    failing(UsageError("what to write"))
    result = invoke("audit")
    assert "Traceback" in result.stderr
    assert "raise error" in result.stderr
    assert result.exit_code == 2


def test_a_bug_is_not_hidden(failing) -> None:
    bug = ZeroDivisionError()
    failing(bug)
    assert invoke("audit").exception is bug
