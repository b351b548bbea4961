"""Removes the folder of a command that has ended, whatever that has left in it.

A script of the standard library only, run by `timeball.action.minder` with the folder and the
command's user. As that user, it can remove nothing that the command could not have removed.
"""

from __future__ import annotations

import os
import pwd
import signal
import sys
from pathlib import Path
from uuid import uuid4

TIME_S = 10


def sweep(folder: Path) -> None:
    """Remove `folder`, and in it folders without permissions and of any depth.

    Raises:
        OSError: Something in it cannot be removed.
    """
    if folder.is_symlink():  # the command has put it there
        folder.unlink()
        return
    folder.chmod(0o700)
    while entries := list(folder.iterdir()):
        for entry in entries:
            if is_folder(entry):
                empty(entry, into=folder)
                entry.rmdir()
            else:
                entry.unlink()
    folder.rmdir()


def empty(folder: Path, *, into: Path) -> None:
    """Move up what is in a folder: so no path gets too long, and no recursion too deep."""
    folder.chmod(0o700)
    for entry in list(folder.iterdir()):
        if is_folder(entry):
            entry.chmod(0o700)  # else it cannot be moved
        entry.rename(into / uuid4().hex)


def is_folder(path: Path) -> bool:
    """Whether it is one itself, and not only leads to one."""
    return path.is_dir() and not path.is_symlink()


def become(name: str) -> None:
    """Turn into a user for good; nothing where there is no name."""
    if name and (user := pwd.getpwnam(name)).pw_uid != os.geteuid():
        os.initgroups(name, user.pw_gid)
        os.setgid(user.pw_gid)
        os.setuid(user.pw_uid)


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.alarm(TIME_S)
    try:
        become(sys.argv[2])
        sweep(Path(sys.argv[1]))
    except OSError:
        sys.exit(1)
