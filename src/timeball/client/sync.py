"""Submit jobs, wait for them, look at them: what a program does that is no worker.

`Client` blocks, `AsyncClient` awaits. The second runs the first in threads: there is
one implementation.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

from timeball.action.draft import Draft
from timeball.action.draft_specs import draft_specs
from timeball.action.job_call import JobCall
from timeball.action.job_specs import OPTIONS, job_spec, job_specs
from timeball.chance import new_uuid
from timeball.client.batches import Batches
from timeball.client.handles import Handle, uuid_of
from timeball.client.limits import Limits
from timeball.client.operator import Operator
from timeball.client.queues import Queues
from timeball.client.schedules import Schedules
from timeball.core.notes import LogLine
from timeball.core.records import CancelAnswer, Job, JobSpec
from timeball.core.states import State
from timeball.errors import UsageError
from timeball.store.base import JobFilter, Store, schedule_job

POLL_FIRST_S: Final = 0.002
POLL_LAST_S: Final = 0.25
LOOK_MAX: Final = 1_000
"""Jobs asked about at a time."""


class Client(Schedules, Operator, Batches, Limits, Queues):
    """A program's access to a store. Usable as a context manager, from any thread.

    Args:
        store: Where jobs live.
        close: Called by `close()`, after the store's own.
    """

    def __init__(self, store: Store, *, close: Callable[[], None] | None = None) -> None:
        self.store = store
        self._close = close

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back what this client holds. Calling it again does nothing."""
        close, self._close = self._close, None
        if close is not None:
            close()

    # Submitting

    def submit(self, job: Callable[..., Any] | str | JobCall, /, **arguments: Any) -> Handle:
        """Add one job and return its handle.

        Args:
            job: A function with `@tb.job`, the name of a kind that some worker knows, or what
                `tb.http` and the like give.
            **arguments: The job's own arguments by name, and these options: `queue`,
                `priority` 0 … 9 (9 starts first), `run_at` (aware) or `delay_s` (seconds),
                `expires_at` (aware: if it has not begun by then, it is skipped),
                `max_retries`, `max_crashes`, `timeout_s`, `delivery`
                ("at_least_once" or "at_most_once"), `key` (of the jobs with the same one
                only so many are under way at once as `limit` allows, of itself one),
                `uuid` (submitting the same one again
                adds nothing), `args` (a dictionary, in place of arguments by name, where a
                name is also an option's) and `connection` (your own open psycopg
                connection: the job is there if and only if you commit).

        A job with `unique` is one of its kind at a time: `unique` is a key, `unique_scope`
        says among which jobs it is unique ("kind", "queue", "global"), `unique_until` how
        long it is held ("ended", "started"), and `on_clash` what happens while another job
        holds it: "ignore" gives that job's handle, "reject" raises, "replace" cancels it
        where it is scheduled or otherwise held back, and raises where it may start or runs.

        A job with `after`, a list of handles or uuids, waits for those: `rule` says for what
        ("all_success", "all_done", "none_failed", "always", "one_success", "one_failed"; for
        one parent alone write (handle, rule) in the list), and `ruled_out` what happens once
        that can no longer be: "skip" (and so do those that need it), "fail", or "run" it all
        the same once all of them have ended.

        Raises:
            UsageError: Something that can never work, and what to write instead.
            UniqueClash: Another job holds the unique key, and does not give way.
            QueueFull: Too many jobs wait in the queue; see `limit_depth`.
            StoreUnavailable: Try again with the same `uuid`.
        """
        connection = arguments.pop("connection", None)
        spec = job_spec(job, arguments)
        if connection is None:
            return self.submit_specs([spec])[0]
        (added,) = self.within("submit_within")(connection, [spec])
        return Handle(self, added.uuid, added.id)

    def submit_many(
        self, job: Callable[..., Any] | str, each: Iterable[Mapping[str, Any]], /, **options: Any
    ) -> list[Handle]:
        """Add one job for each mapping of arguments, 1,000 in a transaction; return handles."""
        unknown = options.keys() - (OPTIONS - {"uuid", "args", "connection"})
        if unknown:
            raise UsageError(f"{', '.join(sorted(unknown))}: not an option of submit_many")
        return self.submit_specs(job_specs(job, each, options))

    def submit_all(self, drafts: Iterable[Draft], *, connection: Any = None) -> list[Handle]:
        """Add different jobs, with edges among them, all or none; return their handles in order.

        Args:
            drafts: Of `tb.draft`, or what `tb.chain`, `tb.group` and `tb.chord` make of them; at
                most 10,000. Each may name jobs that exist, and drafts before it, in its `after`.
            connection: Your own open psycopg connection: they are there if and only if you commit.

        Raises:
            UsageError: One of them can never work, and what to write instead.
            UniqueClash: Another job holds a unique key, and does not give way.
            QueueFull: Too many jobs wait in the queue; see `limit_depth`.
            StoreUnavailable: Try again with the same drafts: those that are there are not added
                again.
        """
        specs = draft_specs(drafts)
        if connection is None:
            added = self.store.submit(specs)
        else:
            added = self.within("submit_within")(connection, specs)
        return [Handle(self, job.uuid, job.id) for job in added]

    def submit_specs(self, specs: Sequence[JobSpec]) -> list[Handle]:
        """Add jobs that were checked before and return their handles, in order."""
        handles: list[Handle] = []
        for start in range(0, len(specs), 1_000):
            part = specs[start : start + 1_000]
            handles += [Handle(self, job.uuid, job.id) for job in self.store.submit(part)]
        return handles

    def cancel(self, job: Handle | UUID) -> CancelAnswer:
        """Keep a job from starting, or ask its running attempt to stop.

        After "cancelled" it never starts; after "requested" no further attempt starts, and
        the running one may still succeed or fail.
        """
        return self.store.cancel(uuid_of(job))

    # Looking

    def get(self, job: Handle | UUID) -> Job:
        """Return one job as it is now.

        Raises:
            JobNotFound: No job has that id.
        """
        return self.store.get(uuid_of(job))

    def logs(self, job: Handle | UUID) -> list[LogLine]:
        """Return the newest lines that a job has logged by `ctx.log(…)`, oldest first.

        Raises:
            JobNotFound: No job has that id.
        """
        return self.store.logs(uuid_of(job))

    def jobs(self, **only: Any) -> list[Job]:
        """Return a page of jobs, newest first.

        Args:
            **only: `state`, `queue`, `kind`, `before_id` (the last id of the page before),
                `from_id` (how far back it looks) and `limit` (50).
        """
        return self.store.jobs(JobFilter(**only))

    def counts(self, queue: str | None = None) -> dict[State, int]:
        """Return how many jobs are in each state, all from one snapshot."""
        found = self.store.counts(queue)
        return {state: found.get(state, 0) for state in State}

    def sets(self, queue: str | None = None) -> dict[str, int]:
        """Return the sizes of the four classic sets: pending, running, completed, failed."""
        count = self.counts(queue)
        return {
            "pending": count[State.SCHEDULED] + count[State.WAITING] + count[State.PENDING],
            "running": count[State.RUNNING],
            "completed": count[State.SUCCEEDED],
            "failed": count[State.FAILED] + count[State.CANCELLED] + count[State.SKIPPED],
        }

    def wait(
        self,
        jobs: Collection[Handle | UUID],
        timeout_s: float | None = None,
        *,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[Job]:
        """Return the jobs, in order, once all of them have ended.

        Args:
            jobs: Handles or uuids.
            timeout_s: Give up after so many seconds; None waits for ever.
            on_progress: Called with the number that have ended, now and then.

        Raises:
            TimeoutError: Some have not ended in time; the text says how many.
        """
        waiting = Waiting(self.store, jobs, timeout_s)
        while (rest_s := waiting.look()) is not None:
            if on_progress is not None:
                on_progress(waiting.ended)
            time.sleep(rest_s)
        if on_progress is not None:
            on_progress(waiting.ended)
        return waiting.jobs()

    # Schedules: the other verbs are those of `Schedules`

    def run_schedule(self, name: str) -> Handle:
        """Add one extra job of a schedule now, and return its handle. No occurrence is decided.

        Raises:
            ScheduleNotFound: No schedule has that name.
        """
        schedule = self.store.schedule(name)
        spec = schedule_job(schedule.spec, new_uuid(), schedule.spec.args)
        return Handle(self, spec.uuid, self.store.run_now(schedule, spec))

    # Your own transaction

    def within(self, verb: str) -> Callable[..., Any]:
        """Return the store's verb that submits inside a caller's transaction."""
        found = getattr(self.store, verb, None)
        if found is None:
            raise UsageError("connection= needs a PostgreSQL store")
        return found  # type: ignore[no-any-return]  # of the one store that has it


class Waiting:
    """Waiting for jobs to end: who still runs, and how long to rest before looking again."""

    def __init__(
        self, store: Store, jobs: Collection[Handle | UUID], timeout_s: float | None
    ) -> None:
        self._store = store
        self._uuids = [uuid_of(job) for job in jobs]
        self._open = set(self._uuids)
        self._rest_s = POLL_FIRST_S
        self._deadline = None if timeout_s is None else time.monotonic() + timeout_s

    @property
    def ended(self) -> int:
        """How many have ended, as far as we have looked."""
        return len(self._uuids) - len(self._open)

    def look(self) -> float | None:
        """Look once; return the seconds to rest before the next look, None when all have ended.

        Raises:
            TimeoutError: The time is up and some have not ended.
        """
        ended = self._store.ended(sorted(self._open)[:LOOK_MAX]) if self._open else set()
        self._open -= ended
        if not self._open:
            return None
        if ended:
            self._rest_s = POLL_FIRST_S
            return 0.0
        left_s = math.inf if self._deadline is None else self._deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(
                f"{len(self._open)} of {len(self._uuids)} jobs have not ended in time"
            )
        rest_s, self._rest_s = self._rest_s, min(POLL_LAST_S, 1.5 * self._rest_s)
        return min(rest_s, left_s)

    def jobs(self) -> list[Job]:
        """Return the jobs in the order in which they were asked for."""
        return [self._store.get(uuid) for uuid in self._uuids]
