"""Histories to audit: by hand, row by row, and by walks along TRANSITIONS."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from timeball.core.batches import MEMBERS
from timeball.core.callbacks import CALL, CALLBACK
from timeball.core.dependencies import PARENT
from timeball.core.history import (
    EndingRecord,
    EntryRecord,
    GrantRecord,
    HeldRecord,
    JobHistory,
    RevivalRecord,
)
from timeball.core.records import Delivery
from timeball.core.states import INITIAL, TERMINAL, TRANSITIONS, Ending, Event, State

T0 = 1_700_000_000.0
ONCE = Delivery.AT_MOST_ONCE

ENDINGS = {
    (Event.SUCCEED, State.SUCCEEDED): Ending.SUCCEEDED,
    (Event.FAIL, State.FAILED): Ending.FAILED,
    (Event.EXPIRE, State.FAILED): Ending.FAILED,
    (Event.EXPIRE, State.PENDING): Ending.LOST,
    (Event.EXPIRE, State.SCHEDULED): Ending.LOST,
    (Event.RETRY, State.SCHEDULED): Ending.RETRIED,
    (Event.SNOOZE, State.SCHEDULED): Ending.SNOOZED,
    (Event.RELEASE, State.PENDING): Ending.RELEASED,
    (Event.AWAIT, State.WAITING): Ending.AWAITED,
    (Event.MOVE, State.PENDING): Ending.MOVED,
    (Event.SKIP, State.SKIPPED): Ending.SKIPPED,
    (Event.SKIP, State.FAILED): Ending.FAILED,
    (Event.LAPSE, State.SKIPPED): Ending.EXPIRED,
    (Event.JOIN, State.SUCCEEDED): Ending.SUCCEEDED,
    (Event.JOIN, State.FAILED): Ending.FAILED,
    (Event.JOIN, State.SKIPPED): Ending.SKIPPED,
    (Event.CALL, State.SUCCEEDED): Ending.SUCCEEDED,
}


def entry(turn: int, at: float) -> EntryRecord:
    return EntryRecord(turn, T0 + at)


def grant(turn: int, at: float, worker: int = 7, lane: int = 1) -> GrantRecord:
    return GrantRecord(turn, worker, lane, 100 + int(at), T0 + at)


def ended(turn: int, ending: Ending, at: float, **fields: Any) -> EndingRecord:
    """An ending under worker 7, which began half a second before unless told otherwise."""
    plain = EndingRecord(turn, ending, None, 7, T0 + at - 0.5, 0.5, T0 + at)
    return plain._replace(**fields)


def unbegun(turn: int, ending: Ending, at: float) -> EndingRecord:
    return ended(turn, ending, at, worker=None, began_at=None, ran_s=0.0)


def held(turn: int, state: State) -> HeldRecord:
    return HeldRecord(turn, state, None, None)


def job(*rows: object, **fields: Any) -> JobHistory:
    """A history of the given rows, each put where its type belongs."""
    plain = JobHistory(1, UUID(int=1), "mail.welcome", 3, 3, Delivery.AT_LEAST_ONCE, T0, None)
    return plain._replace(
        entries=tuple(row for row in rows if isinstance(row, EntryRecord)),
        grants=tuple(row for row in rows if isinstance(row, GrantRecord)),
        endings=tuple(row for row in rows if isinstance(row, EndingRecord)),
        held=next((row for row in rows if isinstance(row, HeldRecord)), None),
        **fields,
    )


def attempt(turn: int, ending: Ending, start: float, **fields: Any) -> tuple[object, ...]:
    """A turn that is entered, granted one second later and ended yet another second later."""
    return entry(turn, start), grant(turn, start + 1), ended(turn, ending, start + 2, **fields)


SUCCESS = job(*attempt(1, Ending.SUCCEEDED, 0))
RETRIED = job(*attempt(1, Ending.RETRIED, 0, delay_s=5.0), *attempt(2, Ending.SUCCEEDED, 7))


class Walk:
    """A job that moves along TRANSITIONS and writes down what a store would."""

    def __init__(self, draw: st.DrawFn, start: State, delivery: Delivery) -> None:
        self.draw, self.state, self.delivery = draw, start, delivery
        self.max_retries, self.max_crashes = draw(st.integers(0, 3)), draw(st.integers(0, 3))
        self.clock = self.due = T0
        self.turn, self.seq = 1, 0
        self.rows: list[object] = []
        self.cancels: list[float] = []
        self.asked = False
        self.revivals: list[RevivalRecord] = []
        self.life = 0
        if start is State.SCHEDULED:
            self.due += draw(st.integers(0, 9))
        self.run_at = self.due if start is State.SCHEDULED else None
        self.arrive(start)

    def endings(self, ending: Ending) -> int:
        """How often turns of the present life ended so."""
        rows = [row for row in self.rows if isinstance(row, EndingRecord) and row.turn > self.life]
        return sum(row.ending is ending for row in rows)

    def may(self, event: Event, target: State) -> bool:
        """Whether a store would do this: the table allows it, but the budgets may not."""
        asked, running = self.asked, self.state is State.RUNNING
        crashed_out = self.endings(Ending.LOST) + 1 >= self.max_crashes or self.delivery is ONCE
        if running and target is State.CANCELLED:
            return asked or event is Event.CANCEL
        if running and target not in TERMINAL and (asked or self.delivery is ONCE):
            return event is Event.RELEASE and not asked
        if event is Event.RETRY:
            return self.endings(Ending.RETRIED) < self.max_retries
        return event is not Event.EXPIRE or crashed_out is (target is State.FAILED)

    def step(self) -> None:
        if self.state is State.RUNNING and self.draw(st.integers(0, 9)) == 0:
            self.asked = True
            self.cancels.append(self.clock)
        moves = [  # those that go on weigh more, or most walks would be short
            (event, target)
            for (source, event), targets in TRANSITIONS.items()
            for target in sorted(targets)
            if source is self.state and self.may(event, target)
            for _ in range(1 if target in TERMINAL else 4)
        ]
        event, target = self.draw(st.sampled_from(moves))
        self.clock += self.draw(st.integers(0, 2))
        if event is Event.CLAIM:
            self.seq += 1
            worker, lane = self.draw(st.integers(1, 3)), self.draw(st.integers(1, 2))
            self.rows.append(GrantRecord(self.turn, worker, lane, self.seq, self.clock))
        elif event is Event.DUE or (self.state, event) == (State.WAITING, Event.RELEASE):
            self.clock = max(self.clock, self.due)
        elif event is Event.REVIVE:
            self.revivals.append(RevivalRecord(self.turn, self.clock))
            self.life, self.asked = self.turn, False
            self.turn += 1
        else:
            self.end(event, target)
        self.arrive(target)

    def end(self, event: Event, target: State) -> None:
        last = self.rows[-1] if self.rows else None
        granted = last if isinstance(last, GrantRecord) else None
        delay_s = 0.0
        if target is State.SCHEDULED:
            delay_s = float(self.draw(st.integers(0, 9)))
        began = granted is not None and (event is not Event.RELEASE or self.delivery is not ONCE)
        self.rows.append(
            EndingRecord(
                self.turn,
                ENDINGS.get((event, target), Ending.CANCELLED),
                {Event.SKIP: PARENT, Event.JOIN: MEMBERS, Event.CALL: CALL}.get(event),
                granted and granted.worker,
                granted.at if began and granted else None,
                0.0,
                self.clock,
                delay_s,
            )
        )
        self.due = self.clock + delay_s
        self.turn += target not in TERMINAL

    def arrive(self, state: State) -> None:
        self.state = state
        if state is State.PENDING:
            self.rows.append(EntryRecord(self.turn, self.clock))

    def history(self) -> JobHistory:
        asleep = self.state in INITIAL - {State.PENDING}
        rows = [*self.rows, held(self.turn, self.state)] if asleep else self.rows
        called = any(isinstance(row, EndingRecord) and row.reason == CALL for row in rows)
        return job(
            *rows,
            kind=CALLBACK if called else "mail.welcome",
            max_retries=self.max_retries,
            max_crashes=self.max_crashes,
            delivery=self.delivery,
            run_at=self.run_at,
            cancels_requested_at=tuple(self.cancels),
            revivals=tuple(self.revivals),
            expires_at=T0,
        )


@st.composite
def walks(draw: st.DrawFn) -> tuple[JobHistory, State]:
    """A legal history, and the state that it ended in."""
    start = draw(st.sampled_from(sorted(INITIAL)))
    walk = Walk(draw, start, draw(st.sampled_from(sorted(Delivery))))
    for _ in range(draw(st.integers(0, 14))):
        if walk.state is State.SUCCEEDED or (walk.state in TERMINAL and draw(st.booleans())):
            break
        walk.step()
    return walk.history(), walk.state
