"""Attempts in processes apart: children of a worker's process, which it can kill with their tree.

Such a process loads what the worker has loaded, and finds the kind of a turn by its name. There
everything is as in a thread of the worker: arguments, context and result pass through the same
code. But nothing raises the stop sign of the context: who is to stop gets SIGTERM.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from timeball.action.brood import Brood
from timeball.action.context import Lent, StopSign
from timeball.action.kind import Kind
from timeball.action.notebook import Notebook
from timeball.action.parents import parent_jobs
from timeball.action.python import carry_out, carry_out_async, timeout_of
from timeball.action.registry import DEFAULT
from timeball.core.dependencies import Parent
from timeball.core.notes import Note
from timeball.core.outcomes import Outcome, Raised
from timeball.core.records import Turn
from timeball.core.retry import Retry
from timeball.engine.process_child import say
from timeball.engine.processes import Processes
from timeball.engine.runner import Done, Lost, Runner, Spawning
from timeball.observe.transitions import LogFormat, configure

if TYPE_CHECKING:
    from timeball.worker.child import Load

_RETRY: Final = Retry()
"""For what goes wrong before the kind has a say."""


def processes(
    loads: Sequence[Load], log: LogFormat, grace_s: float, notebook: Notebook | None = None
) -> Processes:
    """Return where attempts run apart; nothing is started before the first one.

    Args:
        loads: Where the kinds come from.
        log: How the processes write their log.
        grace_s: Seconds between SIGTERM and SIGKILL.
        notebook: Where it is collected what attempts say; None: nobody hears it.
    """
    told = None if notebook is None else notebook.merge
    return Processes(initializer=partial(load, tuple(loads), log), grace_s=grace_s, told=told)


def load(loads: tuple[Load, ...], log: LogFormat) -> None:
    """Make this process know the kinds."""
    configure(log)
    for each in loads:
        each.into(DEFAULT)


def run_apart(
    runner: Runner, kind: Kind, turn: Turn, stop: StopSign, parents: Sequence[Parent] = ()
) -> Outcome | Lost:
    """Run one attempt in another process and return how it ended. Never raises.

    `Lost` where its process died under it. Where its time is up, or `stop` is raised, it
    returns once nothing is left of the process and of what that has started.
    """
    timeout_s = timeout_of(kind, turn)
    given = (turn, tuple(parents))
    ended = runner.carry_out(attempt, given, {}, timeout_s=timeout_s, stop=stop, retry=_RETRY)
    if not isinstance(ended, Done):
        assert not isinstance(ended, Spawning), "a scheduler's own"
        return ended
    outcome: Outcome = ended.value
    return outcome


def attempt(turn: Turn, parents: tuple[Parent, ...] = ()) -> Outcome:
    """Carry out a turn in this process."""
    kind = DEFAULT.get(turn.kind)
    if kind is None:
        return Raised(
            error_type="UnknownKind",
            error=f"a process of its own does not find {turn.kind!r} by loading what its worker "
            "has loaded: define it when its module is imported",
            again=False,
            reason="not-importable",
        )
    brood = Brood()
    spawn = None if turn.at_most_once else brood.add
    lent = Lent(None, partial(parent_jobs, parents), _NOTEBOOK, spawn)
    if kind.is_async:
        outcome = asyncio.run(carry_out_async(kind, turn, StopSign(), lent))
    else:
        outcome = carry_out(kind, turn, StopSign(), lent)
    _NOTEBOOK.flush()
    return brood.joined(outcome)


def _hand_over(notes: Sequence[Note]) -> set[int]:
    """Tell the worker what this process has collected: it keeps it until it is written."""
    with suppress(OSError):  # then it is dead, and so is this process
        say(notes)
    return {note.job_id for note in notes}


_NOTEBOOK: Final = Notebook(_hand_over)
