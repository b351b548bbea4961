"""A small disk of our own, for a database that is to run out of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from timeball.certify.scenario import Skipped

_CHUNK: Final = b"\0" * (1 << 20)
_BALLAST: Final = "ballast"


class Volume:
    """A small file system.

    Args:
        path: Where it is.
        data: A folder there, of the owner that was asked for.
    """

    def __init__(self, path: Path, data: Path) -> None:
        self.data = data
        self._ballast = path / _BALLAST

    def fill(self) -> int:
        """Leave no room; return how many bytes that took."""
        with self._ballast.open("ab", buffering=0) as file:
            for size in (len(_CHUNK), 1 << 12, 1):
                while _fits(file.fileno(), size):
                    pass
            return file.tell()

    def free(self) -> None:
        """Give the room back."""
        self._ballast.unlink(missing_ok=True)


@contextmanager
def volume(size_mb: int, owner: os.stat_result) -> Iterator[Volume]:
    """Lend a small file system in memory.

    Args:
        size_mb: In MB.
        owner: Whose its folder is to be.

    Raises:
        Skipped: This machine lets nobody make one here.
    """
    path = Path(tempfile.mkdtemp(prefix="timeball-volume-"))
    try:
        _mount(path, size_mb)
        try:
            data = path / "data"
            data.mkdir(mode=0o700)
            os.chown(data, owner.st_uid, owner.st_gid)
            path.chmod(0o711)
            yield Volume(path, data)
        finally:
            # At once, although a server that has not let go of a file may still keep it busy.
            subprocess.run(["umount", "-l", str(path)], check=True)  # noqa: S603, S607 - as mount
    finally:
        path.rmdir()


def _mount(path: Path, size_mb: int) -> None:
    mount = shutil.which("mount")
    if mount is None or os.geteuid() != 0:
        raise Skipped("a small disk can be mounted by root only, with the program mount")
    words = [mount, "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    if done.returncode:
        raise Skipped(f"a small disk cannot be mounted here: {done.stderr.strip()}")


def _fits(file: int, size: int) -> bool:
    try:
        return os.write(file, _CHUNK[:size]) == size
    except OSError:
        return False
