"""The newest lines of a command while it runs: whole lines, bounded, and no part of a secret."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.action.attempts import turn

from timeball.action import command_kind as module
from timeball.action.command import Command, run
from timeball.action.command_kind import command_kind
from timeball.action.command_tail import Tail
from timeball.action.context import Lent, StopSign
from timeball.action.notebook import Notebook
from timeball.action.python import carry_out
from timeball.core.notes import BYTES_MAX, LINES_MAX, Note
from timeball.core.outcomes import Returned
from timeball.observe.concealment import conceal


def told(*chunks: bytes, ended: bool = False) -> list[str]:
    said: list[str] = []
    tail = Tail(said.append, first_s=0)
    for chunk in chunks:
        tail.add(chunk)
    tail.tell()
    if ended:
        tail.tell(ended=True)
    return said


def test_whole_lines_are_told_and_the_last_with_the_end() -> None:
    assert told(b"one\ntw", b"o\nthr") == ["one", "two"]
    assert told(b"one\ntw", b"o\nthr", ended=True) == ["one", "two", "thr"]


def test_a_line_that_overwrites_itself_is_told_as_it_is_last_seen() -> None:
    assert told(b"10 %\r20 %\r30 %\r\nnext\r\n\n") == ["30 %", "next"]


def test_a_character_in_two_halves_is_one() -> None:
    assert told("ä".encode()[:1], "ä".encode()[1:] + b"\n\xff\x1b[2J\n") == ["ä", "\ufffd␛[2J"]


def test_of_a_flood_the_newest_whole_lines_are_told() -> None:
    line = b"x" * 90 + b" %06d\n"
    said = told(*(line % number for number in range(20_000)))
    assert len(said) == LINES_MAX
    assert said[-1].endswith(" 019999")
    assert {len(each) for each in said} == {97}


@pytest.mark.parametrize("then", ["a line", "the end"])
def test_a_line_without_end_takes_no_more_memory_and_is_not_told_in_part(then: str) -> None:
    said: list[str] = []
    tail = Tail(said.append, first_s=0)
    for _ in range(100):
        tail.add(b"secret" * 10_000)
        tail.tell()
        assert len(tail._pending) <= 2 * BYTES_MAX + 60_000
    tail.add(b"\nwhole\n" if then == "a line" else b"")
    tail._next_at = 0
    tail.tell(ended=then == "the end")
    assert said == (["whole"] if then == "a line" else [])


def test_of_a_short_command_nothing_is_told() -> None:
    said: list[str] = []
    tail = Tail(said.append)
    run(Command(shell_text="echo one; echo two"), tail=tail)
    assert said == []


def test_lines_are_told_while_the_command_runs_and_stands_still(tmp_path: Path) -> None:
    """Also the last word before a silence, for which nothing that follows gives an occasion."""
    heard = threading.Event()

    def say(line: str) -> None:
        said.append(line)
        if line == "two":
            heard.set()
            (tmp_path / "go").touch()

    said: list[str] = []
    waits = "echo one; echo two; until test -e go; do sleep 0.01; done; echo three"
    command = Command(shell_text=waits, cwd=str(tmp_path), timeout_s=60)
    end = run(command, tail=Tail(say, first_s=0.05))
    assert heard.is_set()
    assert (end.exit_code, said) == (0, ["one", "two", "three"])


def test_a_worker_keeps_them_with_the_job_and_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    conceal("canary-value", "env:T")
    conceal("-----BEGIN KEY-----\nMIIcanary0123\n-----END KEY-----", "env:PEM")
    kept: list[Note] = []

    def write(notes: Sequence[Note]) -> set[int]:
        kept.extend(notes)
        return {note.job_id for note in notes}

    monkeypatch.setattr(module, "Tail", lambda say: Tail(say, first_s=0))
    notebook = Notebook(write)
    text = "echo begun; echo canary-value; echo MIIcanary0123; sleep 0.02; echo done"
    kind = command_kind("line", Command(shell_text=text))
    assert isinstance(carry_out(kind, turn(), StopSign(), Lent(notebook=notebook)), Returned)
    notebook.close()
    lines = [line.text for note in kept for line in note.lines]
    assert lines == ["begun", "[secret env:T]", "[secret env:PEM]", "done"]
