"""A listener wakes on a submit, outlives its session, and stops when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import psycopg
import pytest
from tests.store.postgres.sessions import submit, until

from timeball.store.postgres import PostgresStore, listen

LISTENERS = """SELECT pid FROM pg_stat_activity
WHERE state = 'idle' AND query LIKE '%LISTEN timeball_wake%' AND pid <> pg_backend_pid()"""


@dataclass
class Listener:
    """A listener in a thread of its own, which counts how often it was woken."""

    store: PostgresStore
    stop: threading.Event = field(default_factory=threading.Event)
    woken: list[None] = field(default_factory=list)

    def __post_init__(self) -> None:
        wake = self.woken.append
        self.thread = threading.Thread(
            target=self.store.listen, args=(lambda: wake(None), self.stop)
        )
        self.thread.start()
        until(lambda: self.woken, "it listens, and has looked once for what came before")

    def end(self) -> None:
        self.stop.set()
        self.thread.join(5)
        assert not self.thread.is_alive()


@pytest.fixture
def listener(store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[Listener]:
    monkeypatch.setattr(listen, "TICK_S", 0.01)
    listener = Listener(store)
    yield listener
    listener.end()


def listeners(dsn: str) -> list[int]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        return [row[0] for row in connection.execute(LISTENERS)]


def test_a_submit_wakes(listener: Listener) -> None:
    before = len(listener.woken)
    submit(listener.store)
    until(lambda: len(listener.woken) > before, "woken")


def test_a_job_of_the_future_does_not_wake(listener: Listener) -> None:
    before = len(listener.woken)
    submit(listener.store, delay_s=60.0)
    listener.end()
    assert len(listener.woken) == before


def test_a_listener_outlives_its_session(
    listener: Listener, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    until(lambda: listeners(dsn), "it is seen")
    (pid,) = listeners(dsn)
    before = len(listener.woken)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", [pid])
    until(lambda: len(listener.woken) > before, "it listens again")
    assert "polling meanwhile" in caplog.text
    again = len(listener.woken)
    submit(listener.store)
    until(lambda: len(listener.woken) > again, "woken")


def test_a_quiet_session_is_checked_by_a_round_trip(
    store: PostgresStore, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen, "TICK_S", 0.01)
    monkeypatch.setattr(listen, "CHECK_S", 0.02)
    listener = Listener(store)
    pinged = (
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%SELECT 1;%' AND state = 'idle'"
    )
    with psycopg.connect(dsn, autocommit=True) as connection:
        until(lambda: connection.execute(pinged).fetchone() != (0,), "checked")
    listener.end()


def test_a_listener_leaves_no_session_behind(listener: Listener, dsn: str) -> None:
    until(lambda: listeners(dsn), "it is seen")
    listener.end()
    until(lambda: not listeners(dsn), "its session is gone")


def test_a_listener_without_a_server_goes_on_until_it_is_stopped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, stop = PostgresStore("host=/nonexistent dbname=none"), threading.Event()
    thread = threading.Thread(target=store.listen, args=(lambda: None, stop))
    thread.start()
    until(lambda: "polling meanwhile" in caplog.text, "it has tried")
    stop.set()
    thread.join(5)
    assert not thread.is_alive()
