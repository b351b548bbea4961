"""First come, first served; who may not begin yet waits beside the others."""

from __future__ import annotations

import pytest
from tests.engine.test_kernel import Attempt, settlement

from timeball.engine.handles import NEVER_NS
from timeball.engine.slots import Slots
from timeball.errors import UsageError


def later(number: int, not_before_ns: int) -> Attempt:
    attempt = Attempt(number)
    attempt.not_before_ns = not_before_ns
    return attempt


def test_who_may_not_begin_yet_keeps_nobody_waiting_and_begins_at_his_instant() -> None:
    slots: Slots[Attempt] = Slots(9, lambda: None)
    slots.inbox.extend([later(1, 30), later(2, 20), Attempt(3), later(4, 20)])

    def begun(now_ns: int) -> list[int]:
        found = []
        while (attempt := slots.round(None, settlement(0), now_ns)) is not None:
            found.append(attempt.number)
        return found

    assert (begun(10), slots.wake_ns, slots.waiting) == ([3], 20, 3)
    assert begun(19) == []
    assert (begun(20), slots.wake_ns) == ([2, 4], 30)
    assert not slots.idle
    assert [attempt.number for attempt in slots.withdraw()] == [1]
    assert (begun(40), slots.wake_ns) == ([], NEVER_NS)


def test_the_bell_rings_for_an_idle_slot_and_at_low_water() -> None:
    rings: list[int] = []
    slots: Slots[Attempt] = Slots(2, lambda: rings.append(slots.waiting))
    slots.low_water = 2
    slots.inbox.extend(Attempt(n) for n in range(6))

    def step(done: Attempt | None) -> Attempt | None:
        following = slots.round(done, settlement(0), 0)
        calls, slots.outbox = slots.outbox, []
        for call in calls:
            call()
        return following

    running = [step(None), step(None)]
    while running:
        following = step(running.pop(0))
        running += [following] if following is not None else []
    assert rings == [2, 0, 0]  # two are left; nothing for the one slot, nor for the other


def test_slots_are_at_least_one() -> None:
    with pytest.raises(UsageError, match="1 or more"):
        Slots(0, lambda: None)
