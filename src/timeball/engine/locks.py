"""How to come by a lock that is held for microseconds only.

Whoever lines up for a lock is given it while he lacks the interpreter; so the next one who comes
finds it taken and lines up as well, and so on for ever. Such a convoy costs two switches of
threads each time, and once begun it does not end (Blasgen, Gray, Mitoma and Price, "The convoy
phenomenon", 1979).
"""

from __future__ import annotations

import time
from threading import Lock
from typing import Final

YIELDS: Final = 50
"""How often to give way: for about 0.1 ms, in which the system wakes the holder's thread."""


def give_way(lock: Lock) -> None:
    """Wait, without lining up, until a lock can most likely be had; not for long.

    Whoever holds it neither waits nor sleeps, so he only lacks the interpreter: he gets ours.
    """
    for _ in range(YIELDS):
        if not lock.locked():
            return
        time.sleep(0)


def take(lock: Lock) -> None:
    """Take a lock that was just found taken; line up only where giving way was no help.

    Where thousands a second come for it, the moment between a look and the lock counts as well.
    """
    for _ in range(YIELDS):
        time.sleep(0)
        if lock.acquire(blocking=False):
            return
    lock.acquire()
