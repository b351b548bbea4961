"""Paused queues and ageing priorities, as a worker meets them."""

from __future__ import annotations

from typing import Any

from tests.worker.loop.workshop import Workshop

from timeball.core.states import State


def test_a_worker_begins_nothing_of_a_paused_queue_and_all_once_it_is_resumed(
    shop: Workshop,
) -> None:
    shop.job(name="short")(lambda: None)
    shop.store.pause_queue("default", "ann")
    for _ in range(5):
        shop.submit("short")
    with shop.at_work():
        shop.store.until(lambda: shop.store.calls["claim"] >= 3)
        assert shop.count(State.PENDING) == 5
        shop.store.resume_queue("default")
        shop.store.until(shop.all_ended)
    assert shop.count(State.SUCCEEDED) == 5


def test_a_worker_asks_by_the_worth_of_a_class_that_it_was_told(shop: Workshop) -> None:
    asked: list[float] = []

    def note(*_: Any, aging_s: float, **__: Any) -> None:
        asked.append(aging_s)

    shop.store.before["claim"] = note
    with shop.at_work(aging_s=3_600.0):
        shop.store.until(lambda: bool(asked))
    assert set(asked) == {3_600.0}
