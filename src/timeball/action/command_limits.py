"""What each process of a command may take at most, by the kernel's own limits.

- ``cpu_s``: seconds of processor time; then it is killed.
- ``memory_bytes``: address space; beyond it the program gets no more memory.
- ``file_bytes``: the size of any file that it writes; beyond it SIGXFSZ.
- ``open_files``: descriptors.
- ``processes``: of the user as a whole, so it is for commands that run as a user of their own;
  it does not hold root.
- ``core_bytes``: the memory image of a crash; 0 unless said otherwise, for it may hold secrets.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from timeball.errors import UsageError

RLIMITS: Final = MappingProxyType(
    {
        "cpu_s": resource.RLIMIT_CPU,
        "memory_bytes": resource.RLIMIT_AS,
        "file_bytes": resource.RLIMIT_FSIZE,
        "open_files": resource.RLIMIT_NOFILE,
        "processes": resource.RLIMIT_NPROC,
        "core_bytes": resource.RLIMIT_CORE,
    }
)
"""The kernel's number of each."""

_MOST: Final = 1 << 62


def check_limits(limits: Mapping[str, int]) -> None:
    """Raise `UsageError` if one of them is unknown or no limit."""
    for name, most in limits.items():
        if name not in RLIMITS:
            raise UsageError(f"limits has no {name!r}: it has {', '.join(RLIMITS)}")
        if type(most) is not int or not 0 <= most <= _MOST:
            raise UsageError(f"limits[{name!r}] is {most!r}: write a whole number, 0 or more")
