"""Kinds whose attempts run one command, fixed when the kind is registered."""

from __future__ import annotations

import signal
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Unpack

from timeball.action.command import Cancellation, Command, CommandEnd, run
from timeball.action.command_tail import Tail
from timeball.action.context import Context
from timeball.action.kind import Kind
from timeball.action.parameters import Parameters
from timeball.action.registry import KindOptions, kind_with
from timeball.core.outcomes import Outcome, Raised, Returned, Unbegun
from timeball.core.payload import encode_result, storable
from timeball.errors import UsageError
from timeball.observe.concealment import concealed

OUTPUT_KEPT: Final = 32_000
"""Characters of a command's output that its result keeps, half of them from its start and half
from its end; an error keeps fewer."""

_ERROR_KEPT: Final = 12_000
EXIT_CODE_MAX: Final = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitCodes:
    """What the exit codes of a command mean.

    Args:
        success: Those that are one.
        for_good: Those of failures that no other attempt can mend. All others are tried again.

    Raises:
        UsageError: One of them is no exit code.
    """

    success: frozenset[int] = frozenset({0})
    for_good: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        for code in self.success | self.for_good:
            if type(code) is not int or not 0 <= code <= EXIT_CODE_MAX:
                raise UsageError(f"exit code {code!r}: write 0 to {EXIT_CODE_MAX}")


def command_kind(
    name: str,
    command: Command,
    *,
    codes: ExitCodes | None = None,
    place: str = "",
    **options: Unpack[KindOptions],
) -> Kind:
    """Return a kind that runs `command` and nothing else.

    Its jobs take no arguments. The command finds in its environment TIMEBALL_JOB_ID (also its
    idempotency key), TIMEBALL_KIND, TIMEBALL_ATTEMPT, and for a scheduled one
    TIMEBALL_SCHEDULE, TIMEBALL_NOMINAL_AT and TIMEBALL_NOMINAL_LOCAL.

    Args:
        name: Unique name of the kind.
        command: What to run; its own `timeout_s` counts where neither kind nor job has one.
        codes: What its exit codes mean.
        place: Where it is defined, such as ``crontab:12``.
        **options: As for ``@job``.

    Raises:
        UsageError: An option is wrong.
    """

    def call(context: Context) -> Outcome:
        return attempt(command, context, codes or ExitCodes())

    takes = Parameters(accepted=frozenset(), required=frozenset(), context="context")
    # A command is a process anyway, and is killed with its tree from where it was started.
    here = {"runner": "thread", **options}
    return kind_with(name, call, options=here, parameters=takes, place=place or str(command))


def attempt(command: Command, context: Context, codes: ExitCodes) -> Outcome:
    """Run a command once for a job, and return what became of it."""
    bounded = command
    if context.timeout_s is not None:
        bounded = replace(command, timeout_s=context.timeout_s)
    cancellation = Cancellation()
    context.stop.when_raised(cancellation.set)
    tail = Tail(context.log) if context.keeps_lines else None
    try:
        end = run(bounded, cancelled=cancellation, extra_env=_facts(context), tail=tail)
        return _outcome(end, codes)
    finally:
        cancellation.close()


def _facts(context: Context) -> dict[str, str]:
    facts = {
        "TIMEBALL_JOB_ID": context.key,
        "TIMEBALL_KIND": context.kind,
        "TIMEBALL_ATTEMPT": str(context.attempt),
    }
    if context.occurrence is not None:
        facts["TIMEBALL_SCHEDULE"] = context.occurrence.schedule
        facts["TIMEBALL_NOMINAL_AT"] = context.occurrence.nominal_at.isoformat()
        facts["TIMEBALL_NOMINAL_LOCAL"] = context.occurrence.nominal_local
    return facts


def _outcome(end: CommandEnd, codes: ExitCodes) -> Outcome:
    if end.cancelled:
        return Unbegun("stopped")
    if end.exit_code in codes.success and not end.timed_out:
        result = {"exit_code": end.exit_code, "output": _kept(end, OUTPUT_KEPT)}
        return Returned(encode_result(result))
    how = f"exit code {end.exit_code}" if end.signal is None else _signal_name(end.signal)
    if end.timed_out:
        how = f"ran longer than its time, and was ended after {end.duration_s:.1f} s"
    return Raised(
        error_type="CommandFailed",
        error=f"{how}\n\n{_kept(end, _ERROR_KEPT)}",
        again=end.timed_out or end.exit_code not in codes.for_good,
        reason="timeout" if end.timed_out else None,
    )


def _kept(end: CommandEnd, limit: int) -> str:
    # Concealed before it is cut, which would leave a part of a secret where the cut is.
    return storable(concealed(end.output), limit)


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return f"ended by {signal.Signals(number).name}"
    return f"ended by signal {number}"
