"""X6, first half: listeners whose sessions go on to exist, and to whom nothing comes through."""

from __future__ import annotations

import time
from typing import Final, NamedTuple
from uuid import uuid4

from timeball.certify.disasters.workload import add
from timeball.certify.kinds import NOTE
from timeball.certify.link import Link, Way
from timeball.certify.stage import Stage
from timeball.core.records import JobSpec
from timeball.core.states import State

POLL_S: Final = 1.0
"""The product's own."""

LOOKS: Final = 20
"""Jobs of this half; so often it may be looked whether a busy machine picks up in time."""


class Deafened(NamedTuple):
    """What was seen while nobody was woken."""

    waits_s: list[float]
    """How long each job waited that was looked at, and was submitted alone."""

    swallowed: int
    """Bytes that listeners were sent, and never got."""


def deafen(stage: Stage, link: Link) -> Deafened:
    """Swallow all that listeners are sent, and refuse new connections until jobs are picked up."""
    link.turn(Way.SWALLOW)
    waits_s: list[float] = []
    while len(waits_s) < LOOKS and min(waits_s, default=POLL_S + 1) > POLL_S:
        waits_s.append(_picked_up_s(stage))
    add(stage, LOOKS - len(waits_s))
    stage.until(lambda: link.swallowed, "listeners are sent something")
    link.turn(Way.PASS)
    return Deafened(waits_s, link.swallowed)


def _picked_up_s(stage: Stage) -> float:
    """Submit a job; return for how many seconds it waited, once it has ended."""
    spec = JobSpec(uuid=uuid4(), kind=NOTE)
    since_ns = time.monotonic_ns()
    stage.submit([spec])
    stage.until(
        lambda: stage.store.get(spec.uuid).state is State.SUCCEEDED,
        "it is picked up, although nobody is woken",
    )
    began_ns = min(each.at_ns for each in stage.effects.read() if each.job == spec.uuid)
    return (began_ns - since_ns) / 1e9
