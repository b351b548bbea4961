"""Jobs that nothing but a kill can end: it takes them with all they started, and nobody else."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from tests.e2e.programs import Place, Program, alive, until
from tests.e2e.soundness import assert_sound

from timeball.client import Client
from timeball.core.records import Job
from timeball.core.states import State
from timeball.store.postgres import PostgresStore

pytestmark = pytest.mark.slow

APP = r"""
import atexit, ctypes, os, re, signal, time
from pathlib import Path
import timeball as tb

HERE = Path(__file__).parent

def note(name, pid=0):
    (HERE / f"{name}.new").write_text(str(pid or os.getpid()))
    (HERE / f"{name}.new").rename(HERE / name)

def await_go():
    while not (HERE / "go").exists():
        time.sleep(0.01)

@tb.job(name="steady-thread")
def steady_thread():
    note("steady-thread")
    await_go()

@tb.job(name="steady-apart", runner="process")
def steady_apart():
    note("steady-apart")
    await_go()

@tb.job(name="good", runner="process")
def good(number: int, ctx: tb.Context):
    return [number, os.getpid(), ctx.attempt, ctx.key]

@tb.job(name="sleep", runner="process", timeout_s=2)
def sleep():
    note("begun")
    time.sleep(3600)

@tb.job(name="regex", runner="process", timeout_s=2)
def regex():
    note("begun")
    re.match(r"(a+)+$", "a" * 64 + "b")

@tb.job(name="fork", runner="process", timeout_s=2)
def fork():
    note("begun")
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            note("grandchild")
        time.sleep(3600)
    while not (HERE / "grandchild").exists():
        time.sleep(0.01)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(3600)

@tb.job(name="endless", runner="process")
def endless():
    note("begun")
    time.sleep(3600)

@tb.job(name="endless-async")
async def endless_async():
    import asyncio
    note("begun")
    await asyncio.sleep(3600)

@tb.job(name="asks")
def asks(ctx: tb.Context):
    note("begun")
    while not ctx.cancelled():
        time.sleep(0.01)
    raise tb.PermanentError("asked to stop")

@tb.job(name="exit", runner="process")
def exit():
    os._exit(9)

@tb.job(name="segfault", runner="process")
def segfault():
    ctypes.string_at(0)

def hold_gil():
    note("begun")
    ctypes.PyDLL(None).sleep(4)

@tb.job(name="gil-thread")
def gil_thread():
    hold_gil()

@tb.job(name="gil-apart", runner="process")
def gil_apart():
    hold_gil()

@tb.job(name="plain")
def plain():
    atexit.register(note, "left")
    return os.getpid()
