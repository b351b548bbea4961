"""What jobs say while they run is told by the client, wherever they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.worker.supervision import assert_clean, configured, in_state, submit, until

from timeball.client import Client
from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.worker.child import Load
from timeball.worker.supervisor import SupervisorConfig

APP = """
import asyncio, time
from pathlib import Path
import timeball as tb

GO = Path(__file__).parent / "go"

def speak(ctx):
    ctx.log(f"attempt {ctx.attempt} begins\\0")
    for done in range(1_000):
        ctx.progress(done, 2_000, "at work")
    ctx.progress(1_000, 2_000, "halfway")

def speak_and_wait(ctx):
    speak(ctx)
    while not GO.exists():
        time.sleep(0.01)
    ctx.log("ends")
    ctx.progress(2_000, 2_000)

@tb.job(name="thread")
def thread(ctx: tb.Context):
    speak_and_wait(ctx)

@tb.job(name="apart", runner="process")
def apart(ctx: tb.Context):
    speak_and_wait(ctx)

@tb.job(name="loop")
async def loop(ctx: tb.Context):
    speak(ctx)
    while not GO.exists():
        await asyncio.sleep(0.01)
    ctx.log("ends")
    ctx.progress(2_000, 2_000)
"""


@pytest.fixture
def talking(dsn: str, folder: Path) -> SupervisorConfig:
    (folder / "talk.py").write_text(APP)
    return replace(configured(dsn, folder), loads=(Load(target=str(folder / "talk.py")),))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["thread", "loop", "apart"])
def test_it_is_told_while_the_job_runs_and_afterwards(
    kind: str, talking: SupervisorConfig, store: PostgresStore, folder: Path, supervise: Callable
) -> None:
    client = Client(store)
    supervise(talking)
    uuid = submit(store, kind)

    def said() -> tuple[object, ...]:
        progress = client.get(uuid).progress
        return progress[:4] if progress else ()

    until(lambda: said() == (1_000.0, 2_000.0, "halfway", 1), "it is halfway")
    until(lambda: client.logs(uuid), "it has logged")
    assert [(line.turn, line.text) for line in client.logs(uuid)] == [(1, "attempt 1 begins\\x00")]
    (folder / "go").touch()
    until(in_state(store, uuid, State.SUCCEEDED), "it has ended")
    until(lambda: said() == (2_000.0, 2_000.0, None, 1), "its last word is there")
    until(lambda: len(client.logs(uuid)) == 2, "and its last line")
    assert client.logs(uuid)[1].text == "ends"
    assert_clean(store, 1)
