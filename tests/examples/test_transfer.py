"""The example of a transactional job: money moves once or not at all, and its child with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.processes import temporary_home

EXAMPLE = Path(__file__).parents[2] / "examples" / "transfer.py"
WAIT = ("--wait", "--timeout", "30s")


@pytest.mark.slow
def test_what_fails_has_moved_nothing_and_told_nobody(tmp_path: Path) -> None:
    with temporary_home(tmp_path / "home") as home, home.start("up", str(EXAMPLE)) as up:
        up.wait_for("Ctrl-C stops")
        assert "succeeded" in home.said("submit", "transfer.opened", *WAIT)
        assert "succeeded" in home.said("submit", "transfer.move", "amount=30", *WAIT)
        home.run("submit", "transfer.move", "amount=500", *WAIT)
        assert '{"Ada": 70, "Bob": 30}' in home.said("submit", "transfer.balances", *WAIT)
        told = home.said("jobs", "list", "--kind", "transfer.tell")
        assert told.count("transfer.tell") == 1
        assert up.stop() == 0
