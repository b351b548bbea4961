"""A worker process that runs the jobs of a graph until it is killed: `python -m … DSN`.

It writes the number of each of its registrations to stdout.
"""

from __future__ import annotations

import os
import sys
from random import random

from timeball import Retry
from timeball.action.registry import Registry
from timeball.store.postgres import PostgresStore
from timeball.worker.config import WorkerConfig
from timeball.worker.loop import Worker

registry = Registry()


@registry.job(name="good")
def good() -> None: ...


@registry.job(name="bad", retry=Retry(0))
def bad() -> None:
    raise PermissionError


if __name__ == "__main__":
    config = WorkerConfig(name=f"graph-{os.getpid()}", slots=8, poll_s=0.05)
    Worker(
        PostgresStore(sys.argv[1]),
        registry,
        config,
        draw=random,
        on_registered=lambda number: print(number, flush=True),
    ).work()
