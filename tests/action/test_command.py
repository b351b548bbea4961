"""What a command is given, what is kept of its output, and how its end is told."""

from __future__ import annotations

import os
import pwd
import signal
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.action import command as module
from timeball.action.command import Cancellation, Command, CommandEnd, run
from timeball.errors import UsageError

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs prctl and /proc")
root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch users")
PYTHON = (sys.executable, "-I", "-S", "-c")


def sh(text: str, **options: Any) -> CommandEnd:
    return run(Command(shell_text=text, **options))


# -- how it ends


def test_a_command_ends_with_its_exit_code_and_output() -> None:
    end = sh("echo ball; exit 7")
    assert (end.exit_code, end.signal, end.output, end.output_bytes) == (7, None, "ball\n", 5)
    assert not end.timed_out
    assert not end.cancelled
    assert 0 < end.duration_s < 5


def test_a_death_by_signal_is_told_from_an_exit_code() -> None:
    end = sh("kill -SEGV $$")
    assert (end.exit_code, end.signal) == (None, signal.SIGSEGV)


@pytest.mark.parametrize(
    ("options", "code", "word"),
    [
        ({"argv": ("no-such-program",)}, 127, "not found in PATH '/usr/bin:/bin'"),
        ({"argv": ("/no/such/program",)}, 127, "no such file"),
        ({"argv": ("{tmp}/orphan.sh",)}, 127, "interpreter"),
        ({"argv": ("{tmp}/plain.txt",)}, 126, "chmod +x"),
        ({"argv": ("{tmp}/headless",)}, 126, "#!/bin/sh"),
        ({"argv": ("/usr",)}, 126, "not executable"),
        ({"argv": ("true",), "cwd": "/no/such/folder"}, 126, "'/no/such/folder'"),
        ({"argv": ("true",), "user": "no-such-user"}, 126, "no user 'no-such-user'"),
    ],
)
def test_what_cannot_start_ends_like_in_a_shell(
    options: dict[str, Any], code: int, word: str, tmp_path: Path
) -> None:
    for name, text, mode in (
        ("orphan.sh", "#!/no/such/shell\n", 0o700),
        ("plain.txt", "#!/bin/sh\n", 0o600),
        ("headless", "echo hi\n", 0o700),
    ):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(mode)
    argv = tuple(part.replace("{tmp}", str(tmp_path)) for part in options["argv"])
    end = run(Command(**{**options, "argv": argv}))
    assert end.exit_code == code
    assert end.output.startswith("timeball: ")
    assert word in end.output


