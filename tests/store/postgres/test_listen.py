"""A listener wakes on a submit, outlives its session, and stops when it is told to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import psycopg
import pytest
from tests.pgbouncer import pgbouncer, program
from tests.proxy import proxied
from tests.store.postgres.sessions import submit, until, worker_of

from timeball.store.postgres import PostgresStore, listen
from timeball.store.postgres.listen import DIRECT

LISTENERS = """SELECT pid FROM pg_stat_activity
WHERE state = 'idle' AND query LIKE '%LISTEN timeball_wake%' AND pid <> pg_backend_pid()"""


@dataclass
class Listener:
    """A listener in a thread of its own, which counts how often it was woken."""

    store: PostgresStore
    queue: str = "default"
    stop: threading.Event = field(default_factory=threading.Event)
    woken: list[None] = field(default_factory=list)

    def __post_init__(self) -> None:
        wake = self.woken.append
        self.thread = threading.Thread(
            target=self.store.listen, args=(lambda: wake(None), self.stop, [self.queue])
        )
        self.thread.start()
        until(lambda: self.woken, "it listens, and has looked once for what came before")

    def end(self) -> None:
        self.stop.set()
        self.thread.join(5)
        assert not self.thread.is_alive()


@pytest.fixture(autouse=True)
def listens_directly(direct: str, pooler: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listen, "TICK_S", 0.01)
    if pooler is not None:
        monkeypatch.setenv(DIRECT, direct)


@pytest.fixture
def listener(store: PostgresStore) -> Iterator[Listener]:
    worker_of(store)
    listener = Listener(store)
    yield listener
    listener.end()


def listeners(direct: str) -> list[int]:
    with psycopg.connect(direct, autocommit=True) as connection:
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


def test_a_listener_sleeps_on_while_other_queues_have_work(
    store: PostgresStore, listener: Listener
) -> None:
    worker_of(store, "other")
    other = Listener(store, "other")
    for _ in range(5):
        before = len(listener.woken)
        submit(store)
        until(lambda before=before: len(listener.woken) > before, "woken")
    assert len(other.woken) == 1
    submit(store, queue="other")
    until(lambda: len(other.woken) > 1, "woken")
    other.end()
    assert len(other.woken) == 2


def test_a_listener_outlives_its_session(
    listener: Listener, direct: str, caplog: pytest.LogCaptureFixture
) -> None:
    until(lambda: listeners(direct), "it is seen")
    (pid,) = listeners(direct)
    before = len(listener.woken)
    with psycopg.connect(direct, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", [pid])
    until(lambda: len(listener.woken) > before, "it listens again")
    assert "polling meanwhile" in caplog.text
    again = len(listener.woken)
    submit(listener.store)
    until(lambda: len(listener.woken) > again, "woken")


def test_a_quiet_session_is_checked_by_a_round_trip(
    store: PostgresStore, direct: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listen, "CHECK_S", 0.02)
    listener = Listener(store)
    pinged = (
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%SELECT 1;%' AND state = 'idle'"
    )
    with psycopg.connect(direct, autocommit=True) as connection:
        until(lambda: connection.execute(pinged).fetchone() != (0,), "checked")
    listener.end()


def test_a_listener_whose_packets_are_swallowed_listens_again(
    store: PostgresStore,
    direct: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """TCP notices nothing: the proxy takes what is sent."""
    monkeypatch.setattr(listen, "CHECK_S", 0.02)
    monkeypatch.setattr(listen, "ANSWER_S", 0.3)
    worker_of(store)
    with proxied(direct) as proxy:
        monkeypatch.setenv(DIRECT, proxy.dsn)
        far = PostgresStore(direct)
        listener = Listener(far)
        proxy.muted = True
        until(lambda: "no answer within 0.3 s" in caplog.text, "it has noticed")
        proxy.muted = False
        proxy.down()  # what was just being opened, and would wait for its timeout
        proxy.up()
        before = len(listener.woken)
        until(lambda: len(listener.woken) > before, "it listens again")
        again = len(listener.woken)
        submit(store)
        until(lambda: len(listener.woken) > again, "woken")
        listener.end()
        far.close()


def test_a_listener_leaves_no_session_behind(listener: Listener, direct: str) -> None:
    until(lambda: listeners(direct), "it is seen")
    listener.end()
    until(lambda: not listeners(direct), "its session is gone")


def test_a_listener_without_a_server_goes_on_until_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv(DIRECT, raising=False)
    store, stop = PostgresStore("host=/nonexistent dbname=none"), threading.Event()
    thread = threading.Thread(target=store.listen, args=(lambda: None, stop))
    thread.start()
    until(lambda: "polling meanwhile" in caplog.text, "it has tried")
    stop.set()
    thread.join(5)
    assert not thread.is_alive()


def test_behind_a_pooling_proxy_a_listener_says_that_it_polls(
    direct: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its sessions are nobody's: LISTEN would succeed, and bring nothing."""
    if program() is None:
        pytest.skip("pgbouncer is not installed")
    monkeypatch.delenv(DIRECT, raising=False)
    with pgbouncer(direct) as pooled:
        store, stop = PostgresStore(pooled), threading.Event()
        woken: list[None] = []
        thread = threading.Thread(target=store.listen, args=(lambda: woken.append(None), stop))
        thread.start()
        until(lambda: "polling: a pooling proxy" in caplog.text, "it has seen the proxy")
        assert DIRECT in caplog.text
        assert not listeners(direct)
        stop.set()
        thread.join(5)
        assert not thread.is_alive()
        assert woken == []
        store.close()
