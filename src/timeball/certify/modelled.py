"""Locks, queues, threads and clocks whose waits a stepper sees; used in place of the real ones.

They behave as those of the standard library, but that one thread runs at a time, that nobody is
served in any particular order (the chooser says who), and that time is virtual.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import PurePath
from types import FrameType, ModuleType
from typing import Any, Final, Generic, Self, TypeVar

from timeball.certify.stepper import Actor, here

T = TypeVar("T")


def _frame_outside() -> FrameType:
    """Return the frame of the code under test: its line makes, or uses, what is modelled."""
    frame = sys._getframe(1)  # noqa: SLF001 - there is no public way
    while frame.f_code.co_filename == __file__ and frame.f_back is not None:
        frame = frame.f_back
    return frame


class _Modelled:
    """Something to wait for, named after the line that made it."""

    def __init__(self) -> None:
        frame = _frame_outside()
        self._what = type(self).__name__
        self._made = f"{PurePath(frame.f_code.co_filename).name}:{frame.f_lineno}"

    @property
    def owner(self) -> Actor | None:
        return None

    def __str__(self) -> str:
        return f"the {self._what} made at {self._made}"

    def _point(self) -> None:
        """Be a switch point, unless the calling line was one."""
        actor, frame = here(), _frame_outside()
        if not actor.stepper.steps_in(frame):
            actor.stepper.point(frame)


class Lock(_Modelled):
    """A `threading.Lock`."""

    def __init__(self) -> None:
        super().__init__()
        self._owner: Actor | None = None
        self._depth = 0
        self._signals = False

    @property
    def owner(self) -> Actor | None:
        """Who holds it; None of one that others release, for that is a signal and no mutex."""
        return None if self._signals else self._owner

    def __str__(self) -> str:
        held = f", held by {self.owner.name}" if self.owner else ""
        return super().__str__() + held

    def ready(self) -> bool:
        """Whether it is free."""
        return not self._depth

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as in threading
        """Take it; return whether that was possible in time."""
        self._point()
        if not self.ready() and not blocking:
            return False
        if not here().stepper.wait(self, None if timeout < 0 else timeout):
            return False
        self._owner, self._depth = here(), 1
        return True

    def release(self) -> None:
        """Let somebody else have it."""
        if not self._depth:
            raise RuntimeError("release unlocked lock")
        self._signals = self._signals or self._owner is not here()
        self._owner, self._depth = None, 0

    def locked(self) -> bool:
        """Whether somebody has it."""
        return bool(self._depth)

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()


class RLock(Lock):
    """A `threading.RLock`."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: FBT001, FBT002 - as in threading
        """Take it, also if it is held by the caller; return whether that was possible in time."""
        if self._owner is here():
            self._depth += 1
            return True
        return super().acquire(blocking, timeout)

    def release(self) -> None:
        """Undo one acquire."""
        if self._owner is not here():
            raise RuntimeError("cannot release un-acquired lock")
        self._depth -= 1
        if not self._depth:
            self._owner = None


class Event(_Modelled):
    """A `threading.Event`."""

    def __init__(self) -> None:
        super().__init__()
        self._set = False

    def ready(self) -> bool:
        """Whether it is set."""
        return self._set

    is_set = ready

    def set(self) -> None:
        """Let all go on that wait, now or later."""
        self._point()
        self._set = True

    def clear(self) -> None:
        """Let those wait that come from now on."""
        self._point()
        self._set = False

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it is set; return whether it was in time."""
        self._point()
        return here().stepper.wait(self, timeout)


class Condition(_Modelled):
    """A `threading.Condition`."""

    def __init__(self, lock: Lock | None = None) -> None:
        super().__init__()
        self._lock = lock or RLock()
        self._waiters: deque[Event] = deque()
        self.acquire, self.release = self._lock.acquire, self._lock.release

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Give up the lock until notified, and take it again; return whether that was in time."""
        if self._lock.owner is not here():
            raise RuntimeError("cannot wait on un-acquired lock")
        waiter = Event()
        waiter._what, waiter._made = self._what, self._made  # noqa: SLF001 - what the program waits on
        self._waiters.append(waiter)
        depth, self._lock._depth, self._lock._owner = self._lock._depth, 0, None  # noqa: SLF001 - one model
        notified = here().stepper.wait(waiter, timeout)
        if not notified:
            self._waiters.remove(waiter)
        self._lock.acquire()
        self._lock._depth = depth  # noqa: SLF001 - one model
        return notified

    def wait_for(self, predicate: Callable[[], T], timeout: float | None = None) -> T:
        """Wait until `predicate` holds; return what it gave last."""
        until_ns = None if timeout is None else here().stepper.now_ns + int(timeout * 1e9)
        while not (result := predicate()):
            left = None if until_ns is None else (until_ns - here().stepper.now_ns) / 1e9
            if left is not None and left <= 0:
                break
            self.wait(left)
        return result

    def notify(self, n: int = 1) -> None:
        """Wake up to `n` that wait now."""
        if self._lock.owner is not here():
            raise RuntimeError("cannot notify on un-acquired lock")
        while self._waiters and n:
            self._waiters.popleft()._set = True  # noqa: SLF001 - one model
            n -= 1

    def notify_all(self) -> None:
        """Wake all that wait now."""
        self.notify(len(self._waiters))


