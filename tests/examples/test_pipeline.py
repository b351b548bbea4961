"""The example of a graph draws it, runs it, and judges itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "pipeline.py"


@pytest.mark.slow
def test_the_pipeline_goes_as_it_should_and_is_drawn() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    graph, gantt, *_ = done.stdout.split("\n\n")
    assert len(graph.splitlines()) == len(gantt.splitlines()) == 23
    assert "22 load       <- 2 … 21" in graph
    lines = gantt.splitlines()
    assert ["x" in line for line in lines] == [n == 8 for n in range(23)]
    assert ["#" not in line and line.endswith("skipped") for line in lines].index(True) == 20
    assert done.stdout.endswith("as it should be\n")
