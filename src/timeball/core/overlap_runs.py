"""Which occurrences of a schedule run though earlier jobs of it have not ended.

The memory store decides by this function, PostgreSQL by the same rule in
``functions/fire.sql``: only a store knows, under the schedule's lock, what still runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from timeball.core.records import Decision, OccurrenceDecision, OverlapRuns

OVERLAP: Final = "overlap"
"""Why an occurrence is skipped that meets an earlier run, or a later one that replaces it."""

MAX_RUNS: Final = "max_runs"
"""Why an occurrence is skipped after the last run that its schedule allows."""


def sift(
    decisions: Sequence[OccurrenceDecision],
    policy: OverlapRuns,
    *,
    ahead: int,
    left: int | None,
) -> list[OccurrenceDecision]:
    """Return the decisions, with those skipped that may not run.

    Args:
        decisions: About occurrences in their order.
        policy: What to do about a job that meets an earlier one.
        ahead: Jobs of the schedule that have not ended.
        left: How many more runs the schedule allows; None for any number.
    """
    wanted = [n for n, each in enumerate(decisions) if each.decision is Decision.FIRED]
    passed = _passed(wanted, policy, ahead)
    allowed = passed if left is None else passed[:left]
    reasons = dict.fromkeys(wanted, OVERLAP) | dict.fromkeys(passed, MAX_RUNS)
    sifted = list(decisions)
    for n in set(wanted).difference(allowed):
        nominal_at = decisions[n].nominal_at
        sifted[n] = OccurrenceDecision(nominal_at, Decision.SKIPPED, reasons[n], "{}")
    return sifted


def _passed(wanted: list[int], policy: OverlapRuns, ahead: int) -> list[int]:
    match policy:
        case OverlapRuns.ALLOW:
            return wanted
        case OverlapRuns.SKIP:
            return wanted[: max(0, 1 - ahead)]
        case OverlapRuns.QUEUE_ONE:
            return wanted[: max(0, 2 - ahead)]
        case OverlapRuns.REPLACE:
            return wanted[-1:]
        case _:
            assert_never(policy)
