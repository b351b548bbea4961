"""What `Scheduler` and `AsyncScheduler` have in common, which is everything but who waits.

An engine is an agenda (all decisions), a section (the lock around it) and a crew (who comes for
attempts). `submit` takes no lock: it appends to the agenda's inbox and rings.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, Final
from uuid import UUID

from timeball import chance
from timeball.action.draft import Draft, together
from timeball.action.job_call import JobCall
from timeball.core.audit import Violation
from timeball.core.limiter import limiter_of
from timeball.core.makespan import AttemptRecord
from timeball.core.notes import Progress
from timeball.core.outcomes import Raised
from timeball.core.records import CancelAnswer
from timeball.core.report import BatchReport
from timeball.core.states import TERMINAL, State
from timeball.engine.agenda import Agenda
from timeball.engine.calls import carry_out, carry_out_async
from timeball.engine.chronicle import (
    Snapshot,
    attempt_records,
    batch_record,
    first_ready_ns,
    history_of,
    violations_in,
)
from timeball.engine.drafts import drafted
from timeball.engine.handles import Attempt, Work
from timeball.engine.lanes import Lanes, aging_ns
from timeball.engine.options import Options
from timeball.engine.room import Room
from timeball.engine.runner import Ended, Runner
from timeball.engine.section import Section
from timeball.engine.submission import Submission
from timeball.engine.telling import ToldAgenda
from timeball.engine.waits import Crew, Waits
from timeball.errors import JobFailed, JobNotFound, SchedulerClosed, UsageError
from timeball.observe.transitions import telling

GUARD_NS: Final = 500_000
"""Added to the window, for what passes between a recorded start and the callable's own reading."""

LATE_NS: Final = 200_000
"""A start that has not been called after so long is stamped again."""

CHANGES: Final = 10_000
"""So many changes of why slots are idle are kept in any case."""


