"""How much one call of `timeball up` or `timeball worker` may ask of a machine."""

from __future__ import annotations

from typing import Final

SLOTS_MAX: Final = 10_000
CHILDREN_MAX: Final = 256
"""Each is a process and a few connections; a slip of the finger must not bring a machine down."""

LEASE_MIN_S: Final = 1.0
POLL_MIN_S: Final = 0.01
