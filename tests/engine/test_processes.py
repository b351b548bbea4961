"""Jobs in processes of their own: what goes in, what comes out, and what they find there."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine import process_jobs as jobs
from tests.engine.process_jobs import RETRY, run, value

from timeball.action.context import Cancel, Snooze, StopSign
from timeball.core.outcomes import Raised, Snoozed, Stopped, Unbegun
from timeball.core.retry import PermanentError, Retry
from timeball.engine.process_child import check_call, receive, send
from timeball.engine.process_link import StartMethod
from timeball.engine.processes import Processes, ProcessSlot
from timeball.engine.runner import Done, Runner
from timeball.errors import UsageError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks at processes in /proc")

UNBEGUN = Unbegun("stopped")


@pytest.fixture(scope="module", autouse=True)
def mark() -> Iterator[None]:
    with jobs.marking():
        yield


@pytest.fixture(scope="module")
def slot() -> Iterator[ProcessSlot]:
    """One for all tests: none of them may spoil it."""
    slot = ProcessSlot(grace_s=0.2)
    run(slot, jobs.nothing)
    yield slot
    slot.close(5.0)


# Calls and answers --------------------------------------------------------------------------


def test_a_job_is_called_with_copies_and_its_result_is_one(slot: ProcessSlot) -> None:
    given = {"deep": [1, (2, {3})]}
    back = value(slot, dict, given)
    assert back == given
    assert back is not given
    assert slot.run(jobs.add, (1,), {"b": 4}, timeout_s=9, stop=StopSign(), retry=RETRY) == Done(5)


def test_one_child_serves_one_job_after_another(slot: ProcessSlot) -> None:
    assert value(slot, os.getpid) == value(slot, os.getpid) != os.getpid()


def test_a_callable_that_holds_values_is_sent_as_it_is_now(slot: ProcessSlot) -> None:
    numbers: list[int] = []
    call = partial(sum, numbers)
    assert value(slot, call) == 0
    numbers.append(7)
    assert value(slot, call) == 7


def test_an_exception_comes_back_as_text_with_the_way_to_it(slot: ProcessSlot) -> None:
    ended = run(slot, jobs.raise_, ValueError("wrong"))
    assert isinstance(ended, Raised)
    assert (ended.error_type, ended.again, ended.reason) == ("ValueError", True, None)
    assert ended.error.startswith("wrong\n\nTraceback")
    assert "in raise_\n" in ended.error
    assert "process_child" not in ended.error


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (LookupError(), True),
        (ValueError(), False),
        (PermanentError(), False),
        (SystemExit(), False),
    ],
    ids=repr,
)
def test_the_retry_says_which_errors_are_worth_another_try(
    slot: ProcessSlot, error: BaseException, *, again: bool
) -> None:
    ended = run(slot, jobs.raise_, error, retry=Retry(on=(LookupError,)))
    assert isinstance(ended, Raised)
    assert ended.again is again


@pytest.mark.parametrize("made", [jobs.WithLock, jobs.two_arguments])
def test_an_exception_that_no_process_can_pass_on_is_kept_all_the_same(
    slot: ProcessSlot, made: Callable[[], BaseException]
) -> None:
    child = value(slot, os.getpid)
    ended = run(slot, jobs.raise_made, made)
    assert isinstance(ended, Raised)
    assert ended.error.startswith(f"{made()}\n")
    assert ended.error_type == f"{jobs.__name__}.{type(made()).__name__}"
    assert value(slot, os.getpid) == child


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (Lock, "<unlocked _thread.lock object"),
        (jobs.RaisesOnTheWay, "a RaisesOnTheWay, whose repr raised KeyboardInterrupt"),
        (jobs.RaisesOnArrival, "not a number"),
        (sys._getframe, "<frame at"),
    ],
)
def test_a_result_that_cannot_leave_is_a_failure_that_shows_it(
    slot: ProcessSlot, made: Callable[[], Any], shown: str
) -> None:
    child = value(slot, os.getpid)
    ended = run(slot, jobs.give, made)
    assert isinstance(ended, Raised)
    assert (ended.again, ended.reason) == (False, "result-not-transferable")
    assert shown in ended.error
    assert value(slot, os.getpid) == child


@pytest.mark.parametrize("made", [Lock, jobs.RaisesOnArrival])
def test_an_argument_that_cannot_arrive_fails_its_own_job(
    slot: ProcessSlot, made: Callable[[], Any]
) -> None:
    child = value(slot, os.getpid)
    ended = run(slot, jobs.nothing, made())
    assert isinstance(ended, Raised)
    assert (ended.again, ended.reason) == (False, "arguments-not-transferable")
    assert value(slot, os.getpid) == child


def test_a_job_steers_itself_by_what_it_returns(slot: ProcessSlot) -> None:
    assert run(slot, Snooze, 5.0) == Snoozed(5.0)
    assert run(slot, Cancel, "enough") == Stopped("enough")


def test_a_job_that_returns_an_iterator_is_told_not_to(slot: ProcessSlot) -> None:
    ended = run(slot, jobs.count)
    assert isinstance(ended, Raised)
    assert ended.error_type == "TypeError"
    assert "generator" in ended.error


async def coroutine() -> None: ...


def test_what_no_process_can_call_is_refused_with_what_to_write() -> None:
    def local() -> None: ...

    refused = {
        "write a def": lambda: None,
        "top level of a module": local,
        "plain def": coroutine,
        "cannot be handed to a process": Lock().acquire,
    }
    for words, call in refused.items():
        for form in (call, partial(call)):
            with pytest.raises(UsageError, match=words):
                check_call(form)
    for call in (jobs.add, partial(jobs.add, 1), len, "text".upper):
        check_call(call)


def test_what_was_typed_in_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    session = ModuleType("__main__")
    exec("def typed(): ...", vars(session))
    monkeypatch.setitem(sys.modules, "__main__", session)
    with pytest.raises(UsageError, match="typed was typed in"):
        check_call(session.typed)
    session.__file__ = "program.py"
    check_call(session.typed)


@pytest.mark.parametrize("options", [{"start_method": "fork"}, {"grace_s": -1}, {"grace_s": 1e999}])
def test_wrong_options_are_refused(options: Any) -> None:
    with pytest.raises(UsageError, match="write"):
        ProcessSlot(**options)
    with pytest.raises(UsageError, match="lambda"):
        ProcessSlot(initializer=lambda: None)


# Sizes --------------------------------------------------------------------------------------

EDGES = [0, 1, 4_095, 4_096, (1 << 14) - 17, (1 << 14) - 16, 1 << 14, 65_535, 65_536, 300_000]


@settings(max_examples=40, deadline=None)
@given(
    tag=st.sampled_from([b"", b"d", bytes(40), bytes(20_000)]),
    size=st.sampled_from(EDGES),
    room=st.sampled_from([4_096, 65_536]),
    may_block=st.booleans(),
)
def test_a_frame_arrives_whole_whatever_the_pipe_holds(
    tag: bytes, size: int, room: int, *, may_block: bool
) -> None:
    body = (b"timeball" * (size // 8 + 1))[:size]
    reader, writer = os.pipe()
    fcntl.fcntl(writer, 1031, room)  # F_SETPIPE_SZ
    os.set_blocking(writer, may_block)
    room_again = select.poll()
    room_again.register(writer, select.POLLOUT)
    wait = None if may_block else lambda: room_again.poll() and None
    thread = Thread(target=send_all, args=(writer, tag, body, wait), daemon=True)
    thread.start()
    got_tag, got_body = receive(reader)
    thread.join()
    assert (got_tag, bytes(got_body)) == (tag, body)
    with pytest.raises(EOFError):
        receive(reader)
    os.close(reader)


def send_all(fd: int, tag: bytes, body: bytes, wait: Callable[[], None] | None) -> None:
    send(fd, tag, body, wait)
    os.close(fd)


@pytest.mark.slow
def test_a_hundred_megabytes_pass_both_ways(slot: ProcessSlot) -> None:
    size = 100_000_000
    assert value(slot, len, bytes(size), timeout_s=60.0) == size
    assert len(value(slot, bytes, size)) == size


def test_a_stranger_on_stdout_disturbs_nothing(slot: ProcessSlot) -> None:
    assert value(slot, jobs.babble) == "sober"
    assert value(slot, jobs.add, 1) == 2


# What a job finds ---------------------------------------------------------------------------


def test_a_child_has_a_session_signals_and_descriptors_of_its_own(slot: ProcessSlot) -> None:
    ours = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(ours, True)
    run(slot, jobs.die)  # so that the child is younger than the descriptor
    found = value(slot, jobs.facts)
    os.close(ours)
    assert found["session"] == found["group"] == found["pid"] != os.getsid(0)
    assert [handler.name for handler in found["handlers"].values()] == ["SIG_IGN", "SIG_DFL"]
    assert (found["mask"], found["wakeup"]) == (set(), -1)
    assert len(found["fds"] - {0, 1, 2}) == 3  # two pipes, and the folder that was being listed
    assert value(slot, jobs.what_a_program_inherits) == {"0", "1", "2", "3"}


def test_a_child_finds_the_folder_and_environment_of_when_it_started(
    slot: ProcessSlot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TIMEBALL_TEST_NOW", "set later")
    assert value(slot, jobs.environment, "TIMEBALL_TEST_NOW") is None
    run(slot, jobs.die)
    assert value(slot, jobs.environment, "TIMEBALL_TEST_NOW") == "set later"
    assert value(slot, jobs.facts)["cwd"] == str(tmp_path)
    monkeypatch.delenv(jobs.MARK)
    run(slot, jobs.die)
    assert value(slot, jobs.environment, jobs.MARK) is None
    monkeypatch.undo()
    run(slot, jobs.die)
    assert value(slot, jobs.environment, "TIMEBALL_TEST_NOW") is None


def test_context_variables_start_empty_and_the_rest_of_the_process_stays(slot: ProcessSlot) -> None:
    jobs.variable.set(5)
    assert [value(slot, jobs.set_variable) for _ in range(2)] == [1, 1]
    run(slot, jobs.die)
    assert [value(slot, jobs.keep) for _ in range(2)] == [[1], [1, 1]]


MAIN = """
    import os, sys
    from timeball.action.context import StopSign
    from timeball.core.retry import Retry
    from timeball.engine.processes import ProcessSlot

    class Result:
        def __init__(self, value): self.value = value

    def job(value): return Result((value, __name__, os.getppid() != PARENT))

    PARENT = os.getpid()
    DEPTH = int(os.environ.get("TIMEBALL_TEST_DEPTH", "0"))
    os.environ["TIMEBALL_TEST_DEPTH"] = str(DEPTH + 1)
    assert DEPTH < 3, "it starts itself again and again"

    def main():
        slot = ProcessSlot(start_method=sys.argv[1])
        ended = slot.run(job, (1,), {{}}, timeout_s=60, stop=StopSign(), retry=Retry())
        print(ended.value.value if hasattr(ended, "value") else ended.error)
        slot.close(5)

    {guard}main()
