"""Late jobs are skipped every second, outages or not."""

from __future__ import annotations

from threading import Event

import pytest
from tests.store.world import Clock

from timeball.errors import StoreUnavailable
from timeball.store.memory import MemoryStore
from timeball.worker.deadlines import BATCH, Deadlines


class Told(MemoryStore):
    """A store that answers as told."""

    def __init__(self, *answers: int | None) -> None:
        super().__init__(Clock())
        self.answers = list(answers)

    def lapse(self, limit: int) -> int:
        assert limit == BATCH
        answer = self.answers.pop(0)
        if answer is None:
            raise StoreUnavailable("away")
        return answer


class Rests(Event):
    """Set once so many rests were taken."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.taken = count, []

    def wait(self, timeout: float | None = None) -> bool:
        self.taken.append(timeout)
        return len(self.taken) > self.count


def test_it_goes_on_at_once_while_there_are_more_and_outlives_an_outage(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, stop = Told(BATCH, 3, None, 0), Rests(4)
    Deadlines(store).run(stop)
    assert stop.taken == [1.0, 0.0, 1.0, 1.0, 1.0]
    assert store.answers == []
    assert "wait for the store" in caplog.text
