"""The working folder of a command of a job's own: private, new for each attempt, and gone after."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.action.attempts import turn

import timeball as tb
from timeball.action.command import Cancellation, Command, run
from timeball.action.command_tail import Tail
from timeball.action.context import StopSign
from timeball.action.own_command import ALLOW_VARIABLE, KIND, USERS_VARIABLE, usable
from timeball.action.python import carry_out
from timeball.action.sweeper import sweep
from timeball.core.outcomes import Outcome, Raised, Returned
from timeball.core.payload import decode_value, encode_args

SH = "/bin/sh"
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch users")


@pytest.fixture(autouse=True)
def base(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where the folders are made, and nothing else; other users may come there."""
    monkeypatch.setenv(ALLOW_VARIABLE, SH)
    monkeypatch.delenv(USERS_VARIABLE, raising=False)
    folder = Path(tempfile.mkdtemp(prefix="timeball-", dir="/tmp"))
    folder.chmod(0o1777)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    shutil.rmtree(folder)


def carried(script: str, **options: Any) -> Outcome:
    args = encode_args({"argv": [SH, "-c", script], **options})
    return carry_out(KIND, turn(args, timeout_s=60.0), StopSign())


def output(script: str, **options: Any) -> str:
    found = carried(script, **options)
    assert isinstance(found, Returned), found
    return str(decode_value(found.result)["output"])


