"""F: nothing fires twice, and nobody who was given up for dead changes anything."""

from __future__ import annotations

from typing import Final

from timeball.certify.founding import zombies
from timeball.certify.founding.tickers import Tickers
from timeball.certify.scenario import Outcome, Scenario
from timeball.certify.stage import Stage


def run(stage: Stage) -> Outcome:
    """Play the workers first, by the real clock; then the tickers, by one that is set."""
    frozen, frozen_refused = zombies.frozen(stage)
    by_hand, refused = zombies.by_hand(stage)
    stage.quiesce()
    tickers = Tickers(stage)
    at_once, stopped, stale = tickers.at_once(), tickers.stopped(), tickers.stale()
    back = tickers.clock_back()
    return Outcome(
        expected={
            "a frozen worker comes back": zombies.expected_frozen(),
            "a worker given up says": zombies.expected_by_hand(),
            "two tickers at once": {"the first": 1, "the second": 0},
            "a ticker that stood still": {
                "the other": 1,
                "the one that stood still": "refused",
                "once more": 0,
            },
            "a ticker that is slow": {"the quick one": 1, "the slow one": "refused"},
            "fired as the clock goes 14, 13, 14, 15": [0, 0, 0, 1],
            "jobs of each occurrence": {"12:00": 1, "13:00": 1, "14:00": 1, "15:00": 1},
        },
        observed={
            "a frozen worker comes back": frozen,
            "a worker given up says": by_hand,
            "two tickers at once": at_once,
            "a ticker that stood still": stopped,
            "a ticker that is slow": stale,
            "fired as the clock goes 14, 13, 14, 15": back,
            "jobs of each occurrence": tickers.fired(),
        },
        witness={
            "stale_refused": refused,
            "stale_refused of the frozen worker": frozen_refused,
            "tickers that met": tickers.met,
        },
    )


F: Final = Scenario(
    id="F",
    title="two tickers at one occurrence, a clock that goes back, a worker that comes back",
    run=run,
    invariants=("I4", "I5", "I16", "I17", "I18"),
    founding="sc_F",
)
