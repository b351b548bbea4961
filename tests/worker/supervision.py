"""What the tests of supervisors share: an application, and the phrases to watch it with."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from uuid import UUID, uuid4

from timeball.core.audit import audit
from timeball.core.records import JobSpec
from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.worker.child import Load
from timeball.worker.config import WorkerConfig
from timeball.worker.supervisor import SupervisorConfig

PATIENCE_S = 30.0
LEASE_S = 2.0
FOR_EVER_S = 3600.0
SPARE_S = 10.0
"""What a loaded machine may take on top."""

APP = """
import os, time
from pathlib import Path
from timeball.action.registry import Registry, job

HERE = Path(__file__).parent
with (HERE / "loaded").open("a") as file:
    file.write("x")

def nothing(target):
    return Registry()

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


def configured(
    dsn: str,
    folder: Path,
    *,
    children: int = 1,
    slots: int = 2,
    metrics: tuple[str, int] | None = None,
    **durations: float,
) -> SupervisorConfig:
    working = {"lease_s": LEASE_S, "poll_s": 0.1, "drain_s": PATIENCE_S, **durations}
    return SupervisorConfig(
        dsn=dsn,
        loads=(Load(target=str(folder / "app.py")),),
        worker=WorkerConfig(name="test", slots=slots, **working),
        children=children,
        metrics=metrics,
    )


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


def given_back(store: PostgresStore, uuid: UUID) -> bool:
    """Whether a job waits for its next turn, and the last one has cost it nothing."""
    job = store.get(uuid)
    return (job.state, job.failures, job.crashes) == (State.PENDING, 0, 0)


def assert_clean(store: PostgresStore, accepted: int, *, quiesced: bool = True) -> None:
    report = audit(store.histories(), quiesced=quiesced, accepted=accepted)
    assert report.violations == (), [str(v) for v in report.violations]
