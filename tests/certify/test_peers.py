"""Timeball and others under the same probes: what a product does costs its own row, no more."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from tests.certify.conforming import faults, schema

from timeball.certify.databases import Databases
from timeball.certify.fleet import processes
from timeball.certify.peers import adapter, environments, probes
from timeball.certify.peers.bench import Bench
from timeball.certify.peers.catalogue import PEERS, PROCRASTINATE, TIMEBALL, Peer, chosen
from timeball.certify.peers.comparison import Cell, Row, Standing, block, compared, kept, table
from timeball.certify.peers.environments import INSTALL, Environments
from timeball.certify.peers.probes import PROBES, Probe, Seen
from timeball.certify.report import report
from timeball.certify.results import Exit, Run, document
from timeball.certify.scenario import Profile
from timeball.certify.sessions import until
from timeball.cli.commands import timeball
from timeball.errors import UsageError

FAKES = Path(__file__).parent / "peer_fakes"
FAKE = Peer(name="fake", adapter="fake_peer", requirements=("fake==1",), configuration="as it is")

Play = Callable[..., Row]


def named(*names: str) -> list[Probe]:
    return [probe for probe in PROBES if probe.name in names]


def installed(folder: Path) -> Environments:
    """The environment of the fake: this interpreter, by a script in the place of its own."""
    python = folder / "fake" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o700)
    (folder / "fake" / "installed").write_text("fake==1")
    return Environments(folder)


@pytest.fixture
def play(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Play:
    """Plays probes against the fake, in one of its modes."""
    path = os.pathsep.join([str(FAKES), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    found = installed(tmp_path)

    def run(mode: str, *names: str) -> Row:
        monkeypatch.setenv("FAKE_MODE", mode)
        (row,) = compared([FAKE], found, Databases(server), probes=named(*names))
        return row

    return run


def written(*rows: Row) -> dict[str, Any]:
    found = block(rows, "timeball certify --peers")
    at = "2026-11-30T00:00:00Z"
    run = Run(results=[], profile=Profile.QUICK, seed=1, at=at, peers=found)
    return json.loads(json.dumps(document(run)))


def invoked(*words: str) -> Result:
    return CliRunner().invoke(timeball, ["certify", *words])


# What a product does is told, and stops nobody


@pytest.mark.slow
def test_what_a_product_does_is_seen_from_outside(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "AGAIN_S", 1.0)
    row = play("", "nul", "dst", "kill", "limit")
    seen = {cell.probe.name: cell for cell in row.cells}
    assert row.version == pytest.__version__
    assert seen["nul"].fine
    assert seen["dst"].facts["fold, 01:30"] == []
    assert seen["kill"].text == "not run again within 1 s; its record says waiting"
    assert (seen["limit"].standing, seen["limit"].text) == (
        Standing.NOT_OFFERED,
        "it knows no limit",
    )


@pytest.mark.slow
def test_a_product_that_does_not_start_has_a_row_that_says_so(play: Play) -> None:
    row = play("import", "nul")
    assert (row.cells, row.installed) == ((), True)
    assert row.reason == "broken: RuntimeError: it does not start, in two lines"
    assert written(row)["peers"]["rows"]["fake"]["status"] == "broken"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "name", "text"),
    [
        ("work", "nul", "RuntimeError: no worker"),
        ("silent", "dst", "ended without an answer, with exit code 7"),
    ],
)
def test_a_product_that_fails_fails_in_its_own_cell(
    play: Play, mode: str, name: str, text: str
) -> None:
    (cell,) = play(mode, name).cells
    assert (cell.standing, cell.text) == (Standing.BROKEN, text)


@pytest.mark.slow
def test_a_product_that_hangs_is_ended(play: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    def asks(bench: Bench) -> Seen:
        monkeypatch.setattr(adapter, "ANSWER_S", 0.2)
        bench.submit("note", "tag")
        raise AssertionError("it has answered")

    monkeypatch.setitem(globals(), "PROBES", [Probe("hangs", "", asks)])
    before = {pid for pid, _, _ in processes()}
    (cell,) = play("hang", "hangs").cells
    assert (cell.standing, cell.text) == (Standing.HUNG, "no answer within 0.2 s")
    own = os.getpid()
    assert not [pid for pid, parent, _ in processes() if parent == own and pid not in before]


@pytest.mark.slow
@pytest.mark.parametrize("ends", [True, False])
def test_of_a_product_nothing_is_left_whoever_has_ended_before(
    tmp_path: Path, *, ends: bool
) -> None:
    orphan = "import subprocess, sys; print(subprocess.Popen(['sleep', '300']).pid, flush=True)"
    script = ("-c", orphan if ends else f"{orphan}; sys.stdin.read()")
    driver = adapter.Driver(Path(sys.executable), script, {}, tmp_path / "log")
    try:
        pid = int(driver._answers.get(timeout=30.0))
        if ends:
            until(lambda: driver.ended is not None, "it ends by itself")
    finally:
        driver.close()
    until(lambda: pid not in {each for each, _, state in processes() if state != "Z"}, "it is gone")


@pytest.mark.slow
def test_timeball_keeps_what_it_promises_under_the_same_probes(server: str, tmp_path: Path) -> None:
    (row,) = compared(
        [TIMEBALL], Environments(tmp_path), Databases(server), probes=named("nul", "dst")
    )
    assert [(cell.standing, cell.text) for cell in row.cells if not cell.fine] == []
    assert kept([row])
    assert row.version


# Nothing is installed unless somebody asks


def test_a_product_that_is_not_installed_has_a_row_with_the_command(tmp_path: Path) -> None:
    (row,) = compared([PROCRASTINATE], Environments(tmp_path), Databases("nowhere"))
    assert (row.cells, row.reason) == ((), f"not installed: {INSTALL}")
    assert kept([row])


def test_another_version_than_the_pinned_one_counts_as_none(tmp_path: Path) -> None:
    found = installed(tmp_path)
    assert found.interpreter(FAKE) is not None
    assert found.interpreter(replace(FAKE, requirements=("fake==2",))) is None
    (tmp_path / "fake" / "bin" / "python").unlink()  # the Python that it was made with is gone
    assert found.interpreter(FAKE) is None


def test_pip_is_asked_for_what_is_missing_and_its_failure_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def carried_out(command: list[str]) -> str:
        asked.append(command)
        return "no such version" if "fake==2" in command else ""

    monkeypatch.setattr(environments, "_carried_out", carried_out)
    found, other = installed(tmp_path), replace(FAKE, name="other", requirements=("fake==2",))
    found.install([TIMEBALL, FAKE, other], lambda _text: None)
    assert [command[1:3] for command in asked] == [["-m", "venv"], ["-m", "pip"]]
    assert found.missing(other) == "could not be installed: no such version"
    assert found.interpreter(other) is None


def test_every_product_but_timeball_is_pinned() -> None:
    assert [peer.name for peer in PEERS if not peer.own and "==" not in peer.requirements[0]] == []
    assert chosen("all") == PEERS
    assert chosen("chancy, timeball")[0] is TIMEBALL
    with pytest.raises(UsageError, match="no probes for celery: write all, or timeball, proc"):
        chosen("celery")


# What is written


def cell(name: str, standing: Standing = Standing.SEEN, *, fine: bool = True) -> Cell:
    return Cell(
        probe=named(name)[0], standing=standing, text="<b>", fine=fine, intended="as the guide says"
    )


def test_the_block_obeys_the_schema_and_has_one_table() -> None:
    rows = [
        Row(peer=TIMEBALL, version="1", python="3", cells=[cell("nul"), cell("dst")]),
        Row(peer=FAKE, version="2", cells=[cell("nul", Standing.HUNG, fine=False)]),
        Row(peer=PROCRASTINATE, reason="not installed: so", installed=False),
    ]
    found = written(*rows)
    assert faults(found, schema(), schema()) == []
    assert found["verdict"] == "passed"
    assert table(found["peers"]) == [
        ("nul", "timeball 1", "<b> (as documented: as the guide says)"),
        ("nul", "fake 2", "hung: <b> (as documented: as the guide says)"),
        ("dst", "timeball 1", "<b> (as documented: as the guide says)"),
        ("all", "procrastinate", "not installed: so"),
    ]
    assert "fake 2</td><td></td><td>hung: &lt;b&gt;" in report(found)


@pytest.mark.parametrize(
    "row",
    [
        Row(peer=TIMEBALL, version="1", cells=[cell("nul", fine=False)]),
        Row(peer=TIMEBALL, reason="broken: so"),
    ],
)
def test_only_timeball_can_break_a_promise_of_timeball(row: Row) -> None:
    found = written(row, Row(peer=FAKE, cells=[cell("nul", fine=False)]))
    assert (found["verdict"], kept([row])) == ("violated", False)


@pytest.mark.slow
def test_the_command_needs_no_other_product(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIMEBALL_HOME", str(tmp_path / "home"))
    done = invoked("--peers", "chancy,pgqueuer", "--dsn", server, "--out", str(tmp_path))
    assert done.exit_code == Exit.PASSED
    assert done.stdout.count("not installed: timeball certify --peers --install") == 2
    found = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert faults(found, schema(), schema()) == []
    assert found["peers"]["command"] == "timeball certify --peers chancy,pgqueuer"
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["--install"], "write --peers --install"),
        (["--peers", "--mutants", "all"], "leave one out"),
        (["--peers", "--scenario", "A"], "--peers plays no scenarios"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    tmp_path: Path, words: list[str], advice: str
) -> None:
    done = invoked(*words, "--out", str(tmp_path))
    assert done.exit_code == 2
    assert advice in done.stderr
