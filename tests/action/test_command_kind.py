"""A command as a job: its end is an outcome, and facts reach it through its environment."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from uuid import UUID

import pytest
from tests.action.attempts import OCCURRENCE

from timeball.action.command import Command
from timeball.action.command_kind import command_kind
from timeball.action.context import StopSign
from timeball.action.python import carry_out
from timeball.action.registry import OCCURRENCE_KEY, Registry
from timeball.core.outcomes import Outcome, Raised, Returned, Unbegun
from timeball.core.records import Turn
from timeball.core.retry import Retry
from timeball.errors import UsageError


def carried(
    text: str, *, args: str = "{}", timeout_s: float | None = None, stop: StopSign | None = None
) -> Outcome:
    kind = command_kind("line", Command(shell_text=text, grace_s=0.1))
    turn = Turn(1, 1, 7, 1, UUID(int=7), "line", args, 1, 0, 0, 0.0, 3, timeout_s, 0.0)
    return carry_out(kind, turn, stop or StopSign())


def test_exit_code_0_is_success_with_the_output() -> None:
    found = carried("echo ball; echo more >&2")
    assert isinstance(found, Returned)
    assert json.loads(found.result or "") == {"exit_code": 0, "output": "ball\nmore\n"}


def test_of_much_output_the_end_is_kept_and_can_be_stored() -> None:
    found = carried("yes 'ü\"' | head -c 300000; echo end")
    assert isinstance(found, Returned)
    assert json.loads(found.result or "")["output"].endswith("end\n")


@pytest.mark.parametrize(
    ("text", "first"), [("echo why; exit 3", "exit code 3"), ("kill -SEGV $$", "ended by SIGSEGV")]
)
def test_another_end_is_a_failure_that_is_tried_again(text: str, first: str) -> None:
    found = carried(text)
    assert isinstance(found, Raised)
    assert (found.error_type, found.again, found.reason) == ("CommandFailed", True, None)
    assert found.error.splitlines()[0] == first
    assert ("why" in found.error) == ("why" in text)


@pytest.mark.slow
def test_a_command_that_takes_too_long_is_ended() -> None:
    found = carried("echo begun; exec sleep 600", timeout_s=1.5)
    assert isinstance(found, Raised)
    assert (found.reason, found.again) == ("timeout", True)
    assert "begun" in found.error


def test_a_stop_ends_it_and_gives_its_turn_back(tmp_path: Path) -> None:
    stop, seen = StopSign(), tmp_path / "seen"

    def stop_once_it_runs() -> None:
        while not seen.exists():
            threading.Event().wait(0.005)
        stop.raise_()

    stopper = threading.Thread(target=stop_once_it_runs)
    stopper.start()
    assert carried(f"touch {seen}; exec sleep 600", stop=stop) == Unbegun("stopped")
    stopper.join()


def test_it_is_told_which_job_it_is() -> None:
    args = json.dumps({OCCURRENCE_KEY: OCCURRENCE})
    found = carried("env | grep ^TIMEBALL_ | sort", args=args)
    assert isinstance(found, Returned)
    assert json.loads(found.result or "")["output"].splitlines() == [
        "TIMEBALL_ATTEMPT=2",
        f"TIMEBALL_JOB_ID={UUID(int=7)}",
        "TIMEBALL_KIND=line",
        "TIMEBALL_NOMINAL_AT=2026-03-08T07:00:00+00:00",
        "TIMEBALL_NOMINAL_LOCAL=2026-03-08T03:00:00-04:00",
        "TIMEBALL_SCHEDULE=nightly",
    ]


def test_it_takes_no_arguments() -> None:
    kind = command_kind("line", Command(argv=("true",)), queue="slow", retry=Retry(0))
    assert (kind.queue, kind.retry.max_retries) == ("slow", 0)
    with pytest.raises(UsageError, match="not a parameter: user"):
        kind.encode({"user": 1})


def test_two_commands_of_one_name_are_told_apart() -> None:
    registry = Registry()
    registry.add(command_kind("line", Command(argv=("true",)), place="crontab:1"))
    registry.add(command_kind("line", Command(argv=("true",)), place="crontab:1"))
    with pytest.raises(UsageError, match="crontab:1 and crontab:2"):
        registry.add(command_kind("line", Command(argv=("false",)), place="crontab:2"))
