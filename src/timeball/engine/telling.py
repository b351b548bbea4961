"""An agenda that also tells of each transition, one log line each.

It takes the place of the plain one where lines are wanted when the scheduler is made; where they
are not, nothing of this is there to be asked. Lines are written from the outbox, with the lock
released, and by the submitter for its own job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from timeball.core.outcomes import Raised
from timeball.core.rate import NS_PER_S
from timeball.core.records import CancelAnswer
from timeball.core.states import Ending
from timeball.engine.agenda import Agenda
from timeball.engine.handles import Attempt, Work
from timeball.engine.runner import Ended, Lost
from timeball.observe.transitions import Happening, Transition, tell

_OUR_WORDS: Final = frozenset({Ending.FAILED, Ending.RETRIED, Ending.RELEASED, Ending.LOST})
"""Endings whose reason is a word of ours and never the job's own."""


class _Inbox(deque[Work | Callable[[Agenda, int], object]]):
    def append(self, item: Work | Callable[[Agenda, int], object]) -> None:
        """Tell of a job before anybody else can know of it."""
        if isinstance(item, Work):
            _tell_submitted(item)
        super().append(item)

    def extend(self, items: Iterable[Work | Callable[[Agenda, int], object]]) -> None:
        """Tell of several that are submitted together."""
        works = list(items)
        for item in works:
            if isinstance(item, Work):
                _tell_submitted(item)
        super().extend(works)


class ToldAgenda(Agenda):
    """The agenda of a scheduler somebody listens to."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.inbox = _Inbox()
        self._refused_ns: int | None = None
        """Since when the limiter refuses whoever is first."""

    def finish(self, attempt: Attempt, said: Ended, now_ns: int) -> None:
        """See `Agenda.finish`."""
        place, stale = len(self.outbox), self.tally.stale
        super().finish(attempt, said, now_ns)
        event = Happening.STALE_SETTLEMENT if self.tally.stale > stale else _ending_of(attempt)
        error_type = said.error_type if isinstance(said, Raised) else None
        if isinstance(said, Lost):
            error_type = Lost.__name__
        # In front of what follows from it.
        self.outbox.insert(place, partial(_tell_end, attempt, event, error_type))

    def cancel(self, work: Work, now_ns: int) -> CancelAnswer:
        """See `Agenda.cancel`."""
        before = work.cancel_requested
        answer = super().cancel(work, now_ns)
        if answer is CancelAnswer.REQUESTED and not before:
            line = Transition(Happening.CANCEL_REQUESTED, work.id, work.name, work.at_turn)
            self.outbox.append(partial(tell, line))
        return answer

    def give_up(self, attempt: Attempt, now_ns: int) -> None:
        """See `Agenda.give_up`."""
        place = len(self.outbox)
        super().give_up(attempt, now_ns)
        self.outbox.insert(place, partial(_tell_end, attempt, Ending.CANCELLED, None))

    def _claim(self, now_ns: int) -> Attempt | None:
        attempt = super()._claim(now_ns)
        if attempt is not None:
            since_ns = now_ns if self._refused_ns is None else self._refused_ns
            self._refused_ns = None
            limited_ns = max(0, now_ns - max(since_ns, attempt.ready_ns))
            self.outbox.append(partial(_tell_begun, attempt, limited_ns))
        elif self._refused and self._refused_ns is None:
            self._refused_ns = now_ns
        return attempt

    def _adopt(self, spawned: Work, by: Work, now_ns: int) -> None:
        self.outbox.append(partial(_tell_submitted, spawned))
        super()._adopt(spawned, by, now_ns)

    def _close(self, work: Work, ending: Ending, reason: str, now_ns: int) -> None:
        place = len(self.outbox)
        super()._close(work, ending, reason, now_ns)
        line = Transition(ending, work.id, work.name, work.at_turn)
        self.outbox.insert(place, partial(tell, line))


def _ending_of(attempt: Attempt) -> Ending:
    assert attempt.end is not None
    return attempt.end.ending


def _tell_submitted(work: Work) -> None:
    tell(Transition(Happening.SUBMITTED, work.id, work.name))


def _tell_begun(attempt: Attempt, limited_ns: int) -> None:
    line = _line(Happening.BEGUN, attempt)
    wait_ns = max(0, attempt.granted_ns - attempt.ready_ns)
    tell(
        line._replace(
            queue_wait_s=wait_ns / NS_PER_S,
            limiter_wait_s=limited_ns / NS_PER_S,
            lock_wait_s=attempt.lock_ns / NS_PER_S,
        )
    )


def _tell_end(attempt: Attempt, event: Ending | Happening, error_type: str | None) -> None:
    assert attempt.end is not None
    tell(
        _line(event, attempt)._replace(
            ended_at=attempt.ended_ns / NS_PER_S,
            delay_s=attempt.end.delay_s or None,
            reason=attempt.end.reason if event in _OUR_WORDS else None,
            error_type=error_type,
        )
    )


def _line(event: Ending | Happening, attempt: Attempt) -> Transition:
    work = attempt.work
    return Transition(
        event,
        work.id,
        work.name,
        attempt.turn,
        attempt.turn,
        worker=attempt.slot,
        granted_at=attempt.granted_ns / NS_PER_S,
        began_at=attempt.started_ns / NS_PER_S,
    )
