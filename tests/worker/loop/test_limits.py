"""A worker and limits: what ends makes room, and the next one starts without a poll."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest
from tests.worker.loop.workshop import Workshop

from timeball.core.limits import Scope, limit_violations

NEVER_S = 3600.0


class Crowd:
    """Counts who is in at once."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.now = self.most = 0

    def pass_through(self) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        with self.lock:
            self.now -= 1


@pytest.mark.parametrize("at_once", [1, 3])
@pytest.mark.parametrize("scope", [Scope.KEY, Scope.QUEUE])
def test_four_workers_keep_to_a_limit(shop: Workshop, scope: Scope, at_once: int) -> None:
    crowd = Crowd()
    shop.job(name="through")(crowd.pass_through)
    shop.store.limit(scope, "k" if scope is Scope.KEY else "default", at_once)
    for _ in range(60):
        shop.submit("through", key="k" if scope is Scope.KEY else None)
    with ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(shop.at_work(slots=8))
        shop.store.until(shop.all_ended)
    assert crowd.most <= at_once
    assert list(limit_violations(shop.store.holdings())) == []
    shop.assert_clean()


@pytest.mark.parametrize("scope", [Scope.KEY, Scope.QUEUE])
def test_the_next_one_of_a_full_limit_starts_when_one_ends_and_needs_no_poll(
    shop: Workshop, scope: Scope
) -> None:
    shop.job(name="short")(lambda: None)
    shop.store.limit(scope, "k" if scope is Scope.KEY else "default", 1)
    worker = shop.build(poll_s=NEVER_S)
    with shop.at_work(worker):
        shop.store.until(lambda: shop.store.calls["claim"] > 0)
        for _ in range(20):
            shop.submit("short", key="k" if scope is Scope.KEY else None)
        worker.wake()
        shop.store.until(shop.all_ended)
    shop.assert_clean()
