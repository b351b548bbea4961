"""The end of a command, and of everything that came of it."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timeball.action import command as module
from timeball.action import minder
from timeball.action.command import Cancellation, Command, CommandEnd, run

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs prctl and /proc")
PYTHON = (sys.executable, "-I", "-S", "-c")

# Forks twice into a session of its own, so that neither group nor parent lead to it; then notes
# the pid in the file that its first argument names, and stays.
DETACH = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(sys.argv[1] + ".new", "w") as file:
            file.write(str(os.getpid()))
        os.rename(sys.argv[1] + ".new", sys.argv[1])
        time.sleep(60)
    os._exit(0)
os.wait()
"""
STAY = DETACH + "time.sleep(60)\n"

# Runs the command of argv and, once told on stdin, forks a copy of itself or not.
CALLER = """
import os, sys, threading, time
from timeball.action.command import Command, run
threading.Thread(target=run, args=(Command(argv=tuple(sys.argv[1:]), grace_s=0.1),)).start()
for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
    print(pid, flush=True)
"""


def sh(text: str, **options: Any) -> CommandEnd:
    return run(Command(shell_text=text, **options))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return b") Z" not in Path(f"/proc/{pid}/stat").read_bytes()
    except (ProcessLookupError, FileNotFoundError):
        return False


def eventually(holds: Callable[[], object], within_s: float = 30.0) -> bool:
    deadline = time.monotonic() + within_s
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def run_until(seen: Path, command: Command) -> CommandEnd:
    """Run the command and cancel it once the file `seen` exists."""
    cancellation = Cancellation()
    with ThreadPoolExecutor(1) as pool:
        end = pool.submit(run, command, cancelled=cancellation)
        try:
            assert eventually(lambda: seen.exists() or end.done())
        finally:
            cancellation.set()
        result = end.result(10)
    cancellation.close()
    return result


@pytest.mark.slow
def test_a_timeout_ends_the_background_too(tmp_path: Path) -> None:
    text = "sleep 60 & echo $! > pid; wait"
    end = sh(text, timeout_s=1.5, grace_s=60.0, cwd=str(tmp_path))
    assert end.timed_out
    assert end.signal == signal.SIGTERM
    assert end.duration_s < 30
    assert not alive(int((tmp_path / "pid").read_text()))