"""


def program(folder: Path, guard: str, method: StartMethod) -> str:
    path = folder / "program.py"
    path.write_text(textwrap.dedent(MAIN).format(guard=guard))
    command = [sys.executable, str(path), method]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_a_function_of_the_program_itself_is_found(tmp_path: Path, method: StartMethod) -> None:
    guard = 'if __name__ == "__main__": '
    assert program(tmp_path, guard, method) == "(1, '__mp_main__', True)\n"


@pytest.mark.slow
def test_a_program_without_a_guard_does_not_start_itself_for_ever(tmp_path: Path) -> None:
    said = program(tmp_path, "", "forkserver").splitlines()
    assert said[0].startswith("this program starts jobs while its own child imports it")
    assert said[1:] == ["(1, '__mp_main__', True)"]


# Many ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_runner_has_as_many_children_as_there_are_calls_at_once() -> None:
    processes: Runner = Processes(grace_s=0.2)
    barrier = threading.Barrier(3)
    ended: list[Any] = []

    def drive() -> None:
        barrier.wait()
        for number in range(500):
            options = {"timeout_s": None, "stop": StopSign(), "retry": RETRY}
            ended.append(processes.carry_out(jobs.add, (number,), {}, **options))

    threads = [Thread(target=drive) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(end.value for end in ended) == sorted([*range(1, 501)] * 3)
    assert isinstance(processes, Processes)
    assert 1 <= len(processes._slots) <= 3
    processes.close(5.0)
    late = processes.carry_out(jobs.add, (1,), {}, timeout_s=None, stop=StopSign(), retry=RETRY)
    assert late == UNBEGUN


@pytest.mark.slow
def test_threads_that_share_a_slot_take_turns(slot: ProcessSlot) -> None:
    sums: list[int] = []
    work = partial(lambda: sums.extend(value(slot, jobs.add, number) for number in range(100)))
    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sums) == sorted([*range(1, 101)] * 4)