class SimpleQueue(_Modelled, Generic[T]):
    """A `queue.SimpleQueue`."""

    def __init__(self) -> None:
        super().__init__()
        self._items: deque[T] = deque()

    def ready(self) -> bool:
        """Whether there is something in it."""
        return bool(self._items)

    def put(self, item: T) -> None:
        """Add an item."""
        self._point()
        self._items.append(item)

    def get(self, block: bool = True, timeout: float | None = None) -> T:  # noqa: FBT001, FBT002 - as in queue
        """Take the first item, or raise `queue.Empty` where none comes in time."""
        self._point()
        if not here().stepper.wait(self, timeout if block else 0):
            raise queue.Empty
        return self._items.popleft()

    def get_nowait(self) -> T:
        """Take the first item, or raise `queue.Empty`."""
        return self.get(block=False)

    def empty(self) -> bool:
        """Whether there is nothing in it."""
        return not self._items


class Thread(_Modelled):
    """A `threading.Thread`, run by the stepper."""

    def __init__(
        self,
        group: None = None,
        target: Callable[..., Any] = lambda: None,
        name: str | None = None,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        daemon: bool = False,
    ) -> None:
        super().__init__()
        self.name = name or f"thread-{len(here().stepper.actors)}"
        self.daemon = daemon
        self._body = partial(target, *args, **kwargs or {})
        self._actor: Actor | None = None

    def ready(self) -> bool:
        """Whether it has ended."""
        return self._actor is None or self._actor.done

    def __str__(self) -> str:
        return f"the end of {self.name}"

    def start(self) -> None:
        """Let it run from now on."""
        stepper = here().stepper
        self._actor = Actor(stepper, self._body, self.name, daemon=self.daemon)
        self._actor.model = self
        stepper.start(self._actor)

    @property
    def ident(self) -> int | None:
        """Its `get_ident`; None if it was not started."""
        return self._actor.thread.ident if self._actor else None

    def is_alive(self) -> bool:
        """Whether it has begun and not ended."""
        return not self.ready()

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        self._point()
        here().stepper.wait(self, timeout)


def current_thread() -> Any:
    """Return the `Thread` that this code runs in."""
    return here().model


class _Clock(_Modelled):
    """To wait for it is to wait for a time."""

    def ready(self) -> bool:
        return False

    def __str__(self) -> str:
        return "a time"


def sleep(seconds: float) -> None:
    """Wait for so much virtual time."""
    clock = _Clock()
    clock._point()  # noqa: SLF001 - one model
    here().stepper.wait(clock, seconds)


def monotonic_ns() -> int:
    """Return virtual time."""
    return here().stepper.now_ns


def wall_ns() -> int:
    """Return virtual wall-clock time, which a scenario may step."""
    return here().stepper.now_ns + here().stepper.wall_ns


def module(like: ModuleType, **own: Any) -> ModuleType:
    """Return a module as `like`, but for its `own` names."""
    changed = ModuleType(like.__name__)
    changed.__dict__.update(vars(like), **own)
    return changed


MODULES: Final[dict[str, ModuleType]] = {
    "threading": module(
        threading,
        Lock=Lock,
        RLock=RLock,
        Event=Event,
        Condition=Condition,
        Thread=Thread,
        current_thread=current_thread,
    ),
    "queue": module(queue, SimpleQueue=SimpleQueue),
    "time": module(
        time,
        monotonic=lambda: monotonic_ns() / 1e9,
        monotonic_ns=monotonic_ns,
        perf_counter=lambda: monotonic_ns() / 1e9,
        perf_counter_ns=monotonic_ns,
        time=lambda: wall_ns() / 1e9,
        time_ns=wall_ns,
        sleep=sleep,
    ),
}
"""What code under the stepper finds when it imports these."""
