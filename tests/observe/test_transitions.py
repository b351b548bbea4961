"""Log lines: one JSON object each, whatever is in them."""

from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.core.states import Ending
from timeball.observe.transitions import (
    LOGGER,
    Happening,
    JsonFormatter,
    LogFormat,
    Transition,
    configure,
    tell,
    telling,
)


def record(said: object, *args: object, level: int = logging.DEBUG) -> logging.LogRecord:
    return logging.LogRecord("timeball.transition", level, __file__, 1, said, args, None)


def line(said: object, *args: object) -> dict[str, object]:
    """What a formatted line holds; it is one line."""
    text = JsonFormatter().format(record(said, *args))
    assert len(text.splitlines()) == 1
    found: dict[str, object] = json.loads(text)
    return found


def test_a_line_names_what_is_known_and_leaves_out_the_rest() -> None:
    said = line(Transition(Ending.RETRIED, 7, "mail", 2, 2, error_type="OSError", delay_s=1.5))
    del said["at"], said["pid"]
    assert said == {
        "level": "DEBUG",
        "logger": "timeball.transition",
        "event": "retried",
        "job": 7,
        "kind": "mail",
        "turn": 2,
        "attempt": 2,
        "error_type": "OSError",
        "delay_s": 1.5,
    }


@given(st.text(st.characters()), st.text(st.characters(categories=["Cs", "Cc", "Zl", "Zp"])))
def test_whatever_a_name_holds_it_stays_one_line(kind: str, job: str) -> None:
    said = line(Transition(Happening.BEGUN, job, kind))
    for name, given_ in (("kind", kind), ("job", job)):
        assert said[name] == given_.encode("utf-8", "backslashreplace").decode()


def test_other_records_are_lines_too() -> None:
    assert line("too late: %s", "a\nb")["message"] == "too late: a\nb"


def test_a_traceback_is_a_string_in_the_line() -> None:
    made, error = record("it failed"), ValueError("why\nnot")
    made.exc_info = (ValueError, error, None)
    text = JsonFormatter().format(made)
    assert len(text.splitlines()) == 1
    assert "ValueError: why\nnot" in json.loads(text)["traceback"]


def test_as_text_a_transition_reads_like_a_sentence() -> None:
    said = Transition(Ending.SUCCEEDED, 7, "mail", 1, began_at=3.5)
    assert str(said) == "succeeded job=7 kind=mail turn=1 began_at=3.5"
    assert record(said).getMessage() == str(said)


def test_nothing_is_told_unless_somebody_asks(caplog: pytest.LogCaptureFixture) -> None:
    assert not telling()
    tell(Transition(Happening.CLAIMED))
    assert caplog.records == []
    with caplog.at_level(logging.DEBUG, LOGGER.name):
        assert telling()
        tell(Transition(Happening.CLAIMED))
    assert [record.msg for record in caplog.records] == [Transition(Happening.CLAIMED)]


def test_json_is_configured_where_nobody_has_configured_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr(LOGGER, "level", LOGGER.level)
    configure(LogFormat.JSON)
    LOGGER.manager._clear_cache()  # type: ignore[attr-defined]  # setattr above goes past it
    (handler,) = root.handlers
    assert isinstance(handler.formatter, JsonFormatter)
    assert telling()
    configure(LogFormat.TEXT)
    assert root.handlers == [handler]