def test_a_worker_without_python_or_descriptors_left_reports_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MINDER", ("/no/such/python",))
    end = sh("true")
    assert end.exit_code == 126
    assert "/no/such/python" in end.output


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, "exactly one"),
        ({"argv": ("a",), "shell_text": "a"}, "exactly one"),
        ({"argv": "ls -l"}, "tuple"),
        ({"argv": ("",)}, "empty"),
        ({"argv": ("a", 1)}, "string"),
        ({"argv": ("a", "b\0c")}, "NUL"),
        ({"argv": ("a", "\ud800")}, "surrogate"),
        ({"shell_text": ""}, "empty"),
        ({"argv": ("a",), "cwd": "b"}, "absolute"),
        ({"argv": ("a",), "user": ""}, "empty"),
        ({"argv": ("a",), "stdin": "text"}, "encode"),
        ({"argv": ("a",), "env": {"A=B": "c"}}, "'='"),
        ({"argv": ("a",), "env": {"A": "\0"}}, "NUL"),
        ({"argv": ("a",), "timeout_s": 0}, "above 0"),
        ({"argv": ("a",), "timeout_s": float("nan")}, "above 0"),
        ({"argv": ("a",), "timeout_s": float("inf")}, "no limit"),
        ({"argv": ("a",), "grace_s": -1.0}, "0 or more"),
        ({"argv": ("a",), "output_max": -1}, "0 or more"),
    ],
)
def test_what_can_never_run_is_refused_at_once(options: dict[str, Any], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        Command(**options)


# -- what it is given


def test_the_environment_is_what_was_given_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PGPASSWORD", "canary")
    command = Command(argv=("/usr/bin/env",), env={"A": "1", "B": "x=y\n"})
    end = run(command, extra_env={"B": "2", "TIMEBALL_TURN": "3"})
    assert sorted(end.output.splitlines()) == ["A=1", "B=2", "TIMEBALL_TURN=3"]


@pytest.mark.parametrize(
    "value", ["; touch x", "$(touch x)", "`touch x`", "-rf", "a\nb", "'\"", ""]
)
def test_a_hostile_parameter_stays_inert(value: str, tmp_path: Path) -> None:
    text = 'printf "%s|" "$TIMEBALL_ARG"; printf %s "$*"'
    command = Command(shell_text=text, cwd=str(tmp_path))
    end = run(command, extra_env={"TIMEBALL_ARG": value})
    assert end.output == value + "|"
    assert not list(tmp_path.iterdir())
    assert run(Command(argv=("printf", "%s", value), cwd=str(tmp_path))).output == value
    assert not list(tmp_path.iterdir())


def test_a_parameter_that_no_command_can_receive_fails_this_command_only() -> None:
    end = run(Command(argv=("true",)), extra_env={"TIMEBALL_ARG": "a\0b"})
    assert end.exit_code == 126
    assert "NUL" in end.output


def test_a_large_environment_arrives_and_one_too_large_is_explained() -> None:
    large = {f"V{n}": "x" * 1000 for n in range(1000)}
    assert run(Command(argv=("/usr/bin/env",), env=large)).output_bytes > 1_000_000
    end = run(Command(argv=("/usr/bin/env",)), extra_env={"V": "x" * 3_000_000})
    assert end.exit_code == 126
    assert "too large" in end.output


def test_stdin_arrives_byte_for_byte(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4096
    assert run(Command(shell_text="cat > copy", stdin=data, cwd=str(tmp_path))).exit_code == 0
    assert (tmp_path / "copy").read_bytes() == data
    assert sh("true", stdin=data).exit_code == 0


def test_without_stdin_a_reader_sees_the_end_at_once() -> None:
    assert sh("cat; echo $?").output == "0\n"
    assert sh("cat <&- 2>/dev/null").exit_code != 0


@linux
def test_a_command_starts_clean() -> None:
    everything = signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, everything)
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        end = sh("umask; ls /proc/self/fd; grep -hE 'Sig(Blk|Ign)|NoNew' /proc/self/status")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.close(reader)
        os.close(writer)
    status = Path("/proc/self/status").read_text()
    ours = int(status.partition("SigIgn:")[2].split()[0], 16)
    # Two signals are the C library's own: whoever started us decides, and no program can.
    foreign = ours & ~sum(1 << number - 1 for number in signal.valid_signals())
    assert end.output.split() == [
        *("0077", "0", "1", "2", "3"),  # 3 is how ls reads the folder
        *("SigBlk:", "0" * 16, "SigIgn:", f"{foreign:016x}", "NoNewPrivs:", "1"),
    ]


def test_a_command_leads_its_own_session_in_its_own_folder(tmp_path: Path) -> None:
    code = "import os; print(os.getsid(0) == os.getpgid(0) == os.getpid(), os.getcwd())"
    end = run(Command(argv=(*PYTHON, code), cwd=str(tmp_path)))
    assert end.output == f"True {tmp_path}\n"


@root
def test_another_user_runs_with_its_own_groups() -> None:
    nobody = pwd.getpwnam("nobody")
    groups = os.getgroups()
    os.setgroups([*groups, 4])  # one that nobody must not inherit
    try:
        end = sh("id -u; id -g; id -G; grep -h NoNew /proc/self/status", user="nobody")
    finally:
        os.setgroups(groups)
    expected = [nobody.pw_uid, nobody.pw_gid, nobody.pw_gid, "NoNewPrivs:", 0]
    assert end.output.split() == list(map(str, expected))
    assert sh("grep -h NoNew /proc/self/status", user="nobody", no_new_privs=True).output[-2] == "1"
    assert sh("echo x > /etc/timeball-canary", user="nobody").exit_code != 0
    assert sh("cat", user="nobody", stdin=b"read").output == "read"


def test_the_own_user_may_be_named() -> None:
    own = pwd.getpwuid(os.geteuid()).pw_name
    assert sh("id -un", user=own).output == own + "\n"


# -- its output


def test_both_streams_come_in_the_order_they_were_written() -> None:
    end = sh("for i in 1 2 3; do echo out$i; echo err$i >&2; done")
    assert end.output.split() == ["out1", "err1", "out2", "err2", "out3", "err3"]


@pytest.mark.slow
def test_a_gigabyte_of_output_neither_blocks_nor_grows_memory() -> None:
    tracemalloc.start()
    text = f"echo first; head -c {1 << 30} /dev/zero; echo; echo last"
    end = sh(text, output_max=1 << 16, timeout_s=300)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000
    assert end.exit_code == 0
    assert end.output_bytes == (1 << 30) + 12
    assert end.output.startswith("first\n\u2400\u2400")
    assert end.output.endswith("\u2400\nlast\n")
    assert f"[timeball: {(1 << 30) + 12 - (1 << 16)} bytes left out]" in end.output


@pytest.mark.slow
def test_a_flood_without_end_is_ended_by_its_time() -> None:
    end = sh("exec cat /dev/zero", output_max=100, timeout_s=0.5, grace_s=0.1)
    assert end.timed_out
    assert end.output_bytes > 100
    assert len(end.output) < 200


def test_what_was_still_in_the_pipe_at_the_end_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 16)  # read so slowly that the command ends first
    assert sh("head -c 60000 /dev/zero").output_bytes == 60_000


