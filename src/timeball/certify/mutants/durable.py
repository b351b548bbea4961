"""M01 to M53: defects of the durable product, put in one at a time."""

from __future__ import annotations

from typing import Final

from timeball.certify.mutants.claim_defects import CLAIMS
from timeball.certify.mutants.code_defects import CODE
from timeball.certify.mutants.durable_record import DurableMutant
from timeball.certify.mutants.edge_defects import EDGES
from timeball.certify.mutants.limit_defects import LIMITS, SCHEDULES
from timeball.certify.mutants.process_defects import PROCESSES
from timeball.certify.mutants.turn_defects import TURNS, WAKING

_ALL: Final = (*CLAIMS, *TURNS, *WAKING, *EDGES, *LIMITS, *SCHEDULES, *CODE, *PROCESSES)
MUTANTS: Final[tuple[DurableMutant, ...]] = tuple(sorted(_ALL, key=lambda mutant: mutant.id))
