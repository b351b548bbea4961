"""Carries out attempts in processes of their own, which can be killed with all that they started.

A job finds itself in an ordinary process: working folder, `sys.path` and environment are those
that the parent had when the child was started, not when the job was submitted; context variables
start empty; jobs run on the main thread, one after another, and what one leaves behind in the
process the next one finds. Functions travel by their names, arguments and results as pickles,
exceptions as text. A program's own file is imported under the name ``__mp_main__``, as with
`multiprocessing`, so it needs its ``if __name__ == "__main__":``.

A job that is stopped or has timed out gets SIGTERM with its whole tree, then SIGKILL. What a job
has left in the background lives as long as its child, which is used until it dies, is stopped, or
the slot is closed. When this process dies, even by SIGKILL, all of them are ended.
"""

from __future__ import annotations

import math
import multiprocessing.spawn
import os
import pickle
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock, RLock
from types import FunctionType
from typing import Any, Final

from timeball.action.context import StopSign
from timeball.core.outcomes import Raised, Unbegun
from timeball.core.payload import storable
from timeball.core.retry import Retry
from timeball.engine.process_child import (
    DONE,
    ENDED,
    FAILED,
    NOTHING,
    PROTOCOL,
    READY,
    Frame,
    check_call,
    failure_text,
)
from timeball.engine.process_link import Child, Late, Minder, StartMethod, ending
from timeball.engine.process_minder import KILL, STOP
from timeball.engine.runner import Done, Ended, Lost
from timeball.errors import UsageError

STARTS_MAX: Final = 3
"""Children that one job may see die before they are ready."""

_START_S: Final = 60.0
_READY_S: Final = 600.0
_PATIENCE_S: Final = 15.0
"""For what takes no time unless the machine is in trouble."""

_NO_ARGS: Final = pickle.dumps(((), {}), PROTOCOL)
_DONE: Final = Done()
_MAIN_FACTS: Final = ("sys_path", "sys_argv", "dir", "init_main_from_name", "init_main_from_path")


