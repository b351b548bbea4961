"""What schedules mean, kept so that the same meaning is not worked out at every tick."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Final

from timeball.core.cron import Agenda, Gap, Overlap, Policy, Terms, Zone, agenda
from timeball.core.records import ScheduleSpec

_KEPT: Final = 4_096


class Agendas:
    """Gives the agenda of a schedule; `max_runs` is left to the store, which counts the runs."""

    def __init__(self, zones: Callable[[str], Zone]) -> None:
        self.zones = zones
        self._kept = lru_cache(_KEPT)(self._compute)

    def of(self, spec: ScheduleSpec) -> Agenda:
        """Return the occurrences of a schedule.

        Raises:
            InvalidSchedule: They cannot be computed.
        """
        # Only `H` and jitter depend on the name, and schedules without share an agenda.
        named = "H" in spec.expression or "H" in spec.terms or "jitter" in spec.terms
        name = spec.name if named else ""
        return self._kept(spec.expression, spec.terms, spec.tz, (spec.gap, spec.overlap), name)

    def _compute(
        self, expression: str, terms: str, tz: str, policy: tuple[str, str], name: str
    ) -> Agenda:
        found = replace(Terms.from_json(terms, expression=expression), max_runs=None)
        gap, overlap = policy
        return agenda(found, self.zones(tz), Policy(Gap(gap), Overlap(overlap)), name=name)
