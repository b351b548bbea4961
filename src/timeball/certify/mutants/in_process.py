"""P01 to P26: the classic defects of schedulers, put into the in-process engine one at a time.

P21 to P26 are this engine's own: its one subtle rule, its second stamp, two defects that it had
until the stepper found them, the event loop's doorbell, and the hand-over to the durable worker.
"""

from __future__ import annotations

from typing import Final

from timeball.certify.mutants.record import Mutant
from timeball.certify.overlay import Patch
from timeball.certify.scenarios import jobs, loops, paces, turns

_CLAIM: Final = ("timeball.engine.agenda", "Agenda._claim")
_STEP: Final = ("timeball.engine.threads", "Threads._step")
_ADMIT: Final = ("timeball.core.limiter", "WindowLimiter.admit")
_FINISH: Final = ("timeball.engine.agenda", "Agenda.finish")
_PUMP: Final = ("timeball.engine.crews", "LoopCrew._pump")
_CANCEL: Final = ("timeball.engine.agenda", "Agenda.cancel")

_ROUND: Final = "attempt = agenda.round(done, said, section.clock_ns())"
_GAP: Final = "self.section.leave()\nself.section.enter()\n"
"""Opens the critical section for a moment, in the middle of a decision."""

_KNOWS_SECTION: Final = Patch(
    "timeball.engine.section",
    "Section.__init__",
    "self.agenda = agenda",
    "self.agenda = agenda\nagenda.section = self",
)

