"""A worker at rest holds little and asks little."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.proxy import proxied
from tests.worker.loop.workshop import Workshop
from tests.worker.supervision import configured, in_state, submit, until

from timeball.core.states import State
from timeball.store.postgres import PostgresStore, connections
from timeball.worker.supervisor import Supervisor, SupervisorConfig

SESSIONS_MAX = 4
"""The beat's, the duties', the loop's and the listener's."""

REST_S, ASKS_PER_S = 4.0, 20

OURS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'timeball'"


@pytest.mark.slow
def test_a_worker_at_rest_holds_four_sessions(
    store: PostgresStore,
    direct: str,
    folder: Path,
    supervise: Callable[[SupervisorConfig], Supervisor],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "SPARE_S", 0.0)
    with psycopg.connect(direct, autocommit=True) as watcher:
        store.pulses()
        before = {row[0] for row in watcher.execute(OURS)}
        supervise(configured(direct, folder))
        note = submit(store, "note", '{"text": "next"}')
        until(in_state(store, note, State.SUCCEEDED), "it works")
        (pulse,) = store.pulses()
        until(lambda: store.pulses()[0].beat > pulse.beat + 2, "its duties have begun")

        def sessions() -> set[int]:
            return {row[0] for row in watcher.execute(OURS)} - before

        until(lambda: len(sessions()) == SESSIONS_MAX, "it holds four")


def test_the_loop_of_a_worker_at_rest_only_promotes_and_claims() -> None:
    shop = Workshop()
    with shop.at_work(poll_s=0.01):
        shop.store.until(lambda: shop.store.calls["claim"] > 20)
        calls = shop.store.calls.copy()
    assert calls.keys() == {"register", "promote", "claim"}
    assert calls["register"] == 1
    assert calls["promote"] <= 2 * calls["claim"] + 2


@pytest.mark.slow
def test_a_worker_at_rest_asks_little(
    direct: str, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    """Twenty messages a second at most, all its threads together; a busy machine sends fewer."""
    with proxied(direct) as way:
        supervise(configured(way.dsn, folder, lease_s=30.0, poll_s=1.0))
        until(lambda: list(store.pulses()), "it is there")
        note = submit(store, "note", '{"text": "next"}')
        until(in_state(store, note, State.SUCCEEDED), "it works")
        asked, begun_s = way.asked, time.monotonic()
        until(lambda: time.monotonic() > begun_s + REST_S, "it has rested")
        assert way.asked - asked <= ASKS_PER_S * (time.monotonic() - begun_s) + ASKS_PER_S
