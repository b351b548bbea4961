"""Drafts as the specs of one submission."""

from __future__ import annotations

from collections.abc import Iterable

from timeball.action.draft import Draft, together
from timeball.action.job_specs import job_spec
from timeball.core.records import JobSpec
from timeball.errors import UsageError


def draft_specs(drafts: Iterable[Draft]) -> list[JobSpec]:
    """Return the checked specs of drafts, in their order.

    Raises:
        UsageError: What is wrong, and what to write instead.
    """
    return [draft_spec(each) for each in together(drafts)]


def draft_spec(given: Draft) -> JobSpec:
    """Return the checked spec of one draft.

    Raises:
        UsageError: What is wrong, and what to write instead.
    """
    if given.args:
        raise UsageError(f"{given!r} has arguments by position: a client takes them by name")
    if "connection" in given.arguments:
        raise UsageError(f"{given!r} has a connection: pass it to submit_all, for all of them")
    return job_spec(given.job, {**given.arguments, "uuid": given.uuid})
