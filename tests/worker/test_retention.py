"""Old jobs are deleted little by little, in the time that is left over."""

from __future__ import annotations

from threading import Event

import pytest
from tests.store.world import Clock

from timeball.core.upkeep import Keep, Trimmed
from timeball.errors import StoreUnavailable
from timeball.store.memory import MemoryStore
from timeball.worker.retention import BATCH, Retention


class Slow(MemoryStore):
    """A store that answers as told, each time a second later."""

    def __init__(self, *answers: Trimmed | None) -> None:
        super().__init__(Clock())
        self.answers, self.asked, self.time = list(answers), [], 0.0

    def trim(self, keep: Keep, *, after: tuple[int, ...] = (), limit: int = 500) -> Trimmed:
        self.asked.append((keep, after, limit))
        self.time += 1
        answer = self.answers.pop(0)
        if answer is None:
            raise StoreUnavailable("away")
        return answer


def retention(store: Slow) -> Retention:
    return Retention(store, Keep(1.0, 2.0), monotonic=lambda: store.time)


def test_a_round_goes_through_all_jobs_and_the_next_begins_anew() -> None:
    store = Slow(Trimmed(3, (7,)), Trimmed(0, (1, 2)), Trimmed(0, None), Trimmed(0, None))
    looks = retention(store)
    rests = [looks.look() for _ in range(4)]
    assert store.asked == [(Keep(1.0, 2.0), after, BATCH) for after in [(), (7,), (1, 2), ()]]
    assert rests[2] == rests[3] == 60.0


def test_it_takes_a_fifth_of_the_time_at_most() -> None:
    assert retention(Slow(Trimmed(500, (7,)))).look() == 4.0


def test_an_outage_does_not_move_it_on() -> None:
    store = Slow(Trimmed(3, (7,)), None, Trimmed(0, None))
    looks = retention(store)
    looks.look()
    with pytest.raises(StoreUnavailable):
        looks.look()
    looks.look()
    assert [after for _, after, _ in store.asked] == [(), (7,), (7,)]


def test_it_outlives_an_outage(caplog: pytest.LogCaptureFixture) -> None:
    store = Slow(None)

    class Twice(Event):
        def __init__(self) -> None:
            super().__init__()
            self.rests: list[float | None] = []

        def wait(self, timeout: float | None = None) -> bool:
            self.rests.append(timeout)
            return len(self.rests) > 1

    stop = Twice()
    retention(store).run(stop)
    assert stop.rests == [1.0, 60.0]
    assert "wait for the store" in caplog.text
