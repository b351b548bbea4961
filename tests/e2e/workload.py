"""A thousand jobs of all sorts, each of which leaves its mark in a file beside the ledger."""

from __future__ import annotations

from tests.e2e.programs import Place, Program, until
from tests.e2e.soundness import assert_agrees, assert_sound

from timeball.action.job_specs import job_spec
from timeball.client import Client
from timeball.core.audit import Report
from timeball.core.states import TERMINAL, Ending, State
from timeball.errors import StoreUnavailable
from timeball.store.postgres import PostgresStore

JOBS = 1_000
HOLDS = (150, 400, 650, 850)
"""Where in the order those jobs stand that wait for the test, so that it strikes in the middle."""

# A line per attempt, written in one piece: by whom does not matter to the file.
APP = """
import asyncio, os, time
from pathlib import Path
import timeball as tb
from timeball.action.command import Command
from timeball.action.command_kind import command_kind
from timeball.action.registry import DEFAULT

HERE = Path(__file__).parent
EFFECTS = os.open(HERE / "effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def effect(context):
    os.write(EFFECTS, f"{context.id} {context.turn}\\n".encode())

@tb.job(name="thread", max_crashes=50)
def thread(context: tb.Context):
    time.sleep(0.005)
    effect(context)
    time.sleep(0.005)

@tb.job(name="async", max_crashes=50)
async def on_loop(context: tb.Context):
    await asyncio.sleep(0.005)
    effect(context)
    await asyncio.sleep(0.005)

@tb.job(name="flaky", retry=tb.Retry(3, base_s=0.05, cap_s=0.2), max_crashes=50)
async def flaky(context: tb.Context):
    effect(context)
    if context.attempt == 1:
        raise ConnectionError("the first time it fails")

@tb.job(name="hopeless", max_crashes=50)
def hopeless(context: tb.Context):
    effect(context)
    raise tb.PermanentError("always")

@tb.job(name="hold", max_crashes=50)
def hold(number: int, context: tb.Context):
    effect(context)
    (HERE / f"held-{number}.new").write_text(str(os.getpid()))
    (HERE / f"held-{number}.new").rename(HERE / f"held-{number}")
    while not (HERE / f"go-{number}").exists():
        time.sleep(0.01)

DEFAULT.add(command_kind("command", Command(shell_text=f'''
echo "$TIMEBALL_JOB_ID" >> {HERE}/effects
''')))
DEFAULT.add(command_kind("flaky-command", Command(shell_text=f'''
echo "$TIMEBALL_JOB_ID" >> {HERE}/effects
test $TIMEBALL_ATTEMPT -gt 1
'''), retry=tb.Retry(3, base_s=0.05, cap_s=0.2)))
"""


def kind_at(index: int) -> str:
    """Which kind stands there in the order of the jobs."""
    for every, rest, kind in (
        *((100, 7, "hopeless"), (10, 3, "flaky"), (20, 5, "command"), (50, 11, "flaky-command")),
        (2, 0, "async"),
    ):
        if index % every == rest:
            return kind
    return "thread"


class Work:
    """The jobs in one database, the workers that are started for them, and what became of both."""

    def __init__(self, place: Place, store: PostgresStore) -> None:
        self.place, self.store = place, store
        self._client = Client(store)
        place.write("app.py", APP)
        specs = [
            job_spec("hold", {"args": {"number": index}, "max_crashes": 50})
            if index in HOLDS
            else job_spec(kind_at(index), {"max_crashes": 50})
            for index in range(JOBS)
        ]
        self.hopeless = sum(spec.kind == "hopeless" for spec in specs)
        self._client.submit_specs(specs)

    def worker(self) -> Program:
        """Start two more processes that work."""
        return self.place.start(
            *("worker", "-a", "app.py", "--threads", "4", "--children", "2"),
            *("--lease", "2s", "--poll", "0.2s", "--drain", "30s"),
        )

    def held(self, number: int) -> int:
        """The process in which that job waits, once it does."""
        until((self.place.work / f"held-{number}").exists, f"job {number} has begun")
        return int((self.place.work / f"held-{number}").read_text())

    def go(self, number: int) -> None:
        (self.place.work / f"go-{number}").touch()

    def finish(self) -> None:
        """Wait until every job has ended, whatever becomes of the database meanwhile."""

        def done() -> bool:
            try:
                counts = self._client.counts()
            except StoreUnavailable:
                return False
            return sum(counts[state] for state in TERMINAL) == JOBS

        until(done, "every job has ended")

    def lost_attempts(self) -> int:
        return sum(
            row.ending is Ending.LOST for job in self.store.histories() for row in job.endings
        )

    def assert_sound(self) -> Report:
        """Hold the ledger to the contract, and to the effects that the jobs had."""
        report = assert_sound(self.store, JOBS)
        wanted = {State.SUCCEEDED: JOBS - self.hopeless, State.FAILED: self.hopeless}
        assert report.states == wanted
        effects = (self.place.work / "effects").read_text().splitlines()
        assert_agrees(self.store.histories(), effects)
        return report