def test_any_byte_comes_out_storable() -> None:
    end = sh(r"printf 'a\000b\377c\033[0m\tz\r\n\302\233'")
    assert end.output == "a\u2400b\ufffdc\u241b[0m\tz\r\n\ufffd"
    assert end.output_bytes == 15


@given(st.lists(st.binary(max_size=20), max_size=8), st.integers(0, 100))
def test_what_is_kept_are_the_two_ends(chunks: list[bytes], keep: int) -> None:
    output = module.Output(keep)
    for chunk in chunks:
        output.add(chunk.hex().encode())
    written = b"".join(chunks).hex()
    left_out = len(written) - keep
    head, tail = written[: keep // 2], written[len(written) - (keep - keep // 2) :]
    gap = f"\n[timeball: {left_out} bytes left out]\n"
    assert output.text() == (written if left_out <= 0 else head + gap + tail)


# -- beside others


def test_a_command_cancelled_beforehand_never_starts(tmp_path: Path) -> None:
    cancellation = Cancellation()
    cancellation.set()
    cancellation.set()
    end = run(Command(shell_text="touch x", cwd=str(tmp_path)), cancelled=cancellation)
    cancellation.close()
    cancellation.set()
    assert (end.exit_code, end.signal, end.cancelled) == (None, None, True)
    assert not list(tmp_path.iterdir())


@linux
@pytest.mark.slow
@pytest.mark.parametrize("after_ms", [1, 4, 8, 12, 16, 20, 30, 50])
def test_a_cancel_is_heard_however_early_it_comes(after_ms: int) -> None:
    cancellation = Cancellation()
    timer = threading.Timer(after_ms / 1000, cancellation.set)
    timer.start()
    end = run(Command(shell_text="cat; exec sleep 60", stdin=b"in"), cancelled=cancellation)
    timer.join()
    cancellation.close()
    assert end.cancelled
    assert end.duration_s < 30
    assert end.output in {"", "in"}


@linux
@pytest.mark.slow
def test_twenty_commands_at_once_keep_to_themselves() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    gate = threading.Barrier(20)

    def one(number: int) -> str:
        gate.wait()
        return sh(f"echo {number}; cat", stdin=str(number).encode()).output

    with ThreadPoolExecutor(20) as pool:
        outputs = list(pool.map(one, range(20)))
    assert outputs == [f"{number}\n{number}" for number in range(20)]
    assert len(list(Path("/proc/self/fd").iterdir())) == before
