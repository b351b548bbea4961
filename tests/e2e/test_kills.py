"""A thousand jobs, and in the middle of them something is killed: nothing lost, nothing twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tests.e2e.programs import Place, alive, until
from tests.e2e.workload import HOLDS, Work

from timeball.store.postgres import PostgresStore
from timeball.store.postgres.embedded import EmbeddedPostgres, status
from timeball.store.postgres.migrate import migrate

pytestmark = pytest.mark.slow

Opener = Callable[[str], PostgresStore]


class Postmaster:
    """An embedded server that may be killed."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self._folder = folder
        self.dsn = dsn

    def kill(self) -> None:
        pid = status(self._folder).pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid), "it has died")

    def answers(self) -> bool:
        try:
            psycopg.connect(self.dsn).close()
        except psycopg.OperationalError:
            return False
        return True


@pytest.fixture
def postmaster(
    tmp_path_factory: pytest.TempPathFactory, open_store: Opener
) -> Iterator[Postmaster]:
    folder: Path = tmp_path_factory.mktemp("pg")
    with EmbeddedPostgres(folder, linger_s=0.0) as server:
        migrate(open_store(server.dsn).connections)
        yield Postmaster(folder, server.dsn)


def begun(make_place: Callable[[str], Place], open_store: Opener, dsn: str) -> Work:
    return Work(make_place(dsn), open_store(dsn))


def test_workers_that_are_killed_lose_nothing(
    dsn: str, make_place: Callable[[str], Place], open_store: Opener
) -> None:
    work = begun(make_place, open_store, dsn)
    worker = work.worker()
    for number in HOLDS:
        child = work.held(number)
        os.kill(child, signal.SIGKILL)
        work.go(number)
    work.finish()
    assert worker.stop() == 0
    work.assert_sound()
    assert work.lost_attempts() >= len(HOLDS)


def test_supervisors_that_are_killed_are_followed_by_others(
    dsn: str, make_place: Callable[[str], Place], open_store: Opener
) -> None:
    work = begun(make_place, open_store, dsn)
    worker = work.worker()
    for number in HOLDS[:2]:
        child = work.held(number)
        worker.kill()
        until(lambda child=child: not alive(child), "its child has died with it")
        work.go(number)
        worker = work.worker()
    for number in HOLDS[2:]:
        work.go(number)
    work.finish()
    assert worker.stop() == 0
    work.assert_sound()
    assert work.lost_attempts() >= 2


def test_a_database_that_is_killed_under_load_forgets_nothing(
    postmaster: Postmaster, make_place: Callable[[str], Place], open_store: Opener
) -> None:
    work = begun(make_place, open_store, postmaster.dsn)
    worker = work.worker()
    for number in HOLDS:
        child = work.held(number)
        if number in HOLDS[1:3]:
            postmaster.kill()
        work.go(number)
        assert alive(child)
    work.finish()
    assert worker.stop() == 0
    work.assert_sound()


def test_all_of_them_killed_at_once_lose_nothing(
    postmaster: Postmaster, make_place: Callable[[str], Place], open_store: Opener
) -> None:
    work = begun(make_place, open_store, postmaster.dsn)
    workers = [work.worker(), work.worker()]
    os.kill(work.held(HOLDS[0]), signal.SIGKILL)
    work.go(HOLDS[0])
    child = work.held(HOLDS[1])
    postmaster.kill()
    os.kill(child, signal.SIGKILL)
    for worker in workers:
        worker.kill()
    for number in HOLDS[1:]:
        work.go(number)
    until(postmaster.answers, "the database is back")
    worker = work.worker()
    work.finish()
    assert worker.stop() == 0
    work.assert_sound()
    assert work.lost_attempts() >= 2