class ProcessSlot:
    """Room for one job at a time, in a child that is started when needed and kept.

    Any thread may use it; two that do so at once take turns.

    Args:
        initializer: Called once in each child before its first job. Where it raises, that job
            fails as if it had raised itself, and the next one gets a new child.
        start_method: "forkserver": a child is the copy of a small process without threads that
            has imported only Timeball. "spawn": it is a fresh interpreter, which is slower.
        grace_s: Seconds between SIGTERM and SIGKILL.
        told: Called, in the thread that waits for a job, with what it says by `say`.

    Raises:
        UsageError: One of them can never work.
    """

    def __init__(
        self,
        *,
        initializer: Callable[[], object] | None = None,
        start_method: StartMethod = "forkserver",
        grace_s: float = 5.0,
        told: Callable[[Any], object] | None = None,
    ) -> None:
        if initializer is not None:
            check_call(initializer)
        if start_method not in ("forkserver", "spawn"):
            raise UsageError(f"start_method {start_method!r}: write 'forkserver' or 'spawn'")
        if not (math.isfinite(grace_s) and grace_s >= 0):
            raise UsageError(f"grace_s is {grace_s!r}: write seconds, 0 or more")
        self._initializer = initializer
        self._start_method = start_method
        self._grace_s = grace_s
        self._told = told
        self._busy = Lock()
        # Held for moments only. Re-entrant: a signal handler may raise the sign of a job that
        # this very thread is about to begin or to end.
        self._lock = RLock()
        self._job = 0
        """The number of the one that runs; odd while one does."""
        self._halted = self._closed = False
        self._minder: Minder | None = None
        self._child: Child | None = None
        self._last: tuple[object, Retry, bytes] = (None, Retry(), b"")

    def run(  # what `Runner.carry_out` promises
        self,
        call: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        timeout_s: float | None,
        stop: StopSign,
        retry: Retry,
    ) -> Ended:
        """Carry out one job and return how it ended; blocks the calling thread. Never raises.

        `Done` with a copy of what it returned. `Raised` for an exception, and with the reason
        "timeout", "result-not-transferable", "arguments-not-transferable", "initializer", or
        "not-started" for a child that cannot even start. `Lost` where its process died under
        it. `Unbegun` where `stop` was raised and it did not return all the same. After all of
        these the slot is as good as new.
        """
        try:
            order = self._order(call, retry, args, kwargs)
        except Exception as error:  # noqa: BLE001 - the object's own word on how it is pickled
            return _untransferable("arguments-not-transferable", "what it is called with", error)
        with self._busy:
            with self._lock:
                if self._closed or stop.raised:
                    return Unbegun("stopped")
                self._halted = False
                self._job += 1
            stop.when_raised(partial(self._halt, self._job))
            ended = None
            try:
                ended = self._carry_out(order, timeout_s, retry)
            finally:
                with self._lock:
                    self._job += 1
                    halted = self._halted
                # Also one that has answered: it was told to end. Without an end at all, Ctrl-C
                # has ended the wait, and the answer of this job must not meet the next one.
                if halted or ended is None:
                    self._bury()
        return Unbegun("stopped") if halted and isinstance(ended, Lost) else ended

    def kill(self) -> None:
        """End the job that runs, and all that it started, without grace. From any thread."""
        with self._lock:
            self._halt(self._job)
            self._say(KILL)

    def retire(self) -> None:
        """Carry out no more, and have a child that is idle leave; does not wait for it."""
        with self._lock:
            self._closed = True
        if self._busy.acquire(blocking=False):
            if self._child is not None:
                self._child.close()  # which it takes for a good-bye
            self._busy.release()

    def close(self, deadline_s: float) -> None:
        """Carry out no more; end the child, by force what is left of it after `deadline_s`."""
        until = time.monotonic() + deadline_s
        self.retire()
        if not self._busy.acquire(timeout=max(0.0, deadline_s)):
            self.kill()
            if not self._busy.acquire(timeout=_PATIENCE_S):
                self._end_minder()  # it must be frozen; its child dies with it
                self._busy.acquire(timeout=_PATIENCE_S)
        try:
            if self._minder is not None:
                self._dismiss(self._minder, until)
        finally:
            self._busy.release()

    def _order(
        self,
        call: Callable[..., Any],
        retry: Retry,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> Frame:
        if type(call) is not FunctionType:  # it may hold values, which may change
            return b"", pickle.dumps((call, retry, tuple(args), dict(kwargs)), PROTOCOL)
        last_call, last_retry, tag = self._last
        if last_call is not call or last_retry is not retry:
            tag = pickle.dumps((call, retry), PROTOCOL)
            self._last = (call, retry, tag)
        body = pickle.dumps((tuple(args), dict(kwargs)), PROTOCOL) if args or kwargs else _NO_ARGS
        return tag, body

    def _carry_out(self, order: Frame, timeout_s: float | None, retry: Retry) -> Ended:
        text = ""
        for _ in range(STARTS_MAX):
            try:
                refused = self._start(retry) if self._child is None else None
                return refused or self._ask(order, timeout_s)
            except (OSError, EOFError) as error:
                # Of no use any more before the job had reached it: another one may do.
                text = self._bury() or f"{type(error).__name__}: {error}"
            if self._halted:
                return Lost(text)
        return _not_started(f"no process could be started for it, {STARTS_MAX} times: {text}")

    def _start(self, retry: Retry) -> Raised | None:
        """Have a child that is ready; else return why there can be none."""
        try:
            facts = multiprocessing.spawn.get_preparation_data("timeball")
        except RuntimeError:
            return _not_started(
                "this program starts jobs while its own child imports it: put what it does under "
                'an if __name__ == "__main__":'
            )
        main = {name: facts[name] for name in _MAIN_FACTS if name in facts}
        late = pickle.dumps((self._initializer, retry), PROTOCOL)
        brief = pickle.dumps((main, dict(os.environ), late), PROTOCOL)
        if self._minder is None:
            self._minder = Minder(self._start_method, self._grace_s)
        try:
            self._child = self._minder.start(_START_S)
        except OSError:
            self._end_minder()
            raise
        if self._told is not None:
            told = self._told
            self._child.told = lambda body: told(pickle.loads(body))  # noqa: S301 - our own child
        if self._halted:
            self._say(STOP)  # the one before may have come too early
        try:
            tag, body = self._child.ask((b"", brief), time.monotonic() + _READY_S)
        except Late:
            self._bury()
            return _not_started(f"its process was not ready after {_READY_S:g} s")
        if tag == READY:
            return None
        assert tag == FAILED
        self._bury()
        refused: Raised = pickle.loads(body)  # noqa: S301 - from our own child
        return refused

    def _ask(self, order: Frame, timeout_s: float | None) -> Ended:
        assert self._child is not None
        until = None if timeout_s is None else time.monotonic() + timeout_s
        try:
            tag, body = self._child.ask(order, until)
        except EOFError:
            return Lost(self._bury())
        except Late:
            self._bury()
            text = f"ran longer than its {timeout_s:g} s, and was ended with its process"
            return Raised(error_type="TimeoutError", error=text, again=True, reason="timeout")
        if body == NOTHING and tag == DONE:
            return _DONE
        try:
            value = pickle.loads(body)  # noqa: S301 - from our own child
        except Exception as error:  # noqa: BLE001 - the object's own word on how it is built
            return _untransferable("result-not-transferable", "what it returned", error)
        if tag == DONE:
            return Done(value)
        assert tag == ENDED
        ended: Ended = value
        return ended

    def _halt(self, job: int) -> None:
        with self._lock:
            if job == self._job and job % 2:
                self._halted = True
                self._say(STOP)

    def _say(self, word: bytes) -> None:
        with self._lock:
            if self._minder is not None:
                self._minder.say(word)

    def _bury(self) -> str:
        """Let go of the child, once nothing that came of it is left; return how it ended."""
        child, self._child = self._child, None
        if child is None or self._minder is None:
            return ""
        child.close()
        # For the case that it lives and has only closed its pipes; else nobody minds the word.
        self._say(STOP)
        report = self._minder.report(self._grace_s + _PATIENCE_S)
        if report is None:
            self._end_minder()
            return "its process was ended together with the one that minds it"
        status, *left = report
        text = f"its process {ending(status)}"
        return f"{text}; even SIGKILL did not end {left}" if left else text

    def _dismiss(self, minder: Minder, until: float) -> None:
        if self._child is not None:
            self._child.close()
            if not minder.heard(until - time.monotonic()):
                self._say(KILL)
            self._bury()
        self._end_minder()

    def _end_minder(self) -> None:
        with self._lock:
            minder, self._minder = self._minder, None
        if minder is not None:
            minder.close()


def _not_started(text: str) -> Raised:
    return Raised(error_type="ChildProcessError", error=text, again=True, reason="not-started")


def _untransferable(reason: str, what: str, error: Exception) -> Raised:
    text = f"{what} cannot be brought from one process to another: {failure_text(error)}"
    name = type(error).__name__
    return Raised(error_type=name, error=storable(text), again=False, reason=reason)


class Processes:
    """Where a scheduler's jobs run in processes: ``Scheduler(4, runner=Processes(grace_s=1))``.

    It belongs to one scheduler, which ends it; ``runner="processes"`` is one without options.

    Args:
        initializer: Called once in each process before its first job, to connect or to load what
            all of them need. Where it raises, that job fails as if it had raised itself, and the
            next one gets a new process.
        start_method: "forkserver": a process is the copy of a small one without threads that has
            imported only Timeball. "spawn": it is a fresh interpreter, which is slower.
        grace_s: Seconds between SIGTERM and SIGKILL for a job that is to end.
        told: Called, from any thread, with what jobs say by `timeball.engine.process_child.say`.

    Raises:
        UsageError: One of them can never work.
    """

    def __init__(
        self,
        *,
        initializer: Callable[[], object] | None = None,
        start_method: StartMethod = "forkserver",
        grace_s: float = 5.0,
        told: Callable[[Any], object] | None = None,
    ) -> None:
        self._make = partial(
            ProcessSlot,
            initializer=initializer,
            start_method=start_method,
            grace_s=grace_s,
            told=told,
        )
        self._lock = Lock()
        self._slots = [self._make()]
        # The one used last is used first: its memory is warm, and others may never be needed.
        self._idle = self._slots.copy()
        self._closed = False

    def carry_out(
        self,
        call: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        timeout_s: float | None,
        stop: StopSign,
        retry: Retry,
    ) -> Ended:
        """See `Runner.carry_out` and `ProcessSlot.run`."""
        with self._lock:
            if self._closed:
                return Unbegun("stopped")
            if not self._idle:
                self._slots.append(self._make())
                self._idle.append(self._slots[-1])
            slot = self._idle.pop()
        try:
            return slot.run(call, args, kwargs, timeout_s=timeout_s, stop=stop, retry=retry)
        finally:
            self._idle.append(slot)

    def check(self, call: Callable[..., Any]) -> None:
        """See `Runner.check`."""
        check_call(call)

    def close(self, timeout_s: float) -> None:
        """End all children, by force after `timeout_s`; no more calls are carried out."""
        until = time.monotonic() + timeout_s
        with self._lock:
            self._closed = True
        for slot in self._slots:
            slot.retire()  # all at once, since to leave takes a process a moment
            if timeout_s <= 0:
                slot.kill()
        for slot in self._slots:
            slot.close(max(0.0, until - time.monotonic()))
