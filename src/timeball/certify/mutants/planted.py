"""Defects of programs that are processes of their own: put in by `boot` when those begin."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import ExitStack
from threading import Event, Thread
from typing import Any, Final

from timeball.certify.mutants.defects import InCode
from timeball.certify.overlay import Patch
from timeball.store.postgres import PostgresStore
from timeball.worker.beat import Beat
from timeball.worker.supervisor import Supervisor

_KEPT: Final = ExitStack()
"""What would be taken back if nobody held it."""


def patched(module: str, function: str, old: str, new: str) -> None:
    """Replace some code of one function of this process, for good."""
    _KEPT.enter_context(InCode(Patch(module, function, old, new)).put_in(None))


def beats_itself() -> None:
    """Have workers give their own signs of life, and supervisors none."""
    register: Any = PostgresStore.register

    def registers(
        self: PostgresStore, name: str, *, kinds: Collection[str], queues: Sequence[str],
        lease_s: float,
    ) -> int:  # fmt: skip
        worker: int = register(self, name, kinds=kinds, queues=queues, lease_s=lease_s)
        store = PostgresStore(self.connections.dsn)
        beat = Beat(store, lambda: {worker}, lambda _: None, lease_s=lease_s)
        Thread(target=beat.run, args=(Event(),), daemon=True).start()
        return worker

    PostgresStore.register = registers  # type: ignore[method-assign] # from outside
    Supervisor._workers = lambda _: set()  # type: ignore[assignment, method-assign] # noqa: SLF001 - the same
