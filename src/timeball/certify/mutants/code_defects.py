"""Defects of the calendar, of what is caught up with, and of the watch over workers."""

from __future__ import annotations

from typing import Final

from timeball.certify.mutants.durable_record import DurableMutant
from timeball.certify.overlay import Patch
from timeball.certify.probes import code

_FIRST: Final = "zone = self.zone\ni = zone.index(at)"

_NAIVE: Final = (
    "zone = self.zone\n"
    "i = zone.index({})\n"
    "wall = self.walls.first(at + zone.offsets[i])\n"
    "return None if wall is None else wall - zone.offsets[i]"
)


CODE: Final = (
    DurableMutant(
        id="M22",
        defect="the next occurrence is the instant plus an interval",
        probe=code.GAP,
        code=(Patch(code.OCCURRENCES, "WallInstants.first", _FIRST, _NAIVE.format("at")),),
    ),
    DurableMutant(
        id="M23",
        defect="the second pass of a repeated hour counts too",
        probe=code.FOLD,
        code=(
            Patch(
                code.OCCURRENCES,
                "WallInstants._kept",
                "self.overlap is Overlap.FIRST and i > 0",
                "False",
            ),
        ),
    ),
    DurableMutant(
        id="M24",
        defect="the offset from UTC is that of long ago",
        probe=code.SUMMER,
        code=(Patch(code.OCCURRENCES, "WallInstants.first", _FIRST, _NAIVE.format("0")),),
    ),
    DurableMutant(
        id="M25",
        defect="the next occurrence is looked for from now on, and not from the last one",
        probe=code.MISSED,
        code=(
            Patch(
                code.MISFIRE,
                "plan",
                "due, following = _due(agenda, schedule.cursor, now, bound)",
                "due, following = _due(agenda, now, now, bound)",
            ),
        ),
    ),
    DurableMutant(
        id="M26",
        defect="one more is caught up with than the limit says",
        probe=code.BOUNDED,
        code=(
            Patch(
                code.MISFIRE,
                "_reason",
                'return "limit" if followers >= rule.limit else None',
                'return "limit" if followers > rule.limit else None',
            ),
        ),
    ),
    DurableMutant(
        id="M30",
        defect="silence while nobody looked counts, as it does where a beat's age is looked at",
        probe=code.AWAY,
        code=(
            Patch(
                code.SWEEPER,
                "Sweeper._silent",
                "blinked = pause_s > pulse.lease_s / _BLINKS_PER_LEASE",
                "blinked = False",
            ),
        ),
    ),
    DurableMutant(
        id="M31",
        defect="a lease that is over is given a moment more",
        probe=code.SILENT,
        code=(
            Patch(
                code.SWEEPER,
                "Sweeper._silent",
                "not asked_at - sight.since < pulse.lease_s",
                "not asked_at - sight.since <= pulse.lease_s",
            ),
        ),
    ),
    DurableMutant(
        id="M35",
        defect="a worker waits to be notified, and does not poll",
        probe=code.POLLS,
        code=(
            Patch(
                code.LOOP,
                "Worker._rest_s",
                "min(self._poll_at, self._promote_at, self._desk.wake_at_s)",
                "_FOR_EVER",
            ),
        ),
    ),
    DurableMutant(
        id="M53",
        defect="a permit is taken at admission: whenever the attempt begins, it holds",
        probe=code.USED_LATE,
        code=(
            Patch(
                code.PERMITS,
                "Batch.use",
                "self.begins_s <= now_s < self.ends_s and self._open > 0",
                "self._open > 0",
            ),
        ),
    ),
)
