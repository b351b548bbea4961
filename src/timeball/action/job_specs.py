"""From what a caller writes to a checked spec: every mistake is told here, before any store."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final
from uuid import UUID

from timeball.action.edges import parents_of
from timeball.action.job_call import JobCall
from timeball.action.kind import NAME_MAX, PRIORITY_MAX
from timeball.action.own_kinds import own_kind
from timeball.action.registry import DEFAULT, OCCURRENCE_KEY, Kind, kind_of
from timeball.action.uniqueness import unique_of
from timeball.chance import new_uuid
from timeball.core.batches import BATCH
from timeball.core.callbacks import CALLBACK
from timeball.core.payload import encode_args
from timeball.core.records import (
    MAX_CRASHES_DEFAULT,
    PRIORITY_DEFAULT,
    Delivery,
    JobSpec,
)
from timeball.core.retry import MAX_RETRIES_LIMIT, WAIT_LIMIT_S
from timeball.errors import UsageError

MAX_CRASHES_LIMIT: Final = 1_000

OPTIONS: Final = frozenset(
    {
        *("args", "connection", "delay_s", "delivery", "expires_at", "key"),
        *("max_crashes", "max_retries"),
        *("priority", "queue", "run_at", "timeout_s", "uuid"),
        *("unique", "unique_scope", "unique_until", "on_clash"),
        *("after", "rule", "ruled_out"),
    }
)
"""The options of a submit, told from the job's own arguments by their names."""

_SHARED: Final = frozenset(field.name for field in fields(JobSpec)) - {"uuid", "args"}
"""What jobs of one call may have in common."""

_PLACE: Final = re.compile(r"\{(\w+)\}")
"""An argument in a key."""

_DEFAULTS: Final = {
    "queue": "default",
    "priority": PRIORITY_DEFAULT,
    "max_retries": 3,
    "max_crashes": MAX_CRASHES_DEFAULT,
    "timeout_s": None,
    "delivery": Delivery.AT_LEAST_ONCE,
    "key": None,
}


def job_spec(job: Callable[..., Any] | str | JobCall, arguments: dict[str, Any]) -> JobSpec:
    """Return the checked spec of one job.

    Args:
        job: A function with `@tb.job`, the name of a kind, or what `tb.http` and the like give.
        arguments: The job's arguments and the options of `Client.submit`, by name.

    Raises:
        UsageError: What is wrong, and what to write instead.
    """
    if isinstance(job, JobCall):
        check_bare(job, arguments)
        arguments = {**job.options, **arguments, "args": job.args}
        job = job.kind.name
    kind = kind_named(job)
    options = {name: arguments[name] for name in OPTIONS & arguments.keys()}
    if kind is not None and kind.name == CALLBACK:
        _check_callback(options)
    args = options.pop("args", None)
    named = {name: value for name, value in arguments.items() if name not in OPTIONS}
    if args is not None and named:
        raise UsageError(f"{', '.join(sorted(named))}: put it into args= with the others")
    if kind is not None and args is None:
        _check_clash(kind, options)
    given = named if args is None else args
    settings = settings_of(kind, options, given)
    after, ruled_out = parents_of(options)
    return JobSpec(
        uuid=_uuid(options.get("uuid")),
        kind=kind.name if kind else checked_name("kind", str(job)),
        args=encoded(kind, given),
        **_earliest(options.get("run_at"), options.get("delay_s")),
        expires_at=_deadline(options.get("expires_at"), options.get("run_at")),
        unique=unique_of(options),
        after=after,
        ruled_out=ruled_out,
        **settings,
    )


def job_specs(
    job: Callable[..., Any] | str, each: Iterable[Mapping[str, Any]], options: dict[str, Any]
) -> list[JobSpec]:
    """Return the checked specs of many jobs that have all but their arguments in common.

    Args:
        job: A function with `@tb.job`, or the name of a kind.
        each: The arguments of each job, by name.
        options: Those of `Client.submit` that hold for all of them.

    Raises:
        UsageError: What is wrong, and what to write instead.
    """
    kind, given = kind_named(job), iter(each)
    written = options.get("key", kind and kind.key)
    if written is not None:  # its key may be made of a job's arguments
        return [job_spec(job, {**options, "args": dict(args)}) for args in given]
    specs = [job_spec(job, {**options, "args": dict(args)}) for args in islice(given, 1)]
    for first in specs[:1]:  # what they share is checked once
        shared = {name: getattr(first, name) for name in _SHARED}
        specs += [
            JobSpec(uuid=new_uuid(), args=encoded(kind, dict(args)), **shared) for args in given
        ]
    return specs


def checked_name(what: str, name: str) -> str:
    """Return a name that can be stored and shown.

    Raises:
        UsageError: It is empty, too long, or has characters that cannot be stored.
    """
    if not name or not name.isprintable() or len(name.encode(errors="replace")) > NAME_MAX:
        raise UsageError(f"{what} {name[:80]!r}: write 1 to {NAME_MAX} bytes of printable text")
    return name


def checked_priority(priority: object) -> None:
    """Let pass a priority class that there is.

    Raises:
        UsageError: It is no whole number from 0 to 9.
    """
    check_whole("priority", priority, 0, PRIORITY_MAX)


