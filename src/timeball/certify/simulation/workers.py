"""Workers of a simulation: they claim, begin, end, settle, beat; they crash, pause and lie."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from timeball.certify.simulation.world import SECOND, Link, Steps, World
from timeball.core.records import Settlement, Turn
from timeball.core.states import Ending
from timeball.errors import StoreUnavailable, WorkerExpired

LEASE_S: Final = 10.0
_BEAT_US: Final = 2 * SECOND
_SLOTS: Final = 3
_BATCH: Final = 4
_QUEUES: Final = ("default", "mail")
_KINDS: Final = ("a", "b")
_ENDINGS: Final = (
    *(Ending.SUCCEEDED,) * 12,
    *(Ending.RETRIED,) * 4,
    *(Ending.SNOOZED, Ending.LOST, Ending.FAILED),
)


def worker(world: World, who: str) -> Steps:
    """Be one worker after the other: each lives until it crashes or is given up."""
    link = Link(world, who)
    while True:
        try:
            number: int = link.register(who, kinds=_KINDS, queues=_QUEUES, lease_s=LEASE_S)
        except StoreUnavailable:
            yield SECOND
            continue
        world.note(who, "registers", number)
        yield from _Life(world, link, who, number).steps()
        yield SECOND * (1 + world.dice.throw(5))


class _Life:
    """What one worker holds, and what it does next."""

    def __init__(self, world: World, link: Link, who: str, number: int) -> None:
        self._world = world
        self._link = link
        self._who = who
        self._number = number
        self._waiting: list[Turn] = []
        self._running: list[Turn] = []
        self._outbox: list[Settlement] = []
        self._newest: dict[int, int] = {}
        self._request: UUID | None = None
        self._beat_us = 0
        self._given_up = False

    def steps(self) -> Steps:
        """Work until the end."""
        world = self._world
        while not self._given_up:
            if world.chance(600):
                yield from self._crash()
                return
            if world.chance(500):
                world.note(self._who, "stands still", "")
                yield int(LEASE_S * SECOND) * (1 + world.dice.throw(2))
            try:
                yield self._do_something()
            except StoreUnavailable:
                yield SECOND // 4
            except WorkerExpired:
                self._given_up = True
        yield from self._say_goodbye()

    def _do_something(self) -> int:
        """Take one step and return the rest after it."""
        world = self._world
        if world.at_us - self._beat_us > _BEAT_US and world.dice.throw(4):
            return self._beat()
        if self._outbox and (len(self._outbox) >= _BATCH or not world.dice.throw(3)):
            return self._settle()
        if self._waiting and len(self._running) < _SLOTS:
            return self._begin(self._waiting.pop(0))
        if self._running and world.dice.throw(2):
            return self._heed_cancels() if world.chance(4) else self._end()
        if len(self._waiting) < _SLOTS and not world.dice.throw(3):
            return self._claim()
        return 0 if self._running or self._outbox else SECOND // 10

    def _beat(self) -> int:
        if self._number not in self._link.beat([self._number]):
            raise WorkerExpired(self._who)
        self._beat_us = self._world.at_us
        return 0

    def _claim(self) -> int:
        if self._request is None:
            self._request = self._world.name()
        held: list[Turn | Settlement] = [*self._waiting, *self._running, *self._outbox]
        floors: dict[int, int] = {}
        for each in held:
            floors[each.lane] = min(each.seq, floors.get(each.lane, each.seq))
        turns: list[Turn] = self._link.claim(
            self._number,
            limit=1 + self._world.dice.throw(_BATCH),
            request=self._request,
            floors=floors,
            newest=dict(self._newest),
        )
        self._request = None
        known = {(each.job_id, each.turn) for each in held}
        for turn in turns:
            self._newest[turn.lane] = max(turn.seq, self._newest.get(turn.lane, 0))
            if (turn.job_id, turn.turn) not in known:
                self._waiting.append(turn)
        return 0 if turns else SECOND // 5

    def _begin(self, turn: Turn) -> int:
        if self._world.chance(30):
            self._outbox.append(_said(turn, Ending.RELEASED, began=False))
            return 0
        self._world.note(self._who, "begins", (turn.job_id, turn.turn))
        self._running.append(turn)
        self._world.oracle.began(turn)
        return 0

    def _end(self) -> int:
        """Have an attempt end in one way or another."""
        turn = self._running.pop(self._world.dice.throw(len(self._running)))
        self._outbox.append(_said(turn, self._ending(turn)))
        return 0

    def _ending(self, turn: Turn) -> Ending:
        if not self._world.faulty:
            return Ending.SUCCEEDED
        ending = _ENDINGS[self._world.dice.throw(len(_ENDINGS))]
        if ending not in {Ending.RETRIED, Ending.SNOOZED}:
            return ending
        spent = ending is Ending.RETRIED and turn.failures >= turn.max_retries
        return Ending.FAILED if spent or turn.at_most_once else ending

    def _settle(self) -> int:
        batch = self._outbox[:_BATCH]
        if self._world.chance(60):
            # Somebody confused: it pretends to have the turn that comes next.
            lie = batch[0]._replace(turn=batch[0].turn + 1)
            self._world.seen("a worker lies")
            self._link.settle(self._number, [lie])
        self._link.settle(self._number, batch)
        del self._outbox[: len(batch)]
        return 0

    def _heed_cancels(self) -> int:
        asked = self._link.cancels([(turn.job_id, turn.turn) for turn in self._running])
        for turn in [each for each in self._running if (each.job_id, each.turn) in asked]:
            self._running.remove(turn)
            self._outbox.append(_said(turn, Ending.CANCELLED))
            self._world.seen("an attempt is stopped")
        return SECOND // 20

    def _crash(self) -> Steps:
        """Die; perhaps the parent has waited for the process and knows it."""
        world = self._world
        begun = {(turn.job_id, turn.turn) for turn in self._running}
        begun |= {(said.job_id, said.turn) for said in self._outbox if said.began_at is not None}
        world.note(self._who, "crashes", sorted(begun))
        world.seen("a worker crashes")
        while not world.dice.throw(2):
            try:
                self._link.expire(self._number, beat=None, begun=begun)
            except StoreUnavailable:
                yield SECOND
            else:
                world.seen("a death is certain")
                return

    def _say_goodbye(self) -> Steps:
        """Say how turns ended that somebody else may have by now: all of it must be refused."""
        self._world.seen("a worker comes back too late")
        for turn in self._running:
            self._outbox.append(_said(turn, Ending.SUCCEEDED))
        while self._outbox:
            try:
                yield self._settle()
            except StoreUnavailable:
                yield SECOND


def _said(turn: Turn, ending: Ending, *, began: bool = True) -> Settlement:
    return Settlement(
        *(turn.lane, turn.seq, turn.job_id, turn.turn, ending),
        delay_s=0.5 if ending in {Ending.RETRIED, Ending.SNOOZED} else 0.0,
        began_at=turn.granted_at if began else None,
    )