"""
GRACE = ("--grace", "0.5s")


class Ring:
    """One database, one worker with three slots, and two steady jobs in two of them."""

    def __init__(self, place: Place, store: PostgresStore) -> None:
        self.place, self.store, self.client = place, store, Client(store)
        place.write("app.py", APP)
        self._steady: list[UUID] = []

    def worker(self, *words: str) -> Program:
        return self.place.start("worker", "-a", "app.py", "--poll", "0.1s", *GRACE, *words)

    def pid(self, name: str) -> int:
        path = self.place.work / name
        until(path.exists, f"{name} has begun")
        return int(path.read_text())

    def hold_two(self) -> None:
        """Have one job in a thread and one apart that go on until `assert_untouched`."""
        for kind in ("steady-thread", "steady-apart"):
            self._steady.append(self.client.submit(kind).uuid)
            self.pid(kind)

    def ended(self, *uuids: UUID) -> list[Job]:
        return self.client.wait(uuids, 60)

    def assert_untouched(self) -> None:
        """The steady jobs run, and end with their first attempt; and the third slot is of use."""
        assert {self.client.get(uuid).state for uuid in self._steady} == {State.RUNNING}
        goods = [self.client.submit("good", number=n).uuid for n in range(3)]
        assert [job.result[0] for job in self.ended(*goods)] == [0, 1, 2]
        self.place.write("go", "")
        jobs = self.ended(*self._steady)
        assert {(job.state, job.attempts, job.turn) for job in jobs} == {(State.SUCCEEDED, 1, 1)}


@pytest.fixture
def ring(
    dsn: str, make_place: Callable[[str], Place], open_store: Callable[[str], PostgresStore]
) -> Ring:
    return Ring(make_place(dsn), open_store(dsn))


@pytest.mark.parametrize("kind", ["sleep", "regex", "fork"])
def test_what_never_ends_is_killed_with_its_tree_once_its_time_is_up(ring: Ring, kind: str) -> None:
    worker = ring.worker("--threads", "3")
    ring.hold_two()
    uuid = ring.client.submit(kind, max_retries=0).uuid
    pids = [ring.pid(name) for name in ("begun", *(["grandchild"] if kind == "fork" else []))]
    (job,) = ring.ended(uuid)
    assert (job.state, job.reason, job.error_type) == (State.FAILED, "timeout", "TimeoutError")
    assert (job.attempts, job.crashes) == (1, 0)
    assert not any(alive(pid) for pid in pids), "it is on record as ended once nothing is left"
    ring.assert_untouched()
    assert worker.stop() == 0
    assert "WARNING child" not in worker.written
    assert_sound(ring.store)


@pytest.mark.parametrize("kind", ["exit", "segfault"])
def test_a_process_that_dies_costs_its_own_attempt_and_nobody_elses(ring: Ring, kind: str) -> None:
    worker = ring.worker("--threads", "3")
    ring.hold_two()
    (job,) = ring.ended(ring.client.submit(kind).uuid)
    assert (job.state, job.reason, job.error_type) == (State.FAILED, "quarantined", "Lost")
    assert (job.attempts, job.crashes, job.failures) == (3, 3, 0)
    ring.assert_untouched()
    assert worker.stop() == 0
    assert "WARNING child" not in worker.written
    assert_sound(ring.store)


@pytest.mark.parametrize("kind", ["endless", "endless-async", "asks"])
def test_a_cancel_reaches_what_runs(ring: Ring, kind: str) -> None:
    worker = ring.worker("--threads", "3")
    ring.hold_two()
    uuid = ring.client.submit(kind).uuid
    pid = ring.pid("begun")
    ring.place.said("jobs", "cancel", str(uuid))
    (job,) = ring.ended(uuid)
    assert job.attempts == 1
    if kind == "asks":
        assert (job.state, job.reason) == (State.FAILED, "permanent")
    else:
        assert (job.state, job.reason, job.turn) == (State.CANCELLED, "requested", 1)
        assert alive(pid) == (kind == "endless-async")
    ring.assert_untouched()
    assert worker.stop() == 0
    assert_sound(ring.store)


def test_a_worker_that_stops_kills_what_runs_apart_and_gives_it_back(ring: Ring) -> None:
    worker = ring.worker("--threads", "3", "--drain", "0s")
    uuid = ring.client.submit("endless").uuid
    pid = ring.pid("begun")
    assert worker.stop() == 0
    job = ring.client.get(uuid)
    assert (job.state, job.crashes, job.failures) == (State.PENDING, 0, 0)
    assert not alive(pid)
    assert ring.place.processes() == {}


@pytest.mark.parametrize("whom", ["worker", "supervisor"])
def test_nothing_is_left_of_a_worker_that_is_killed(ring: Ring, whom: str) -> None:
    worker = ring.worker("--processes", "3", "--lease", "1s")
    uuid = ring.client.submit("steady-thread").uuid  # its runner says nothing: apart, here
    pid = ring.pid("steady-thread")
    minder = parent_of(pid)
    child = parent_of(minder)
    assert parent_of(child) == worker.pid
    if whom == "supervisor":
        worker.kill()
    else:
        os.kill(child, signal.SIGKILL)
    until(lambda: not any(map(alive, (pid, minder, child))), "all of them have ended")
    if whom == "supervisor":
        until(lambda: not ring.place.processes(), "nothing is left")
        worker = ring.worker("--processes", "3", "--lease", "1s")
    ring.place.write("go", "")
    (job,) = ring.ended(uuid)
    assert (job.state, job.attempts, job.crashes) == (State.SUCCEEDED, 2, 1)
    assert worker.stop() == 0
    assert_sound(ring.store)


def test_a_worker_of_processes_runs_functions_apart_and_their_context_holds(ring: Ring) -> None:
    worker = ring.worker("--processes", "2")
    jobs = ring.ended(ring.client.submit("plain").uuid, ring.client.submit("good", number=7).uuid)
    plain, good = jobs
    assert parent_of(parent_of(plain.result)) != worker.pid
    assert good.result == [7, good.result[1], 1, str(good.uuid)]
    assert worker.stop() == 0
    assert ring.pid("left") == plain.result, "one that is idle has time to leave"
    assert ring.place.processes() == {}


@pytest.mark.parametrize("kind", ["gil-thread", "gil-apart"])
def test_a_job_that_holds_the_interpreter_for_three_leases_has_one_attempt(
    ring: Ring, kind: str
) -> None:
    workers = [ring.worker("--threads", "2", "--lease", "1s") for _ in range(2)]
    (job,) = ring.ended(ring.client.submit(kind).uuid)
    assert (job.state, job.attempts, job.turn, job.crashes) == (State.SUCCEEDED, 1, 1, 0)
    assert job.ended_at is not None
    assert job.began_at is not None
    assert (job.ended_at - job.began_at).total_seconds() > 3
    assert [worker.stop() for worker in workers] == [0, 0]
    assert_sound(ring.store)


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
