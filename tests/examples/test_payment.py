"""The example of a payment charges once, however often it asks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "payment.py"


@pytest.mark.slow
def test_a_payment_whose_answer_is_lost_is_charged_once() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == '3 attempts, 1 charge: {"status": "charged"}\n', done.stderr
