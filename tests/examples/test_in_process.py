"""The example of the in-process engine does its work, and judges itself by what it reports."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "in_process.py"


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--async"]], ids=["threads", "async"])
def test_the_example_does_every_job_and_exits_by_its_own_figures(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE), "--jobs", "600", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "600 jobs: 600 succeeded" in done.stdout, done.stderr
    assert "720, of which 120 retries, in 8 slots" in done.stdout
    assert done.stdout.endswith("violations []\n")
    (efficiency,) = re.findall(r"efficiency ([\d.]+) %", done.stdout)
    assert done.returncode == (0 if float(efficiency) >= 97 else 1)