MUTANTS: Final = (
    Mutant(
        id="P01",
        defect="double dispatch: looks who is next, and takes it in a second step",
        scenario=jobs.A_WAIT_FOR_TWO,
        check="once",
        patches=(
            _KNOWS_SECTION,
            Patch(*_CLAIM, "line.popleft()", f"{_GAP}line and line.popleft()"),
        ),
    ),
    Mutant(
        id="P02",
        defect="lost update: jobs are counted (n += 1) before the lock is taken",
        scenario=jobs.TWO_JOBS,
        check="sums",
        patches=(
            Patch(
                *_STEP,
                "agenda = section.agenda",
                "agenda = section.agenda\n"
                "if done is not None:\n"
                "    agenda.finish(done, said, section.clock_ns())\n"
                "    done = None",
            ),
        ),
    ),
    Mutant(
        id="P03",
        defect="lock order: who works takes state, then figures; who looks, figures, then state",
        scenario=jobs.A_LOOK_MEANWHILE,
        check="deadlock",
        patches=(
            Patch(
                "timeball.engine.section",
                "Section.__init__",
                "self.lock = Lock()",
                "from threading import RLock\nself.lock, self.figures = Lock(), RLock()",
            ),
            Patch(
                *_STEP,
                "section.owner = worker.ident",
                "with section.figures:\n    section.owner = worker.ident",
            ),
            Patch(
                "timeball.engine.section",
                "Section.visit",
                "self.enter()",
                "with self.figures:\n    self.enter()",
            ),
        ),
    ),
    Mutant(
        id="P04",
        defect="the limiter is read, and decides, and counts the start in a second step",
        scenario=paces.TWO_AT_A_LIMIT_OF_ONE,
        check="cap",
        patches=(
            _KNOWS_SECTION,
            Patch(
                *_CLAIM,
                "wait_ns = self._limiter.admit(now_ns, work.form.weight)",
                "wait_ns = self._limiter.wait_ns(now_ns)\n"
                f"{_GAP}"
                "if wait_ns == 0:\n"
                "    self._limiter.admit(now_ns, work.form.weight)\n"
                "    line = self._lanes.front()\n"
                "    if line is None or not self.free:\n"
                "        return None\n"
                "    work = line[0]",
            ),
        ),
    ),
    Mutant(
        id="P05",
        defect="the callable runs under the lock",
        scenario=jobs.JOBS_THAT_MEET,
        check="deadlock",
        patches=(
            Patch(
                "timeball.engine.threads",
                "Threads._serve",
                "said = self._run(attempt)",
                "self._section.enter()\nsaid = self._run(attempt)\nself._section.leave()",
            ),
        ),
    ),
    Mutant(
        id="P06",
        defect="overshoot of W: <= for < where slots and threads are counted",
        scenario=jobs.THREE_JOBS_FOR_ONE_SLOT,
        check="slots",
        patches=(
            Patch(
                "timeball.engine.threads",
                "Threads._add",
                "len(self._workers) == self._limit",
                "len(self._workers) > self._limit",
            ),
            Patch(
                "timeball.engine.threads",
                "Threads.__init__",
                "self._limit = limit",
                "self._limit = limit + 1",
            ),
            Patch(
                "timeball.engine.agenda",
                "Agenda.__init__",
                "self.free = list(range(slots - 1, -1, -1))",
                "self.free = list(range(slots, -1, -1))",
            ),
            Patch(
                "timeball.engine.agenda",
                "Agenda.__init__",
                "[None] * slots",
                "[None] * (slots + 1)",
            ),
        ),
    ),
    Mutant(
        id="P07",
        defect="cancel against claim: sees that the job waits, and cancels it in a second step",
        scenario=jobs.A_CANCEL_AT_ANY_TIME,
        check="cancel",
        patches=(
            _KNOWS_SECTION,
            Patch(
                *_CANCEL,
                'self._close(work, Ending.CANCELLED, "cancelled", now_ns)',
                f'{_GAP}self._close(work, Ending.CANCELLED, "cancelled", now_ns)',
            ),
        ),
    ),
    Mutant(
        id="P08",
        defect="lost wake-up: the doorbell is cleared just before the wait",
        scenario=jobs.ONE_AFTER_THE_OTHER,
        check="prompt",
        patches=(
            Patch(
                "timeball.engine.doorbell",
                "Doorbell.wait",
                "with suppress(Empty):\n"
                "    self._rings.get(timeout=min(max(0.0, timeout_s), _WAIT_MAX_S))",
                "while not self._rings.empty():\n"
                "    self._rings.get()\n"
                "self._ringing = False\n"
                "with suppress(Empty):\n"
                "    self._rings.get(timeout=min(max(0.0, timeout_s), _WAIT_MAX_S))",
            ),
        ),
    ),
    Mutant(
        id="P09",
        defect="the limiter goes by the wall clock",
        scenario=paces.A_STEP_OF_THE_WALL_CLOCK,
        check="cap",
        patches=(
            Patch("timeball.engine.engine", "Engine.__init__", "time.monotonic_ns", "time.time_ns"),
        ),
    ),
    Mutant(
        id="P10",
        defect="the worker sleeps under the lock until the limiter allows the next start",
        scenario=paces.A_LOOK_WHILE_THE_LIMITER_REFUSES,
        check="prompt",
        patches=(
            Patch(
                *_STEP,
                _ROUND,
                f"{_ROUND}\n"
                "if attempt is None and agenda.wake_ns < 1 << 61:\n"
                "    time.sleep((agenda.wake_ns - section.clock_ns()) / 1e9)",
            ),
        ),
    ),
    Mutant(
        id="P11",
        defect="<= for <: a start exactly one window later is neither refused nor counted",
        scenario=paces.FIVE_AT_A_LIMIT_OF_TWO,
        check="cap",
        patches=(Patch(*_ADMIT, "now_ns < self._free_ns", "now_ns <= self._free_ns"),),
    ),
    Mutant(
        id="P12",
        defect="the ring of the last R starts holds R + 1",
        scenario=paces.FIVE_AT_A_LIMIT_OF_TWO,
        check="cap",
        patches=(
            Patch(
                "timeball.core.limiter",
                "WindowLimiter.__init__",
                "self._size = rate.count",
                "self._size = rate.count + 1",
            ),
        ),
    ),
    Mutant(
        id="P13",
        defect="permits pile up above the bucket's capacity while it rests",
        scenario=paces.A_BUCKET_AFTER_A_REST,
        check="cap",
        patches=(
            Patch(
                "timeball.core.limiter",
                "BucketLimiter.admit",
                "max(now, full_at)",
                "max(0, full_at)",
            ),
        ),
    ),
    Mutant(
        id="P14",
        defect="a retry goes to the head of the queue, without backoff",
        scenario=paces.A_RETRY_BESIDE_FRESH_JOBS,
        check="backoff",
        patches=(
            Patch("timeball.engine.agenda", "Agenda._settle", "settlement.delay_s > 0", "False"),
            Patch(
                "timeball.engine.lanes", "Lanes.add", "line.append(work)", "line.appendleft(work)"
            ),
        ),
    ),
    Mutant(
        id="P15",
        defect="a cancel overwrites a success",
        scenario=jobs.A_CANCEL_AFTER_THE_END,
        check="outcome",
        patches=(Patch(*_CANCEL, "work.state in TERMINAL", "work.state is State.FAILED"),),
    ),
    Mutant(
        id="P16",
        defect="a job that raises SystemExit kills its worker",
        scenario=jobs.A_JOB_THAT_EXITS,
        check="crash",
        patches=(Patch("timeball.engine.calls", "carry_out", "BaseException", "Exception"),),
    ),
    Mutant(
        id="P17",
        defect="a slot is given back twice",
        scenario=jobs.TWO_JOBS,
        check="slots",
        patches=(Patch(*_FINISH, "self.free.append(slot)", "self.free.insert(0, slot)\n" * 2),),
    ),
    Mutant(
        id="P18",
        defect="a wait ends when it is woken, and does not look whether all have ended",
        scenario=jobs.A_WAIT_FOR_TWO,
        check="wait",
        patches=(
            Patch(
                "timeball.engine.waits",
                "Watch._hit",
                "if not self._left:\n    self._agenda.outbox.append(self._call)",
                "self._agenda.outbox.append(self._call)\nself._call = int",
            ),
        ),
    ),
    Mutant(
        id="P19",
        defect="the success rate leaves out what was cancelled or skipped",
        scenario=paces.A_BATCH_OF_ALL_SORTS,
        check="success-rate",
        patches=(
            Patch(
                "timeball.core.report",
                "_success",
                "_ratio(len(succeeded), len(states))",
                "_ratio(len(succeeded), len(succeeded) + failed)",
            ),
        ),
    ),
    Mutant(
        id="P20",
        defect="the makespan begins with the submit",
        scenario=paces.A_BATCH_THAT_WAITED_FIRST,
        check="makespan",
        patches=(Patch("timeball.core.makespan", "span_of", "a.started_ns", "a.queued_ns"),),
    ),
    Mutant(
        id="P21",
        defect="a worker that parks keeps an earlier deadline to itself",
        scenario=paces.A_RETRY_WHILE_ANOTHER_LEADS,
        check="prompt",
        patches=(
            Patch(
                "timeball.engine.threads", "Threads._retire", "wake_ns < self._until_ns", "False"
            ),
        ),
    ),
    Mutant(
        id="P22",
        defect="a start keeps its stamp however late the call is",
        scenario=paces.A_LATE_CALL,
        check="cap",
        patches=(
            Patch(
                "timeball.engine.engine",
                "Engine._late_ns",
                "self.clock_ns() - attempt.started_ns > LATE_NS",
                "False",
            ),
        ),
    ),
    Mutant(
        id="P23",
        defect="whoever leaves the lock walks the list that the next one fills",
        scenario=jobs.A_CANCEL_AT_ANY_TIME,
        check="crash",
        patches=(
            Patch(
                "timeball.engine.section",
                "Section.leave",
                "calls: list[Callable[[], Any]] | None = None",
                "calls = self.agenda.outbox",
            ),
        ),
    ),
    Mutant(
        id="P24",
        defect="whoever closes the queue looks who waits, and turns him away in a second step",
        scenario=jobs.A_SHUTDOWN_WITH_A_FULL_QUEUE,
        check="crash",
        patches=(
            Patch(
                "timeball.engine.room",
                "Room.close",
                "with suppress(IndexError):\n"
                "    while True:\n"
                "        self._line.popleft().turn_away()",
                "while self._line:\n    self._line.popleft().turn_away()",
            ),
        ),
    ),
    Mutant(
        id="P25",
        defect="the loop takes a ring for answered after it has looked, not before",
        scenario=loops.FUNCTIONS_AMONG_COROUTINES,
        check="lost-wake-up",
        patches=(
            Patch(*_PUMP, "self._ringing = False", "pass"),
            Patch(
                *_PUMP,
                "if wake_ns != self._timer_ns:\n    self._set_timer(wake_ns)",
                "self._ringing = False\n"
                "if wake_ns != self._timer_ns:\n"
                "    self._set_timer(wake_ns)",
            ),
        ),
    ),
    Mutant(
        id="P26",
        defect="the worker copies what has ended, and clears it in a second step",
        scenario=turns.OFFERS_WHILE_OTHERS_END,
        check="lost",
        patches=(
            Patch(
                "timeball.engine.kernel",
                "Kernel.take_ended",
                "with self._section.visit():\n    ended, self.slots.ended = self.slots.ended, []",
                "ended = self.slots.ended.copy()\nself.slots.ended.clear()",
            ),
        ),
    ),
)
"""Each with one defect, and all different."""