def awaited(fact: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not fact():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_each_attempt_has_one_of_its_own_that_is_gone_after_it(base: Path) -> None:
    seen = set()
    for _ in range(2):
        where, mode, temporary = output("pwd; stat -c %a .; echo $TMPDIR; touch left").split()
        assert (Path(where).parent, mode, temporary) == (base, "700", where)
        seen.add(where)
        assert not list(base.iterdir())
    assert len(seen) == 2


def test_a_folder_that_is_named_stays(base: Path) -> None:
    named = base / "named"
    named.mkdir()
    assert output("pwd; touch left; echo $TMPDIR", cwd=str(named)).split() == [str(named)]
    assert (named / "left").exists()


@pytest.mark.parametrize(
    "script",
    [
        "mkdir -p a/b/c && touch a/b/c/d .hidden && chmod 000 a/b a",
        "ln -s / root; ln -s .. up; ln -s gone nowhere; mkfifo pipe",
        "touch \"$(printf 'odd\\377\\nname')\"; mkdir -- '-rf' '*'",
        "chmod 000 .",
        pytest.param(
            f"i=0; while [ $i -lt 80 ]; do mkdir {'a' * 60}; cd {'a' * 60}; i=$((i+1)); done",
            marks=pytest.mark.slow,
        ),
        'cd .. && rm -rf "$TMPDIR"',
        "exit 3",
        "kill -9 $$",
    ],
    ids=["closed", "links", "names", "self", "deep", "gone", "failure", "signal"],
)
def test_whatever_it_leaves_there_is_gone(base: Path, script: str) -> None:
    beside = base / "beside"
    beside.mkdir()
    (beside / "keep").touch()
    carried(script)
    assert [each.name for each in base.iterdir()] == ["beside"]
    assert (beside / "keep").exists()


def test_it_is_gone_after_a_stop_too(base: Path) -> None:
    cancellation = Cancellation()
    folder = base / "own"

    def say_no_more(line: str) -> None:
        if line == "here":
            cancellation.set()

    command = Command(
        argv=(SH, "-c", "touch x; echo here; exec sleep 600"),
        cwd=str(folder),
        own_cwd=True,
        grace_s=0.1,
    )
    end = run(command, cancelled=cancellation, tail=Tail(say_no_more, first_s=0))
    cancellation.close()
    assert end.cancelled
    assert not list(base.iterdir())


@pytest.mark.slow
def test_it_is_gone_after_the_death_of_the_worker_too(base: Path) -> None:
    code = f"""
from timeball.action.command import Command, run
run(Command(shell_text="touch x; echo; exec sleep 600", cwd={str(base / "own")!r}, own_cwd=True))
"""
    with subprocess.Popen([sys.executable, "-c", code]) as worker:
        awaited((base / "own" / "x").exists)
        worker.kill()
    awaited(lambda: not list(base.iterdir()))


def test_a_folder_that_is_there_already_is_not_taken(base: Path) -> None:
    (base / "own").mkdir()
    (base / "own" / "theirs").touch()
    end = run(Command(argv=(SH, "-c", "true"), cwd=str(base / "own"), own_cwd=True))
    assert end.exit_code == 126
    assert "File exists" in end.output
    assert (base / "own" / "theirs").exists()  # nor swept


def test_what_cannot_be_removed_is_told(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(_folder: Path) -> None:
        raise PermissionError

    folder = base / "own"
    folder.mkdir()
    monkeypatch.setattr(Path, "rmdir", never)
    with pytest.raises(PermissionError):
        sweep(folder)


def test_where_there_is_no_place_for_one_it_is_tried_again_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nowhere() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    tb.command([SH, "-c", "true"])  # who submits needs none
    found = carried("true")
    assert isinstance(found, Raised)
    assert (found.error_type, found.again) == ("CommandRefused", True)
    assert isinstance(carried("true", cwd="/"), Returned)


def test_a_folder_needs_a_name() -> None:
    with pytest.raises(tb.UsageError, match="own_cwd"):
        Command(argv=("a",), own_cwd=True)


# -- as whom


@root
def test_as_whom_it_runs_is_for_the_worker_to_allow(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = pwd.getpwnam("nobody")
    script = "id -u; id -g; id -G; stat -c '%U %a' .; mkdir -p a/b; chmod 000 a"
    refused = carried(script, user="nobody")
    assert isinstance(refused, Raised)
    assert (refused.error_type, refused.again) == ("CommandRefused", False)
    assert USERS_VARIABLE in refused.error
    monkeypatch.setenv(USERS_VARIABLE, "nobody:daemon")
    shown = [str(nobody.pw_uid), str(nobody.pw_gid), str(nobody.pw_gid), "nobody", "700"]
    assert output(script, user="nobody").split() == shown
    assert output(script).split() == shown  # the first where nobody is named
    assert output("id -un", user="daemon").split() == ["daemon"]
    assert not list(base.iterdir())
    assert isinstance(carried("true", user="root"), Raised)


@root
def test_a_user_has_no_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(USERS_VARIABLE, "nobody")
    grown = os.getgroups()
    os.setgroups([*grown, 4])  # one that nobody must not inherit
    try:
        shown = output("grep -hE '^(Uid|Gid|Groups|CapEff|CapPrm|NoNewPrivs)' /proc/self/status")
    finally:
        os.setgroups(grown)
    facts = {name: rest.split() for name, _, rest in (x.partition(":") for x in shown.split("\n"))}
    nobody = pwd.getpwnam("nobody")
    assert set(facts["Uid"]) == {str(nobody.pw_uid)}  # real, effective, saved, of files
    assert set(facts["Gid"]) == {str(nobody.pw_gid)}
    assert facts["Groups"] == [str(nobody.pw_gid)]
    assert int(facts["CapEff"][0], 16) == int(facts["CapPrm"][0], 16) == 0
    assert facts["NoNewPrivs"] == ["1"]


@root
def test_a_sweep_is_done_as_the_user_and_not_as_the_worker(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(USERS_VARIABLE, "nobody")
    theirs = base / "of-root"
    theirs.mkdir()
    (theirs / "keep").touch()
    # The folder is taken away, and a way to one of root's is put in its place.
    output(f'cd {base}; rmdir "$TMPDIR"; ln -s {theirs} "$TMPDIR"')
    output(f"ln -s {theirs} a; mkdir b; ln -s {theirs} b/c")
    assert [each.name for each in base.iterdir()] == ["of-root"]
    assert (theirs / "keep").exists()
    assert stat.S_IMODE(theirs.stat().st_mode) == 0o755


def test_a_list_with_nobody_known_stops_the_worker_at_its_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(USERS_VARIABLE, "no-such-user")
    with pytest.raises(tb.UsageError, match="no user of this machine"):
        usable()
