"""A worker's permits to start: asked for in time, used when an attempt begins, or given back.

The desk belongs to the loop's thread; of a batch, attempts use permits from any thread.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from threading import Lock
from typing import Final

from timeball.core.permits import TTL_S
from timeball.core.records import Promoted, Turn
from timeball.store.limiting import Ask, Limiting, Spent

_ASK_REST_S: Final = 0.01  # between two questions, however soon there is more: a few make a batch
_NEVER_S: Final = float("inf")
_APART: Final = 0.001  # the most by which two clocks that run alike do not
_ROUNDING_S: Final = 1e-5


class StoreClock:
    """What the monotonic clock reads at an instant of the store's, within bounds.

    Each answer tells an instant between the reading at which it was asked for and the one at which
    it came. All of them hold together, so that an answer which stalls takes nothing from what
    those before it have told, as long as the clocks run alike.
    """

    def __init__(self) -> None:
        self._low_s, self._high_s = -_NEVER_S, _NEVER_S  # how far the store's clock is ahead
        self._told_s = 0.0

    def heed(self, at: float, sent_s: float, arrived_s: float) -> None:
        """Be told that the store's clock showed an instant between two readings."""
        apart_s = _APART * (arrived_s - self._told_s) + _ROUNDING_S
        low_s = max(self._low_s - apart_s, at - arrived_s)
        high_s = min(self._high_s + apart_s, at - sent_s)
        if low_s > high_s:  # one of the clocks has been set
            low_s, high_s = at - arrived_s, at - sent_s
        self._low_s, self._high_s, self._told_s = low_s, high_s, arrived_s

    def readings_s(self, at: float) -> tuple[float, float]:
        """Return the earliest and the latest reading that an instant may have."""
        return at - self._high_s, at - self._low_s


class Batch:
    """Permits of one instant that one question got.

    Args:
        grants: Name of the limit and number of the grant, of each limit.
        count: How many permits.
        at: From when on, by the store's clock.
        instant_s: The earliest and the latest that the instant may be by the monotonic clock.
        ring: Called when the last one is used.
    """

    def __init__(
        self, grants: Sequence[tuple[str, int]], count: int, *, at: float,
        instant_s: tuple[float, float], ring: Callable[[], None],
    ) -> None:  # fmt: skip
        self.left = count
        """Permits that no attempt has been given."""
        self._earliest_s, self.begins_s = instant_s
        self.ends_s = self._earliest_s + TTL_S
        self._grants = grants
        self._at = at
        self._ring = ring
        self._lock = Lock()
        self._open = count
        self._used = 0
        self._last_s = self._earliest_s

    def use(self, now_s: float) -> bool:
        """Use one permit for an attempt that begins now; False: it does not hold."""
        with self._lock:
            in_time = self.begins_s <= now_s < self.ends_s and self._open > 0
            if in_time:
                self._open -= 1
                self._used += 1
                self._last_s = max(self._last_s, now_s)
            over = self._open == 0
        if over:
            self._ring()
        return in_time

    def give_back(self, count: int) -> None:
        """Say that so many will not be used."""
        with self._lock:
            self._open -= count

    def began_at(self, began_s: float) -> float:
        """Return the instant of a start by the store's clock: after the grant, and not too late."""
        return self._at + (began_s - self.begins_s)

    def close(self, now_s: float) -> list[Spent] | None:
        """Return what became of the permits; None while some may still be used."""
        with self._lock:
            if self._open > 0 and now_s < self.ends_s:
                return None
            self._open = 0
            late_us = int((self._last_s - self._earliest_s) * 1e6) + 1
            return [Spent(name, no, self._used, late_us) for name, no in self._grants if no]


