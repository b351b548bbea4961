"""What a child of a `ProcessSlot` can be told, and does: reads a job, calls it, answers.

Both pipes carry frames: two sizes, a tag, and a body. The first frame is the brief and is answered
by READY, or FAILED with the reason. Then each job is answered by DONE with what it returned, or
ENDED with how else it ended. Neither side speaks before the other has finished, so no order of
partial writes can block both. The bodies are pickles, which only ever pass between a process and
the child that it has started itself.

The pipes have descriptors of their own: what a job does to stdin, stdout and stderr is its own
business.
"""

from __future__ import annotations

import inspect
import multiprocessing.process
import multiprocessing.spawn
import os
import pickle
import sys
from collections.abc import Callable, Sequence
from contextvars import Context as Variables
from dataclasses import replace
from functools import partial
from struct import Struct
from threading import Lock
from typing import Any, Final

from timeball.action.python import failure, steered
from timeball.core.outcomes import Returned
from timeball.core.payload import storable
from timeball.core.retry import Retry
from timeball.errors import UsageError

READY, FAILED, DONE, ENDED, SAID = b"r", b"f", b"d", b"e", b"s"
PROTOCOL: Final = 5

_HEAD: Final = Struct("<QQ")
_FIRST_READ: Final = 1 << 14
_KNOWN_MAX: Final = 256
_SHOWN_MAX: Final = 2_000
_FORKED_COPY: Final = 70

Waiting = Callable[[], None]
Body = bytes | memoryview
Frame = tuple[bytes, bytes]


def send(fd: int, tag: bytes, body: bytes, wait: Waiting | None = None) -> None:
    """Write one frame.

    Args:
        fd: A pipe.
        tag: What the body is.
        body: Any bytes.
        wait: Returns once the pipe has room again; None where its writes block.

    Raises:
        BrokenPipeError: Nobody will ever read it.
    """
    head = _HEAD.pack(len(tag), len(body)) + tag
    try:
        written = os.writev(fd, (head, body))
    except BlockingIOError:
        written = 0
    if written < len(head) + len(body):
        for part in (head, body):
            rest = memoryview(part)[written:]
            written = max(0, written - len(part))
            _send_rest(fd, rest, wait)


def _send_rest(fd: int, rest: memoryview, wait: Waiting | None) -> None:
    while rest:
        if wait is not None:
            wait()
        rest = rest[os.write(fd, rest) :]


def receive(
    fd: int, wait: Waiting | None = None, ahead: bytearray | None = None
) -> tuple[bytes, Body]:
    """Read one frame.

    Args:
        fd: A pipe.
        wait: Returns once there is something to read; None to be held up in the read.
        ahead: Keeps what was read of the frames that follow; None: none follows unasked.

    Raises:
        EOFError: The other side is gone.
    """
    begun = bytes(ahead) if ahead else _read(fd, wait)
    while len(begun) < _HEAD.size:
        begun += _read(fd, wait)
    tag_size, body_size = _HEAD.unpack_from(begun)
    body_at = _HEAD.size + tag_size
    size = body_at + body_size
    if ahead is not None:
        ahead[:] = begun[size:]
        begun = begun[:size]
    if len(begun) == size:
        return begun[_HEAD.size : body_at], begun[body_at:]
    whole = memoryview(bytearray(size))
    whole[: len(begun)] = begun
    rest = whole[len(begun) :]
    while rest:
        if wait is not None:
            wait()
        count = os.readv(fd, (rest,))
        if not count:
            raise EOFError
        rest = rest[count:]
    return bytes(whole[_HEAD.size : body_at]), whole[body_at:]


def _read(fd: int, wait: Waiting | None) -> bytes:
    if wait is not None:
        wait()
    chunk = os.read(fd, _FIRST_READ)
    if not chunk:
        raise EOFError
    return chunk


class _Mouth:
    """Where a child answers, and where its job may say something before that."""

    def __init__(self) -> None:
        self.answers = -1
        self._lock = Lock()

    def send(self, tag: bytes, body: bytes) -> None:
        with self._lock:  # a thread of the job may be saying something
            send(self.answers, tag, body)


_MOUTH: Final = _Mouth()


def say(value: object) -> None:
    """Tell the parent something, from a job or a thread of it; see `Processes`.

    Raises:
        OSError: Nobody will ever hear it.
    """
    _MOUTH.send(SAID, _dumps(value))


def check_call(call: Callable[..., Any]) -> None:
    """Refuse what a child could not be told to call.

    Raises:
        UsageError: It has no name that a child could find; the text says what to write instead.
    """
    inner = call
    while isinstance(inner, partial):
        inner = inner.func
    name = getattr(inner, "__qualname__", repr(inner))
    if "<lambda>" in name:
        raise UsageError("a process cannot be told to call a lambda: write a def in a module")
    if "<locals>" in name:
        raise UsageError(
            f"{name} is defined inside a function, where no process finds it: move it to the top "
            "level of a module, and pass what it uses as arguments"
        )
    if inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner):
        raise UsageError(f"{name} is async: run it on the event loop, or write it with a plain def")
    if getattr(inner, "__module__", "") == "__main__" and not _main_can_be_imported():
        raise UsageError(
            f"{name} was typed in, so no process can import it: save it in a file and import that"
        )
    try:
        pickle.dumps(call, PROTOCOL)
    except Exception as error:  # noqa: BLE001 - the object's own word on how it is pickled
        raise UsageError(
            f"{name} cannot be handed to a process ({failure_text(error)}): "
            "give a function from the top level of a module"
        ) from None


