"""The minder and its server, with real processes that are really killed."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import tempfile
from collections.abc import Callable
from contextlib import closing
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
    minder_of,
    open_files,
    sockets_of,
)

from timeball.store.postgres import embedded, minder, server
from timeball.store.postgres.binaries import Binaries
from timeball.store.postgres.embedded import (
    EmbeddedPostgres,
    reset,
    shutdown,
    status,
)
from timeball.store.postgres.links import is_open
from timeball.store.postgres.server import Failure, Orders


def test_the_log_is_bounded_and_its_past_kept_once(tmp_path: Path) -> None:
    log = tmp_path / server.LOG
    with log.open("a") as writer:
        writer.truncate(minder._LOG_BYTES)
        minder._trim(log)
        assert log.stat().st_size == minder._LOG_BYTES
        writer.write("one more")
        writer.flush()
        minder._trim(log)
        writer.write("goes on")
    assert log.read_text() == "goes on"
    assert (tmp_path / "server.log.1").stat().st_size == minder._LOG_BYTES + len("one more")


def test_a_server_that_dies_again_and_again_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    orders = Orders(
        folder=str(tmp_path),
        binaries="",
        version="",
        linger_s=0,
        lock=-1,
        death_signal=False,
        namespace=False,
    )
    monkeypatch.setattr(server.Server, "bury", lambda _: None)
    watch = minder.Minder(orders, None, tmp_path)  # type: ignore[arg-type] # no calls come in
    watch._ready = True
    for _ in range(minder._RELAUNCHES):
        watch._mourn()
    with pytest.raises(Failure, match="6 times"):
        watch._mourn()


@pytest.mark.slow
def test_killing_every_user_leaves_no_process_and_no_socket(
    folder: Path, join: Callable[[], User]
) -> None:
    users = [join(), join()]
    dsn = users[0].dsn()
    users[1].dsn()
    watch, postmaster = minder_of(folder), status(folder).pid
    assert postmaster is not None
    for user in users:
        user.end(kill=True)
    eventually(lambda: is_left_alone(folder) and is_gone(watch) and is_gone(postmaster))
    assert not sockets_of(dsn).exists()
    assert not (folder / server.ADDRESS).exists()


@pytest.mark.slow
def test_after_a_kill_of_postgres_the_same_dsn_has_what_was_committed(
    folder: Path, found: Binaries
) -> None:
    with EmbeddedPostgres(folder, binaries=found, linger_s=0) as postgres:
        dsn, killed = postgres.dsn, status(folder).pid
        assert killed is not None
        with closing(psycopg.connect(dsn, autocommit=True)) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 42 AS n")
            # a session that cannot notice the death would bar the new server for ever
            os.kill(connection.info.backend_pid, signal.SIGSTOP)
            os.kill(killed, signal.SIGKILL)
        eventually(lambda: answers(dsn))
        assert ask(dsn, "SELECT n FROM kept") == 42
        assert status(folder).pid != killed
        assert postgres.start() == dsn


@pytest.mark.slow
@pytest.mark.parametrize("by_kernel", [True, False])
def test_after_a_kill_of_the_minder_postgres_goes_and_a_start_brings_both_back(
    folder: Path, found: Binaries, monkeypatch: pytest.MonkeyPatch, *, by_kernel: bool
) -> None:
    monkeypatch.setattr(embedded, "_DEATH_SIGNAL", by_kernel)
    with EmbeddedPostgres(folder, binaries=found, linger_s=0) as postgres:
        dsn, postmaster = postgres.dsn, status(folder).pid
        assert postmaster is not None
        os.kill(minder_of(folder), signal.SIGKILL)
        eventually(lambda: is_gone(postmaster))
        assert postgres.start() == dsn
        assert answers(dsn)
    eventually(lambda: is_left_alone(folder))
    assert not sockets_of(dsn).exists()


@pytest.mark.slow
def test_each_lock_says_truly_who_is_alive(folder: Path, found: Binaries) -> None:
    with EmbeddedPostgres(folder, binaries=found, linger_s=0):
        postmaster = status(folder).pid
        assert postmaster is not None
        locks = {folder / server.LOCK, folder / server.SERVER_LOCK}
        assert open_files(postmaster) & locks == {folder / server.SERVER_LOCK}
        assert open_files(minder_of(folder)) & locks == {folder / server.LOCK}
        assert not open_files(os.getpid()) & locks


@pytest.mark.slow
def test_the_minder_loads_nothing_but_the_standard_library(folder: Path, found: Binaries) -> None:
    with EmbeddedPostgres(folder, binaries=found, linger_s=0):
        mapped = Path(f"/proc/{minder_of(folder)}/maps").read_text()
    assert "python" in mapped
    assert "site-packages" not in mapped


@pytest.mark.slow
def test_a_start_right_after_a_kill_of_the_minder_waits_for_the_old_server(
    folder: Path, found: Binaries
) -> None:
    with EmbeddedPostgres(folder, binaries=found, linger_s=0) as postgres:
        dsn = postgres.dsn
        with psycopg.connect(dsn):  # a session that the old server must end first
            os.kill(minder_of(folder), signal.SIGKILL)
            eventually(lambda: not is_open(postgres._link))
            assert postgres.start() == dsn
        assert answers(dsn)


@pytest.mark.slow
def test_an_initdb_killed_half_way_is_done_again(empty: Path, found: Binaries) -> None:
    user = User(empty, found)
    half = empty / f"{server.DATA}.new"
    eventually((half / "PG_VERSION").exists)
    initdb = next(
        int(entry.parent.name)
        for entry in Path("/proc").glob("[0-9]*/cmdline")
        if b"initdb\0-D\0" + bytes(half) in entry.read_bytes()
    )
    killed = Path(f"/proc/{initdb}/stat").read_text().rpartition(")")[2].split()[1]
    user.process.kill()
    os.kill(int(killed), signal.SIGKILL)
    user.end()
    eventually(lambda: is_gone(initdb))
    assert half.exists()
    assert not (empty / server.DATA).exists()
    with EmbeddedPostgres(empty, binaries=found, linger_s=0) as postgres:
        assert answers(postgres.dsn)
        assert not half.exists()


@pytest.mark.slow
def test_a_stale_pid_file_that_names_a_living_stranger_is_no_obstacle(
    folder: Path, found: Binaries
) -> None:
    (folder / server.DATA / "postmaster.pid").write_text(f"{os.getpid()}\n{folder}/data\n0\n5432\n")
    with EmbeddedPostgres(folder, binaries=found, linger_s=0) as postgres:
        assert answers(postgres.dsn)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may run it as somebody else")
def test_root_without_user_namespaces_runs_it_as_nobody_and_leaves_the_parents_alone(
    found: Binaries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded, "_NAMESPACE", False)
    parent = Path(tempfile.mkdtemp())
    parent.chmod(0o711)
    folder = parent / "pg"
    try:
        for _ in range(2):
            with EmbeddedPostgres(folder, binaries=found, linger_s=0) as postgres:
                assert answers(postgres.dsn)
                assert Path(f"/proc/{status(folder).pid}").stat().st_uid == folder.stat().st_uid
                assert folder.stat().st_uid != 0
                assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(parent.stat().st_mode) == 0o711
        assert parent.stat().st_uid == 0
        reset(folder)
    finally:
        shutdown(folder)
        shutil.rmtree(parent)
