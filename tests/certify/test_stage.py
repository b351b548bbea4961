"""Worker processes of a scenario: changed from outside, and gone whatever becomes of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
from tests.certify.test_runner import SEEN, played, scenario

from timeball.certify.effects import BEGAN, Effect, disagreements
from timeball.certify.faults import at_statement
from timeball.certify.fleet import processes
from timeball.certify.founding.claims import WORKERS
from timeball.certify.kinds import NOTE
from timeball.certify.runner import Order, certify
from timeball.certify.scenario import Outcome, Status
from timeball.certify.sessions import Refused, until
from timeball.certify.stage import Stage
from timeball.core.history import EndingRecord, GrantRecord, JobHistory
from timeball.core.records import Delivery, JobSpec
from timeball.core.states import Ending
from timeball.errors import JobNotFound

started: list[int] = []
MAIN = "from timeball.cli.main import main; main()"


@pytest.mark.slow
def test_a_worker_that_is_killed_at_a_statement_is_replaced_and_nothing_is_lost(
    server: str, tmp_path: Path
) -> None:
    def run(stage: Stage) -> Outcome:
        jobs = [JobSpec(uuid=uuid4(), kind=NOTE) for _ in range(3)]
        fleet = stage.workers(boots=[at_statement("settle", moment="after", number="SIGKILL")])
        stage.until(fleet.children, "the first child is there")
        (first,) = fleet.children()
        stage.submit(jobs)
        stage.until(lambda: set(fleet.children()) - {first}, "another one follows")
        started.extend([fleet.pid, *fleet.children()])
        stage.drain()
        began = stage.effects.began()
        return Outcome(expected={"jobs": 3}, observed={"jobs": len(began)}, witness={"killed": 1})

    result = played(server, tmp_path, run)
    assert (result.status, result.failed) == (Status.PASSED, ())
    assert not {pid for pid, _, _ in processes()} & set(started)


@pytest.mark.slow
def test_what_a_broken_scenario_has_started_is_ended(server: str, tmp_path: Path) -> None:
    def run(stage: Stage) -> Outcome:
        fleet = stage.workers()
        stage.until(fleet.children, "a child is there")
        started.extend([fleet.pid, *fleet.children()])
        fleet.freeze(fleet.pid, *fleet.children())
        raise ZeroDivisionError

    assert played(server, tmp_path, run).status is Status.BROKEN
    living = {pid for pid, _, state in processes() if state != "Z"}
    assert not living & set(started)


@pytest.mark.slow
def test_a_server_of_ones_own_is_gone_afterwards(tmp_path: Path) -> None:
    folder: list[Path] = []

    def run(stage: Stage) -> Outcome:
        assert stage.terms.own_server is not None
        folder.append(stage.terms.own_server)
        return SEEN

    (result,) = certify(Order(scenarios=(scenario(run, own_server=True),), out=tmp_path))
    assert result.status is Status.PASSED
    assert folder[0].parent == Path(tempfile.gettempdir())
    assert not folder[0].exists()


def test_a_signal_has_a_moment_and_a_name() -> None:
    with pytest.raises(AssertionError):
        at_statement("claim", moment="meanwhile")
    assert at_statement("claim").options["number"] == signal.SIGSTOP.name


def test_where_the_logs_disagree_is_told() -> None:
    job = uuid4()
    history = JobHistory(
        *(1, job, NOTE, 3, 3, Delivery.AT_LEAST_ONCE, 0.0, None),
        grants=(GrantRecord(1, 7, 1, 1, 1.0), GrantRecord(2, 8, 1, 2, 2.0)),
        endings=(EndingRecord(2, Ending.SUCCEEDED, None, 8, 2.0, 0.0, 3.0),),
    )
    lines = [Effect(BEGAN, job, turn, pid, 0) for turn, pid in ((1, 5), (1, 6), (3, 5))]
    assert list(disagreements([history], lines)) == [
        f"turn 1 of {job} began 2 times",
        f"{job} succeeded in turn 2, which never began",
        f"turn 3 of {job} began, and was never granted",
    ]
    agreeing = [Effect(BEGAN, job, 1, 5, 0), Effect(BEGAN, job, 2, 6, 1)]
    assert list(disagreements([history], agreeing)) == []


@pytest.mark.slow
def test_a_run_that_is_told_to_end_leaves_nothing(tmp_path: Path) -> None:
    """Neither a process nor a file, though workers and a server of its own are at work."""
    place, out = tmp_path / "t", tmp_path / "out"
    place.mkdir()
    mark = ("TIMEBALL_CERTIFY_MARK", uuid4().hex)
    words = [sys.executable, "-c", MAIN, "certify", "--scenario", "A", "--out", str(out)]
    env = {**os.environ, "TMPDIR": str(place), **dict([mark])}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(words, env=env, stderr=log)
    try:
        until(lambda: len(marked(mark)) > WORKERS, "the workers are there", 60.0)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert process.returncode == 128 + signal.SIGTERM
    until(lambda: not marked(mark), "no process is left", 30.0)
    assert list(place.iterdir()) == []


def marked(mark: tuple[str, str]) -> list[int]:
    """The processes that have inherited a mark."""
    found, text = [], "=".join(mark).encode()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):  # it has ended meanwhile, or is not ours
            if text in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def test_every_call_is_noted_and_how_it_ended(server: str, tmp_path: Path) -> None:
    def run(stage: Stage) -> Outcome:
        for _ in range(2):
            stage.store.cancel(uuid4())
            stage.store.counts()
        with pytest.raises(JobNotFound):
            stage.store.get(uuid4())
        session = stage.session()
        assert isinstance(session.step("SELECT 1/0"), Refused)
        stage.ask("end_session", pid=session.pid)
        session.step("SELECT 1")
        return SEEN

    played(server, tmp_path, run)
    lines = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    told = [(line["call"], line["event"]) for line in lines]
    ends = [*(("cancel", "ok"), ("counts", "ok"), ("cancel", "ok"), ("get", "fail"))]
    ends += [("statement", "fail"), ("statement", "unknown")]
    assert [each for each in told if each[1] != "invoke"][: len(ends)] == ends
