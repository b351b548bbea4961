"""An embedded PostgreSQL's binaries and data folders."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.store.postgres.processes import (
    User,
    eventually,
)

from timeball.store.postgres import server
from timeball.store.postgres.binaries import Binaries, find_binaries
from timeball.store.postgres.embedded import (
    EmbeddedPostgres,
    shutdown,
)


@pytest.fixture(scope="session")
def found() -> Binaries:
    return find_binaries()


@pytest.fixture(scope="session")
def template(found: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that was used once: the other tests copy it, which is faster than initdb."""
    folder = tmp_path_factory.mktemp("template") / "pg"
    with EmbeddedPostgres(folder, binaries=found, linger_s=0):
        eventually(lambda: not (folder / server._UNSYNCED).exists())
    shutdown(folder)
    return folder


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "pg"
    yield folder
    shutdown(folder)


@pytest.fixture
def folder(template: Path, empty: Path) -> Path:
    shutil.copytree(template, empty)
    return empty


@pytest.fixture
def join(folder: Path, found: Binaries) -> Iterator[Callable[[], User]]:
    users: list[User] = []

    def another() -> User:
        users.append(User(folder, found))
        return users[-1]

    yield another
    for user in users:
        user.end(kill=True)
