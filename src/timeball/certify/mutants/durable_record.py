"""One defect of the durable product: what it is, how it is put in, and which probe must see it."""

from __future__ import annotations

from dataclasses import dataclass

from timeball.certify.mutants.defects import Defect
from timeball.certify.overlay import Patch
from timeball.certify.probes.probe import CodeProbe, Probe


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableMutant:
    """One defect, and the probe that must see it."""

    id: str
    defect: str
    probe: Probe | CodeProbe
    """The check that must fail; without the defect it must not."""

    patches: tuple[Defect, ...] = ()
    """For a `Probe`."""

    code: tuple[Patch, ...] = ()
    """For a `CodeProbe`."""
