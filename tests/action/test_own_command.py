"""Commands that jobs bring: only where the worker allows their program; limits and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.action.attempts import turn

import timeball as tb
from timeball.action.command import Command, run
from timeball.action.command_kind import ExitCodes
from timeball.action.context import StopSign
from timeball.action.own_command import ALLOW_VARIABLE, KIND
from timeball.action.own_kinds import serve
from timeball.action.python import carry_out
from timeball.action.registry import Registry
from timeball.action.secret import Secret
from timeball.core.outcomes import Outcome, Raised, Returned
from timeball.core.payload import encode_args

SH = "/bin/sh"


@pytest.fixture(autouse=True)
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ALLOW_VARIABLE, f"/bin/echo:{SH}")


def outcome(*argv: str, **options: Any) -> Outcome:
    args = encode_args({"argv": argv, **options})
    return carry_out(KIND, turn(args, timeout_s=30.0), StopSign())


def output(*argv: str, **options: Any) -> str:
    found = outcome(*argv, **options)
    assert isinstance(found, Returned), found
    text: str = json.loads(found.result or "null")["output"]
    return text


def failure(*argv: str, **options: Any) -> Raised:
    found = outcome(*argv, **options)
    assert isinstance(found, Raised), found
    return found


@pytest.mark.parametrize("hostile", ["; touch x", "$(touch x)", "-rf", "a\nb", "`id`", "'\"", "*"])
def test_a_parameter_is_an_argument_and_never_read_by_a_shell(hostile: str) -> None:
    assert output("/bin/echo", "-n", "--", hostile).removeprefix("-- ") == hostile
    script = 'printf %s "$1$WORD"'
    assert output(SH, "-c", script, "sh", hostile, env={"WORD": hostile}) == 2 * hostile


def test_a_worker_takes_no_commands_unless_it_allows_some(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = Registry()
    serve(registry)
    assert "timeball.command" in registry
    monkeypatch.delenv(ALLOW_VARIABLE)
    registry = Registry()
    serve(registry)
    assert "timeball.command" not in registry


@pytest.mark.parametrize("program", ["/bin/ls", "/usr/../bin/sh", "/bin//sh", "/bin/sh/"])
def test_a_program_that_the_worker_does_not_name_is_refused_for_good(program: str) -> None:
    found = failure(program)
    assert (found.error_type, found.again) == ("CommandRefused", False)
    assert f"{ALLOW_VARIABLE} where it runs" in found.error


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        ("ls -l", {}),
        ([], {}),
        (["ls"], {}),
        (["./ls"], {}),
        ([SH, "a\0b"], {}),
        ([SH, 7], {}),
        *(([SH], {"env": {name: "x"}}) for name in ("LD_PRELOAD", "BASH_ENV", "PATH", "a=b")),
        ([SH], {"env": {"PYTHONSTARTUP": "x"}}),
        ([SH], {"env": {"API_TOKEN": "hunter22"}}),
        ([SH], {"cwd": "tmp"}),
        ([SH], {"limits": {"memory": 1}}),
        ([SH], {"limits": {"cpu_s": -1}}),
        ([SH], {"success": [256]}),
        ([SH], {"user": 0}),
        ([SH], {"cwd": 7}),
        ([SH], {"env": {"RSYNC_RSH": "x"}}),
        ([SH], {"env": {"A": 1}}),
        ([SH], {"env": {1: "A"}}),
        ([SH], {"env": ["A"]}),
        ([SH], {"stdin": 1}),
        ([SH], {"stdin": "\ud800"}),
        ([SH], {"limits": 5}),
        ([SH], {"success": 5}),
        ([SH], {"for_good": "12"}),
    ],
)
def test_what_is_not_safe_is_refused_at_once(argv: Any, options: dict[str, Any]) -> None:
    with pytest.raises(tb.UsageError) as caught:
        tb.command(argv, **options)
    assert "hunter22" not in str(caught.value)


def test_a_secret_reaches_the_command_and_not_its_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_T", "canary-value")
    script = 'test "$TOKEN" = canary-value && { read word; echo "$TOKEN $word"; }'
    found = output(SH, "-c", script, env={"TOKEN": Secret("env:T")}, stdin=Secret("env:T"))
    assert found == "[secret env:T] [secret env:T]\n"
    told = failure(SH, "-c", "echo $TOKEN; exit 3", env={"TOKEN": Secret("env:T")})
    assert "canary" not in told.error
    monkeypatch.delenv("TIMEBALL_SECRET_T")
    assert failure(SH, env={"TOKEN": Secret("env:T")}).again


def test_the_environment_is_what_the_job_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OF_THE_WORKER", "x")
    names = {line.partition("=")[0] for line in output(SH, "-c", "env", env={"A": "1"}).split("\n")}
    assert "OF_THE_WORKER" not in names
    assert ALLOW_VARIABLE not in names
    assert {"A", "PATH", "TIMEBALL_JOB_ID"} <= names


def test_exit_codes_mean_what_the_job_says() -> None:
    options = {"success": [0, 3], "for_good": [64]}
    found = outcome(SH, "-c", "exit 3", **options)
    assert isinstance(found, Returned)
    assert json.loads(found.result or "")["exit_code"] == 3
    assert not failure(SH, "-c", "exit 64", **options).again
    assert failure(SH, "-c", "exit 5", **options).again
    assert not isinstance(outcome(SH, "-c", "kill -9 $$", **options), Returned)
    with pytest.raises(tb.UsageError, match="0 to 255"):
        ExitCodes(success=frozenset({-1}))


def test_what_cannot_start_is_tried_again_and_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plain, odd = tmp_path / "plain", tmp_path / "odd"
    for file, mode in ((plain, 0o600), (odd, 0o700)):
        file.write_bytes(b"\x00\x01 no program")
        file.chmod(mode)
    programs = {"/no/such/program": (127, "no such file"), str(plain): (126, "chmod +x")}
    programs |= {str(odd): (126, "not a program"), "/usr": (126, "not executable")}
    monkeypatch.setenv(ALLOW_VARIABLE, ":".join(programs))
    for program, (code, word) in programs.items():
        found = failure(program)
        assert (found.error_type, found.again) == ("CommandFailed", True)
        assert found.error.startswith(f"exit code {code}\n\ntimeball: ")
        assert word in found.error


def test_output_of_any_bytes_is_a_result() -> None:
    found = output(SH, "-c", r"printf '\377\376\000\033[2J\200ok\n'")
    assert found.endswith("ok\n")
    assert not set(found) & {"\0", "\x1b", "\x80"}


def test_of_much_output_both_ends_are_kept() -> None:
    text = output(SH, "-c", "echo first; head -c 100000 /dev/zero | tr '\\0' x; echo; echo last")
    assert text.startswith("first\n")
    assert text.endswith("last\n")
    assert "characters left out" in text
    assert len(text) < 33_000


@pytest.mark.parametrize(
    ("limits", "script", "word"),
    [
        ({"file_bytes": 1_000}, "head -c 5000 /dev/zero > f; wc -c < f", "1000\n"),
        ({"open_files": 16}, "ulimit -n", "16\n"),
        ({"memory_bytes": 1 << 28}, "ulimit -v", "262144\n"),
        ({"cpu_s": 7}, "ulimit -t", "7\n"),
        ({}, "ulimit -c", "0\n"),
    ],
)
def test_a_command_takes_no_more_than_its_limits(
    tmp_path: Any, limits: dict[str, int], script: str, word: str
) -> None:
    end = run(Command(argv=(SH, "-c", script), cwd=str(tmp_path), limits=limits, timeout_s=30))
    assert end.output.endswith(word)


@pytest.mark.slow
def test_a_command_out_of_processor_time_is_ended() -> None:
    end = run(Command(argv=(SH, "-c", "while :; do :; done"), limits={"cpu_s": 1}, timeout_s=60))
    assert end.signal is not None
    assert not end.timed_out


@pytest.mark.parametrize("allow", ["sh", "/bin/echo:./sh", "/bin/echo, /bin/sh:x"])
def test_a_list_that_allows_nothing_by_mistake_stops_the_worker_at_its_start(
    monkeypatch: pytest.MonkeyPatch, allow: str
) -> None:
    monkeypatch.setenv(ALLOW_VARIABLE, allow)
    with pytest.raises(tb.UsageError, match=f"{ALLOW_VARIABLE} holds .*write whole paths"):
        serve(Registry())


def test_no_part_of_a_secret_is_left_where_output_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIMEBALL_SECRET_T", "canary-" + "value" * 8)
    for kept, code in ((32_000, 0), (12_000, 1)):
        script = f"head -c {kept // 2 - 20} /dev/zero | tr '\\0' x; echo \"$TOKEN\"; "
        script += f"head -c {kept} /dev/zero | tr '\\0' y; exit {code}"
        found = outcome(SH, "-c", script, env={"TOKEN": Secret("env:T")})
        assert "xxxx" in str(found)
        assert "canary" not in str(found)