class PermitDesk:
    """Asks a store for permits.

    Args:
        store: Which grants them.
        queues: Those that the worker serves.
        ring: Called, from any thread, when there is something to tell the store.
    """

    def __init__(self, store: Limiting, queues: Iterable[str], ring: Callable[[], None]) -> None:
        self.ask_at_s = _NEVER_S
        """From then on more permits for a queue can be expected, by the monotonic clock."""
        self.opens_at_s = _NEVER_S
        """From then on those that wait for a rate may come."""
        self._store = store
        self._queues = frozenset(queues)
        self._ring = ring
        self.rated: frozenset[str] = frozenset()
        """Queues of the worker whose starts are limited."""
        self._stock: defaultdict[str, list[Batch]] = defaultdict(list)
        self._batches: list[Batch] = []
        self._spent: list[Spent] = []
        self._clock = StoreClock()
        self._lines = False  # whether it has asked for a kind or a key
        self._lined = False
        self.stirred = False
        """Whether new jobs may have come since it was asked about that."""

    def heed(self, promoted: Promoted) -> None:
        """Be told what is limited, when those who may come have come."""
        self.rated, self._lined = promoted.rated & self._queues, promoted.lined
        self.opens_at_s = _NEVER_S

    def may_come(self, due_s: float) -> bool:
        """Return, once, whether some may come now: by `due_s`, or since a rate has opened."""
        stirred, self.stirred = self.stirred and self._lined, False
        return stirred or time.monotonic() >= min(due_s, self.opens_at_s)

    def may_ask(self, now_s: float) -> bool:
        """Return, once, whether more permits for a queue can be expected by now."""
        may = now_s >= self.ask_at_s
        if may:
            self.ask_at_s = _NEVER_S
        return may

    def stock(self, most: int) -> Mapping[str, int] | None:
        """Return how many permits there are for each limited queue, after asking for `most`.

        Raises:
            StoreUnavailable: Ask again.
        """
        if not self.rated:
            return None
        now_s = time.monotonic()
        asks = []
        for name in sorted(f"queue:{queue}" for queue in self.rated):
            self._stock[name] = [each for each in self._stock[name] if now_s < each.ends_s]
            lacking = most - self._left(name)
            if lacking > 0:
                asks.append(Ask((name,), lacking))
        if asks:
            got, wait_s = self._asked(asks)
            for ask, batches in zip(asks, got, strict=True):
                self._stock[ask.names[0]] += batches
            short = any(
                sum(batch.left for batch in batches) < ask.want
                for ask, batches in zip(asks, got, strict=True)
            )
            self.ask_at_s = _from_now(wait_s) if short else _NEVER_S
        return {queue: self._left(f"queue:{queue}") for queue in self.rated}

    def cover(self, turns: Sequence[Turn]) -> Mapping[tuple[int, int], list[Batch]]:
        """Return permits for those of the turns that may start, by job and turn.

        What is left of the stock then is given back: nobody keeps permits that he cannot use.

        Raises:
            StoreUnavailable: Ask again, for the same.
        """
        if not turns and not self.rated:
            return {}
        counts = Counter(name for turn in turns for name in turn.rates)
        stocked = {name for name in list(self._stock) if self._left(name) >= counts[name] > 0}
        covered = self._asked_for(turns, stocked)
        for turn in turns:
            if (held := covered.get((turn.job_id, turn.turn))) is not None:
                held += [self._of_stock(name) for name in turn.rates if name in stocked]
        for batch in (each for batches in self._stock.values() for each in batches):
            batch.give_back(batch.left)
        self._stock.clear()
        return covered

    def _asked_for(
        self, turns: Sequence[Turn], stocked: Collection[str]
    ) -> dict[tuple[int, int], list[Batch]]:
        """Return permits of those limits of the turns that are not in stock."""
        groups: defaultdict[tuple[bool, tuple[str, ...]], list[Turn]] = defaultdict(list)
        for turn in turns:
            names = tuple(name for name in turn.rates if name not in stocked)
            groups[not turn.waited, names].append(turn)
        # Those that have waited come first: whoever is new gets what they leave.
        asks = [Ask(names, len(groups[new, names]), not new) for new, names in sorted(groups)]
        covered: dict[tuple[int, int], list[Batch]] = {}
        wanted = [ask for ask in asks if ask.names]
        answers, wait_s = self._asked(wanted) if wanted else ([], None)
        if any(name[:6] != "queue:" for ask in wanted for name in ask.names):
            self._lines = True
            self.opens_at_s = _from_now(wait_s)
        got = dict(zip(map(id, wanted), answers, strict=True))
        for ask in asks:
            group, batches = groups[not ask.waited, tuple(ask.names)], got.get(id(ask))
            if batches is None:
                covered.update(((turn.job_id, turn.turn), []) for turn in group)
                continue
            each = (batch for batch in batches for _ in range(batch.left))
            for turn, batch in zip(group, each, strict=False):
                covered[turn.job_id, turn.turn] = [batch]
            for batch in batches:
                batch.left = 0
        return covered

    def report(self) -> None:
        """Tell the store what has become of permits, if there is something to tell.

        Raises:
            StoreUnavailable: Do so again.
        """
        self._collect()
        if self._spent:
            _, wait_s = self._asked([])
            if self.ask_at_s < _NEVER_S:
                self.ask_at_s = min(self.ask_at_s, _from_now(wait_s))
            if self._lines:
                self.opens_at_s = _from_now(wait_s)

    @property
    def wake_at_s(self) -> float:
        """When to do something about permits, at the latest."""
        return min(
            self.ask_at_s, self.opens_at_s, *(batch.ends_s for batch in self._batches), _NEVER_S
        )

    def _asked(self, asks: Sequence[Ask]) -> tuple[list[list[Batch]], float | None]:
        self._collect()
        spent, sent_s = list(self._spent), time.monotonic()
        at, granted, wait_s = self._store.permits(asks, spent)
        self._clock.heed(at, sent_s, time.monotonic())
        del self._spent[: len(spent)]
        answers = [
            [
                Batch(
                    list(zip(ask.names, part.numbers, strict=True)), part.permits,
                    at=at + part.wait_s, instant_s=self._clock.readings_s(at + part.wait_s),
                    ring=self._ring,
                )
                for part in got.parts
            ]
            for ask, got in zip(asks, granted, strict=True)
        ]  # fmt: skip
        self._batches += [batch for batches in answers for batch in batches]
        return answers, wait_s

    def _collect(self) -> None:
        """Take down what is known of the batches by now."""
        now_s, open_ = time.monotonic(), []
        for batch in self._batches:
            told = batch.close(now_s)
            if told is None:
                open_.append(batch)
            else:
                self._spent += told
        self._batches = open_

    def _left(self, name: str) -> int:
        return sum(batch.left for batch in self._stock[name])

    def _of_stock(self, name: str) -> Batch:
        batch = next(batch for batch in self._stock[name] if batch.left)
        batch.left -= 1
        return batch


def _from_now(wait_s: float | None) -> float:
    return _NEVER_S if wait_s is None else time.monotonic() + max(_ASK_REST_S, wait_s)
