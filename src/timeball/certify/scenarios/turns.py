"""The durable worker's kernel under the stepper: what is offered is carried out, or comes back."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final

from timeball.certify import modelled
from timeball.certify.overlay import Overlay
from timeball.certify.stepper import check, switch_point
from timeball.certify.trial import Scenario

_LATER_S: Final = 60


class Turn:
    """An attempt that notes what was done with it."""

    variables = None

    def __init__(self, shift: Shift, name: str, *, is_async: bool = False) -> None:
        self._shift = shift
        self.name = name
        self.is_async = is_async
        self.lock_ns = 0
        self.not_before_ns = 0

    def __repr__(self) -> str:
        return self.name

    def run(self) -> Any:
        """Be carried out in a thread."""
        self._shift.begins(self)
        switch_point()
        return self._shift.ends(self)

    async def run_async(self) -> Any:
        """Be carried out on the event loop."""
        self._shift.begins(self)
        await asyncio.sleep(0)
        return self._shift.ends(self)


class Shift:
    """One kernel with a bell, and a record of its own of what its attempts did."""

    def __init__(self, copies: Overlay, slots: int) -> None:
        self._slots = slots
        self.bell = modelled.Event()
        self.kernel = copies["timeball.engine.kernel"].Kernel(slots, self.bell.set)
        self.offered: list[Turn] = []
        self.calls: Counter[str] = Counter()
        self.took: list[Turn] = []
        """Those that came back ended, in that order."""
        self._inside = 0

    def offer(self, names: str, *, is_async: bool = False) -> None:
        """Offer one attempt for each letter."""
        turns = [Turn(self, name, is_async=is_async) for name in names]
        self.offered += turns
        self.kernel.offer(turns)

    def begins(self, turn: Turn) -> None:
        """Note that an attempt is carried out."""
        self.calls[turn.name] += 1
        check("once", self.calls[turn.name] == 1, f"{turn} was carried out twice")
        self._inside += 1
        check("slots", self._inside <= self._slots, f"{self._inside} attempts run at once")

    def ends(self, turn: Turn) -> str:
        """Note that an attempt has ended; return what is said of it."""
        self._inside -= 1
        return f"{turn} ended"

    def take(self) -> None:
        """Take over those that have ended."""
        for turn, said in self.kernel.take_ended():
            check("outcome", said == f"{turn} ended", f"of {turn} was said: {said}")
            check("once", turn not in self.took, f"{turn} ended twice")
            self.took.append(turn)

    def take_all(self) -> None:
        """Settle and rest, as the worker's loop does, until nothing is left to do."""
        while not self.kernel.idle:
            self.bell.wait()
            self.bell.clear()
            self.take()

    def check_end(self) -> None:
        """Check that everything that was offered has come back, and end."""
        left = [turn for turn in self.offered if turn not in self.took]
        check("lost", not left, f"offered, and never heard of again: {left}")
        self.kernel.close()
        check("sound", not self.kernel.broken, "a bug of ours has cost a slot")


def offers_while_others_end(copies: Overlay) -> None:
    """Each is carried out once, never more than W at a time, and nobody rests for ever."""
    shift = Shift(copies, 2)
    shift.offer("ab")
    shift.take()
    shift.offer("cd")
    shift.take_all()
    shift.check_end()


def two_who_offer(copies: Overlay) -> None:
    """The kernel may be fed by any thread."""
    shift = Shift(copies, 1)
    other = modelled.Thread(target=lambda: shift.offer("ab"), name="another")
    shift.offer("c")
    other.start()
    other.join()
    shift.take_all()
    shift.check_end()


def a_withdrawal(copies: Overlay) -> None:
    """What is withdrawn never begins; all else is carried out."""
    shift = Shift(copies, 1)
    shift.offer("abc")
    back = shift.kernel.withdraw()
    shift.take_all()
    begun = [turn for turn in back if shift.calls[turn.name]]
    check("withdrawn", not begun, f"withdrawn, and carried out: {begun}")
    shift.took += back
    shift.check_end()


def an_attempt_that_is_abandoned(copies: Overlay) -> None:
    """What was abandoned is not heard, and its end takes nothing from anybody."""
    shift = Shift(copies, 1)
    shift.offer("ab")
    gone = shift.kernel.abandon()
    shift.take_all()
    heard = [turn for turn in gone if turn in shift.took]
    check("stale", not heard, f"abandoned, and heard all the same: {heard}")
    shift.took += gone
    shift.check_end()


def an_end_in_the_middle(copies: Overlay) -> None:
    """After the end nothing begins, and what had begun is heard."""
    shift = Shift(copies, 2)
    shift.offer("abc")
    shift.kernel.close()
    begun = set(shift.calls)
    shift.take()
    modelled.sleep(_LATER_S)
    check("closed", begun == set(shift.calls), "an attempt began after the end")
    heard = {turn.name for turn in shift.took}
    check("lost", heard == begun, f"carried out were {sorted(begun)}, heard {sorted(heard)}")


def a_low_water_mark(copies: Overlay) -> None:
    """Whoever rests until little is left is woken, and may offer more then."""
    shift = Shift(copies, 1)
    shift.kernel.slots.low_water = 1
    shift.offer("abc")
    shift.bell.wait()
    shift.bell.clear()
    waiting = shift.kernel.slots.waiting
    check("low-water", waiting <= 1 or bool(shift.calls), f"rang while {waiting} waited")
    shift.offer("d")
    shift.take()
    shift.take_all()
    shift.check_end()


def turns_on_the_loop(copies: Overlay) -> None:
    """Threads and the event loop fill the same slots."""
    shift = Shift(copies, 2)
    shift.offer("ab", is_async=True)
    shift.offer("c")
    shift.take_all()
    shift.check_end()


_STEPPED: Final = ("aio", "doorbell", "kernel", "section", "slots", "threads")

OFFERS_WHILE_OTHERS_END: Final = Scenario(offers_while_others_end, stepped=_STEPPED)
ALL: Final = (
    OFFERS_WHILE_OTHERS_END,
    # Whoever was held up for longer than the end waits begins what he had been given before it.
    Scenario(an_end_in_the_middle, delays=False, stepped=_STEPPED),
    *(
        Scenario(play, stepped=_STEPPED)
        for play in (
            two_who_offer,
            a_withdrawal,
            an_attempt_that_is_abandoned,
            a_low_water_mark,
            turns_on_the_loop,
        )
    ),
)
