"""Rates over all workers, in the memory store: permits, and the lines of those without."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from threading import Lock

from timeball.core.limits import Scope, StartRate, fitting
from timeball.core.permits import SETTLING_S, Law, Permits, Start
from timeball.core.rate import Rate
from timeball.store.limiting import Ask, Granted, Grants, Part, Spent
from timeball.store.memory_queues import MemoryQueues
from timeball.store.memory_rows import Row

_PARTS_MAX = 16  # of what an ask gets
_PATIENCE_MAX = 64  # seconds
_REST_US = 10_000  # until the next leave a line


class MemoryRates(MemoryQueues):
    """Who may start when."""

    _clock: Callable[[], datetime]
    _lock: Lock
    _rows: dict[int, Row]
    _held: dict[int, Row]
    _slots: defaultdict[tuple[Scope, str], set[int]]

    def __init__(self) -> None:
        self._rates: dict[tuple[Scope, str], tuple[Law, datetime]] = {}
        self._permits: dict[str, Permits] = {}
        self._opens: dict[str, int] = {}
        self._coming: dict[str, tuple[int, int]] = {}  # so many have left the line, until when
        self._patience: dict[str, int] = {}

    def limit_starts(self, scope: Scope, name: str, rate: Rate | None) -> None:
        """See `Store.limit_starts`."""
        with self._lock:
            if rate is None:
                self._rates.pop((scope, name), None)
            else:
                since = self._clock() + timedelta(seconds=SETTLING_S)
                self._rates[scope, name] = Law.of(rate), since

    def rates(self) -> list[StartRate]:
        """See `Store.rates`."""
        with self._lock:
            found = sorted(self._rates.items())
            return [StartRate(*each, law.rate, at.timestamp()) for each, (law, at) in found]

    def permits(self, asks: Sequence[Ask], spent: Sequence[Spent]) -> Grants:
        """See `Store.permits`."""
        with self._lock:
            now_us = self._now_us()
            for name, number, used, late_us in spent:
                law = self._law_of(name)
                if law is not None:
                    self._permits_of(name).spend(law, number, used, late_us)
            granted = [self._granted(ask, now_us) for ask in asks]
            names = {name for ask in asks for name in ask.names} | {each.name for each in spent}
            waits = [self._reckon(name, now_us) for name in names if self._law_of(name)]
            return Grants(now_us / 1e6, granted, min(waits) / 1e6 if waits else None)

    def starts(self, since: datetime | None = None) -> Iterator[Start]:
        """See `Store.starts`."""
        with self._lock:
            queues = {lane.id: lane.queue for lane in self._lanes.values()}
            found = [
                Start(name, law.rate, round(how.began_at * 1e6))
                for row in self._rows.values()
                for turn, (how, *_) in row.endings.items()
                if how.began_at is not None and turn in row.grants
                for name in self._rates_of(row, queues[row.grants[turn].lane])
                for law, valid_from in [self._setting(name)]
                if row.grants[turn].at >= max(valid_from, since or valid_from)
            ]
        return iter(sorted(found, key=lambda start: (start.name, start.at_us)))

    # The rest runs under the lock.

    def _now_us(self) -> int:
        return round(self._clock().timestamp() * 1_000_000)

    def _setting(self, name: str) -> tuple[Law, datetime]:
        setting = self._fitting_rate(name)
        assert setting is not None
        return setting

    def _fitting_rate(self, name: str) -> tuple[Law, datetime] | None:
        scope, _, rest = name.partition(":")
        if scope != Scope.KEY:
            return self._rates.get((Scope(scope), rest))
        best = fitting((each for kind, each in self._rates if kind is Scope.KEY), rest)
        return None if best is None else self._rates[Scope.KEY, best]

    def _law_of(self, name: str) -> Law | None:
        setting = self._fitting_rate(name)
        return setting and setting[0]

    def _rates_of(self, row: Row, queue: str) -> tuple[str, ...]:
        """Return the names of the limits on the starts of a job in a queue."""
        spec = row.spec
        names = [f"kind:{spec.kind}", f"queue:{queue}"]
        if spec.key is not None:
            names.insert(0, f"key:{spec.key}")
        return tuple(name for name in names if self._law_of(name))

    def _rated_queues(self) -> frozenset[str]:
        return frozenset(name for scope, name in self._rates if scope is Scope.QUEUE)

    def _rated_kinds(self) -> frozenset[str]:
        return frozenset(name for scope, name in self._rates if scope is Scope.KIND)

    def _is_rated(self, row: Row) -> bool:
        """Return whether a job has to go through the line of its kind; not if it leaves that."""
        return row.spec.key is None and row.line is None and row.spec.kind in self._rated_kinds()

    def _permits_of(self, name: str) -> Permits:
        return self._permits.setdefault(name, Permits())

    def _forget_permits(self) -> None:
        """Forget what was granted to keys that are used no longer."""
        now_us = self._now_us()
        for name in [*self._permits]:
            if self._permits[name].is_idle(self._law_of(name), now_us):
                del self._permits[name]
                for table in (self._opens, self._coming, self._patience):
                    table.pop(name, None)

    def _granted(self, ask: Ask, now_us: int) -> Granted:
        laws = {name: law for name in ask.names if (law := self._law_of(name))}
        left = ask.want
        for name in ask.names if ask.waited else ():
            coming, until_us = self._coming.get(name, (0, 0))
            self._coming[name] = max(0, coming - ask.want), until_us
        parts: list[Part] = []
        while len(parts) < _PARTS_MAX:
            at_us, room = self._offered(laws, now_us, left)
            if room == 0:
                break
            numbers = tuple(
                self._permits_of(name).take(laws[name], now_us, room, at_us) if name in laws else 0
                for name in ask.names
            )
            parts.append(Part(room, numbers, (at_us - now_us) / 1e6))
            left -= room
        return Granted(tuple(parts))

    def _offered(self, laws: Mapping[str, Law], now_us: int, want: int) -> tuple[int, int]:
        """Return from when on how many permits can be had of all limits together."""
        if any(law.burst is not None for law in laws.values()):
            rooms = [self._permits_of(name).room(law, now_us) for name, law in laws.items()]
            return now_us, min([want, *rooms])
        offers = [self._permits_of(name).offer(law, now_us, want) for name, law in laws.items()]
        return max([now_us, *(at for at, _ in offers)]), min([want, *(n for _, n in offers)])

    def _reckon(self, name: str, now_us: int) -> int:
        """Note from when on it is worth asking a limit for more; return how long that is."""
        coming, until_us = self._coming.get(name, (0, 0))
        self._coming[name] = coming, min(until_us, now_us + 1_000_000)
        self._patience[name] = 1
        self._opens[name] = self._soon(name, now_us)
        return self._opens[name] - now_us

    def _soon(self, name: str, now_us: int) -> int:
        """Return when to ask for one more than those that are on their way."""
        coming, until_us = self._coming_of(name, now_us)
        soon_us = self._permits_of(name).soon_us(self._setting(name)[0], now_us, coming)
        if soon_us is None:
            return until_us
        return min(soon_us, until_us) if coming else soon_us

    def _coming_of(self, name: str, now_us: int) -> tuple[int, int]:
        """Return how many are on their way to ask for permits, and until when to wait for them."""
        coming, until_us = self._coming.get(name, (0, 0))
        return (coming, until_us) if until_us > now_us else (0, 0)

    def _expected(self, name: str, most: int) -> int:
        """Return how many may come because permits can be expected, `most` at most."""
        law, now_us = self._law_of(name), self._now_us()
        if law is None:
            return most
        if self._opens.get(name, 0) > now_us:
            return 0
        soon = self._permits_of(name).soon(law, now_us) - self._coming_of(name, now_us)[0]
        return min(most, max(0, soon))

    def _in_line(self) -> list[Row]:
        """Return who waits for the rate of a kind or a queue, and may come once there is room."""
        served = self._open_queues()
        return [row for row in self._held.values() if row.line and row.queue in served]

    def _out_of_line(self, most: int) -> list[Row]:
        """Return who leaves the lines; who has waited longest first."""
        chosen: list[Row] = []
        for line in sorted({row.line for row in self._in_line() if row.line}):
            room = self._expected(line, most - len(chosen))
            rows = [row for row in self._in_line() if row.line == line]
            leaving = sorted(rows, key=lambda row: (row.held_at, row.id))[:room]
            if leaving and self._law_of(line):
                self._note_coming(line, leaving)
            chosen += leaving
        return chosen

    def _note_coming(self, line: str, leaving: list[Row]) -> None:
        """Count those that leave a line until they ask; not who goes on to wait for a busy key."""
        busy = {key for (scope, key), jobs in self._slots.items() if jobs and scope is Scope.KEY}
        keys = {row.spec.key for row in leaving} - busy - {None}
        n = len(keys) + sum(row.spec.key is None for row in leaving)
        now_us = self._now_us()
        coming, until_us = self._coming_of(line, now_us)
        if not until_us:
            patience = self._patience.get(line, 1)
            until_us = now_us + patience * 1_000_000
            self._patience[line] = min(2 * patience, _PATIENCE_MAX)
        self._coming[line] = coming + n, until_us
        self._opens[line] = max(now_us + _REST_US, self._soon(line, now_us))

    def _next_opening_s(self) -> float | None:
        """Return when somebody who waits for a rate may come; None: nobody knows of one."""
        now_us = self._now_us()
        waiting = {row.line or f"key:{row.spec.key}" for row in self._held.values()}
        later = [us for name, us in self._opens.items() if name in waiting and us > now_us]
        return max(0.01, (min(later) - now_us) / 1e6) if later else None

    def _line_of(self, row: Row) -> str | None:
        """Return the line for a job that got no permit: that of the limit that opens last."""
        names: Collection[str] = [
            each for each in self._rates_of(row, row.queue) if each[:4] != "key:"
        ]
        return max(names, key=lambda name: self._opens.get(name, 0), default=None)
