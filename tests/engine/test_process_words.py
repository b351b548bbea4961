"""What a job in a process says before it answers: heard in order, however the bytes arrive."""

from __future__ import annotations

import os
from collections.abc import Iterator
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.action.context import StopSign
from timeball.core.retry import Retry
from timeball.engine.process_child import DONE, SAID, receive, say, send
from timeball.engine.process_link import Child
from timeball.engine.processes import Processes
from timeball.engine.runner import Done


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for fd in ends:
        os.close(fd)


@given(sizes=st.lists(st.integers(0, 40_000), max_size=4))
def test_frames_that_arrive_together_are_told_apart(sizes: list[int]) -> None:
    reader, writer = os.pipe()
    bodies = [bytes([n]) * size for n, size in enumerate(sizes)]

    def write() -> None:
        for body in bodies:
            send(writer, SAID, body)
        os.close(writer)

    thread = Thread(target=write)
    thread.start()
    ahead = bytearray()
    assert [bytes(receive(reader, None, ahead)[1]) for _ in bodies] == bodies
    assert not ahead
    thread.join()
    os.close(reader)


def test_an_answer_behind_what_was_said_is_the_answer(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    to_child, jobs = os.pipe()
    heard: list[bytes] = []
    child = Child(jobs, os.dup(reader))
    child.told = lambda body: heard.append(bytes(body))
    for word in (b"one", b"two"):
        send(writer, SAID, word)
    send(writer, DONE, b"answer")
    assert child.ask((b"", b"order"), None) == (DONE, b"answer")
    assert heard == [b"one", b"two"]
    child.close()
    os.close(to_child)


def speak(count: int) -> int:
    for n in range(count):
        say(n)
    return count


@pytest.mark.slow
def test_what_a_job_says_is_heard_before_its_end() -> None:
    heard: list[int] = []
    processes = Processes(told=heard.append)
    try:
        ended = processes.carry_out(
            speak, (300,), {}, timeout_s=None, stop=StopSign(), retry=Retry()
        )
        assert (ended, heard) == (Done(300), list(range(300)))
    finally:
        processes.close(5)


@pytest.mark.slow
def test_where_nobody_listens_it_is_lost_and_the_job_goes_on() -> None:
    processes = Processes()
    try:
        ended = processes.carry_out(speak, (3,), {}, timeout_s=30.0, stop=StopSign(), retry=Retry())
        assert ended == Done(3)
    finally:
        processes.close(5)