@linux
@pytest.mark.slow
def test_a_timeout_ends_a_double_fork_with_its_own_session(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    end = run(Command(argv=(*PYTHON, STAY, str(pid)), timeout_s=2.0, grace_s=60.0))
    assert end.timed_out
    assert not alive(int(pid.read_text()))
    assert end.duration_s < 30


@linux
def test_what_a_command_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    text = f"{shlex.join([*PYTHON, DETACH, str(pid)])}; while [ ! -e pid ]; do :; done; exit 3"
    end = sh(text, cwd=str(tmp_path))
    assert (end.exit_code, end.signal) == (3, None)
    assert not alive(int(pid.read_text()))


def test_who_ignores_sigterm_is_killed_after_the_grace(tmp_path: Path) -> None:
    text = "trap '' TERM; touch on; while :; do sleep 0.05; done"
    end = run_until(tmp_path / "on", Command(shell_text=text, grace_s=0.1, cwd=str(tmp_path)))
    assert end.cancelled
    assert not end.timed_out
    assert end.signal == signal.SIGKILL
    assert end.duration_s >= 0.1


@linux
def test_a_stopped_process_still_heeds_sigterm(tmp_path: Path) -> None:
    text = "trap 'echo bye; exit 0' TERM; : > on; kill -STOP $$"  # nobody else hears it
    end = run_until(tmp_path / "on", Command(shell_text=text, cwd=str(tmp_path)))
    assert (end.exit_code, end.output) == (0, "bye\n")


def test_cancellation_ends_a_command_politely(tmp_path: Path) -> None:
    text = "trap 'echo bye; exit 4' TERM; touch on; while :; do sleep 0.01; done"
    end = run_until(tmp_path / "on", Command(shell_text=text, cwd=str(tmp_path)))
    assert (end.exit_code, end.cancelled) == (4, True)
    assert end.output.endswith("bye\n")


@linux
def test_a_cancellation_after_its_own_end_does_not_count(tmp_path: Path) -> None:
    # What it left behind notes the SIGTERM that follows the command's own end, and stays.
    stays = "(trap 'touch told' TERM; touch on; while :; do sleep 0.01; done) &"
    text = f"{stays} until [ -e on ]; do :; done"
    end = run_until(tmp_path / "told", Command(shell_text=text, grace_s=0.1, cwd=str(tmp_path)))
    assert (end.exit_code, end.cancelled) == (0, False)


@linux
@pytest.mark.slow
@pytest.mark.parametrize("forks", [0, 1], ids=["alone", "its fork holds the pipe"])
def test_the_tree_ends_when_the_worker_is_killed(forks: int, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER, *PYTHON, STAY, str(pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    copies: list[int] = []
    try:
        assert eventually(pid.exists)
        for _ in range(forks):
            caller.stdin.write("\n")
            caller.stdin.flush()
            copies.append(int(caller.stdout.readline()))
        assert alive(int(pid.read_text()))
        # Without a copy to spare, its whole group dies: the minder must not be in there.
        (os.kill if copies else os.killpg)(caller.pid, signal.SIGKILL)
        caller.wait(5)
        assert eventually(lambda: not alive(int(pid.read_text())))
    finally:
        caller.kill()
        caller.wait(5)
        caller.stdin.close()
        caller.stdout.close()
        for copy in copies:
            os.kill(copy, signal.SIGKILL)


@linux
def test_a_killed_minder_takes_its_command_along(tmp_path: Path) -> None:
    # The background process keeps the output pipe open, and is not to be waited for.
    text = "sleep 60 & echo $! > stray; echo $$ > pid; kill -KILL $PPID; exec sleep 60"
    end = sh(text, cwd=str(tmp_path))
    os.kill(int((tmp_path / "stray").read_text()), signal.SIGKILL)
    assert (end.exit_code, end.signal) == (None, None)
    assert end.duration_s < 5
    assert "not known" in end.output
    assert eventually(lambda: not alive(int((tmp_path / "pid").read_text())))


@linux
@pytest.mark.slow
def test_a_stopped_minder_cannot_block_the_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MINDER_PATIENCE_S", 0.2)
    text = "echo $$ > pid; kill -STOP $PPID; exec sleep 60"
    end = sh(text, timeout_s=1.5, grace_s=0.1, cwd=str(tmp_path))
    assert end.timed_out
    assert end.duration_s < 20
    assert eventually(lambda: not alive(int((tmp_path / "pid").read_text())))


@pytest.mark.slow  # an orphan is gone only when the first process of the system reaps it
def test_without_adoption_the_group_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
from timeball.action import minder
minder.prctl, minder.PROC = (lambda *_: False), "/no/such/folder"
for name in {"memfd_create", "pidfd_open"} & set(dir(minder.os)):
    delattr(minder.os, name)
minder.main()
"""
    monkeypatch.setattr(module, "_MINDER", (sys.executable, "-c", code))
    end = sh("sleep 60 & echo $! > pid; cat; exit 3", stdin=b"read", cwd=str(tmp_path))
    assert (end.exit_code, end.output) == (3, "read")
    assert eventually(lambda: not alive(int((tmp_path / "pid").read_text())))


def test_a_minder_whose_worker_died_early_starts_nothing(tmp_path: Path) -> None:
    brief = module._brief(Command(shell_text="touch x", cwd=str(tmp_path)), {})
    body = b"1" + brief.partition(b"\n")[2].removeprefix(str(os.getpid()).encode())
    with subprocess.Popen(
        module._MINDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as orphan:
        orphan.stdin.write(b"%d\n%b" % (len(body), body))
        assert orphan.stdout.read() == b""
    assert not list(tmp_path.iterdir())


def test_the_minder_imports_nothing_dear() -> None:
    # Its start-up is the price of every command; each of these would add a tenth or more.
    program, *options, script = module._MINDER
    told = subprocess.run(
        [program, *options, "-X", "importtime", script],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    imported = {line.rpartition("|")[2].strip() for line in told.stderr.splitlines()}
    assert "_ctypes" in imported
    assert not imported & {"collections", "enum", "json", "pathlib", "re", "signal", "typing"}


texts = st.text("aä€𝄞= \n'", max_size=9)


@settings(max_examples=40)
@given(
    st.lists(texts, max_size=5).map(lambda rest: ["program", *rest]),
    st.dictionaries(st.text("AÄ_", min_size=1), texts),
    st.binary(),
)
def test_the_minder_reads_what_the_worker_wrote(
    argv: list[str], env: dict[str, str], stdin: bytes
) -> None:
    command = Command(argv=tuple(argv), env=env, stdin=stdin, cwd="/", user="nobody")
    size, _, body = module._brief(command, {}).partition(b"\n")
    brief = minder.Brief(body)
    assert int(size) == len(body)
    assert [part.decode() for part in brief.argv] == argv
    assert {name.decode(): value.decode() for name, value in brief.env.items()} == env
    assert (brief.stdin, brief.folder, brief.user) == (stdin, b"/", "nobody")
    assert (brief.worker, brief.grace_s, brief.no_new_privs) == (os.getpid(), 5.0, False)