def _main_can_be_imported() -> bool:
    main = sys.modules["__main__"]
    return getattr(main, "__spec__", None) is not None or hasattr(main, "__file__")


def serve(jobs: int, answers: int) -> None:
    """Carry out what comes through `jobs` until it is closed."""
    own, _MOUTH.answers = os.getpid(), answers
    # Who has forked in a job must not keep the pipes: their end is how the parent sees ours.
    for fd in (jobs, answers):
        os.register_at_fork(after_in_child=partial(os.close, fd))
    calls = _Calls()
    answer_to: Callable[[bytes, Body], Frame] = _prepared
    while True:
        try:
            tag, body = receive(jobs)
        except EOFError:
            return
        answer = answer_to(tag, body)
        if os.getpid() != own:
            # The job has forked and did not stop the copy, which must not answer as well.
            os._exit(_FORKED_COPY)
        try:
            _MOUTH.send(*answer)
        except BrokenPipeError:
            return  # nobody waits for it any more
        if answer[0] == FAILED:
            return
        answer_to = calls.carry_out


def _prepared(_tag: bytes, body: Body) -> Frame:
    """Become a process in which the jobs of the parent find what they need."""
    main, environment, late = pickle.loads(body)  # noqa: S301 - from our own parent
    retry = Retry()
    reason = "not-started"
    try:
        os.environ.clear()
        os.environ.update(environment)
        # As long as this is set, multiprocessing, and so we, refuse to start processes: else a
        # program without an `if __name__ == "__main__":` would start itself again and again.
        this = multiprocessing.process.current_process()
        this._inheriting = True  # type: ignore[attr-defined]  # noqa: SLF001 - spawn does it too
        multiprocessing.spawn.prepare(main)
        this._inheriting = False  # type: ignore[attr-defined]  # noqa: SLF001 - see above
        reason = "initializer"
        initializer, retry = pickle.loads(late)  # noqa: S301 - from our own parent
        if initializer is not None:
            initializer()
    except BaseException as error:  # noqa: BLE001 - the program's own modules and initializer
        return FAILED, _dumps(replace(failure(error, retry), reason=reason))
    return READY, b""


class _Calls:
    """Carries out jobs and remembers what was called by name."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[Callable[..., Any], Retry]] = {}

    def carry_out(self, tag: bytes, body: Body) -> Frame:
        """Return how one job ended. Never raises."""
        try:
            call, retry, args, kwargs = self._order(tag, body)
        except BaseException as error:  # noqa: BLE001 - modules are imported, objects built
            text = f"its process cannot build what it was to be called with: {failure_text(error)}"
            return _failed("arguments-not-transferable", error, text)
        try:
            # Variables of its own: what one job sets, the next one here must not see.
            value = Variables().run(call, *args, **kwargs)
            if value is None:
                return DONE, NOTHING
            asked = steered(value)
        except BaseException as error:  # noqa: BLE001 - a job may raise SystemExit too
            return ENDED, _dumps(failure(error, retry))
        if asked is None or isinstance(asked, Returned):
            return _returned(value)
        return ENDED, _dumps(asked)

    def _order(
        self, tag: bytes, body: Body
    ) -> tuple[Callable[..., Any], Retry, Sequence[Any], dict[str, Any]]:
        order = pickle.loads(body)  # noqa: S301 - from our own parent
        if not tag:
            call, retry, args, kwargs = order
            return call, retry, args, kwargs
        known = self._known.get(tag)
        if known is None:
            if len(self._known) >= _KNOWN_MAX:
                self._known.clear()
            known = self._known[tag] = pickle.loads(tag)  # noqa: S301 - from our own parent
        return *known, *order


def _returned(value: Any) -> Frame:
    try:
        return DONE, _dumps(value)
    except BaseException as error:  # noqa: BLE001 - the object's own word on how it is pickled
        text = (
            f"it ran, but what it returned cannot leave its process: {failure_text(error)}. "
            f"Return plain data, or a file's name. It returned {_shown(value)}"
        )
        return _failed("result-not-transferable", error, text)


def _failed(reason: str, error: BaseException, text: str) -> Frame:
    kept = replace(failure(error, Retry()), error=storable(text), again=False, reason=reason)
    return ENDED, _dumps(kept)


def failure_text(error: BaseException) -> str:
    """Return the one line that says what went wrong."""
    kept = failure(error, Retry())
    return f"{kept.error_type}: {kept.error.splitlines()[0]}"


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except BaseException as error:  # noqa: BLE001 - foreign code, as all of it here
        text = f"a {type(value).__name__}, whose repr raised {type(error).__name__}"
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"


def _dumps(value: Any) -> bytes:
    return pickle.dumps(value, PROTOCOL)


NOTHING: Final = _dumps(None)
"""What a job answers with that returns nothing, as most do."""


def main() -> None:
    """Serve as a fresh interpreter, whose arguments name the two pipes."""
    jobs, answers = map(int, sys.argv[1:3])
    os.set_inheritable(jobs, False)
    os.set_inheritable(answers, False)
    serve(jobs, answers)


if __name__ == "__main__":
    main()
