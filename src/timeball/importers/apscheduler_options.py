"""The options of an APScheduler job: how many at once, how late, and what has no counterpart."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from timeball.errors import UsageError
from timeball.importers.gathering import seconds

_WITHOUT_MEANING: Final = frozenset({"jobstore", "replace_existing", "conflict_policy"})
_ABSENT: Final = object()


@dataclass(slots=True)
class JobOptions:
    """What they come to."""

    values: dict[str, Any] = field(default_factory=dict)
    guard: str | None = None
    defaulted: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)


def job_options(given: Mapping[str, Any]) -> JobOptions:
    """Return the options of a job, its scheduler's defaults among them.

    Args:
        given: By name, as APScheduler names them.

    Raises:
        UsageError: A value is none that APScheduler takes.
    """
    found, rest = JobOptions(), dict(given)
    _overlap(found, rest.pop("max_instances", None))
    _lateness(found, rest.pop("misfire_grace_time", _ABSENT), together=rest.pop("coalesce", True))
    if rest.pop("next_run_time", _ABSENT) is None or rest.pop("paused", False):
        found.values["paused"] = True
    if rest.pop("executor", "default") != "default":
        found.needs.append("it names an executor: give it a queue, and that queue its own workers")
    jitter = rest.pop("max_jitter", None)
    if jitter is not None:
        found.values["jitter_s"] = math.ceil(seconds("max_jitter", jitter))
    for name in sorted(rest.keys() - _WITHOUT_MEANING):
        found.needs.append(f"the option {name} has no counterpart here: decide whether it matters")
    return found


def _overlap(found: JobOptions, most: Any) -> None:
    if most is None:
        found.defaulted.add("max_instances")
        most = 1
    if type(most) is not int or most < 1:
        raise UsageError(f"max_instances {most!r} is no number above 0: write one")
    if most == 1:
        found.values["overlap_runs"] = "skip"
        found.guard = "max_instances=1"
        return
    found.needs.append(
        f"max_instances={most}: here runs of one schedule overlap freely, or not at all with "
        'overlap_runs = "skip"; decide which'
    )


def _lateness(found: JobOptions, grace: Any, *, together: Any) -> None:
    """Say what becomes of an occurrence that is found late; APScheduler forgets it after 1 s."""
    if grace is _ABSENT:
        found.defaulted.add("misfire_grace_time")
        found.values["catchup"] = "none"
        return
    if not together:
        found.values["catchup"] = "all"
    if grace is None:
        found.notes.append("misfire_grace_time=None: here too a run is caught up for a day only")
        return
    found.values["catchup_window_s"] = seconds("misfire_grace_time", grace)
