"""Why slots are idle: one timeline for all of them, read when somebody asks.

While any slot is idle, the reason is a property of the agenda and the same for all idle slots.
So one line of changes is kept, 17 bytes each, and the gaps between the attempts of a slot are cut
by it. Whatever a gap is cut into, its parts add up to it. Changes that no remembered attempt has
seen can be forgotten.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Final

from timeball.core.makespan import Cause
from timeball.engine.handles import NEVER_NS

_CAUSES: Final = tuple(Cause)
_NUMBER: Final = {cause: number for number, cause in enumerate(_CAUSES)}
_QUEUE: Final = Cause.QUEUE
_DISPATCH: Final = Cause.DISPATCH


class Idleness:
    """From when on which cause held, and until when it explains being idle."""

    __slots__ = ("_at", "_causes", "_now", "_until", "is_dispatch")

    def __init__(self) -> None:
        self._at = array("q")
        self._until = array("q")
        self._causes = array("b")
        self._now = (_QUEUE, NEVER_NS)
        self.is_dispatch = False
        """Whether that is the cause at present."""

    def __len__(self) -> int:
        return len(self._at)

    def copy(self) -> Idleness:
        """Return the timeline as it is now, for whoever reads it outside the lock."""
        copy = Idleness()
        copy._at, copy._until, copy._causes = self._at[:], self._until[:], self._causes[:]
        return copy

    def forget(self, before_ns: int) -> None:
        """Forget all that was over by then; nothing earlier may be asked about any more."""
        over = max(0, bisect_right(self._at, before_ns) - 1)
        for line in (self._at, self._until, self._causes):
            del line[:over]

    def mark(self, now_ns: int, cause: Cause, until_ns: int = NEVER_NS) -> None:
        """Note that from now on a slot is idle for this cause, which ends at `until_ns` at last."""
        last, last_ns = self._now
        if last is cause and last_ns == until_ns:
            return
        self._now = (cause, until_ns)
        self.is_dispatch = cause is _DISPATCH
        if self._at:
            now_ns = max(now_ns, self._at[-1])
        self._at.append(now_ns)
        self._until.append(until_ns)
        self._causes.append(_NUMBER[cause])

    def arrived(self, ready_ns: int) -> None:
        """A job came from outside, at `ready_ns`."""
        if self._now[0] is not Cause.LIMITER:
            self.mark(ready_ns, _DISPATCH)

    def limited(self) -> Callable[[int, int], int]:
        """Return a function that says for how long, between two instants, the limiter refused."""
        at, total, spent = list(self._at), 0, [0]
        for place, until_ns in enumerate(self._until):
            following = at[place + 1] if place + 1 < len(at) else until_ns
            if _CAUSES[self._causes[place]] is Cause.LIMITER:
                total += max(0, min(following, until_ns) - at[place])
            spent.append(total)

        def before(instant_ns: int) -> int:
            place = bisect_right(at, instant_ns) - 1
            if place < 0:
                return 0
            inside = min(instant_ns - at[place], spent[place + 1] - spent[place])
            return spent[place] + inside

        return lambda from_ns, to_ns: before(to_ns) - before(from_ns)

    def cut(self, begin_ns: int, end_ns: int) -> Iterator[tuple[Cause, int, int]]:
        """Yield the parts of a gap, in order, each with its cause."""
        place = bisect_right(self._at, begin_ns) - 1
        while begin_ns < end_ns:
            following = self._at[place + 1] if place + 1 < len(self._at) else NEVER_NS
            cause, until_ns = _QUEUE, following
            if place >= 0:
                cause, until_ns = _CAUSES[self._causes[place]], self._until[place]
            if begin_ns >= until_ns:
                cause, until_ns = _DISPATCH, following
            part_ns = min(end_ns, following, until_ns)
            if part_ns > begin_ns:
                yield cause, begin_ns, part_ns
                begin_ns = part_ns
            if begin_ns >= following:
                place += 1
