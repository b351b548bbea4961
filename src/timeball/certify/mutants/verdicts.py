"""What became of one mutant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a defect was seen by the check that names it."""

    id: str
    defect: str
    check: str
    """What had to fail, and nothing else."""

    sound: bool
    """Whether the code as it is passes the check."""

    killed: bool
    """Whether the check holds without the defect and fails with it."""

    seen: Any
    """What the check saw with the defect; JSON values."""

    wall_s: float

    def __str__(self) -> str:
        how = "killed" if self.killed else "SURVIVED" if self.sound else "UNSOUND"
        return f"{self.id} {how} in {self.wall_s:.1f} s by “{self.check}”: {self.seen}"
