"""Defects of what only processes show."""

from __future__ import annotations

from typing import Final

from timeball.certify.boot import Boot
from timeball.certify.mutants.defects import InMinder, Planted
from timeball.certify.mutants.durable_record import DurableMutant
from timeball.certify.probes import processes

_PLANTED: Final = "timeball.certify.mutants.planted"

PROCESSES: Final = (
    DurableMutant(
        id="M33",
        defect="beats come from the worker's own process",
        probe=processes.HOGGED,
        patches=(Planted(Boot(call=f"{_PLANTED}:beats_itself")),),
    ),
    DurableMutant(
        id="M48",
        defect="of a command only the direct child is killed",
        probe=processes.TIMED_OUT,
        patches=(
            InMinder(
                "for pid in descendants(os.getpid()): send(number, process=pid)",
                "for pid in [self.child]: send(number, process=pid)",
            ),
        ),
    ),
    DurableMutant(
        id="M49",
        defect="SIGTERM is left to the kernel, which ends who does not catch it, and PID 1 never",
        probe=processes.TOLD_TO_END,
        patches=(
            Planted(
                Boot(
                    call=f"{_PLANTED}:patched",
                    options={
                        "module": "timeball.worker.supervisor",
                        "function": "Supervisor._signals",
                        "old": "{signal.SIGTERM, signal.SIGINT, signal.SIGHUP}",
                        "new": "{signal.SIGINT, signal.SIGHUP}",
                    },
                )
            ),
        ),
    ),
)
