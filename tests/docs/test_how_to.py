"""The commands that the how-to pages show write what the pages show."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.invoking import invoke

PAGES = sorted((Path(__file__).parents[2] / "docs" / "how-to").glob("*.md"))
FENCE = re.compile(
    r'^```(?P<kind>\w+)(?: title="(?P<name>[\w.]+)")?\n(?P<text>.*?)^```$', re.MULTILINE | re.DOTALL
)


@pytest.fixture(autouse=True)
def settled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Now is fixed, this machine is in Paris, and files lie in a folder of their own."""
    monkeypatch.setattr("timeball.chance.now", lambda: datetime(2026, 3, 7, 12, tzinfo=UTC))
    monkeypatch.setattr("timeball.core.cron.zone_version", lambda: "2026f")
    monkeypatch.setenv("TZ", "Europe/Paris")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_shows_is_what_happens(page: Path) -> None:
    for block in FENCE.finditer(page.read_text()):
        kind, name, text = block.group("kind", "name", "text")
        if kind == "console":
            command, _, shown = text.partition("\n")
            assert written(command) == shown
        elif name and Path(name).exists():
            assert Path(name).read_text() == text
        elif name:
            Path(name).write_text(text)


def written(command: str) -> str:
    """What a command writes to stdout and then to stderr."""
    result = invoke(*command.removeprefix("$ timeball ").split())
    return result.stdout + result.stderr
