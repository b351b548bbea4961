"""Kinds whose attempts run one command, fixed when the kind is registered."""

from __future__ import annotations

import signal
from contextlib import suppress
from dataclasses import replace
from typing import Final, Unpack

from timeball.action.command import Cancellation, Command, CommandEnd, run
from timeball.action.context import Context
from timeball.action.kind import Kind
from timeball.action.parameters import Parameters
from timeball.action.registry import KindOptions, kind_with
from timeball.core.outcomes import Outcome, Raised, Returned, Unbegun
from timeball.core.payload import encode_result

OUTPUT_KEPT: Final = 32_000
"""Characters of the end of a command's output that its result keeps; an error keeps fewer."""

_ERROR_KEPT: Final = 12_000


def command_kind(
    name: str, command: Command, *, place: str = "", **options: Unpack[KindOptions]
) -> Kind:
    """Return a kind that runs `command` and nothing else.

    Its jobs take no arguments. The command finds in its environment TIMEBALL_JOB_ID (also its
    idempotency key), TIMEBALL_KIND, TIMEBALL_ATTEMPT, and for a scheduled one
    TIMEBALL_SCHEDULE, TIMEBALL_NOMINAL_AT and TIMEBALL_NOMINAL_LOCAL. It succeeded if its exit
    code is 0.

    Args:
        name: Unique name of the kind.
        command: What to run; its own `timeout_s` counts where neither kind nor job has one.
        place: Where it is defined, such as ``crontab:12``.
        **options: As for ``@job``.

    Raises:
        UsageError: An option is wrong.
    """

    def call(context: Context) -> Outcome:
        bounded = command
        if context.timeout_s is not None:
            bounded = replace(command, timeout_s=context.timeout_s)
        cancellation = Cancellation()
        context.stop.when_raised(cancellation.set)
        try:
            return _outcome(run(bounded, cancelled=cancellation, extra_env=_facts(context)))
        finally:
            cancellation.close()

    takes = Parameters(accepted=frozenset(), required=frozenset(), context="context")
    # A command is a process anyway, and is killed with its tree from where it was started.
    here = {"runner": "thread", **options}
    return kind_with(name, call, options=here, parameters=takes, place=place or str(command))


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


def _outcome(end: CommandEnd) -> Outcome:
    if end.cancelled:
        return Unbegun("stopped")
    if end.exit_code == 0 and not end.timed_out:
        result = {"exit_code": 0, "output": end.output[-OUTPUT_KEPT:]}
        return Returned(encode_result(result))
    how = f"exit code {end.exit_code}" if end.signal is None else _signal_name(end.signal)
    if end.timed_out:
        how = f"ran longer than its time, and was ended after {end.duration_s:.1f} s"
    return Raised(
        error_type="CommandFailed",
        error=f"{how}\n\n{end.output[-_ERROR_KEPT:]}",
        again=True,
        reason="timeout" if end.timed_out else None,
    )


def _signal_name(number: int) -> str:
    with suppress(ValueError):
        return f"ended by {signal.Signals(number).name}"
    return f"ended by signal {number}"
