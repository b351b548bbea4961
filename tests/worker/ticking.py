"""A program that forks nodes: processes that tick, and tell when they have fired.

A line on stdin asks for one more node; `node PID` answers, and each that fires writes `fired PID`.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import NoReturn

from timeball.action.minder import PR_SET_PDEATHSIG, prctl
from timeball.errors import StoreUnavailable
from timeball.store.postgres import PostgresStore
from timeball.worker.ticker import Ticker


def tick(dsn: str) -> NoReturn:
    """Tick without a rest, since this clock is not the one that counts."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    ticker = Ticker(PostgresStore(dsn))
    while True:
        try:
            if ticker.tick().jobs:
                os.write(1, f"fired {os.getpid()}\n".encode())
        except StoreUnavailable:
            pass
        time.sleep(0.002)


def main() -> None:
    """Serve until stdin ends; the nodes end with this process."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for _ in sys.stdin:
        pid = os.fork()
        if pid == 0:
            tick(sys.argv[1])
        os.write(1, f"node {pid}\n".encode())


if __name__ == "__main__":
    main()
