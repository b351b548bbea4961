"""Processes that drive one product: started on its interpreter, asked, frozen and killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final

from timeball.certify.fleet import processes
from timeball.certify.peers.adapters.bodies import FOLDER

HOST: Final = Path(__file__).parent / "adapters" / "host.py"
ANSWER_S: Final = 60.0
"""So long may a product take for one answer."""


class NotOffered(Exception):
    """The product has no such thing; the text says what it has instead."""


class Broken(Exception):
    """The product, or its adapter, has failed; the text says how."""


class Hung(Exception):
    """The product, or its adapter, does not answer."""


class Driver:
    """One process of `adapters/host.py`, on the interpreter of a product.

    Args:
        interpreter: The product's.
        script: The host, with the adapter and the verb that follow it.
        brief: The terms, as JSON can hold them.
        log: Where it writes what it has to say.
    """

    def __init__(
        self, interpreter: Path, script: tuple[str, ...], brief: dict[str, Any], log: Path
    ) -> None:
        self._answers: SimpleQueue[str] = SimpleQueue()
        self._over = False
        with log.open("ab") as file:
            self._process = subprocess.Popen(  # noqa: S603 - our own script
                [str(interpreter), *script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=file, start_new_session=True, env=_environment(brief),
            )  # fmt: skip
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()
        self._tell(brief)

    def answer(self) -> dict[str, Any]:
        """Return the next line that it says.

        Raises:
            NotOffered: It says that there is no such thing.
            Broken: It says that it has failed, or has ended without a word.
            Hung: It says nothing within `ANSWER_S`.
        """
        try:
            line = self._answers.get(timeout=ANSWER_S)
        except Empty:
            raise Hung(f"no answer within {ANSWER_S:g} s") from None
        if not line:
            raise Broken(f"ended without an answer, with exit code {self._waited()}")
        try:
            found: dict[str, Any] = json.loads(line)
        except ValueError as error:
            raise Broken(f"no JSON: {line[:200]}") from error
        if "not_offered" in found:
            raise NotOffered(found["not_offered"])
        if "error" in found:
            raise Broken(found["error"])
        return found

    def ask(self, verb: str, **words: Any) -> Any:
        """Return what it answers to a request; see `answer`."""
        self._tell({"verb": verb, **words})
        return self.answer()["answer"]

    @property
    def ended(self) -> int | None:
        """Return its exit code, None while it lives; what it has left behind is ended then."""
        code = self._process.poll()
        if code is not None:
            self._end_rest()
        return code

    def freeze(self) -> None:
        """Stop it, and all that it has started, where they are."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it, and all that it has started, at once; also where it has ended by itself."""
        if self.ended is None:
            self._signal(signal.SIGKILL)
            self._waited()

    def close(self) -> None:
        """End it whatever state it is in, and let go of its pipes."""
        self.kill()
        self._reader.join(ANSWER_S)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.stdout.close()

    def _tell(self, words: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended: the next answer says so
            self._process.stdin.write(json.dumps(words).encode() + b"\n")
            self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line.decode(errors="replace"))
        self._answers.put("")

    def _signal(self, number: signal.Signals) -> None:
        for pid in self._tree():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _waited(self) -> int:
        """Return its exit code once it has ended; nothing of it is left then."""
        code = self._process.wait()
        self._end_rest()
        return code

    def _end_rest(self) -> None:
        """End at once what is left of its session: whose parent has ended is below nobody.

        Once only: later the number may be that of somebody else's session.
        """
        if self._over:
            return
        self._over = True
        for pid, _, state in processes():
            with suppress(ProcessLookupError, PermissionError):  # of another user, or gone by now
                if state != "Z" and os.getsid(pid) == self._process.pid:
                    os.kill(pid, signal.SIGKILL)

    def _tree(self) -> list[int]:
        """Return the ids of this process and of all below it."""
        if self.ended is not None:
            return []
        parents = {pid: parent for pid, parent, _ in processes()}
        found = [self._process.pid]
        for known in found:
            found.extend(pid for pid, parent in parents.items() if parent == known)
        return found


def _environment(brief: dict[str, Any]) -> dict[str, str]:
    """Return this process's environment, without what would lead a product elsewhere."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return {**kept, FOLDER: str(brief.get("folder", ""))}
