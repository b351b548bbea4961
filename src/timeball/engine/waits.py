"""Waiting for jobs, and the one way in which that can never end: jobs that wait for each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from timeball.core.states import TERMINAL, State
from timeball.engine.agenda import Agenda
from timeball.engine.handles import Attempt, Work


class Watch:
    """Calls once when the last of some jobs has ended.

    Args:
        agenda: Where the jobs are.
        call: Called outside the lock.
    """

    __slots__ = ("_agenda", "_call", "_left")

    def __init__(self, agenda: Agenda, call: Callable[[], None]) -> None:
        self._agenda = agenda
        self._call = call
        self._left = 0

    def attach(self, works: Iterable[Work]) -> bool:
        """Watch those that have not ended, under the lock; return whether there are any."""
        for work in works:
            if work.state not in TERMINAL:
                self._left += 1
                self._agenda.watched.setdefault(work, []).append(self._hit)
        return self._left > 0

    def detach(self, works: Iterable[Work]) -> None:
        """Watch no longer, under the lock."""
        for work in works:
            watching = self._agenda.watched.get(work, [])
            # Bound methods are made anew each time: they are equal, not the same.
            if self._hit in watching:
                watching.remove(self._hit)
                if not watching:
                    del self._agenda.watched[work]

    def _hit(self) -> None:
        self._left -= 1
        if not self._left:
            self._agenda.outbox.append(self._call)


def is_hopeless(
    agenda: Agenda, waiting: Mapping[Attempt, Sequence[Work]], attempt: Attempt
) -> bool:
    """Return whether what `attempt` waits for cannot end before the attempt itself does.

    An attempt that does not wait may end, and so may one that waits for jobs that may all end.
    A job that has not begun may end where some slot is free or may become so.

    Args:
        agenda: Where the jobs are.
        waiting: Which attempts wait without a time limit, this one included, and for what.
        attempt: Which one is asked about.
    """
    running = [each for each in agenda.on_slot if each is not None]
    hopeful = {each for each in running if each not in waiting}

    def may_end(work: Work) -> bool:
        if work.state in TERMINAL:
            return True
        if work.state is State.RUNNING:
            return work.attempts[-1] in hopeful
        after = work.more.after if work.more else ()
        return bool(agenda.free or hopeful) and all(map(may_end, after))

    found = True
    while found:
        found = False
        for each, works in waiting.items():
            if each not in hopeful and all(map(may_end, works)):
                hopeful.add(each)
                found = True
    return attempt not in hopeful
