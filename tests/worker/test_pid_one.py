"""A supervisor as the first process of a container, for which the kernel ignores most signals."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import msgspec
import pytest
from tests.worker.supervision import MAIN, PATIENCE_S, assert_clean, hold, in_state, until

from timeball.core.states import State
from timeball.store.postgres import PostgresStore
from timeball.worker.supervisor import SupervisorConfig

pytestmark = pytest.mark.slow

CONTAINER = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")


def containers_work() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*CONTAINER, "true"], capture_output=True, check=False).returncode == 0


def first_process(unshare: int) -> int | None:
    """The number, seen from here, of the process that is 1 in there."""
    children = Path(f"/proc/{unshare}/task/{unshare}/children").read_text().split()
    return int(children[0]) if children else None


@pytest.fixture
def contained(config: SupervisorConfig) -> Iterator[subprocess.Popen[bytes]]:
    if not containers_work():
        pytest.skip("this machine lets nobody make a process namespace")
    process = subprocess.Popen([*CONTAINER, sys.executable, "-c", MAIN], stdin=subprocess.PIPE)
    assert process.stdin is not None
    with process.stdin as stdin:
        stdin.write(msgspec.json.encode(asdict(config)))
    yield process
    process.kill()
    process.wait()


def test_as_the_first_process_of_a_container_it_drains_and_exits_with_0(
    contained: subprocess.Popen[bytes], store: PostgresStore, folder: Path
) -> None:
    uuid, _ = hold(store, folder)
    first = first_process(contained.pid)
    assert first is not None
    os.kill(first, signal.SIGTERM)
    (folder / "go").touch()
    assert contained.wait(PATIENCE_S) == 0
    until(in_state(store, uuid, State.SUCCEEDED), "what had begun has ended")
    assert store.get(uuid).turn == 1
    assert store.pulses() == []
    assert_clean(store, 1)
