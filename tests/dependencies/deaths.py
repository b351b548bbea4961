"""A job that kills its process the first time: for a scheduler whose jobs run in processes."""

from __future__ import annotations

import os
import signal


def node(fails: bool, mark: str = "") -> None:  # noqa: FBT001 - a job's arguments are plain
    """Die, if `mark` is a file that is not there yet; then fail or not."""
    if mark and not os.path.exists(mark):  # noqa: PTH110 - imported in every process
        os.close(os.open(mark, os.O_CREAT))
        os.kill(os.getpid(), signal.SIGKILL)
    if fails:
        raise PermissionError
