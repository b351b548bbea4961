"""F: nothing fires twice, and nobody who was given up for dead changes anything."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from timeball.certify.founding import zombies
from timeball.certify.founding.tickers import Tickers
from timeball.certify.scenario import Outcome, Scenario, Skipped
from timeball.certify.stage import Stage

_POOLED: Final = "two tickers at once behind a pooling proxy"
EXPECTED: Final[Mapping[str, Any]] = MappingProxyType(
    {
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
        _POOLED: {"the first": 1, "the second": 0},
    }
)


def run(stage: Stage) -> Outcome:
    """Play the workers first, by the real clock; then the tickers, by one that is set."""
    frozen, frozen_refused = zombies.frozen(stage)
    by_hand, refused = zombies.by_hand(stage)
    stage.quiesce()
    tickers = Tickers(stage)
    told = {
        "a frozen worker comes back": frozen,
        "a worker given up says": by_hand,
        "two tickers at once": tickers.at_once(),
        "a ticker that stood still": tickers.stopped(),
        "a ticker that is slow": tickers.stale(),
        "fired as the clock goes 14, 13, 14, 15": tickers.clock_back(),
    }
    left_out = {}
    try:
        told[_POOLED] = tickers.at_once_pooled()
    except Skipped as skipped:
        left_out[_POOLED] = str(skipped)
    hours = range(12, 16 if left_out else 17)
    wanted = {
        **EXPECTED,
        "decisions to fire each occurrence": {f"{hour}:00": 1 for hour in hours},
        "jobs of the schedule": len(hours),
    }
    return Outcome(
        expected={name: value for name, value in wanted.items() if name not in left_out},
        observed={
            **told,
            "decisions to fire each occurrence": tickers.fired(),
            "jobs of the schedule": tickers.jobs(),
        },
        witness={
            "stale_refused": refused,
            "stale_refused of the frozen worker": frozen_refused,
            "tickers that met": tickers.met,
        },
        left_out=left_out,
    )


F: Final = Scenario(
    id="F",
    title="two tickers at one occurrence, a clock that goes back, a worker that comes back",
    run=run,
    invariants=("I4", "I5", "I16", "I17", "I18"),
    founding="sc_F",
)
