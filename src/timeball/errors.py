"""Every exception that Timeball raises on purpose.

The tree::

    TimeballError
    ├── UsageError            the caller passed something that can never work
    │   ├── InvalidSchedule   a cron expression, time zone or crontab line that is wrong
    │   ├── InvalidPayload    arguments or a result that cannot be stored as JSON
    │   └── UnknownKind       no job of that name is registered here
    ├── JobError              about one job; carries its id
    │   ├── JobNotFound       no job has that id
    │   ├── IllegalTransition the transition table has no such edge
    │   ├── UniqueClash       another job holds the unique key, and does not give way
    │   ├── JobFailed         its result was asked for, and it ended without one
    │   └── DeadlockError     a job waits for what cannot end before the job itself does
    ├── ScheduleNotFound      no schedule has that name
    ├── QueueFull             the queue takes no more jobs for now: submit later
    ├── SchedulerClosed       this scheduler was shut down: submit to a new one
    ├── StoreUnavailable      the store cannot be reached; always worth another try
    ├── WorkerExpired         this worker was given up for dead: register again
    ├── SchemaMismatch        the database's schema is older or newer than this program
    └── EmbeddedUnavailable   no PostgreSQL binaries, or they would not start

What user code raises is data (an `Outcome`), never an instance of these.
"""

from __future__ import annotations


class TimeballError(Exception):
    """Base of all errors raised on purpose; catch this to catch them all."""


class UsageError(TimeballError, ValueError):
    """The caller passed something that can never work; the text says what to write instead."""


class InvalidSchedule(UsageError):
    """A cron expression, time zone or crontab line that is wrong."""


class InvalidPayload(UsageError):
    """Arguments or a result that cannot be stored as JSON."""


class UnknownKind(UsageError):
    """No job of that name is registered in this process."""


class JobError(TimeballError):
    """Something about one job."""

    def __init__(self, job: object, reason: str) -> None:
        super().__init__(f"job {job}: {reason}")
        self.job = job


class JobNotFound(JobError):
    """No job has that id."""

    def __init__(self, job: object) -> None:
        super().__init__(job, "not found")


class IllegalTransition(JobError):
    """The transition table has no edge for this event in this state."""


class UniqueClash(JobError):
    """Another job holds the unique key; `job` is its uuid. Nothing was added."""


class JobFailed(JobError):
    """Its result was asked for, and it ended without one.

    Attributes:
        state: "failed", "cancelled" or "skipped".
        error_type: Name of the exception it raised, or None.
    """

    def __init__(self, job: object, state: str, reason: str, error_type: str | None = None) -> None:
        super().__init__(job, f"{state}: {reason}")
        self.state = state
        self.error_type = error_type


class DeadlockError(JobError):
    """A job waits for what cannot end before the job itself does."""


class ScheduleNotFound(TimeballError):
    """No schedule has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no schedule is called {name!r}: `timeball cron list` shows them")
        self.name = name


class QueueFull(TimeballError):
    """A queue holds as many jobs as it may. Nothing was added; submit again later.

    Attributes:
        queue: Which one.
    """

    def __init__(self, queue: str, reason: str) -> None:
        super().__init__(
            f"{reason}; nothing was added: submit again when some have started, or raise it with "
            f"`timeball queues set {queue} --max-depth N`"
        )
        self.queue = queue


class SchedulerClosed(TimeballError):
    """This scheduler was shut down, or is a forked copy of one: submit to a new one."""


class StoreUnavailable(TimeballError):
    """The store cannot be reached. Nothing is known about the last call; try it again."""


class WorkerExpired(TimeballError):
    """This worker was observed silent for a whole lease and given up for dead."""


class SchemaMismatch(TimeballError):
    """The database's schema does not fit this program; the text says which command mends it."""


class EmbeddedUnavailable(TimeballError):
    """No PostgreSQL binaries were found, or the server would not start."""
