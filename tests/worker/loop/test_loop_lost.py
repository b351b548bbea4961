"""The store comes back without the end of what it had granted: a failover has lost that."""

from __future__ import annotations

import threading

from tests.worker.loop.workshop import PATIENCE_S, Workshop

from timeball.core.states import State
from timeball.worker.begun import BegunTable


def lose_all(shop: Workshop) -> None:
    """From now on the store knows no lease of any worker."""
    shop.store.inner._leases.clear()


def test_what_was_granted_by_a_lost_lease_and_has_not_begun_never_begins(shop: Workshop) -> None:
    begun, gate = threading.Event(), threading.Event()
    ran: list[int] = []

    @shop.job(name="wait")
    def wait(n: int) -> None:
        ran.append(n)
        begun.set()
        assert gate.wait(PATIENCE_S)

    with shop.at_work(slots=1, prefetch_s=0.05) as worker:
        shop.submit("wait", '{"n":0}')
        worker.wake()
        assert begun.wait(PATIENCE_S)
        worker._kernel.slots.finished = 1_000_000  # so fast that it claims ahead
        shop.submit("wait", '{"n":1}')
        shop.store.until(lambda: worker._kernel.slots.waiting == 1 or _woken(worker))
        lose_all(shop)
        shop.store.faults["promote"] = ["before"]
        worker._promote_at = 0.0
        before = shop.store.calls["leases"]
        worker.wake()
        shop.store.until(lambda: shop.store.calls["leases"] > before)
        shop.store.until(lambda: worker._kernel.slots.waiting == 0)
        gate.set()
    assert ran == [0]
    assert shop.store.calls["settle"] == 0


def _woken(worker: object) -> bool:
    worker.wake()  # type: ignore[attr-defined]
    return False


def test_how_a_turn_of_a_lost_lease_ended_is_told_to_nobody(shop: Workshop) -> None:
    begun, gate = threading.Event(), threading.Event()

    @shop.job(name="wait")
    def wait() -> None:
        begun.set()
        assert gate.wait(PATIENCE_S)

    job = shop.submit("wait")
    table = BegunTable.create(8)
    worker = shop.build(begun=table)
    with shop.at_work(worker):
        assert begun.wait(PATIENCE_S)
        lose_all(shop)
        shop.store.faults["promote"] = ["before"]
        worker._promote_at = 0.0
        worker.wake()
        shop.store.until(lambda: shop.store.calls["leases"] > 0)
        gate.set()
        shop.store.until(lambda: worker._kernel.idle)
    assert shop.store.calls["settle"] == 0
    assert shop.get(job).state is State.RUNNING
    assert table.begun() == set()
    table.close()


def test_turns_whose_leases_are_there_go_on(shop: Workshop) -> None:
    @shop.job(name="quick")
    def quick() -> None:
        pass

    for _ in range(20):
        shop.submit("quick")
    shop.store.faults["settle"] = ["before", "after"]
    shop.run(slots=2)
    assert shop.store.calls["leases"] > 0
    assert shop.report().states == {State.SUCCEEDED: 20}
