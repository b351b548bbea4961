"""The instants at which a schedule comes due: wall times, a zone and a policy.

Inside, an instant is whole seconds since the epoch. A zone is a row of stretches of constant
offset, so within one stretch due instants are due wall times minus its offset. Policies only
matter at the seams, and touch nothing further from them than the seam is wide: the shortest
stretch in the zone database is a week long, the widest seam a day.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone

from timeball.core.cron.expression import Walls
from timeball.core.cron.fields import Cron
from timeball.core.cron.instants import Instants, epoch
from timeball.core.cron.parse import one_of
from timeball.core.cron.policy import Gap, Overlap
from timeball.core.cron.walltime import WallTimes
from timeball.core.cron.zone import Zone

# A wall time due in one stretch lies less than this from where another would put it
SEAM_S = 2 * 86_400
_FOREVER = 2**62


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One instant of a schedule, told in full."""

    at: datetime
    local: str
    """The wall time there, as `2026-03-08T03:00:00-04:00`."""
    fold: int
    """1 in the second pass of a repeated stretch of wall time."""
    shifted: bool
    """Whether the wall shows another time than the expression names, because of a gap."""


def occurrence(zone: Zone, at: int, *, shifted: bool) -> Occurrence:
    """Return what the wall clock shows at an instant."""
    local = datetime.fromtimestamp(at, timezone(timedelta(seconds=zone.offset(at))))
    return Occurrence(
        at=datetime.fromtimestamp(at, UTC),
        local=local.isoformat(),
        fold=zone.fold(at),
        shifted=shifted,
    )


