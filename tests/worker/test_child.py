"""What a child hears from its supervisor, and what it loads."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from timeball.action.registry import Registry
from timeball.errors import UsageError
from timeball.worker.child import FAILURE_MAX, Brief, Link, Load, Said
from timeball.worker.config import WorkerConfig

BRIEF = Brief(
    dsn="postgresql:///tides",
    loads=(Load(target="app"), Load(target="a.cron", loader="x:y", options={"tz": "UTC"})),
    worker=WorkerConfig(name="a", queues=("mail", "default"), slots=3),
    begun_fd=5,
)


@pytest.fixture
def line() -> Iterator[tuple[Link, socket.socket]]:
    """A child's link, and the supervisor's end of it."""
    theirs, ours = socket.socketpair()
    with theirs, ours:
        yield Link(theirs), ours


def heard(ours: socket.socket) -> Said:
    return msgspec.json.decode(ours.recv(1 << 16), type=Said)


def loader(target: str, **options: str) -> Registry:
    """What a loader of the command line looks like."""
    registry = Registry()
    registry.job(name=f"{target} {options['tz']}")(lambda: None)
    return registry


# The line


def test_a_brief_arrives_whole_and_nothing_after_it_is_taken(
    line: tuple[Link, socket.socket],
) -> None:
    link, ours = line
    ours.sendall(msgspec.json.encode(BRIEF) + b"\n!")
    assert link.read_brief() == BRIEF
    assert link._control.recv(9) == b"!"


def test_half_a_brief_is_none(line: tuple[Link, socket.socket]) -> None:
    link, ours = line
    ours.sendall(msgspec.json.encode(BRIEF)[:-9])
    ours.shutdown(socket.SHUT_WR)
    assert link.read_brief() is None


def test_a_registration_is_told(line: tuple[Link, socket.socket]) -> None:
    link, ours = line
    link.say_registered(7)
    assert heard(ours) == Said(worker=7)


def test_a_child_whose_supervisor_has_died_talks_to_nobody(
    line: tuple[Link, socket.socket],
) -> None:
    link, ours = line
    ours.close()
    link.say_registered(7)


def test_of_an_import_that_failed_the_cause_is_told(line: tuple[Link, socket.socket]) -> None:
    link, ours = line
    error = UsageError("app cannot be imported")
    error.__cause__ = KeyError("lighthouse")
    link.say_failed(UsageError, error, None)
    told = heard(ours).failed or ""
    assert "KeyError: 'lighthouse'" in told
    assert told.endswith("app cannot be imported\n")


def test_a_long_error_is_told_from_its_end(line: tuple[Link, socket.socket]) -> None:
    link, ours = line
    error = RuntimeError("x" * 2 * FAILURE_MAX + "end")
    link.say_failed(RuntimeError, error, None)
    told = heard(ours).failed or ""
    assert len(told) == FAILURE_MAX
    assert told.endswith("end\n")


# What it loads


def test_a_loader_is_called_with_its_target_and_options() -> None:
    registry = Registry()
    Load(target="a.cron", loader=f"{__name__}:loader", options={"tz": "UTC"}).into(registry)
    assert list(registry) == ["a.cron UTC"]


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing"):
        Load(target=str(tmp_path / "nothing.py")).into(Registry())


def test_of_a_wrong_setting_the_text_is_told_and_no_traceback(
    line: tuple[Link, socket.socket],
) -> None:
    link, ours = line
    link.say_failed(UsageError, UsageError("TIMEBALL_HTTP_ALLOW: write another"), None)
    assert heard(ours).failed == "TIMEBALL_HTTP_ALLOW: write another\n"
