"""G: nobody who claims waits for somebody who does not go on, and more workers do not do less."""

from __future__ import annotations

from typing import Final

from timeball.certify.founding.lanes import ALLOWED, NEXT_CLAIM_S, Lane
from timeball.certify.founding.throughput import SHARE, Course
from timeball.certify.scenario import Check, Outcome, Scenario
from timeball.certify.stage import Stage

NEXT_CLAIM_MS: Final = NEXT_CLAIM_S * 1e3
_MODES: Final = "lock modes beyond those allowed"
_UNREAD_CLAIM: Final = "locks of who has not read its claim"
_UNREAD_TURNS: Final = "locks of who has not read its turns"


def run(stage: Stage) -> Outcome:
    """Play clients that do not read and a worker that is frozen, then run the course."""
    lane = Lane(stage)
    modes = lane.modes()
    claim_holds, claim_ms = lane.unread_claim()
    turns_hold, turns_ms, unread = lane.unread_turns()
    frozen_ms, frozen = lane.frozen_worker()
    for fleet in stage.fleets:
        fleet.stop()
    course = Course(stage)
    course.run()
    waits_ms = {"unread claim": claim_ms, "unread turns": turns_ms, "frozen worker": frozen_ms}
    free = {"lanes": 0}
    return Outcome(
        expected={_MODES: [], _UNREAD_CLAIM: free, _UNREAD_TURNS: free},
        observed={
            _MODES: sorted(set(modes) - ALLOWED),
            _UNREAD_CLAIM: claim_holds,
            _UNREAD_TURNS: turns_hold,
        },
        checks=(
            *(
                Check(f"next claim, {name}", took_ms < NEXT_CLAIM_MS, f"took {took_ms:g} ms")
                for name, took_ms in waits_ms.items()
            ),
            Check("throughput", course.share >= SHARE, f"{course.told()}"),
        ),
        witness={
            "relations seen locked by a claim": len(modes),
            "server waited for a client": int(unread),
            "worker frozen": int(frozen),
            "claims held up at the gate": course.held_up,
        },
        measured={"next_claim_ms": waits_ms, **course.told()},
    )


G: Final = Scenario(
    id="G",
    title="clients that stop reading, a frozen worker, and 1, 2, 4 and 8 workers",
    run=run,
    invariants=("I9", "I26"),
    founding="sc_G",
)
