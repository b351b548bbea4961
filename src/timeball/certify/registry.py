"""All scenarios, by their ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from timeball.certify import stepped
from timeball.certify.disasters import (
    aged,
    away,
    clocks,
    crowded,
    ended,
    failover,
    fitful,
    full,
    killed,
    links,
    poison,
    proxied,
    rolling,
    severed,
    stuck,
    unheard,
    unique,
    unwoken,
)
from timeball.certify.founding import claims, contention, edges, fires, reads, zones
from timeball.certify.pairs.scenario import PAIRS
from timeball.certify.scenario import Profile, Scenario
from timeball.certify.simulation.scenario import SIM
from timeball.errors import UsageError

SCENARIOS: Final[tuple[Scenario, ...]] = (
    claims.A,
    fires.F,
    reads.D,
    edges.E,
    zones.B,
    zones.B2,
    zones.C2,
    contention.G,
    stepped.S,
    killed.X1,
    unheard.X2,
    severed.X3,
    away.X4,
    proxied.X5,
    unwoken.X6,
    links.X7,
    failover.X8,
    proxied.X9,
    crowded.X10,
    full.X11,
    fitful.X12,
    aged.X13,
    stuck.X14,
    ended.X15,
    clocks.X16,
    poison.X17,
    unique.X18,
    rolling.X19,
    PAIRS,
    SIM,
)


def selected(profile: Profile, ids: Iterable[str] = ()) -> tuple[Scenario, ...]:
    """Return the scenarios of a profile, or those of some ids whatever their profile.

    Raises:
        UsageError: An id is not known.
    """
    wanted = list(ids)
    known = {scenario.id: scenario for scenario in SCENARIOS}
    unknown = [each for each in wanted if each not in known]
    if unknown:
        raise UsageError(f"no scenario {', '.join(unknown)}: write some of {', '.join(known)}")
    if wanted:
        return tuple(known[each] for each in dict.fromkeys(wanted))
    return tuple(each for each in SCENARIOS if profile in each.profiles)
