"""Callbacks: external events on which jobs wait, each a job that no worker runs.

A callback waits for one call from outside, and ends in the commit of that call with what was said
in it as its result. Until then it can be cancelled, and at its deadline it is skipped, as any job
is that has not begun by then. What waits for it comes after it like after any job.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

CALLBACK: Final = "timeball.callback"
"""The kind of the job that is a callback."""

CALL: Final = "call"
"""Why a callback waits, and why it has succeeded."""


class CallAnswer(StrEnum):
    """What became of a call."""

    ACCEPTED = "accepted"  # the callback has succeeded with it; or it had, by the same call before
    OTHERWISE = "otherwise"  # another call came first, and said something else
    CANCELLED = "cancelled"  # nobody waits for it any more
    EXPIRED = "expired"  # its deadline has passed
    NOT_FOUND = "not_found"
