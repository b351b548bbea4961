"""What is written: plain in a pipe, drawn on a terminal, harmless everywhere."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest

from timeball.cli import output

NASTY = "\x1b]0;owned\x07[bold]x[/bold]\u202e"
SHOWN = "\\x1b]0;owned\\x07[bold]x[/bold]\\u202e"


def test_a_piped_table_is_aligned_text(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_table(("name", "count"), [("long name", 1), ("x", 22)])
    assert capsys.readouterr().out == "NAME       COUNT\nlong name  1\nx          22\n"


def test_a_tab_or_a_line_end_in_a_cell_breaks_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_table(("a", "b"), [("x\ty", "1\n2")])
    assert capsys.readouterr().out == "A    B\nx y  1\\n2\n"


def drawn(capsys, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm-256color")
    output.write_table(("state", "text"), [("failed", NASTY)])
    return capsys.readouterr().out


def test_on_a_terminal_it_is_drawn_and_obeys_no_cell(capsys, monkeypatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = drawn(capsys, monkeypatch)
    assert "\x1b[31mfailed" in text
    assert SHOWN in text


def test_no_color_is_obeyed(capsys, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    text = drawn(capsys, monkeypatch)
    assert "failed" in text
    assert "\x1b[31m" not in text


def test_talk_and_data_are_harmless_and_apart(capsys: pytest.CaptureFixture[str]) -> None:
    output.write(f"data {NASTY}\nsecond line")
    output.say(f"talk {NASTY}")
    written = capsys.readouterr()
    assert written.out == f"data {SHOWN}\nsecond line\n"
    assert written.err == f"talk {SHOWN}\n"


def test_json_says_its_version_and_holds_nothing_a_terminal_obeys(capsys) -> None:
    output.write_json({"text": NASTY, "id": UUID(int=1), "at": datetime(2026, 3, 1, tzinfo=UTC)})
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert json.loads(text) == {
        "schema_version": 1,
        "text": NASTY,
        "id": str(UUID(int=1)),
        "at": "2026-03-01T00:00:00Z",
    }


def test_json_lines_are_one_object_each(capsys: pytest.CaptureFixture[str]) -> None:
    output.write_jsonl([{"n": 1}, {"n": 2}])
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {"schema_version": 1, "n": 1},
        {"schema_version": 1, "n": 2},
    ]


def test_instants_are_shown_with_their_offset() -> None:
    at = datetime(2026, 3, 8, 3, 0, 0, 500_000, tzinfo=timezone(timedelta(hours=-4)))
    assert output.iso(at) == "2026-03-08T07:00:00.500000Z"
    assert output.shown(at, utc=True) == "2026-03-08 07:00:00+00:00"
    local = output.shown(at, utc=False)
    assert datetime.fromisoformat(local) == at.replace(microsecond=0)
    assert output.shown(None, utc=True) == ""
