"""Whatever is killed, and whenever: no job is lost, and none ends twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.worker.supervision import (
    FOR_EVER_S,
    PATIENCE_S,
    assert_clean,
    configured,
    gone,
    hold,
    in_state,
    submit,
    until,
)

from timeball.core.records import ScheduleSpec, Standing
from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.worker.child import Load
from timeball.worker.place import BACKOFF_MAX_S, SETTLED_S, Place
from timeball.worker.supervisor import (
    SupervisorConfig,
)

pytestmark = pytest.mark.slow


# At work


def test_jobs_run_and_a_stop_leaves_nothing(
    config: SupervisorConfig, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    supervisor = supervise(configured(config.dsn, folder, children=2))
    for number in range(20):
        submit(store, "note", f'{{"text": "{number}"}}')
    until(lambda: store.counts() == {State.SUCCEEDED: 20}, "all have run")
    pids = [child.pid for child in supervisor.children()]
    assert len(pids) == 2
    supervisor.stop()
    assert supervisor.wait(PATIENCE_S) == 0
    assert all(map(gone, pids))
    assert supervisor.children() == []
    assert store.pulses() == []
    assert sorted(map(int, (folder / "notes").read_text().split())) == list(range(20))
    assert_clean(store, 20)


def test_a_brief_of_a_megabyte_arrives(
    config: SupervisorConfig, store: PostgresStore, supervise: Callable
) -> None:
    long = Load(target="x" * 2**20, loader="app:nothing")
    supervise(replace(config, loads=(*config.loads, long)))
    note = submit(store, "note", '{"text": "long"}')
    until(in_state(store, note, State.SUCCEEDED), "it works")


def test_a_supervisor_beats_for_its_children(
    config: SupervisorConfig, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    supervise(config)
    uuid, _ = hold(store, folder)
    (first,) = store.pulses()
    until(lambda: store.pulses()[0].beat > first.beat + 8, "more than a lease of beats")
    (folder / "go").touch()
    until(in_state(store, uuid, State.SUCCEEDED), "the job has ended")
    assert store.get(uuid).attempts == 1


def test_schedules_fire(
    config: SupervisorConfig, store: PostgresStore, supervise: Callable
) -> None:
    now = store.now()
    spec = ScheduleSpec(
        name="seconds",
        kind="note",
        expression="* * * * * *",
        tz="UTC",
        gap="skip",
        overlap="both",
        args='{"text": "tick"}',
        catchup="all",
    )
    store.declare(spec, Standing(now, now + timedelta(seconds=1)))
    supervise(config)
    until(lambda: store.counts().get(State.SUCCEEDED, 0) >= 2, "two occurrences have run")


# Deaths


def test_a_job_whose_child_is_killed_runs_again_at_once(
    config: SupervisorConfig, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    supervisor = supervise(configured(config.dsn, folder, lease_s=FOR_EVER_S))
    uuid, pid = hold(store, folder)
    assert [child.pid for child in supervisor.children()] == [pid]
    os.kill(pid, signal.SIGKILL)
    (folder / "go").touch()
    until(in_state(store, uuid, State.SUCCEEDED), "the job has ended")
    assert (store.get(uuid).turn, store.get(uuid).crashes) == (2, 1)
    until(lambda: supervisor.children()[:1] and supervisor.children()[0].workers, "a new child")
    assert supervisor.children()[0].pid != pid
    assert_clean(store, 1)


def test_a_death_costs_only_what_had_begun_a_crash(
    config: SupervisorConfig, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    supervise(configured(config.dsn, folder, slots=1, lease_s=FOR_EVER_S))
    held, pid = hold(store, folder)
    others = [submit(store, "note", '{"text": "a"}') for _ in range(5)]
    os.kill(pid, signal.SIGKILL)
    until(lambda: store.get(held).crashes == 1, "the death is on record")
    (folder / "go").touch()
    until(lambda: store.counts() == {State.SUCCEEDED: 6}, "all have ended")
    assert [store.get(uuid).crashes for uuid in (held, *others)] == [1, 0, 0, 0, 0, 0]
    assert_clean(store, 6)


def test_a_job_that_kills_its_worker_is_quarantined_and_its_neighbours_are_unharmed(
    config: SupervisorConfig, store: PostgresStore, supervise: Callable
) -> None:
    supervise(config)
    killer = submit(store, "die", max_crashes=2)
    until(in_state(store, killer, State.FAILED), "it is given up")
    note = submit(store, "note", '{"text": "after"}')
    until(in_state(store, note, State.SUCCEEDED), "the next one runs")
    assert (store.get(killer).reason, store.get(killer).crashes) == ("quarantined", 2)
    assert_clean(store, 2)


def test_what_a_killed_supervisor_had_is_finished_by_another(
    config: SupervisorConfig,
    store: PostgresStore,
    folder: Path,
    launch: Callable,
    supervise: Callable,
) -> None:
    first = launch(config)
    uuid, pid = hold(store, folder)
    first.kill()
    first.wait()
    until(lambda: gone(pid), "the child has died with its supervisor")
    assert store.get(uuid).state is State.RUNNING
    (folder / "go").touch()
    supervise(config)
    until(in_state(store, uuid, State.SUCCEEDED), "another has finished it")
    assert (store.get(uuid).turn, store.get(uuid).crashes) == (2, 1)
    assert_clean(store, 1)


@pytest.mark.parametrize("both", [True, False], ids=["supervisor and child", "child alone"])
def test_a_zombie_changes_nothing_and_is_recorded(
    config: SupervisorConfig,
    store: PostgresStore,
    folder: Path,
    launch: Callable,
    supervise: Callable,
    *,
    both: bool,
) -> None:
    frozen = launch(config)
    uuid, pid = hold(store, folder)
    pids = (frozen.pid, pid) if both else (pid,)
    for each in pids:
        os.kill(each, signal.SIGSTOP)
    (folder / "go").touch()
    supervise(config)
    until(in_state(store, uuid, State.SUCCEEDED), "another has run it")
    before = store.get(uuid)
    for each in pids:
        os.kill(each, signal.SIGCONT)

    def refused() -> list[int]:
        return [row.turn for history in store.histories() for row in history.stale]

    until(refused, "the zombie has spoken")
    assert refused() == [1]
    assert store.get(uuid) == before
    until(lambda: len(store.pulses()) == 2, "it works again, as another worker")
    assert_clean(store, 1)


def test_a_worker_that_was_given_up_registers_anew_and_has_a_beat(
    config: SupervisorConfig, store: PostgresStore, supervise: Callable
) -> None:
    supervisor = supervise(config)
    until(store.pulses, "it has registered")
    (first,) = store.pulses()
    store.expire(first.worker, beat=None, begun=())
    until(lambda: any(pulse.beat > 2 for pulse in store.pulses()), "another id beats")
    (second,) = store.pulses()
    assert second.worker != first.worker
    until(lambda: supervisor.children()[0].workers == {second.worker}, "the old one is forgotten")


def test_a_job_that_ends_its_process_with_the_code_for_another_schema_stops_nobody(
    config: SupervisorConfig, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    with (folder / "app.py").open("a") as file:
        file.write('\n@job(name="six", max_crashes=1)\ndef six():\n    os._exit(6)\n')
    supervisor = supervise(config)
    bad = submit(store, "six", max_crashes=1)
    until(in_state(store, bad, State.FAILED), "it is quarantined")
    note = submit(store, "note", '{"text": "unharmed"}')
    until(in_state(store, note, State.SUCCEEDED), "another child has followed")
    assert supervisor.failure == ""
    assert supervisor.wait(0) is None


# Children that cannot start


def test_code_that_cannot_be_imported_is_tried_three_times_and_told(
    config: SupervisorConfig, folder: Path, launch: Callable
) -> None:
    with (folder / "app.py").open("a") as file:
        file.write("\nraise RuntimeError('no such lighthouse')\n")
    process = launch(config)
    assert process.wait(PATIENCE_S) == 1
    assert "RuntimeError: no such lighthouse" in (folder / "stderr").read_text()
    assert (folder / "loaded").read_text() == "xxx"


def test_a_child_that_cannot_start_later_on_does_not_stop_the_others(
    config: SupervisorConfig, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    supervisor = supervise(config)
    _, pid = hold(store, folder)
    good = (folder / "app.py").read_text()
    (folder / "app.py").write_text(good + "\nraise RuntimeError\n")
    (folder / "go").touch()
    os.kill(pid, signal.SIGKILL)
    until(lambda: len((folder / "loaded").read_text()) > 4, "several could not start")
    (folder / "app.py").write_text(good)
    note = submit(store, "note", '{"text": "mended"}')
    until(in_state(store, note, State.SUCCEEDED), "one could")
    assert supervisor.failure == ""


def test_children_that_do_not_live_long_come_back_ever_more_slowly() -> None:
    place = Place(1)
    waits = []
    for lived_s in (0, 1, 2, 3, 4, 5, 6, 7, SETTLED_S, 0):
        place.vacate(100.0, lived_s)
        waits.append(round(place.next_at - 100.0, 3))
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, BACKOFF_MAX_S, 0.1, 0.2]