def settings_of(kind: Kind | None, options: dict[str, Any], args: object) -> dict[str, Any]:
    """Return the options that a spec carries: the call's, else the definition's, else defaults."""
    found = dict(_DEFAULTS)
    if kind is not None:
        found |= {
            "queue": kind.queue,
            "priority": kind.priority,
            "max_retries": kind.retry.max_retries,
            "max_crashes": kind.max_crashes,
            "timeout_s": kind.timeout_s,
            "delivery": kind.delivery,
            "key": kind.key,
        }
    found |= {name: options[name] for name in found.keys() & options.keys()}
    checked_name("queue", str(found["queue"]))
    checked_priority(found["priority"])
    check_whole("max_retries", found["max_retries"], 0, MAX_RETRIES_LIMIT)
    check_whole("max_crashes", found["max_crashes"], 1, MAX_CRASHES_LIMIT)
    if found["timeout_s"] is not None:
        check_seconds("timeout_s", found["timeout_s"], least=0.001)
    if found["key"] is not None:
        found["key"] = _key(str(found["key"]), args)
    found["delivery"] = _delivery(found["delivery"])
    if found["delivery"] is Delivery.AT_MOST_ONCE:
        if options.get("max_retries"):
            raise UsageError("a job that runs at most once has no retries: leave max_retries out")
        found["max_retries"] = 0
    return found


def _key(written: str, args: object) -> str:
    """Return a key with what stands in it in braces replaced by the job's arguments."""
    given = args if isinstance(args, Mapping) else {}
    unknown = sorted(set(_PLACE.findall(written)) - given.keys())
    if unknown:
        raise UsageError(
            f"key is {written!r}, and {', '.join(unknown)} is not among the job's arguments: "
            "pass it, or pass key= yourself"
        )
    return checked_name("key", _PLACE.sub(lambda place: str(given[place[1]]), written))


def _delivery(given: object) -> Delivery:
    try:
        return Delivery(str(given))
    except ValueError:
        raise UsageError(
            f"delivery is {given!r}: write 'at_least_once' or 'at_most_once'"
        ) from None


def kind_named(job: Callable[..., Any] | str) -> Kind | None:
    """Return the kind of a function or a name; None for a name that only workers know."""
    if job == BATCH:
        raise UsageError(f"{BATCH} is no kind of job: write `with client.batch(…)`")
    if not isinstance(job, str):
        return kind_of(job)
    return own_kind(job) or DEFAULT.get(job)


def check_bare(job: JobCall, names: Iterable[str]) -> None:
    """Raise `UsageError` if there are arguments beside those that a job value has."""
    surplus = sorted(name for name in names if name not in OPTIONS or name == "args")
    if surplus:
        raise UsageError(f"{', '.join(surplus)}: {job.kind.name} has its arguments already")


def encoded(kind: Kind | None, args: object) -> str:
    """Return the arguments of a job by name as they are stored.

    Raises:
        UsageError: They cannot be stored, or its kind takes others.
    """
    if not isinstance(args, Mapping):
        raise UsageError(f"args is a {type(args).__name__}: pass a dictionary of named arguments")
    if kind is not None:
        return kind.encode(args)
    if OCCURRENCE_KEY in args:
        raise UsageError(f"{OCCURRENCE_KEY} is reserved for schedules: use another name")
    return encode_args(dict(args))


def _check_callback(given: Mapping[str, Any]) -> None:
    if given.get("expires_at") is None:
        raise UsageError(
            "a callback does not wait for ever: write tb.callback(name, within_s=…), or pass "
            "expires_at"
        )
    surplus = [name for name in ("after", "delay_s", "key", "run_at") if given.get(name)]
    if surplus:
        raise UsageError(
            f"{', '.join(surplus)}: a callback waits for its call alone; pass that to the job "
            "which comes after it"
        )


def _check_clash(kind: Kind, given: Iterable[str]) -> None:
    clash = sorted(OPTIONS & inspect.signature(kind.call).parameters.keys() & set(given))
    if clash:
        raise UsageError(
            f"{', '.join(clash)} is both an option and an argument of {kind.name}: "
            "pass the job's own arguments as args={...}"
        )


def _uuid(given: object) -> UUID:
    if given is None:
        return new_uuid()
    try:
        return given if isinstance(given, UUID) else UUID(str(given))
    except ValueError:
        raise UsageError(f"uuid is {given!r}: pass a uuid.UUID or its text") from None


def _earliest(run_at: object, delay_s: object) -> dict[str, Any]:
    if run_at is not None and delay_s is not None:
        raise UsageError("run_at and delay_s say the same thing twice: pass one of them")
    if delay_s is not None:
        check_seconds("delay_s", delay_s, least=0)
        return {"delay_s": float(str(delay_s))}
    if run_at is None:
        return {}
    return {"run_at": aware("run_at", run_at)}


def _deadline(expires_at: object, run_at: object) -> datetime | None:
    if expires_at is None:
        return None
    found = aware("expires_at", expires_at)
    if isinstance(run_at, datetime) and run_at >= found:
        raise UsageError("expires_at is not after run_at: the job could never run")
    return found


def aware(name: str, given: object) -> datetime:
    """Return an instant in UTC; raise `UsageError` unless it is an aware datetime."""
    if not isinstance(given, datetime) or given.tzinfo is None:
        raise UsageError(f"{name} is {given!r}: pass an aware datetime, such as datetime.now(UTC)")
    try:
        return given.astimezone(UTC)
    except OverflowError:
        raise UsageError(f"{name} is {given!r}: pass one of the years 1 to 9999 in UTC") from None


def check_whole(name: str, value: object, least: int, most: int) -> None:
    """Raise `UsageError` unless an option is a whole number within bounds."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise UsageError(f"{name} is {value!r}: write a whole number from {least} to {most:,}")


def check_seconds(name: str, value: object, *, least: float) -> None:
    """Raise `UsageError` unless an option is a number of seconds, from `least` to ten years."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or not least <= float(str(value)) <= WAIT_LIMIT_S:
        raise UsageError(f"{name} is {value!r}: write seconds, from {least} to ten years")
