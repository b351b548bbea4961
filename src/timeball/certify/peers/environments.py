"""The environments of other products: one folder each, made only when somebody asks for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from timeball.certify.peers.catalogue import Peer

INSTALL: Final = "timeball certify --peers --install --out out"
"""The one command that makes them."""

_INSTALL_S: Final = 600.0
_SHOWN: Final = 300
_MARK: Final = "installed"


class Environments:
    """The environments below one folder.

    Args:
        folder: Where they are, or will be.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._failed: dict[str, str] = {}

    def interpreter(self, peer: Peer) -> Path | None:
        """Return the interpreter of a product; None where that is not installed as pinned."""
        if peer.own:
            return Path(sys.executable)
        mark, python = self._folder / peer.name / _MARK, self._python(peer)
        if not (mark.exists() and python.exists()):
            return None
        return python if mark.read_text("utf-8").split() == list(peer.requirements) else None

    def missing(self, peer: Peer) -> str:
        """Return why a product has no interpreter, and what makes it one."""
        failed = self._failed.get(peer.name)
        return f"could not be installed: {failed}" if failed else f"not installed: {INSTALL}"

    def install(self, peers: Iterable[Peer], say: Callable[[str], None]) -> None:
        """Have pip install what is missing; what fails is told by `missing`."""
        for peer in peers:
            if self.interpreter(peer) is None:
                say(f"{peer.name}: pip install {' '.join(peer.requirements)}")
                self._install(peer)

    def _install(self, peer: Peer) -> None:
        folder = self._folder / peer.name
        pip = [str(self._python(peer)), "-m", "pip", "install", "--disable-pip-version-check", "-q"]
        for command in (
            [sys.executable, "-m", "venv", "--clear", str(folder)],
            [*pip, *peer.requirements],
        ):
            failed = _carried_out(command)
            if failed:
                self._failed[peer.name] = failed
                return
        (folder / _MARK).write_text("\n".join(peer.requirements), "utf-8")

    def _python(self, peer: Peer) -> Path:
        return self._folder / peer.name / "bin" / "python"


def default_folder() -> Path:
    """Return where environments are kept unless told otherwise: beside the embedded servers."""
    from timeball.store.postgres.embedded import default_folder as servers

    return servers("0").parent / "peers"


def _carried_out(command: list[str]) -> str:
    """Return the last words of a command that has failed; nothing of one that has not."""
    try:
        done = subprocess.run(  # noqa: S603 - venv and pip, with the pins of the catalogue
            command, capture_output=True, text=True, check=False, timeout=_INSTALL_S,
            stdin=subprocess.DEVNULL, env={**os.environ, "PIP_NO_INPUT": "1"},
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)[:_SHOWN]
    words = (done.stderr or done.stdout).strip() or f"exit code {done.returncode}"
    return words[-_SHOWN:] if done.returncode else ""
