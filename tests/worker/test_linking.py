"""Edges are linked twice a second, outages or not."""

from __future__ import annotations

from threading import Event

import pytest
from tests.store.world import Clock

from timeball.errors import StoreUnavailable
from timeball.store.memory import MemoryStore
from timeball.worker.linking import BATCH, Linking


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
    Linking(store).run(stop)
    assert stop.taken == [0.5, 0.0, 0.5, 0.5, 0.5]
    assert store.answers == []
    assert "wait for the store" in caplog.text
