"""`timeball.graph`: a job that spawns those of a graph, which a file may declare by their names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from timeball.action.context import Context
from timeball.action.draft import TOGETHER_MAX, Draft, draft
from timeball.action.draft_specs import draft_spec
from timeball.action.kind import Kind
from timeball.action.parameters import Parameters
from timeball.errors import UsageError

_OPTIONS: Final = (
    *("args", "rule", "ruled_out", "queue", "priority", "max_retries", "max_crashes"),
    *("timeout_s", "delivery", "delay_s", "key"),
)
_KEYS: Final = ("kind", "after", *_OPTIONS)


def usable() -> bool:
    """Return whether what graphs need is installed; it always is."""
    return True


def parents_first(jobs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names of the jobs of a graph in an order in which they can be submitted.

    Raises:
        UsageError: What is wrong with one of them, or which of them wait for each other.
    """
    for name, job in jobs.items():
        _check_keys(name, job)
        for parent in _after(name, job):
            if parent not in jobs:
                raise UsageError(f"job {name} comes after {_unknown(parent, jobs)}")
    sorter = TopologicalSorter({name: _after(name, job) for name, job in jobs.items()})
    try:
        return list(sorter.static_order())
    except CycleError as error:
        way = ", ".join(error.args[1])
        raise UsageError(
            f"of the jobs {way} each comes before the next: a cycle; take one out of an after"
        ) from None


def _check_keys(name: str, job: object) -> None:
    if not isinstance(job, Mapping):
        raise UsageError(f"job {name} is no table: write its kind and, where it has any, its after")
    for key in job.keys() - set(_KEYS):
        raise UsageError(f"job {name} has {_unknown(key, _KEYS)}")
    for key in ("queue", "key"):
        if not isinstance(job.get(key, ""), str):
            raise UsageError(f"job {name} has a {key} that is no text: write it in quotes")
    if not isinstance(job.get("kind"), str):
        raise UsageError(f'job {name} has no kind: write such as kind = "app.load"')


def _after(name: str, job: Mapping[str, Any]) -> list[str]:
    after = job.get("after", [])
    if not isinstance(after, list) or not all(isinstance(each, str) for each in after):
        raise UsageError(f'job {name} has an after that is no list of names: write after = ["…"]')
    return after


def _unknown(written: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(written), list(known), n=1, cutoff=0.5)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(list(known)[:20])}"
    return f"{written}, which is not known: {hint}"


def _drafts(jobs: Mapping[str, Mapping[str, Any]]) -> dict[str, Draft]:
    """Return the jobs of a graph as drafts, by their names."""
    drafts: dict[str, Draft] = {}
    for name in parents_first(jobs):
        job = jobs[name]
        options = {option: job[option] for option in _OPTIONS if option in job}
        if after := _after(name, job):
            options["after"] = [drafts[parent] for parent in after]
        drafts[name] = draft(job["kind"], **options)
    return drafts


def _check(args: Mapping[str, Any]) -> None:
    """Raise `UsageError` where some job of the graph can never be submitted."""
    jobs = args.get("jobs")
    if not isinstance(jobs, Mapping) or not jobs:
        raise UsageError("a graph has jobs: write a table of them by their names")
    if len(jobs) > TOGETHER_MAX:
        raise UsageError(f"a graph of {len(jobs):,} jobs: write {TOGETHER_MAX:,} at most")
    for name, each in _drafts(jobs).items():
        try:
            draft_spec(each)
        except UsageError as error:
            raise UsageError(f"job {name}: {error}") from None


def _call(context: Context, jobs: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Spawn all of them; return their uuids by name."""
    drafts = _drafts(jobs)
    spawned = context.spawn_all(drafts.values())
    return {name: str(each.uuid) for name, each in zip(drafts, spawned, strict=True)}


KIND: Final = Kind(
    name="timeball.graph",
    call=_call,
    parameters=Parameters(
        accepted=frozenset({"jobs"}), required=frozenset({"jobs"}), context="context"
    ),
    runner="thread",
    check=_check,
    place=__name__,
)
