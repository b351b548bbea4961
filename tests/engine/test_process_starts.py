"""Children that do not get as far as a job: the job hears why, and the next one is tried anew."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.engine import process_jobs as jobs
from tests.engine.process_jobs import run, value

from timeball.core.outcomes import Raised
from timeball.engine import processes
from timeball.engine.processes import STARTS_MAX, ProcessSlot

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")


@pytest.fixture(scope="module", autouse=True)
def mark() -> Iterator[None]:
    with jobs.marking():
        yield


@pytest.mark.slow
def test_an_initializer_that_fails_fails_the_job_and_is_tried_again(tmp_path: Path) -> None:
    cure = tmp_path / "cure"
    slot = ProcessSlot(initializer=partial(jobs.fail_until, str(cure)), grace_s=0.1)
    for _ in range(2):
        ended = run(slot, jobs.add, 1)
        assert isinstance(ended, Raised)
        assert (ended.error_type, ended.again) == ("LookupError", True)
        assert ended.reason == "initializer"
        assert ended.error.startswith("no such database\n")
        assert "in fail_until" in ended.error
    cure.touch()
    assert value(slot, jobs.add, 1) == 2
    cure.unlink()
    assert value(slot, jobs.add, 1) == 2  # it is called once
    slot.close(5.0)


@pytest.mark.slow
def test_a_child_that_cannot_start_is_tried_a_few_times(tmp_path: Path) -> None:
    slot = ProcessSlot(initializer=partial(jobs.count_and_exit, str(tmp_path)), grace_s=0.1)
    ended = run(slot, jobs.add, 1)
    assert isinstance(ended, Raised)
    assert (ended.reason, ended.again) == ("not-started", True)
    assert ended.error.endswith("its process exited with 3")
    assert len(list(tmp_path.iterdir())) == STARTS_MAX
    slot.close(5.0)


@pytest.mark.slow
def test_a_child_that_is_never_ready_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_READY_S", 0.5)
    slot = ProcessSlot(initializer=signal.pause, grace_s=0.1)
    ended = run(slot, jobs.add, 1)
    assert isinstance(ended, Raised)
    assert ended.error == "its process was not ready after 0.5 s"
    slot.close(5.0)


def test_without_an_interpreter_the_job_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    slot = ProcessSlot()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/nowhere/python")
        ended = run(slot, jobs.add, 1)
    assert isinstance(ended, Raised)
    assert ended.reason == "not-started"
    assert "/nowhere/python" in ended.error
    slot.close(5.0)
