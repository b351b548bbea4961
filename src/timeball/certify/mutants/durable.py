"""M01 to M53: defects of the durable product, put in one at a time.

Those that are missing here are named in ``docs/concepts/certify.md``, with the reason.
"""

from __future__ import annotations

from typing import Final

from timeball.certify.mutants.claim_defects import CLAIMS
from timeball.certify.mutants.code_defects import CODE
from timeball.certify.mutants.durable_record import DurableMutant
from timeball.certify.mutants.edge_defects import EDGES
from timeball.certify.mutants.limit_defects import LIMITS, SCHEDULES
from timeball.certify.mutants.turn_defects import TURNS, WAKING

MUTANTS: Final[tuple[DurableMutant, ...]] = tuple(
    sorted(
        (*CLAIMS, *TURNS, *WAKING, *EDGES, *LIMITS, *SCHEDULES, *CODE), key=lambda mutant: mutant.id
    )
)
