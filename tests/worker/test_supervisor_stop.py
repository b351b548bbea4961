"""Stopping: what has begun ends or is given back, in time, and nothing is left behind."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.proxy import proxied
from tests.worker.supervision import (
    FOR_EVER_S,
    PATIENCE_S,
    SPARE_S,
    assert_clean,
    configured,
    given_back,
    gone,
    hold,
    in_state,
    submit,
    until,
)

from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.embedded import EmbeddedPostgres, shutdown
from timeball.store.postgres.migrate import migrate
from timeball.worker.supervisor import (
    FAREWELL_S,
    GIVE_BACK_S,
    SupervisorConfig,
)

pytestmark = pytest.mark.slow


def beats(store: PostgresStore, number: int) -> None:
    """Wait until the one worker has beaten so often since."""
    (before,) = store.pulses()
    until(lambda: store.pulses()[0].beat > before.beat + number, "it beats while it drains")


def test_sigterm_lets_what_has_begun_end_and_begins_nothing(
    config: SupervisorConfig, store: PostgresStore, folder: Path, launch: Callable
) -> None:
    process = launch(config)
    uuid, pid = hold(store, folder)
    process.send_signal(signal.SIGTERM)
    beats(store, 3)  # by then its child has heard of it
    late = submit(store, "note", '{"text": "late"}')
    beats(store, 3)
    assert process.poll() is None
    assert store.get(uuid).state is State.RUNNING
    (folder / "go").touch()
    assert process.wait(PATIENCE_S) == 0
    assert gone(pid)
    assert (store.get(uuid).state, store.get(uuid).turn) == (State.SUCCEEDED, 1)
    assert (store.get(late).state, store.get(late).attempts) == (State.PENDING, 0)
    assert store.pulses() == []


def test_a_child_that_is_told_to_end_by_somebody_else_drains_and_is_replaced(
    config: SupervisorConfig, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    supervisor = supervise(config)
    uuid, pid = hold(store, folder)
    os.kill(pid, signal.SIGTERM)
    (folder / "go").touch()
    until(lambda: gone(pid), "it has ended")
    note = submit(store, "note", '{"text": "next"}')
    until(in_state(store, note, State.SUCCEEDED), "another one works")
    assert (store.get(uuid).state, store.get(uuid).turn) == (State.SUCCEEDED, 1)
    assert supervisor.children()[0].pid != pid


def test_ctrl_c_is_for_the_supervisor_alone(
    config: SupervisorConfig, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    supervise(config)
    uuid, pid = hold(store, folder)
    assert os.getpgid(pid) != os.getpgid(0)
    os.kill(pid, signal.SIGINT)
    (folder / "go").touch()
    until(in_state(store, uuid, State.SUCCEEDED), "the job has ended")
    note = submit(store, "note", '{"text": "next"}')
    until(in_state(store, note, State.SUCCEEDED), "it works on")
    assert not gone(pid)


def test_a_second_signal_gives_back_what_has_not_ended(
    config: SupervisorConfig, store: PostgresStore, folder: Path, launch: Callable
) -> None:
    process = launch(config)
    uuid, pid = hold(store, folder)
    process.send_signal(signal.SIGTERM)
    submit(store, "note", '{"text": "late"}')
    (beat,) = store.pulses()
    until(lambda: store.pulses()[0].beat > beat.beat + 3, "it drains")
    process.send_signal(signal.SIGTERM)
    assert process.wait(GIVE_BACK_S + FAREWELL_S + SPARE_S) == 0
    assert gone(pid)
    assert given_back(store, uuid)
    assert_clean(store, 2, quiesced=False)


def test_a_child_that_will_not_stop_is_killed(
    config: SupervisorConfig, store: PostgresStore, folder: Path, launch: Callable
) -> None:
    process = launch(configured(config.dsn, folder, drain_s=0.2))
    uuid, pid = hold(store, folder)
    os.kill(pid, signal.SIGSTOP)
    process.send_signal(signal.SIGTERM)
    assert process.wait(0.2 + GIVE_BACK_S + FAREWELL_S + SPARE_S) == 0
    assert gone(pid)
    assert (store.get(uuid).state, store.get(uuid).crashes) == (State.PENDING, 1)


def test_draining_ends_when_its_time_is_up(
    config: SupervisorConfig, store: PostgresStore, folder: Path, launch: Callable
) -> None:
    process = launch(configured(config.dsn, folder, drain_s=0.5))
    uuid, pid = hold(store, folder)
    process.send_signal(signal.SIGTERM)
    assert process.wait(0.5 + GIVE_BACK_S + FAREWELL_S + SPARE_S) == 0
    assert gone(pid)
    assert given_back(store, uuid)


def test_signals_end_it_in_time_also_while_answers_are_swallowed(
    direct: str, store: PostgresStore, folder: Path, launch: Callable
) -> None:
    """The loop waits for an answer that never comes, for two minutes if it is let."""
    with proxied(direct) as way:
        process = launch(configured(way.dsn, folder, drain_s=FOR_EVER_S))
        _, pid = hold(store, folder)
        way.muted, asked = True, way.asked
        until(lambda: way.asked > asked + 5, "all wait for an answer")
        process.send_signal(signal.SIGTERM)
        until(lambda: "once more gives it back" in (folder / "stderr").read_text(), "it drains")
        process.send_signal(signal.SIGTERM)
        assert process.wait(GIVE_BACK_S + FAREWELL_S + SPARE_S) == 75
        assert gone(pid)


def test_without_its_database_it_still_ends_in_time_and_says_that_something_is_left(
    folder: Path, launch: Callable
) -> None:
    with EmbeddedPostgres(folder / "data", linger_s=0.0) as embedded:
        connections = Connections(embedded.dsn)
        migrate(connections)
        connections.close()
        store = PostgresStore(embedded.dsn)
        process = launch(configured(embedded.dsn, folder, drain_s=1.0))
        hold(store, folder)
        store.close()
        shutdown(folder / "data")
        process.send_signal(signal.SIGTERM)
        assert process.wait(1.0 + GIVE_BACK_S + FAREWELL_S + SPARE_S) == 75