class Engine:
    """Jobs, and who carries them out.

    Args:
        options: How it behaves.
        handle: What its jobs are made as.
        runner: Where callables run that are no coroutines; None for the slots' own threads.
    """

    _changes_kept = 0
    """Of why slots are idle, after some were forgotten."""

    def __init__(self, options: Options, handle: type[Work], runner: Runner | None) -> None:
        self.options = options
        self.clock_ns: Callable[[], int] = options.clock_ns or time.monotonic_ns
        self.uuid: UUID = chance.new_uuid()
        self.heard: dict[Work, Progress] = {}  # how far jobs say that they are
        self._named: dict[str, Work] = {}
        """Jobs with an id of the submitter's; claimed before the job is taken in."""
        self.closed = self.forked = self.broken = False
        """Whether it refuses; is a copy in a forked process; has lost a worker to a bug of ours."""
        self.crew: Crew
        self._ring: Callable[[], None]
        self.agenda = _agenda(options, None if options.kept is None else self._forget)
        self.agenda.on_stop = self._stop
        self.section: Section[Attempt] = Section(self.agenda, self.clock_ns)
        self.room = None if options.max_pending is None else Room(options.max_pending)
        if self.room is not None:
            self.agenda.on_room, self.agenda.on_spawn = self.room.give, self.room.take_more
        self.runner = runner
        self._call = carry_out if runner is None else self._transfer
        self.carry_out: Callable[[Attempt], Ended] = self._call
        """Carries out an attempt in this thread; never raises."""
        self.carry_out_async: Callable[[Attempt], Coroutine[Any, Any, Ended]] = carry_out_async
        """Carries out an attempt on this event loop; never raises."""
        if options.limit is not None and options.strict == "observed":
            self.carry_out = self._carry_out_on_time
            self.carry_out_async = self._carry_out_on_time_async
        submission = Submission(self, handle, options=options, runner=runner)
        self.new_job, self.parents_of = submission.work, submission.parents_of
        self._remembered, self._forgotten = deque[Work](), dict.fromkeys(TERMINAL, 0)
        waits = Waits(self)
        self.wait, self.wait_async = waits.wait, waits.wait_async

    def staff(self, crew: Crew) -> None:
        """Have `crew` come for the attempts from now on."""
        self.crew, self._ring = crew, crew.ring

    # Submitting

    def submit(
        self, call: Callable[..., Any] | JobCall, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Add a job and return its handle; takes no lock, and does not wait for room."""
        if self.closed:
            raise self.refusal()
        work = self.new_job(call, args, kwargs)
        if type(work.id) is str and self._named.setdefault(work.id, work) is not work:
            raise UsageError(f"a job {work.id!r} is here already: write another id")
        work.ready_ns = self.clock_ns()
        self.agenda.inbox.append(work)
        self._taken_in()
        return work

    def submit_all(self, drafts: Iterable[Draft]) -> list[Any]:
        """Add jobs with edges among them, all or none, and return their handles."""
        if self.closed:
            raise self.refusal()
        works = drafted(together(drafts), self.new_job)
        self._claim_ids({work.id: work for work in works if isinstance(work.id, str)})
        if self.room is not None and works:
            self.room.take_more(len(works) - 1)
        elif self.room is not None:
            self.room.give()
        now_ns = self.clock_ns()
        for work in works:
            work.ready_ns = now_ns
        self.agenda.inbox.extend(works)  # at once: an order to close comes before all or after all
        self._taken_in()
        return works

    def _claim_ids(self, named: dict[str, Work]) -> None:
        """Claim ids for new jobs, all or none, though others may claim the same meanwhile."""
        known = self._named
        taken = [name for name in named if name in known]
        if not taken:
            taken = [
                name for name, work in named.items() if known.setdefault(name, work) is not work
            ]
            if taken:
                for name in named.keys() - set(taken):
                    del known[name]
        if taken:
            raise UsageError(f"a job {taken[0]!r} is here already: write another id")

    def _taken_in(self) -> None:
        self._ring()
        if self.closed:  # meanwhile: nobody may be left who would look
            with self.section.visit():
                pass

    def enter_room(self) -> None:
        """Wait until the queue has room for one more job; jobs themselves do not wait."""
        room = self.room
        if room is not None and self.crew.current() is not None:
            room.take_more(1)
        elif room is not None and not room.enter():
            raise self.refusal()

    async def enter_room_async(self) -> None:
        """Wait as `enter_room` does, on the event loop."""
        room = self.room
        if room is not None and self.crew.current() is not None:
            room.take_more(1)
        elif room is not None and not await room.enter_async():
            raise self.refusal()

    def refusal(self) -> SchedulerClosed:
        """Return what a submitter is told who comes too late."""
        if self.forked:
            return SchedulerClosed("this is a copy in a forked process: make a scheduler there")
        return SchedulerClosed("this scheduler was shut down: submit to a new one")

    # Carrying out

    def _carry_out_on_time(self, attempt: Attempt) -> Ended:
        if self.clock_ns() - attempt.started_ns > LATE_NS:
            self._catch_up(attempt)
        return self._call(attempt)

    async def _carry_out_on_time_async(self, attempt: Attempt) -> Ended:
        if self.clock_ns() - attempt.started_ns > LATE_NS:
            await self._catch_up_async(attempt)
        return await carry_out_async(attempt)

    def _transfer(self, attempt: Attempt) -> Ended:
        assert self.runner is not None
        work = attempt.work
        said = self.runner.carry_out(
            work.form.call,
            work.args,
            work.kwargs or {},
            timeout_s=work.form.timeout_s,
            stop=attempt.sign(),
            retry=work.form.retry,
        )
        attempt.ended_ns = self.clock_ns()
        return said

    def _catch_up(self, attempt: Attempt) -> None:
        while wait_ns := self._late_ns(attempt):
            time.sleep(wait_ns / 1e9)

    async def _catch_up_async(self, attempt: Attempt) -> None:
        wait_ns = self._late_ns(attempt)
        while wait_ns:
            await asyncio.sleep(wait_ns / 1e9)
            wait_ns = self._late_ns(attempt)

    def _late_ns(self, attempt: Attempt) -> int:
        """Move the start of an attempt to where it is called; return how long to wait before."""
        while self.clock_ns() - attempt.started_ns > LATE_NS:
            self.section.enter()
            try:
                wait_ns = self.agenda.restamp(attempt, self.clock_ns())
            finally:
                self.section.leave()
            if wait_ns:
                return wait_ns
        return 0

    def _stop(self, attempt: Attempt) -> None:
        attempt.sign().raise_()
        if attempt.is_async:
            self.crew.cancel(attempt)

    # Looking

    def cancel(self, work: Work) -> CancelAnswer:
        """Keep a job from starting, or ask it to stop."""
        if self.section.mine:  # in a finalizer, inside: it is done as soon as that is over
            self.agenda.inbox.append(lambda agenda, now_ns: agenda.cancel(work, now_ns))
            return CancelAnswer.REQUESTED
        with self.section.visit() as now_ns:
            return self.agenda.cancel(work, now_ns)

    def find(self, job_id: int | str) -> Work:
        """Return a job that is remembered."""
        with self.section.visit():
            work = self.agenda.jobs.get(job_id)
        if work is None:
            raise JobNotFound(job_id)
        return work

    def submitted(self, job_id: int | str) -> Work | None:
        """Return a job, though it may not have been taken in yet; takes no lock."""
        if isinstance(job_id, str):
            return self._named.get(job_id)
        arriving = (work for work in self.agenda.inbox.copy() if isinstance(work, Work))
        return next((w for w in arriving if w.id == job_id), None) or self.agenda.jobs.get(job_id)

    def counts(self) -> dict[State, int]:
        """Return how many jobs are in each state, all of one instant."""
        with self.section.visit():
            return self._counts()

    def _counts(self) -> dict[State, int]:
        on_slot = self.agenda.on_slot
        running = sum(each is not None and each.end is None for each in on_slot)
        return self.agenda.tally.by_state(running)

    def states(self) -> dict[int | str, State]:
        """Return the state of every job that is remembered, all of one instant."""
        with self.section.visit():
            return {work.id: work.state for work in self.agenda.jobs.values()}

    def snapshot(self) -> Snapshot:
        """Return everything on record, all of one instant."""
        with self.section.visit() as now_ns:
            works = list(self.agenda.jobs.values())
            counts = self._counts()
            for state, count in self._forgotten.items():
                counts[state] -= count
            return Snapshot(
                now_ns,
                works,
                [work.state for work in works],
                list(attempt_records(works, self.agenda.idleness, now_ns)),
                [history_of(work, at, self.uuid) for at, work in enumerate(works, start=1)],
                counts,
                self.agenda.idleness.copy(),
            )

    def records(self) -> list[AttemptRecord[int | str]]:
        """Return a record of every attempt that has started."""
        with self.section.visit() as now_ns:
            works = list(self.agenda.jobs.values())
            return list(attempt_records(works, self.agenda.idleness, now_ns))

    def report(self) -> BatchReport:
        """Return how the batch went."""
        return BatchReport.of(batch_record(self.snapshot(), self.options))

    def violations(self) -> list[Violation]:
        """Return what is on record against the contract."""
        return list(violations_in(self.snapshot(), self.options))

    def result_of(self, work: Work) -> Any:
        """Return what a job that has ended returned, or raise what became of it."""
        if work.state is State.SUCCEEDED:
            return work.outcome
        raised = work.outcome if work.state is State.FAILED else None
        if isinstance(raised, Raised):
            text, _, trace = raised.error.partition("\n\n")
            error = JobFailed(work.id, work.state, text, raised.error_type)
            error.add_note(trace)
            raise error
        raise JobFailed(work.id, work.state, work.reason or "")

    # Ending

    def _forget(self, work: Work) -> None:
        kept = self.options.kept
        assert kept is not None
        self._remembered.append(work)
        while len(self._remembered) > kept:
            old = self._remembered.popleft()
            self._forgotten[old.state] += 1
            del self.agenda.jobs[old.id]
            self.heard.pop(old, None)
            if isinstance(old.id, str):
                del self._named[old.id]
        # Twice what was left: what looking costs stays in proportion to what there was to do.
        if len(self.agenda.idleness) >= max(CHANGES, 2 * self._changes_kept):
            self._forget_idleness()

    def _forget_idleness(self) -> None:
        arriving = (each for each in self.agenda.inbox.copy() if isinstance(each, Work))
        self.agenda.idleness.forget(first_ready_ns([*self.agenda.jobs.values(), *arriving]))
        self._changes_kept = len(self.agenda.idleness)

    def breaks(self) -> None:
        """Say that a bug of ours has ended a worker: whoever waits is told."""
        self.broken = self.closed = True
        self.section.enter()
        agenda = self.agenda
        for watching in agenda.watched.values():
            for hit in watching:
                hit()
        agenda.outbox += agenda.when_idle
        self.section.leave()

    def close(self, mode: str) -> None:
        """Take in nothing more, and end what `mode` says. Takes no lock, and does not wait."""
        self.closed = True
        if self.room is not None:
            self.room.close()
        self.agenda.inbox.append(lambda agenda, now_ns: self._order(mode, agenda, now_ns))
        self._ring()

    def _order(self, mode: str, agenda: Agenda, now_ns: int) -> None:
        agenda.refuses = True
        if mode == "drain":
            return
        agenda.ends = True
        for work in list(self.agenda.jobs.values()):
            if work.state not in TERMINAL and (mode == "abort" or work.state is not State.RUNNING):
                agenda.cancel(work, now_ns)

    def abandon(self) -> list[Work]:
        """End, for good, whatever has not ended; return what still ran."""
        left: list[Work] = []
        with self.section.visit() as now_ns:
            self._order("abort", self.agenda, now_ns)
            for attempt in self.agenda.on_slot:
                if attempt is not None and attempt.end is None:
                    self.agenda.give_up(attempt, now_ns)
                    left.append(attempt.work)
        return left


def _agenda(options: Options, on_end: Callable[[Work], None] | None) -> Agenda:
    limit, guard_ns = options.limit, GUARD_NS if options.strict == "observed" else 0
    lanes = Lanes(
        aging_ns=aging_ns(options.aging_s),
        fair=options.fair_share,
        key_limits=dict(options.key_limits),
    )
    # Looked at once: what nobody listens to must not cost every job a question.
    made = ToldAgenda if telling() else Agenda
    return made(
        options.workers,
        lanes=lanes,
        limiter=None if limit is None else limiter_of(limit, guard_ns=guard_ns),
        draw=chance.draw,
        budget=options.budget(),
        on_end=on_end,
    )
