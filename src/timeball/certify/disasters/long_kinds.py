"""Jobs that go on and on, and say so: those that nobody else may run meanwhile."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from timeball.action.context import Context
from timeball.action.registry import Registry
from timeball.certify.effects import BEGAN, ENDED, note

LOADER: Final = "timeball.certify.disasters.long_kinds:registry"
ALONE: Final = "certify.alone"
ALIVE: Final = "alive"
"""What such a job notes all the time."""

_LOOK_S: Final = 0.02


def registry(folder: str) -> Registry:
    """Return the kinds, which note what they do in `folder`."""
    kinds = Registry()

    @kinds.job(name=ALONE, exclusive=True)
    def _alone(context: Context, gate: str) -> None:
        """Go on until the file of that name is in the folder, and note that all the time."""
        note(folder, BEGAN, context.id, context.turn)
        while not Path(folder, gate).exists():
            note(folder, ALIVE, context.id, context.turn)
            time.sleep(_LOOK_S)
        note(folder, ENDED, context.id, context.turn)

    return kinds
