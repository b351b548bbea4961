"""A worker at rest holds little and asks little."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from tests.worker.loop.workshop import Workshop
from tests.worker.supervision import configured, in_state, submit, until

from timeball.core.states import State
from timeball.store.postgres import PostgresStore, connections
from timeball.worker.supervisor import Supervisor, SupervisorConfig

SESSIONS_MAX = 4
"""The beat's, the duties', the loop's and the listener's."""

OURS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'timeball'"


@pytest.mark.slow
def test_a_worker_at_rest_holds_four_sessions(
    config: SupervisorConfig,
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
        supervise(configured(config.dsn, folder))
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
