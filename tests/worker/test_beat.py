"""A supervisor's workers have a beat as long as the store can be reached, and hear when not."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from threading import Event

import pytest

from timeball.errors import StoreUnavailable
from timeball.store.memory import MemoryStore
from timeball.worker.beat import Beat


class Frail(MemoryStore):
    """A store that is away for the next few beats, and then stops the loop."""

    def __init__(self) -> None:
        super().__init__(lambda: datetime(2026, 3, 8, tzinfo=UTC))
        self.away = 0
        self.stop = Event()

    def beat(self, workers: Collection[int]) -> set[int]:
        if self.away:
            self.away -= 1
            raise StoreUnavailable
        self.stop.set()
        return super().beat(workers)


@pytest.fixture
def store() -> Frail:
    return Frail()


def register(store: Frail) -> int:
    return store.register("a", kinds=["tide"], queues=["default"], lease_s=30.0)


def test_every_worker_has_a_beat(store: Frail) -> None:
    workers = {register(store), register(store)}
    silent = register(store)
    before = {pulse.worker: pulse.beat for pulse in store.pulses()}
    lost: list[set[int]] = []
    beat = Beat(store, lambda: workers, lost.append, lease_s=30.0)
    beat.beat()
    beat.beat()
    beats = {pulse.worker: pulse.beat - before[pulse.worker] for pulse in store.pulses()}
    assert beats == {**dict.fromkeys(workers, 2), silent: 0}
    assert lost == []


def test_the_owner_hears_which_were_given_up(store: Frail) -> None:
    alive, dead = register(store), register(store)
    store.expire(dead, beat=None, begun=())
    lost: list[set[int]] = []
    Beat(store, lambda: {alive, dead}, lost.append, lease_s=30.0).beat()
    assert lost == [{dead}]


def test_without_workers_the_store_is_left_in_peace(store: Frail) -> None:
    store.away = 1
    Beat(store, set, lambda _: None, lease_s=30.0).beat()
    assert store.away == 1


def test_a_beat_that_failed_is_tried_again_long_before_the_next_is_due(store: Frail) -> None:
    worker = register(store)
    store.away = 3
    rests: list[float] = []

    class Rests(Event):
        def wait(self, timeout: float | None = None) -> bool:
            rests.append(timeout or 0.0)
            return self.is_set()

    store.stop = Rests()
    Beat(store, lambda: {worker}, lambda _: None, lease_s=30.0).run(store.stop)
    assert rests == [0.0, 1.0, 1.0, 1.0, 5.0]
