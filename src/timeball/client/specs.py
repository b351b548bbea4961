"""Schedules as a caller writes them: every mistake is told here, before any store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from timeball.action.job_call import JobCall
from timeball.action.job_specs import (
    check_bare,
    check_seconds,
    check_whole,
    checked_name,
    encoded,
    kind_named,
    settings_of,
)
from timeball.core.callbacks import CALLBACK
from timeball.core.cron import Agenda, Gap, Overlap, Policy, Terms, agenda, load_zone, settled
from timeball.core.misfire import Catchup
from timeball.core.records import OverlapRuns, ScheduleSpec
from timeball.errors import InvalidSchedule, UsageError

CATCHUP_LIMIT_MAX: Final = 1_000_000

_TERMS: Final = frozenset(field.name for field in fields(Terms)) - {"expression"}
_POLICY: Final = frozenset({"dst", "gap", "overlap"})
_RUNS: Final = frozenset(
    {"catchup", "catchup_limit", "catchup_window_s", "grace_s", "overlap_runs"}
)
SCHEDULE_OPTIONS: Final = (
    _TERMS
    | _POLICY
    | _RUNS
    | {"args", "source", "queue", "priority", "max_retries", "max_crashes"}
    | {"timeout_s", "delivery", "key"}
)
"""The options of a schedule."""

_PATHS: Final = ("/", "./", "../", "~/")
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


def schedule_spec(
    name: str, job: Callable[..., Any] | str | JobCall, *, cron: str, tz: str, **options: Any
) -> ScheduleSpec:
    """Return the checked spec of a schedule; see `Client.schedule`.

    Raises:
        InvalidSchedule: The expression, the zone or a term is wrong, or it can never fire.
        UsageError: Something else is, and what to write instead.
    """
    if isinstance(job, JobCall):
        check_bare(job, options.keys() - SCHEDULE_OPTIONS | options.keys() & {"args"})
        options = {**job.options, **options, "args": job.args}
        job = job.kind.name
    kind = kind_named(job)
    if kind is not None and kind.name == CALLBACK:
        raise UsageError("a callback is no job for the clock: spawn it by one, with ctx.spawn")
    given = {key: value for key, value in options.items() if value is not None}
    unknown = given.keys() - SCHEDULE_OPTIONS
    if unknown:
        raise UsageError(f"{', '.join(sorted(unknown))}: not an option of a schedule")
    checked_name("schedule", name)
    wanted = Terms(expression=cron, **{key: given[key] for key in _TERMS & given.keys()})
    rule = {key: given[key] for key in _POLICY & given.keys()}
    terms, policy = settled(wanted, name=name, **rule)
    # An exclusion that is wrong, or one that leaves nothing, is told here.
    next_at = agenda(terms, load_zone(tz), policy, name=name).next(_BEGINNING)
    if next_at is None:
        raise InvalidSchedule(f"{cron!r} with these terms never comes due: change start or end")
    return ScheduleSpec(
        name=name,
        kind=kind.name if kind else checked_name("kind", str(job)),
        expression=terms.expression,
        tz=tz,
        gap=policy.gap,
        overlap=policy.overlap,
        terms=terms.to_json(),
        args=encoded(kind, given.get("args", {})),
        source=given.get("source", ""),
        **_runs(given),
        **settings_of(kind, given, given.get("args", {})),
    )


def no_path(kind: str) -> str:
    """Return the kind of a schedule that is declared in a database alone.

    Raises:
        UsageError: It is the path of a command: a database can make no worker run it.
    """
    if kind.startswith(_PATHS):
        raise UsageError(
            f"{kind!r} is a command, and a database can make no worker run commands: write it into "
            "a crontab or a schedules.toml, and run `timeball up FILE`"
        )
    return kind


def agenda_of(spec: ScheduleSpec) -> Agenda:
    """Return the occurrences of a schedule."""
    return agenda(
        Terms.from_json(spec.terms, expression=spec.expression),
        load_zone(spec.tz),
        Policy(Gap(spec.gap), Overlap(spec.overlap)),
        name=spec.name,
    )


def _runs(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that say which of its occurrences run."""
    found = {name: given[name] for name in _RUNS & given.keys()}
    for name, words in (("catchup", Catchup), ("overlap_runs", OverlapRuns)):
        if name in found and found[name] not in list(words):
            raise UsageError(f"{name} is {found[name]!r}: write {_listed(words)}")
    if "catchup_limit" in found:
        check_whole("catchup_limit", found["catchup_limit"], 1, CATCHUP_LIMIT_MAX)
    for name in ("catchup_window_s", "grace_s"):
        if name in found:
            check_seconds(name, found[name], least=0)
    return found


def _listed(words: type[StrEnum]) -> str:
    *others, last = (f"'{word}'" for word in words)
    return f"{', '.join(others)} or {last}"
