"""Files that exist in memory only, to be shared with a child by their descriptor."""

from __future__ import annotations

import os
import sys
import tempfile


def memory_file(name: str, size: int) -> int:
    """Return the descriptor of a new file of so many zero bytes; closing it frees them."""
    if sys.platform == "linux":
        fd = os.memfd_create(name)
    else:
        fd, path = tempfile.mkstemp(prefix=f"{name}-")
        os.unlink(path)  # noqa: PTH108 - there is no Path here to begin with
    os.truncate(fd, size)
    return fd
