"""Progress: a bar on a terminal, lines elsewhere, and stdout untouched."""

from __future__ import annotations

import sys

import pytest

from timeball.cli.progress import Bar


def test_elsewhere_it_is_a_line_a_second(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    with Bar("jobs", 10) as bar:
        bar.advance(1)
        now = 1.5
        bar.advance(5)
        bar.advance(6)
        now = 3.0
        bar.advance(99)
        bar.say("one was killed")
    assert capsys.readouterr() == (
        "",
        "5 of 10 jobs have ended\n10 of 10 jobs have ended\none was killed\n",
    )


def test_on_a_terminal_it_is_a_bar_on_stderr(capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with Bar("jobs", 10) as bar:
        bar.advance(5)
        bar.say("one [bold]was[/bold] killed")
        bar.advance(10)
    written = capsys.readouterr()
    assert written.out == ""
    assert "100%" in written.err
    assert "one [bold]was[/bold] killed" in written.err
