"""Whatever is killed, and whenever: no job is lost, none ends twice, nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import msgspec
import pytest

from timeball.core.audit import audit
from timeball.core.records import JobSpec, ScheduleSpec
from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.embedded import EmbeddedPostgres, shutdown
from timeball.store.postgres.migrate import migrate
from timeball.worker.child import Load
from timeball.worker.loop import WorkerConfig
from timeball.worker.supervisor import (
    BACKOFF_MAX_S,
    FAREWELL_S,
    GIVE_BACK_S,
    SETTLED_S,
    Supervisor,
    SupervisorConfig,
    _Place,
)

pytestmark = pytest.mark.slow

PATIENCE_S = 30.0
LEASE_S = 2.0
FOR_EVER_S = 3600.0
SPARE_S = 4.0
"""What a loaded machine may take on top."""

APP = """
import os, time
from pathlib import Path
from timeball.action.registry import job

HERE = Path(__file__).parent
with (HERE / "loaded").open("a") as file:
    file.write("x")

@job(name="note")
def note(text):
    with (HERE / "notes").open("a") as file:
        file.write(f"{text}\\n")

@job(name="hold")
def hold(number):
    (HERE / f"held-{number}.new").write_text(str(os.getpid()))
    (HERE / f"held-{number}.new").rename(HERE / f"held-{number}")
    while not (HERE / "go").exists():
        time.sleep(0.01)

@job(name="die", max_crashes=2)
def die():
    os._exit(9)
"""

MAIN = """
import sys
import msgspec
from timeball.worker.supervisor import Supervisor, SupervisorConfig
sys.exit(Supervisor(msgspec.json.decode(sys.stdin.buffer.read(), type=SupervisorConfig)).run())
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


@pytest.fixture
def config(dsn: str, folder: Path) -> SupervisorConfig:
    return configured(dsn, folder)


def configured(
    dsn: str, folder: Path, *, children: int = 1, slots: int = 2, **durations: float
) -> SupervisorConfig:
    working = {"lease_s": LEASE_S, "poll_s": 0.1, "drain_s": PATIENCE_S, **durations}
    return SupervisorConfig(
        dsn=dsn,
        loads=(Load(target=str(folder / "app.py")),),
        worker=WorkerConfig(name="test", slots=slots, **working),
        children=children,
    )


@pytest.fixture
def supervise() -> Iterator[Callable[[SupervisorConfig], Supervisor]]:
    """Starts a supervisor within this process."""
    started: list[Supervisor] = []

    def start(config: SupervisorConfig) -> Supervisor:
        supervisor = Supervisor(config)
        supervisor.start()
        started.append(supervisor)
        return supervisor

    yield start
    for supervisor in started:
        supervisor.stop(now=True)
        assert supervisor.wait(PATIENCE_S) is not None


@pytest.fixture
def launch(folder: Path) -> Iterator[Callable[[SupervisorConfig], subprocess.Popen[bytes]]]:
    """Starts a supervisor as a process of its own, its stderr in a file."""
    launched: list[subprocess.Popen[bytes]] = []

    def start(config: SupervisorConfig) -> subprocess.Popen[bytes]:
        with (folder / "stderr").open("wb") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-c", MAIN], stdin=subprocess.PIPE, stderr=stderr
            )
        assert process.stdin is not None
        with process.stdin as stdin:
            stdin.write(msgspec.json.encode(asdict(config)))
        launched.append(process)
        return process

    yield start
    for process in launched:
        process.kill()
        process.wait()


def until(condition: Callable[[], object], what: str) -> None:
    """Wait until something holds; fail when patience is at its end."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"still not: {what}"
        time.sleep(0.01)


def submit(store: PostgresStore, kind: str, args: str = "{}", **fields: int) -> UUID:
    spec = JobSpec(uuid=uuid4(), kind=kind, args=args, **fields)  # type: ignore[arg-type]  # ints
    store.submit([spec])
    return spec.uuid


def hold(store: PostgresStore, folder: Path, number: int = 1) -> tuple[UUID, int]:
    """A job that has begun and goes on until `go` is there; and the process that it is in."""
    uuid = submit(store, "hold", f'{{"number": {number}}}')
    until((folder / f"held-{number}").exists, "the job has begun")
    return uuid, int((folder / f"held-{number}").read_text())


def in_state(store: PostgresStore, uuid: UUID, state: State) -> Callable[[], bool]:
    return lambda: store.get(uuid).state is state


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody has waited for yet has."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return stat.rpartition(")")[2].split()[0] in "ZX"


def assert_clean(store: PostgresStore, accepted: int, *, quiesced: bool = True) -> None:
    report = audit(store.histories(), quiesced=quiesced, accepted=accepted)
    assert report.violations == ()


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
    store.declare(spec, cursor=now, next_at=now + timedelta(seconds=1))
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


def test_a_zombie_changes_nothing_and_is_recorded(
    config: SupervisorConfig,
    store: PostgresStore,
    folder: Path,
    launch: Callable,
    supervise: Callable,
) -> None:
    frozen = launch(config)
    uuid, pid = hold(store, folder)
    pids = (frozen.pid, pid)
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


# Stopping


def test_sigterm_lets_what_has_begun_end_and_begins_nothing(
    config: SupervisorConfig, store: PostgresStore, folder: Path, launch: Callable
) -> None:
    process = launch(config)
    uuid, pid = hold(store, folder)
    process.send_signal(signal.SIGTERM)
    late = submit(store, "note", '{"text": "late"}')
    (beat,) = store.pulses()
    until(lambda: store.pulses()[0].beat > beat.beat + 3, "it beats while it drains")
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
    assert (store.get(uuid).state, store.get(uuid).failures) == (State.PENDING, 0)
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
    assert (store.get(uuid).state, store.get(uuid).failures) == (State.PENDING, 0)


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
    place = _Place(1)
    waits = []
    for lived_s in (0, 1, 2, 3, 4, 5, 6, 7, SETTLED_S, 0):
        place.vacate(100.0, lived_s)
        waits.append(round(place.next_at - 100.0, 3))
    assert waits == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, BACKOFF_MAX_S, 0.1, 0.2]
