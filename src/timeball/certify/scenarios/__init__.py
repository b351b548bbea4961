"""What is done to the in-process engine under the stepper."""

from __future__ import annotations

from typing import Final

from timeball.certify.scenarios import jobs, loops, paces, turns

SCENARIOS: Final = (*jobs.ALL, *paces.ALL, *loops.ALL, *turns.ALL)
