"""Runs a few threads of real code one at a time, and decides at every line who goes on.

A race is a rare order of steps. Here the order is an argument: before every line of the traced
files (every opcode of the functions named so), and wherever a thread must wait, a `Chooser` says
who runs next. So a defect appears in the same schedule every time, and that schedule is printed.

Code under the stepper uses the locks, queues, threads and the clock of `modelled.py`, whose waits
the stepper sees. Time is virtual: it stands still while anybody runs, and moves to the next
deadline when all wait, and also before if the chooser says so: threads may be late.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from types import FrameType
from typing import Any, Final, Protocol

from timeball.certify.story import Outcome, Step

CLOCK: Final = -1
"""The number that stands for the clock among those that may go on: time passes."""

_CHOICES: Final = 1 << 20
"""What is no thread and can be chosen has numbers from here on."""

_JOIN_S: Final = 10.0
_TOOL: Final = 4  # of those that `sys.monitoring` leaves to anybody
_here = threading.local()


class Chooser(Protocol):
    """Decides who goes on."""

    def choose(self, options: Sequence[int], *, preempts: bool) -> int:
        """Return the place in `options` of who goes on; asked only where there are two or more.

        Args:
            options: The numbers of those that can, perhaps with `CLOCK` as the last; who runs
                now comes first if it can go on.
            preempts: Whether it can, so that every place but 0 is a preemption.
        """
        ...


class Abandoned(BaseException):
    """The run is over, and this thread is to end, from wherever it waits."""


class Actor:
    """One thread under control.

    Args:
        stepper: Who controls it.
        body: What it runs.
        name: For the printed schedule.
        daemon: Whether the run is over without it.
    """

    def __init__(
        self, stepper: Stepper, body: Callable[[], Any], name: str, *, daemon: bool
    ) -> None:
        self.stepper = stepper
        self.number = len(stepper.actors)
        self.body = body
        self.name = name
        self.daemon = daemon
        self.model: object = None
        """The `Thread` that the code under test knows it by."""
        self.done = False
        self.waits_for: Awaited | None = None
        self.until_ns: int | None = None
        self.gate = threading.Lock()
        self.gate.acquire()
        self.thread = threading.Thread(target=stepper.play, args=(self,), daemon=True)

    def can_go_on(self, now_ns: int) -> bool:
        """Whether it neither has ended nor must wait."""
        if self.done:
            return False
        if self.waits_for is None or self.waits_for.ready():
            return True
        return self.until_ns is not None and self.until_ns <= now_ns


class Awaited(Protocol):
    """What an actor waits for."""

    def ready(self) -> bool:
        """Whether the wait is over."""
        ...

    @property
    def owner(self) -> Actor | None:
        """Who alone can end the wait, if that is known: the holder of a lock."""
        ...


class Stepper:
    """One run under one schedule.

    Args:
        chooser: Decides who goes on.
        files: Names of the files whose lines are switch points. Those of `modelled.py` are points
            everywhere.
        functions: Only in these functions of the files, by qualified name; None for all.
        opcodes: Qualified names of functions in which every opcode is one instead.
        delays: Whether time may pass while somebody could go on: then any thread may be late, by
            as much as the others sleep. Without, time passes only when all wait.
        steps_max: So many switch points are taken for a run without end.
    """

    def __init__(
        self,
        chooser: Chooser,
        *,
        files: Iterable[str],
        functions: Collection[str] | None = None,
        opcodes: Collection[str] = (),
        delays: bool = True,
        steps_max: int = 20_000,
    ) -> None:
        self.actors: list[Actor] = []
        self.now_ns = 0
        self.wall_ns = 0
        """By how much the wall clock is ahead of the monotonic one."""
        self._files = frozenset(files)
        self._functions = functions
        self._opcodes = opcodes
        self._delays = delays
        self._steps_max = steps_max
        self._chooser = chooser
        self._steps: list[Step] = []
        self._over = threading.Event()
        self._broken: tuple[str, str] | None = None

    def run(self, scenario: Callable[[], Any]) -> Outcome:
        """Run `scenario` as the first thread, and all that it starts, until the last has ended."""
        self.start(Actor(self, scenario, "main", daemon=False))
        self.actors[0].gate.release()
        self._over.wait()
        for actor in self.actors:  # one after the other: what ends now is no part of the schedule
            if actor.gate.locked():
                actor.gate.release()
            actor.thread.join(_JOIN_S)
            assert not actor.thread.is_alive(), f"{actor.name} waits for what is not modelled"
        check, text = self._broken or (None, "")
        names = tuple(actor.name for actor in self.actors)
        return Outcome(check, text, names=names, steps=self._steps, now_ns=self.now_ns)

    def start(self, actor: Actor) -> None:
        """Add a thread, which runs as soon as it is chosen."""
        self.actors.append(actor)
        actor.thread.start()

    def point(self, frame: FrameType) -> None:
        """Perhaps let somebody else run before the line of `frame`."""
        actor = here()
        if self._over.is_set():
            raise Abandoned
        if len(self._steps) >= self._steps_max:
            self.end("endless", f"no end after {self._steps_max} steps")
            raise Abandoned
        self._pass_on(actor)
        code = frame.f_code
        self._steps.append(Step(actor.number, code.co_filename, frame.f_lineno, code.co_qualname))

    def wait(self, awaited: Awaited, timeout_s: float | None = None) -> bool:
        """Let others run until `awaited` is ready, and return whether it is; False is too late."""
        actor = here()
        if self._over.is_set():
            raise Abandoned
        if not awaited.ready() and (timeout_s is None or timeout_s > 0):
            actor.waits_for = awaited
            if timeout_s is not None:
                actor.until_ns = self.now_ns + -int(-timeout_s * 1e9 // 1)
            self._steps.append(Step(actor.number, "", 0, f"waits for {awaited}"))
            self._pass_on(actor)
            actor.waits_for = actor.until_ns = None
        return awaited.ready()

    def pick(self, count: int) -> int:
        """Return which of `count` choices the schedule takes; another than the first costs."""
        if self._over.is_set():
            raise Abandoned
        if count < 2:  # noqa: PLR2004 - no choice
            return 0
        return self._chooser.choose(range(_CHOICES, _CHOICES + count), preempts=True)

    def play(self, actor: Actor) -> None:
        """Run the body of an actor: the target of its thread."""
        _here.actor = actor
        actor.gate.acquire()
        if not self._over.is_set():
            with _Ending(self):
                sys.settrace(self._trace)
                try:
                    actor.body()
                finally:
                    sys.settrace(None)
        actor.done = True
        if all(other.done or other.daemon for other in self.actors):
            self._over.set()
        with _Ending(self):
            if not self._over.is_set():
                self._next(actor).gate.release()

    def end(self, check: str, text: str) -> None:
        """Note which check found what, unless the run is over; it is now."""
        if not self._over.is_set():
            self._broken = (check, text)
            self._over.set()

    # Deciding

    def _pass_on(self, actor: Actor) -> None:
        chosen = self._next(actor)
        if chosen is not actor:
            chosen.gate.release()
            actor.gate.acquire()
            if self._over.is_set():
                raise Abandoned

    def _next(self, actor: Actor) -> Actor:
        while True:
            able = [other for other in self.actors if other.can_go_on(self.now_ns)]
            if actor in able:
                able.remove(actor)
                able.insert(0, actor)
            asleep = [a.until_ns for a in self.actors if a not in able and a.until_ns is not None]
            options = [other.number for other in able]
            if asleep and (self._delays or not able):
                options.append(CLOCK)
            if not options:
                self.end(*self._stuck())
                raise Abandoned
            chosen = options[0]
            if len(options) > 1:
                chosen = options[self._chooser.choose(options, preempts=actor in able)]
            if chosen != CLOCK:
                return self.actors[chosen]
            self.now_ns = min(asleep)
            self._steps.append(Step(CLOCK, "", 0, f"the clock moves to {self.now_ns / 1e9:g} s"))

    def _stuck(self) -> tuple[str, str]:
        waiting = [actor for actor in self.actors if not actor.done]
        texts = [f"{actor.name} waits for {actor.waits_for}" for actor in waiting]
        if any(actor.waits_for and actor.waits_for.owner for actor in waiting):
            return "deadlock", "; ".join(texts)
        return "lost-wake-up", "; ".join(texts) + "; nobody is left to wake them"

    # Tracing

    def steps_in(self, frame: FrameType) -> bool:
        """Whether the lines of a frame are switch points."""
        code = frame.f_code
        if code.co_filename not in self._files:
            return False
        name = code.co_qualname
        return self._functions is None or name in self._functions or name in self._opcodes

    def _trace(self, frame: FrameType, event: str, arg: Any) -> Any:
        if not self.steps_in(frame):
            return None
        if frame.f_code.co_qualname in self._opcodes:
            frame.f_trace_lines = False
            _trace_opcodes(frame)
        return self._trace_inside

    def _trace_inside(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event in ("line", "opcode"):
            self.point(frame)
        return self._trace_inside


class _Ending:
    """Takes up what ends an actor, whatever it is: it belongs to the run, not to its thread."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is not None and not isinstance(error, Abandoned):
            self._stepper.end("crash", repr(error))
        return True


