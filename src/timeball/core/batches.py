"""Batches: jobs whose end, all of them together, is an end of its own.

A batch is a job that no worker runs. Its jobs, the *members*, are its parents, by edges of the
rule "member". It waits for all of them and ends in the commit that ends the last, whatever the
others were: once, never before, and so that children may come after it like after any job.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, NamedTuple

from timeball.core.dependencies import Rule, RuledOut, Sentence, needs_of
from timeball.core.states import State

BATCH: Final = "timeball.batch"
"""The kind of the job that is a batch."""

MEMBERS: Final = "members"
"""Why a batch waits, and why it has ended."""

OPEN: Final = "open"
"""Why a batch waits that has not been closed: it does not end, whatever its jobs do."""


class Told(NamedTuple):
    """One edge of a batch, once it has been decided."""

    rule: Rule
    met: bool
    how: State | None
    """How the parent last ended; None: it was deleted."""


def end_of(edges: Iterable[Told]) -> State:
    """Return how a batch ends all of whose edges have been decided.

    Failed, if a member has failed, or was deleted before anybody could look; else cancelled, if
    one was cancelled; else skipped, if all of them were. Members that were skipped beside others
    do no harm: their own rules meant it. A batch without members has succeeded, unless it was to
    come after jobs that have ruled it out.
    """
    every = list(edges)
    needs = needs_of(edge.rule for edge in every)
    for edge in every:
        needs = needs.after(edge.rule, met=edge.met or edge.rule is Rule.MEMBER)
    if needs.sentence(RuledOut.SKIP) is Sentence.SKIP:
        return State.SKIPPED
    unmet = {edge.how for edge in every if edge.rule is Rule.MEMBER and not edge.met}
    if unmet & {State.FAILED, None}:
        return State.FAILED
    if State.CANCELLED in unmet:
        return State.CANCELLED
    members = [edge for edge in every if edge.rule is Rule.MEMBER]
    return State.SKIPPED if members and not any(edge.met for edge in members) else State.SUCCEEDED


def batch_args(name: str, *, is_open: bool) -> str:
    """Return the arguments of the job that is a batch, as the text of a JSON object."""
    return json.dumps({"name": name, "open": is_open})
