"""A patch fits exactly once or not at all, and what is patched is a copy."""

from __future__ import annotations

import linecache

import pytest

from timeball.certify.overlay import Drift, Overlay, Patch
from timeball.core import retry

RETRY = "timeball.core.retry"

SOURCE = """
class Counter:
    def add(self, n):
        if n < 0:
            return
        self.total += n
        self.seen = True

    def twice(self):
        self.add(1)
        self.add(1)
"""


def patched(function: str, old: str, new: str) -> str:
    return Patch("counter", function, old, new).apply(SOURCE)


def test_an_expression_is_replaced_in_its_line() -> None:
    assert "        if n <= 0:\n" in patched("Counter.add", "n<0", "n <= 0")


def test_statements_are_replaced_with_their_indentation() -> None:
    changed = patched(
        "Counter.add",
        "self.total += n\nself.seen = True",
        "old = self.total\nif old:\n    self.total = old + n",
    )
    tail = "        old = self.total\n        if old:\n            self.total = old + n\n\n"
    assert tail in changed
    assert "self.seen" not in changed


@pytest.mark.parametrize(
    ("function", "old"),
    [
        ("Counter.add", "n > 0"),
        ("Counter.twice", "self.add(1)"),
        ("Counter.take", "n < 0"),
        ("Counted.add", "n < 0"),
        ("Counter.add", "self.seen = True\nself.total += n"),
    ],
)
def test_a_pattern_that_is_not_there_once_is_an_error(function: str, old: str) -> None:
    with pytest.raises(Drift):
        patched(function, old, "None")


def test_a_copy_has_the_defect_and_the_original_has_not() -> None:
    patch = Patch(RETRY, "Retry.delay_s", "failures - 1", "failures - 2")
    copy = Overlay([RETRY], patches=[patch], label="one wait late")[RETRY]
    assert copy.Retry is not retry.Retry
    text = "".join(linecache.getlines("<one wait late>/timeball/core/retry.py"))
    assert "failures - 2" in text


def test_what_is_not_patched_keeps_its_file() -> None:
    overlay = Overlay([RETRY])
    assert overlay[RETRY].Retry(3) != retry.Retry(3)
    assert overlay.files == {RETRY: retry.__file__}