def _trace_opcodes(frame: FrameType) -> None:
    if sys.version_info < (3, 12):
        frame.f_trace_opcodes = True
        return
    # Tracing opcodes of several threads by `f_trace_opcodes` crashes 3.12.
    monitoring, event = sys.monitoring, sys.monitoring.events.INSTRUCTION
    if monitoring.get_tool(_TOOL) is None:
        monitoring.use_tool_id(_TOOL, "timeball")
        monitoring.register_callback(_TOOL, event, _before_opcode)
    if monitoring.get_local_events(_TOOL, frame.f_code) != event:
        monitoring.set_local_events(_TOOL, frame.f_code, event)


def _before_opcode(*_: object) -> None:
    if getattr(_here, "actor", None) is not None and not here().done:
        here().stepper.point(sys._getframe(1))  # noqa: SLF001 - monitoring passes no frame


def here() -> Actor:
    """Return the actor that this code runs in."""
    actor: Actor | None = getattr(_here, "actor", None)
    assert actor is not None, "modelled locks, queues and clocks work under a stepper only"
    return actor


def switch_point() -> None:
    """Perhaps let somebody else run here."""
    here().stepper.point(sys._getframe(1))  # noqa: SLF001 - the caller's line is the point


def check(name: str, promise: bool, text: str) -> None:  # noqa: FBT001 - reads like assert
    """End the run with the named check if a promise is broken."""
    if not promise:
        here().stepper.end(name, text)
        raise Abandoned
