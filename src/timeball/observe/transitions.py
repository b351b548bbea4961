"""One log line per transition of a job, as text for people or as JSON for machines.

All go to the logger ``timeball.transition`` at level DEBUG; where that is off, nothing is made.
What people are to see whatever they have chosen is a warning there.
A line never holds arguments, results or what an exception said: only its type.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from timeball.core.states import Ending
from timeball.observe.concealment import ConcealingFormatter, concealed

LOGGER: Final = logging.getLogger("timeball.transition")

_TEXT: Final = "%(asctime)s %(levelname)s %(message)s"


class LogFormat(StrEnum):
    """How this process writes its log."""

    TEXT = "text"  # warnings, for people
    JSON = "json"  # warnings and every transition, one object a line


class Happening(StrEnum):
    """What happens to a job apart from the endings of its turns; those go by `Ending`."""

    SUBMITTED = "submitted"
    CLAIMED = "claimed"  # a turn was granted to this worker
    BEGUN = "begun"
    STALE_SETTLEMENT = "stale_settlement"  # how it ended was told too late, and changed nothing
    CANCEL_REQUESTED = "cancel_requested"
    WORKER_EXPIRED = "worker_expired"  # about no job: a worker was given up
    WORKER_STALLED = "worker_stalled"  # a job keeps a worker from turning; a warning, as the next
    WORKER_GOES_ON = "worker_goes_on"


class Transition(NamedTuple):
    """What a line says. What is None is left out."""

    event: Happening | Ending
    job: int | str | None = None
    """Its number, or the id that its submitter gave it."""

    kind: str | None = None
    turn: int | None = None
    attempt: int | None = None
    """Which one of the job's attempts, from 1; turns that never began do not count."""

    worker: int | None = None
    """The worker's number; in process, the slot's."""

    granted_at: float | None = None
    """Epoch seconds on the store's clock, like `began_at` and `ended_at`; in process, seconds of
    this machine's stopwatch."""

    began_at: float | None = None
    ended_at: float | None = None
    queue_wait_s: float | None = None
    """From when the turn might start to when it began."""

    limiter_wait_s: float | None = None
    """How much of that was for the rate limit."""

    lock_wait_s: float | None = None
    """How long its thread waited for our own lock just before."""

    delay_s: float | None = None
    """When the next turn may start, counted from the end of this one."""

    reason: str | None = None
    """A word for machines; what user code says is left out."""

    error_type: str | None = None
    turns: dict[str, int] | None = None
    """Of a worker that was given up: what became of its open turns, and of how many."""

    jobs: list[int] | None = None
    """Of a worker that stands still: what runs in it, the longest first."""

    stalled_s: float | None = None
    advice: str | None = None
    """What to do, for people."""

    def fields(self) -> dict[str, Any]:
        """Return what is known, by name."""
        return {name: each for name, each in self._asdict().items() if each is not None}

    def __str__(self) -> str:
        known = self.fields()
        del known["event"]
        return " ".join([self.event, *(f"{name}={each}" for name, each in known.items())])


class JsonFormatter(logging.Formatter):
    """Makes one line of JSON of each record; a traceback becomes a string in it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        said: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname,
            "logger": record.name,
            "pid": record.process,
        }
        if isinstance(record.msg, Transition):
            said |= record.msg.fields()
        else:
            said["message"] = record.getMessage()
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        # All ASCII, for there are more ends of lines than \n. A lone surrogate is spelt out.
        return json.dumps(_storable(said), separators=(",", ":"), default=str)


def telling() -> bool:
    """Return whether anybody wants to be told of transitions now."""
    return LOGGER.isEnabledFor(logging.DEBUG)


def tell(transition: Transition) -> None:
    """Write a line, if lines are wanted."""
    LOGGER.debug(transition)


def warn(transition: Transition) -> None:
    """Write a line that people are to see."""
    LOGGER.warning(transition)


def configure(form: LogFormat) -> None:
    """Have this process write its log to stderr; what has been configured before stays."""
    as_text = form is LogFormat.TEXT
    handler = logging.StreamHandler()
    handler.setFormatter(ConcealingFormatter(_TEXT) if as_text else JsonFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    if not as_text:
        LOGGER.setLevel(logging.DEBUG)


def _storable(said: dict[str, Any]) -> dict[str, Any]:
    return {
        name: concealed(each).encode("utf-8", "backslashreplace").decode()
        if isinstance(each, str)
        else each
        for name, each in said.items()
    }
