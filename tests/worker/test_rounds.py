"""Late jobs are skipped and edges are linked at intervals, outages or not."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

import pytest
from tests.store.world import Clock

from timeball.errors import StoreUnavailable
from timeball.store.base import Store
from timeball.store.memory import MemoryStore
from timeball.worker.rounds import BATCH, Rounds, deadlines, linking


class Told(MemoryStore):
    """A store that answers as told."""

    def __init__(self, *answers: int | None) -> None:
        super().__init__(Clock())
        self.answers = list(answers)

    def link(self, limit: int) -> int:
        assert limit == BATCH
        answer = self.answers.pop(0)
        if answer is None:
            raise StoreUnavailable("away")
        return answer

    lapse = link


class Rests(Event):
    """Set once so many rests were taken."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count, self.taken = count, []

    def wait(self, timeout: float | None = None) -> bool:
        self.taken.append(timeout)
        return len(self.taken) > self.count


@pytest.mark.parametrize(("duty", "rest_s"), [(deadlines, 1.0), (linking, 0.5)])
def test_it_goes_on_at_once_while_there_are_more_and_outlives_an_outage(
    duty: Callable[[Store], Rounds], rest_s: float, caplog: pytest.LogCaptureFixture
) -> None:
    store, stop = Told(BATCH, 3, None, 0), Rests(4)
    duty(store).run(stop)
    assert stop.taken == [rest_s, 0.0, rest_s, rest_s, rest_s]
    assert store.answers == []
    assert "wait for the store" in caplog.text
