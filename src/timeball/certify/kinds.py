"""What the jobs of scenarios do: note in the effect ledger that they began and ended."""

from __future__ import annotations

import ctypes
import time
from pathlib import Path
from typing import Final

from timeball.action.context import Context
from timeball.action.registry import Registry
from timeball.certify.effects import BEGAN, ENDED, note

LOADER: Final = "timeball.certify.kinds:registry"
PREFIX: Final = "certify."
"""Of the names of kinds that note what they do."""

NOTE: Final = "certify.note"
SAYS: Final = "certify.says"
HOLD: Final = "certify.hold"
HOGS: Final = "certify.hogs"
HOGS_LOOP: Final = "certify.hogs-loop"
_LOOK_S: Final = 0.005


def registry(folder: str) -> Registry:
    """Return the kinds of scenarios, which note what they do in `folder`."""
    kinds = Registry()

    @kinds.job(name=NOTE)
    def _note(context: Context) -> None:
        note(folder, BEGAN, context.id, context.turn)
        note(folder, ENDED, context.id, context.turn)

    @kinds.job(name=SAYS)
    def _says(context: Context) -> None:
        """Say how far it is, which its worker writes down."""
        note(folder, BEGAN, context.id, context.turn)
        context.progress(1, 1)
        note(folder, ENDED, context.id, context.turn)

    @kinds.job(name=HOLD)
    def _hold(context: Context, gate: str) -> None:
        """Go on until the file of that name is in the folder."""
        note(folder, BEGAN, context.id, context.turn)
        while not Path(folder, gate).exists():
            time.sleep(_LOOK_S)
        note(folder, ENDED, context.id, context.turn)

    @kinds.job(name=HOGS)
    def _hogs(context: Context, seconds: float) -> None:
        """Call C code that keeps the interpreter's lock, so that no thread of this process runs."""
        note(folder, BEGAN, context.id, context.turn)
        ctypes.PyDLL(None).usleep(int(seconds * 1e6))
        note(folder, ENDED, context.id, context.turn)

    @kinds.job(name=HOGS_LOOP)
    async def _hogs_loop(context: Context, seconds: float) -> None:
        note(folder, BEGAN, context.id, context.turn)
        time.sleep(seconds)  # noqa: ASYNC251 - which it should not, and that is the point
        note(folder, ENDED, context.id, context.turn)

    return kinds