class WallInstants(Instants):
    """The instants of wall times: how zone and policy turn the ones into the others."""

    __slots__ = ()
    zone: Zone
    gap: Gap
    overlap: Overlap
    walls: Walls
    unit_s: int

    def describe(self, instant: datetime) -> Occurrence:
        """Return what the wall clock shows at one of the instants, and whether a gap moved it."""
        at = epoch(instant)
        return occurrence(self.zone, at, shifted=self.shifted(at))

    def shifted(self, at: int) -> bool:
        """Return whether a gap moved one of the instants from the wall time that it stands for."""
        wall = at + self.zone.offset(at)
        return self.walls.first(wall) != wall

    def first(self, at: int) -> int | None:
        """Return the first instant not before `at`, both in epoch seconds."""
        zone = self.zone
        i = zone.index(at)
        if at - zone.starts[i] > SEAM_S:  # no seam within reach: nearly always
            wall = self.walls.first(at + zone.offsets[i])
            if wall is None:
                return None
            found = wall - zone.offsets[i]
            if i + 1 == len(zone.starts) or found < zone.starts[i + 1] - SEAM_S:
                return found
        return self._first_by_stretches(at, i)

    def _first_by_stretches(self, at: int, i: int) -> int | None:
        zone = self.zone
        while i < len(zone.starts):
            begin, end = self._kept(i)
            wall = self.walls.first(max(at, begin) + zone.offsets[i])
            found = _FOREVER if wall is None else wall - zone.offsets[i]
            moved = self._first_moved(i, at)
            if moved is not None and moved < found:
                return moved
            if wall is None:
                return None
            if found < end:
                return found
            # A seam close by may set the wall back to before the search began. Past that,
            # nothing is due in the stretches that end before the wall shows what was found.
            near = zone.index(max(at, begin) + SEAM_S) > i
            i = i + 1 if near else max(i + 1, zone.index(found - SEAM_S))
        return None

    def last(self, at: int) -> int | None:
        """Return the last instant not after `at`, both in epoch seconds."""
        zone = self.zone
        i = zone.index(at)
        while i >= 0:
            begin, end = self._kept(i)
            wall = self.walls.last(min(at, end - 1) + zone.offsets[i])
            found = -_FOREVER if wall is None else wall - zone.offsets[i]
            moved = self._last_moved(i, at)
            if moved is not None and moved > found:
                return moved
            if wall is None:
                return None
            if found >= begin:
                return found
            near = zone.index(min(at, end) - SEAM_S) < i
            i = i - 1 if near else min(i - 1, zone.index(found + SEAM_S))
        return None

    def moved(self, at: int, before: int) -> int | None:
        """Return the first instant in [at, before) to which a gap moved a wall time."""
        starts = self.zone.starts
        for i in range(self.zone.index(at), len(starts)):
            if starts[i] >= before:
                return None
            found = self._first_moved(i, at)
            if found is not None:
                return found if found < before else None
        return None

    def _kept(self, i: int) -> tuple[int, int]:
        """Return the part of a stretch whose wall times count, under the policy for overlaps."""
        starts, offsets = self.zone.starts, self.zone.offsets
        begin, end = starts[i], starts[i + 1] if i + 1 < len(starts) else _FOREVER
        if self.overlap is Overlap.FIRST and i > 0:
            begin += max(offsets[i - 1] - offsets[i], 0)
        elif self.overlap is Overlap.SECOND and end < _FOREVER:
            end -= max(offsets[i] - offsets[i + 1], 0)
        return begin, end

    def _first_moved(self, i: int, at: int) -> int | None:
        """Return the first instant not before `at` that a gap moved into stretch `i`."""
        gap = self._gap(i)
        if gap is None or at >= gap[0] + SEAM_S:
            return None
        start, before, after = gap
        if self.gap is Gap.SHIFT:
            wall = self.walls.first(max(at, start) + before)
            return wall - before if wall is not None and wall < start + after else None
        wall = self.walls.first(start + before)
        point = self._point(start, before)
        return point if at <= point and wall is not None and wall < start + after else None

    def _last_moved(self, i: int, at: int) -> int | None:
        """Return the last instant not after `at` that a gap moved into stretch `i`."""
        gap = self._gap(i)
        if gap is None:
            return None
        start, before, after = gap
        if self.gap is Gap.SHIFT:
            wall = self.walls.last(min(at + before, start + after - 1))
            return wall - before if wall is not None and wall >= start + before else None
        wall = self.walls.first(start + before)
        point = self._point(start, before)
        return point if point <= at and wall is not None and wall < start + after else None

    def _gap(self, i: int) -> tuple[int, int, int] | None:
        """Return the gap whose wall times stretch `i` takes in: instant, offsets around it."""
        if self.gap is Gap.SKIP:
            return None
        if self.gap is Gap.PREV_VALID:
            i += 1  # the gap at the end of the stretch, not at its beginning
        starts, offsets = self.zone.starts, self.zone.offsets
        if not 0 < i < len(starts) or offsets[i] < offsets[i - 1]:
            return None
        return starts[i], offsets[i - 1], offsets[i]

    def _point(self, start: int, before: int) -> int:
        """Return the one instant that all wall times of a gap are moved to."""
        if self.gap is Gap.NEXT_VALID:
            return start
        unit = self.unit_s
        return (start + before - 1) // unit * unit - before


@dataclass(frozen=True, slots=True)
class Timetable(WallInstants):
    """The strictly increasing instants at which an expression comes due, 1900 to 2999.

    They do not depend on where the asking starts: each is the identity of an occurrence.
    """

    cron: Cron
    zone: Zone
    gap: Gap = Gap.NEXT_VALID
    overlap: Overlap = Overlap.FIRST
    walls: Walls = field(init=False, repr=False, compare=False)
    unit_s: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "gap", one_of(Gap, self.gap))
        object.__setattr__(self, "overlap", one_of(Overlap, self.overlap))
        object.__setattr__(self, "walls", WallTimes(self.cron))
        object.__setattr__(self, "unit_s", self.cron.unit_s)


@dataclass(frozen=True, slots=True)
class RuleInstants(WallInstants):
    """The instants of any row of wall times."""

    walls: Walls
    unit_s: int
    zone: Zone
    gap: Gap
    overlap: Overlap
