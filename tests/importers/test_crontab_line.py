"""The rule for `%`, and what a line shows of itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timeball.importers.crontab_line import harmless, split_percent

TEXT = st.text(st.sampled_from("%\\ab \n'"), max_size=30)


def escaped(text: str) -> str:
    return text.replace("%", "\\%")


@pytest.mark.parametrize(
    ("text", "command", "stdin"),
    [
        ("x", "x", b""),
        (r"date +\%F", "date +%F", b""),
        ("x%", "x", b""),
        ("x%%", "x", b"\n"),
        ("x%a", "x", b"a\n"),
        ("x%a%", "x", b"a\n"),
        ("x%a%%b", "x", b"a\n\nb\n"),
        (r"x%50\% off%bye", "x", b"50% off\nbye\n"),
        (r"grep '\.py\\' \n", r"grep '\.py\\' \n", b""),
        (r"x \\% y", r"x \% y", b""),
        ("x%é", "x", "é\n".encode()),
    ],
)
def test_percent_means_what_cron_says(text: str, command: str, stdin: bytes) -> None:
    assert split_percent(text) == (command, stdin)


@given(text=TEXT)
def test_an_escaped_command_comes_back_as_it_was(text: str) -> None:
    assert split_percent(escaped(text)) == (text, b"")


@given(command=st.text("%ab '", max_size=20), lines=st.lists(st.text("%ab\\ "), min_size=1))
def test_input_comes_back_line_by_line(command: str, lines: list[str]) -> None:
    # A line that ends in a backslash would escape the % that ends it: cron cannot say that.
    ended = [line.rstrip("\\") for line in lines]
    text = "%".join(escaped(part) for part in (command, *ended))
    data = "\n".join(ended)
    expected = data if not data or data.endswith("\n") else data + "\n"
    assert split_percent(text) == (command, expected.encode())


@given(text=st.text())
def test_harmless_text_is_one_printable_line_of_bounded_length(text: str) -> None:
    shown = harmless(text, 40)
    assert shown.isprintable()
    assert len(shown) <= 40


@given(text=st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=40))
def test_plain_text_is_shown_as_it_is(text: str) -> None:
    assert harmless(text, 40) == text
