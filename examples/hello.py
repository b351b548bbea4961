"""A job and its schedule.

Look at it, run it until Ctrl-C, and add one more greeting from another terminal::

    timeball up examples/hello.py --dry-run
    timeball up examples/hello.py
    timeball submit hello.greet name=Ada --wait
"""

from __future__ import annotations

import timeball as tb


@tb.cron("*/10 * * * * *", "Europe/Paris", args={"name": "world"})
@tb.job(retry=tb.Retry(5))
def greet(name: str) -> str:
    """Return a greeting; it is kept as the job's result."""
    return f"Hello, {name}!"
