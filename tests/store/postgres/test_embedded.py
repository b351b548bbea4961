"""The embedded PostgreSQL as its users see it."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.store.postgres.processes import (
    User,
    answers,
    ask,
    eventually,
    is_gone,
    is_left_alone,
    sockets_of,
)

from timeball.errors import EmbeddedUnavailable, UsageError
from timeball.store.postgres import server
from timeball.store.postgres.binaries import Binaries, find_binaries
from timeball.store.postgres.embedded import (
    EmbeddedPostgres,
    default_folder,
    hold,
    reset,
    shutdown,
    status,
)


def test_a_data_folder_of_another_major_is_refused_with_the_way_to_move_it(
    tmp_path: Path, found: Binaries
) -> None:
    (tmp_path / server.DATA).mkdir()
    (tmp_path / server.LOCK).touch()
    (tmp_path / server.DATA / "PG_VERSION").write_text("9\n")
    with pytest.raises(EmbeddedUnavailable, match=r"made by PostgreSQL 9.*pg_dumpall"):
        EmbeddedPostgres(tmp_path, binaries=found).start()


def test_a_folder_with_files_of_others_is_neither_used_nor_removed(
    tmp_path: Path, found: Binaries
) -> None:
    (tmp_path / "thesis.tex").touch()
    for act in (EmbeddedPostgres(tmp_path, binaries=found).start, lambda: reset(tmp_path)):
        with pytest.raises(UsageError, match="new or empty"):
            act()
    shutdown(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_the_default_folder_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TIMEBALL_HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("HOME", "/home/ada")
    assert default_folder("18") == Path("/home/ada/.local/share/timeball/postgres-18")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert default_folder("18") == Path("/var/lib/timeball/postgres-18")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_folder("18") == Path("/data/timeball/postgres-18")
    monkeypatch.setenv("TIMEBALL_HOME", str(tmp_path))
    assert default_folder("18") == tmp_path / "postgres-18"


def test_what_never_started_has_no_dsn_and_stops_without_harm(
    tmp_path: Path, found: Binaries
) -> None:
    postgres = EmbeddedPostgres(tmp_path / "pg", binaries=found)
    with pytest.raises(UsageError, match="start"):
        _ = postgres.dsn
    postgres.stop()
    assert not status(tmp_path / "pg").running
    assert not (tmp_path / "pg").exists()


def machine(folder: Path) -> tuple[str, int, int]:
    """Who is known here, and what may be done in a folder by whom."""
    facts = folder.stat()
    users = hashlib.sha256(Path("/etc/passwd").read_bytes()).hexdigest()
    return users, facts.st_mode, facts.st_uid


@pytest.mark.slow
@pytest.mark.parametrize("major", ["15", "18"])
def test_a_server_is_there_from_start_to_stop_and_only_for_those_who_have_the_password(
    empty: Path, template: Path, major: str
) -> None:
    try:
        found = find_binaries(major)
    except EmbeddedUnavailable:
        pytest.skip(f"no PostgreSQL {major} here")
    before = machine(empty.parent)
    with EmbeddedPostgres(empty, binaries=found, linger_s=0) as postgres:
        dsn = postgres.dsn
        assert str(ask(dsn, "SHOW server_version")).partition(".")[0] == major
        assert ask(dsn, "SHOW fsync") == ask(dsn, "SHOW synchronous_commit") == "on"
        assert ask(dsn, "SHOW listen_addresses") == ""
        assert ask(dsn, "SHOW max_prepared_transactions") == "10"
        assert postgres.start() == dsn

        password = (empty / server.PASSWORD).read_text()
        assert password in dsn
        assert len({password, (template / server.PASSWORD).read_text()}) == 2
        with pytest.raises(psycopg.OperationalError, match="password"):
            ask(dsn.replace(password, "guess"), "SELECT 1")
        report = status(empty)
        assert report.running
        assert report.users == (os.getpid(),)
        command_lines = subprocess.run(
            ["ps", "-eo", "args"], capture_output=True, text=True, check=True
        )
        for shown in (repr(postgres), repr(report), command_lines.stdout):
            assert password not in shown
        for private in (empty, empty / server.DATA, sockets_of(dsn)):
            assert stat.S_IMODE(private.stat().st_mode) == 0o700
        for secret in (server.PASSWORD, server.LOG):
            assert stat.S_IMODE((empty / secret).stat().st_mode) == 0o600
    postgres.stop()
    eventually(lambda: is_left_alone(empty))
    assert not sockets_of(dsn).exists()
    assert not status(empty).running
    assert machine(empty.parent) == before


@pytest.mark.slow
def test_processes_share_one_server_and_the_last_one_ends_it(
    folder: Path, join: Callable[[], User]
) -> None:
    users = [join() for _ in range(4)]
    (dsn,) = {user.dsn() for user in users}
    postmaster = status(folder).pid
    assert status(folder).users == tuple(sorted(user.process.pid for user in users))
    for user in users[1:]:
        user.end()
    eventually(lambda: len(status(folder).users) == 1)
    assert answers(dsn)
    assert status(folder).pid == postmaster
    users[0].end()
    eventually(lambda: is_left_alone(folder))


@pytest.mark.slow
def test_a_start_that_races_with_the_last_stop_always_gets_a_server(
    folder: Path, found: Binaries
) -> None:
    for _ in range(5):
        with EmbeddedPostgres(folder, binaries=found, linger_s=0) as postgres:
            assert answers(postgres.dsn)


@pytest.mark.slow
def test_a_first_start_by_many_makes_one_cluster(empty: Path, found: Binaries) -> None:
    users = [User(empty, found) for _ in range(4)]
    try:
        (dsn,) = {user.dsn() for user in users}
        assert answers(dsn)
        assert (empty / server.LOG).read_text().count("Success.") == 1
    finally:
        for user in users:
            user.end(kill=True)


@pytest.mark.slow
def test_a_data_folder_may_have_a_long_path(
    template: Path, tmp_path: Path, found: Binaries
) -> None:
    long = tmp_path / ("deep" * 20) / ("down" * 20)
    shutil.copytree(template, long)
    with EmbeddedPostgres(long, binaries=found, linger_s=0) as postgres:
        assert answers(postgres.dsn)
    shutdown(long)


@pytest.mark.slow
def test_a_held_server_needs_no_user_until_it_is_shut_down(folder: Path, found: Binaries) -> None:
    dsn = hold(folder, binaries=found)
    eventually(lambda: status(folder).users == ())
    assert answers(dsn)
    shutdown(folder)
    assert is_left_alone(folder)
    assert not answers(dsn)
    shutdown(folder)


@pytest.mark.slow
def test_a_reset_ends_the_server_for_everyone_and_removes_the_data(
    folder: Path, found: Binaries
) -> None:
    with EmbeddedPostgres(folder, binaries=found) as postgres:
        sockets = sockets_of(postgres.dsn)
        reset(folder)
        assert not folder.exists()
        assert not sockets.exists()


@pytest.mark.slow
def test_a_forked_child_keeps_no_server_alive(folder: Path, found: Binaries) -> None:
    ear, mouth = os.pipe()
    postgres = EmbeddedPostgres(folder, binaries=found, linger_s=0)
    postgres.start()
    child = os.fork()
    if child == 0:
        os.close(mouth)
        os.read(ear, 1)
        os._exit(0)
    try:
        postgres.stop()
        eventually(lambda: is_left_alone(folder))
        assert not is_gone(child)
    finally:
        os.close(mouth)
        os.close(ear)
        os.waitpid(child, 0)


@pytest.mark.slow
def test_a_server_that_cannot_start_says_why(folder: Path, found: Binaries) -> None:
    (folder / server.DATA / "postgresql.auto.conf").write_text("sense = none\n")
    with pytest.raises(EmbeddedUnavailable, match="unrecognized configuration parameter"):
        EmbeddedPostgres(folder, binaries=found).start()
    eventually(lambda: is_left_alone(folder))
