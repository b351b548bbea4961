"""The page of promises names tests that exist, for each of its lines."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path("docs/concepts/promises.md")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")


def lines() -> list[tuple[str, str]]:
    """What must hold, and the cell of its tests."""
    rows = re.findall(r"^\| (.+) \| (.+) \|$", PAGE.read_text(), re.MULTILINE)
    return [row for row in rows if row[0] != "what must hold"]


def test_every_test_that_attacks_a_promise_exists() -> None:
    named = [found for _, cell in lines() for found in TEST.findall(cell)]
    assert len(named) > 200
    texts = {path: Path(path).read_text() for path, _ in named}
    assert [each for each in named if f"def {each[1]}(" not in texts[each[0]]] == []


def test_every_promise_is_attacked() -> None:
    assert len(lines()) > 100
    assert [promise for promise, cell in lines() if not TEST.search(cell)] == []


def test_every_invariant_that_is_audited_is_there() -> None:
    audited = set(
        re.findall(r"\| (I\d+'?(?:, I\d+'?)*) \|", Path("docs/how-to/audit.md").read_text())
    )
    names = {name for cell in audited for name in cell.split(", ")}
    assert len(names) > 15
    assert names <= {promise.partition(" ")[0] for promise, _ in lines()}
