"""What must hold of every job's history: one function per invariant of the contract.

Each check yields one text per violation, with the rows and numbers a person needs
to look for himself, and nothing where the record is sound. They overlap as little
as can be, so that the name of the invariant says what is wrong: each takes for
granted what another one checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from math import inf
from types import MappingProxyType
from typing import Final, NamedTuple

from timeball.core.batches import MEMBERS
from timeball.core.edge_invariants import backwards, by_itself, early, missed
from timeball.core.history import (
    EndingRecord,
    EntryRecord,
    GrantRecord,
    JobHistory,
    RevivalRecord,
    states_of,
)
from timeball.core.records import Delivery
from timeball.core.slot_invariants import idle
from timeball.core.states import (
    FINAL_STATE,
    INITIAL,
    TERMINAL,
    TRANSITIONS,
    Ending,
    Event,
    State,
    sources,
)

GRAIN_S: Final = 5e-6
"""How far equal instants may lie apart: microseconds in the store, floats here."""

_DECISION_S: Final = 60.0
"""A grant is stamped after its deadline was looked at, by as long as a claim may take."""

CRASH_REASONS: Final = frozenset({"quarantined", "lost"})
"""Reasons of a failed turn whose worker died; any other failure is the action's own."""

_CAUSES: Final = MappingProxyType(
    {
        Ending.SUCCEEDED: frozenset({Event.SUCCEED, Event.JOIN}),
        Ending.FAILED: frozenset({Event.FAIL, Event.EXPIRE, Event.SKIP, Event.JOIN}),
        # Where a cancel was requested, any of these ends cancelled.
        Ending.CANCELLED: frozenset(
            {Event.CANCEL, Event.RETRY, Event.SNOOZE, Event.RELEASE, Event.EXPIRE, Event.JOIN}
        ),
        Ending.SKIPPED: frozenset({Event.SKIP, Event.JOIN}),
        Ending.EXPIRED: frozenset({Event.LAPSE}),
        Ending.RETRIED: frozenset({Event.RETRY}),
        Ending.SNOOZED: frozenset({Event.SNOOZE}),
        Ending.RELEASED: frozenset({Event.RELEASE}),
        Ending.LOST: frozenset({Event.EXPIRE}),
        Ending.MOVED: frozenset({Event.MOVE}),
        Ending.AWAITED: frozenset({Event.AWAIT}),
    }
)


def _edges(ending: Ending) -> Iterator[tuple[State, State]]:
    for (source, event), targets in TRANSITIONS.items():
        # A waiting job that its parents release passes on within its turn: no ending.
        if event not in _CAUSES[ending] or (source, event) == (State.WAITING, Event.RELEASE):
            continue
        for target in targets:
            if FINAL_STATE.get(ending) is (target if target in TERMINAL else None):
                yield source, target


def _later(states: Iterable[State]) -> frozenset[State]:
    """Return the states that may follow within one turn, before it is granted."""
    reached = set(states)
    for event in (Event.RELEASE, Event.DUE):  # in this order: released, then due
        for state in tuple(reached):
            reached |= TRANSITIONS.get((state, event), frozenset())
    return frozenset(reached)


_ENDS_FROM: Final = {ending: frozenset(a for a, _ in _edges(ending)) for ending in Ending}
_GOES_ON_TO: Final = {ending: _later(b for _, b in _edges(ending)) for ending in Ending}
_RUNNING: Final = frozenset({State.RUNNING})
_PENDING: Final = frozenset({State.PENDING})
# What its parents rule out may fail too, without a grant.
_NEEDS_GRANT: Final = frozenset(e for e in Ending if _ENDS_FROM[e] - {State.WAITING} == _RUNNING)


class Ledger(NamedTuple):
    """One history with its rows by turn: of equal turns the first, which is the one that counts."""

    history: JobHistory
    entries: dict[int, EntryRecord]
    grants: dict[int, GrantRecord]
    endings: dict[int, EndingRecord]
    revivals: dict[int, RevivalRecord]
    known: set[int]
    """Every turn that is on record in any way."""

    last: int
    """The highest of them; 0 if there is none."""

    states: tuple[State, ...]
    slack_s: float


def ledger(history: JobHistory, slack_s: float = GRAIN_S) -> Ledger:
    """Return `history` ready to be checked.

    Args:
        history: What the store has on record.
        slack_s: How far instants may be out of order; the largest step back of the
            store's clock, where it is known to have been set back.
    """
    entries = {row.turn: row for row in history.entries[::-1]}
    grants = {row.turn: row for row in history.grants[::-1]}
    endings = {row.turn: row for row in history.endings[::-1]}
    revivals = {row.turn: row for row in history.revivals}
    known = {*entries, *grants, *endings}
    if history.held is not None:
        known.add(history.held.turn)
    last, states = max(known) if known else 0, states_of(history)
    return Ledger(history, entries, grants, endings, revivals, known, last, states, slack_s)


def partition(job: Ledger) -> Iterator[str]:
    """I1: the job is in exactly one state."""
    held = job.history.held
    if len(job.states) > 1 and held is not None:
        rest = ", ".join(job.states[1:])
        yield f"is held as {held.state} in turn {held.turn}, and {rest} in turn {job.last}"
    elif held is not None and held.state not in INITIAL:
        yield f"turn {held.turn} is held as {held.state}"
    elif not job.states:
        end = job.endings.get(job.last)
        last = f"turn {end.turn} ended {end.ending} at {_at(end.at)}, and " if end else ""
        yield f"is in no state: {last}nothing {'follows' if end else 'is on record'}"
    elif job.last in job.revivals and job.states[0] in TERMINAL:
        yield f"was revived at {_at(job.revivals[job.last].at)}, yet no turn follows {job.last}"


def transitions(job: Ledger) -> Iterator[str]:
    """I2: the rows can be explained by listed transitions only."""
    for turn, grant in job.grants.items():
        if turn not in job.entries:
            yield f"turn {turn} was granted to {_by(grant)} without having been pending"
    for turn, end in job.endings.items():
        sources = _sources(job, turn)
        # One that needs a grant and has none is for I4 to report.
        if sources.isdisjoint(_ENDS_FROM[end.ending]) and (
            sources is _RUNNING or not _needs_grant(job, end)
        ):
            yield f"turn {turn} ended {end.ending} while {' or '.join(sorted(sources))}"
    if job.last > 1:
        yield from _successions(job)
    yield from _revivals(job)
    yield from _lapses(job)


def _needs_grant(job: Ledger, end: EndingRecord) -> bool:
    return end.ending in _NEEDS_GRANT and not by_itself(job.history, end)


def _sources(job: Ledger, turn: int) -> frozenset[State]:
    """Return the states in which `turn` may have been just before it ended."""
    if turn in job.grants:
        return _RUNNING
    return _PENDING if turn in job.entries else INITIAL


def _successions(job: Ledger) -> Iterator[str]:
    held = job.history.held
    for turn in sorted(job.known):
        end = job.endings.get(turn)
        if turn == job.last:
            return
        if end is None:
            if turn + 1 in job.known:
                yield f"turn {turn} has not ended, yet turn {turn + 1} is on record"
        elif end.ending in FINAL_STATE:
            if turn not in job.revivals:
                at = _at(end.at)
                yield f"turn {turn} ended {end.ending} at {at}, yet turn {turn + 1} followed"
        elif (
            held is not None
            and held.turn == turn + 1
            and held.state in INITIAL
            and held.state not in _GOES_ON_TO[end.ending]
        ):
            yield f"turn {turn} ended {end.ending}, yet turn {held.turn} is held as {held.state}"


def _revivals(job: Ledger) -> Iterator[str]:
    for turn, revival in job.revivals.items():
        end, at = job.endings.get(turn), _at(revival.at)
        may = end and FINAL_STATE.get(end.ending) in sources(Event.REVIVE)
        if end is None or not (may or end.reason == MEMBERS):  # a batch, however it has ended
            how = "had not ended" if end is None else f"ended {end.ending}"
            yield f"was revived at {at} after turn {turn}, which {how}"
        elif revival.at < end.at - job.slack_s:
            yield f"was revived at {at}, before turn {turn} ended {end.ending} at {_at(end.at)}"


def _lapses(job: Ledger) -> Iterator[str]:
    expires_at = job.history.expires_at
    for turn, end in job.endings.items():
        if end.ending is not Ending.EXPIRED or turn in job.grants:
            continue
        if expires_at is None:
            yield f"turn {turn} ended expired, and the job has no deadline"
        elif end.at < expires_at - job.slack_s:
            yield f"turn {turn} ended expired at {_at(end.at)}, its deadline is {_at(expires_at)}"
    began = [turn for turn, end in job.endings.items() if end.began_at is not None]
    bound = min([*began, *job.revivals, job.last])  # later turns have no deadline
    for turn, grant in job.grants.items():
        if expires_at is not None and turn <= bound and grant.at > expires_at + _DECISION_S:
            yield f"turn {turn} was granted to {_by(grant)} at {_at(grant.at)}, past its deadline"


def turns(job: Ledger) -> Iterator[str]:
    """I3: turns are 1, 2, 3 … without gap or repeat, each granted at most once."""
    if job.last != len(job.known) or 0 in job.known:
        yield f"turns are {sorted(job.known)}: not 1, 2, 3 …"
    if len(job.entries) != len(job.history.entries):
        for turn, count in _repeats(job.history.entries):
            yield f"turn {turn} was entered {count} times"
    if len(job.grants) != len(job.history.grants):
        for turn, _ in _repeats(job.history.grants):
            leases = [f"to {_by(row)}" for row in job.history.grants if row.turn == turn]
            yield f"turn {turn} was granted {len(leases)} times: {', '.join(leases)}"


def fence(job: Ledger) -> Iterator[str]:
    """I4: a turn ends once, and only under its grant where its ending needs one."""
    for turn, end in job.endings.items():
        grant = job.grants.get(turn)
        if grant is None:
            if _needs_grant(job, end) or (end.worker, end.began_at) != (None, None):
                who = "" if end.worker is None else f" by worker {end.worker}"
                yield f"turn {turn} ended {end.ending}{who} without a grant"
        elif not _held_it(end, grant, job.history.grants):
            yield f"turn {turn} was granted to {_by(grant)}, but ended by worker {end.worker}"
        elif end.at < grant.at - job.slack_s:
            yield (
                f"turn {turn} ended {end.ending} at {_at(end.at)}, "
                f"before its grant to {_by(grant)} at {_at(grant.at)}"
            )
    if len(job.endings) != len(job.history.endings):
        for turn, count in _repeats(job.history.endings):
            ends = [
                f"{row.ending} by worker {row.worker} at {_at(row.at)}"
                for row in job.history.endings
                if row.turn == turn
            ]
            yield f"turn {turn} ended {count} times: {', '.join(ends)}"


def _held_it(end: EndingRecord, grant: GrantRecord, grants: tuple[GrantRecord, ...]) -> bool:
    # A turn that was granted twice is for I3 to report; here either grant will do.
    return end.worker == grant.worker or any(
        row.turn == end.turn and row.worker == end.worker for row in grants
    )


def overlap(job: Ledger) -> Iterator[str]:
    """I5: a turn is granted only after the one before it has ended."""
    for turn, grant in job.grants.items():
        end = job.endings.get(turn - 1)
        if end is not None and grant.at < end.at - job.slack_s:
            yield (
                f"turn {turn} was granted to {_by(grant)} at {_at(grant.at)}, "
                f"before turn {turn - 1} ended at {_at(end.at)}"
            )
        before = job.grants.get(turn - 1)
        # Within a lane the order of the leases says it too, whatever the clock did.
        if before is not None and before.lane == grant.lane and before.seq >= grant.seq:
            yield f"turn {turn} was granted to {_by(grant)}, but turn {turn - 1} to {_by(before)}"


def at_most_once(job: Ledger) -> Iterator[str]:
    """I6': where no second attempt is allowed, none is granted after one began."""
    if job.history.delivery is not Delivery.AT_MOST_ONCE:
        return
    for ends, grants in _lives(job):
        began = [end.turn for end in ends if end.began_at is not None]
        again = [turn for turn in grants if began and turn > min(began)]
        if again:
            told = f"yet turns {again} were granted: at most once was promised"
            yield f"turn {min(began)} began, {told}"


def budgets(job: Ledger) -> Iterator[str]:
    """I7: retries and crashes keep to their limits, and no retry is withheld.

    With I2 (the last ending is the only final one) this bounds the starts: each start
    ends retried, lost, snoozed, released or awaited, but for the last.
    """
    for ends, _ in _lives(job):
        yield from _budget(job.history, ends)


def _budget(history: JobHistory, ends: list[EndingRecord]) -> Iterator[str]:
    max_retries, max_crashes = history.max_retries, history.max_crashes
    retried = sum(end.ending is Ending.RETRIED for end in ends)
    lost = sum(end.ending is Ending.LOST for end in ends)
    if retried > max_retries:
        yield f"was retried {retried} times with max_retries {max_retries}"
    if lost and lost >= max_crashes:
        yield f"crashed {lost} times with max_crashes {max_crashes}, and went on"
    if retried < max_retries and any(end.reason == "exhausted" for end in ends):
        yield f"failed as exhausted after {retried} retries with max_retries {max_retries}"


def _lives(job: Ledger) -> Iterator[tuple[list[EndingRecord], list[int]]]:
    """Yield the endings and the granted turns of each life: a revival begins another one."""
    after = 0
    for upto in (*sorted(job.revivals), job.last):
        ends = [end for turn, end in job.endings.items() if after < turn <= upto]
        yield ends, sorted(turn for turn in job.grants if after < turn <= upto)
        after = upto


def never_early(job: Ledger) -> Iterator[str]:
    """I12: nothing happens before `run_at`, nor before the wait of a retry or a snooze is over."""
    run_at, slack_s = job.history.run_at or 0.0, job.slack_s
    first_life = min(job.revivals, default=job.last)  # who is revived starts at once
    for turn in job.known:
        due, before = run_at if turn <= first_life else 0.0, job.endings.get(turn - 1)
        if before is not None and before.delay_s:  # without a wait it is I5
            due = max(due, before.at + before.delay_s)
        due = max([due, *(row.until for row in job.history.snoozes if row.turn == turn)])
        if due:
            yield from (
                f"turn {turn} {what} at {_at(at)}, {due - at:.6f} s before it was due at {_at(due)}"
                for what, at in _instants(job, turn)
                if at < due - slack_s
            )


def _instants(job: Ledger, turn: int) -> Iterator[tuple[str, float]]:
    if (entry := job.entries.get(turn)) is not None:
        yield "was entered", entry.at
    for grant in job.history.grants:
        if grant.turn == turn:
            yield f"was granted to {_by(grant)}", grant.at
    if (end := job.endings.get(turn)) is not None and end.began_at is not None:
        yield "began", end.began_at


def cancel(job: Ledger) -> Iterator[str]:
    """I19: once a running attempt was asked to stop, no further one is granted."""
    for asked_at in job.history.cancels_requested_at:
        revived_at = [row.at for row in job.history.revivals if row.at >= asked_at]
        for turn, grant in job.grants.items():
            if asked_at + job.slack_s < grant.at < min(revived_at, default=inf):
                yield (
                    f"turn {turn} was granted to {_by(grant)} at {_at(grant.at)}, "
                    f"after its cancel was requested at {_at(asked_at)}"
                )


INVARIANTS: Final[Mapping[str, Callable[[Ledger], Iterator[str]]]] = MappingProxyType(
    {
        "I1": partition,
        "I2": transitions,
        "I3": turns,
        "I4": fence,
        "I5": overlap,
        "I6'": at_most_once,
        "I7": budgets,
        "I9": lambda job: idle(job.history, job.states),
        "I12": never_early,
        "I13": lambda job: early(job.history, job.slack_s),
        "I14": lambda job: missed(job.history),
        "I15": lambda job: backwards(job.history),
        "I19": cancel,
    }
)
"""Every check of one job, by the name of its invariant in the contract."""


def _repeats(rows: Iterable[EntryRecord | GrantRecord | EndingRecord]) -> Iterator[tuple[int, int]]:
    counts = Counter(row.turn for row in rows)
    return ((turn, count) for turn, count in sorted(counts.items()) if count > 1)


def _by(grant: GrantRecord) -> str:
    return f"worker {grant.worker} (lane {grant.lane}, lease {grant.seq})"


def _at(instant: float) -> str:
    return datetime.fromtimestamp(instant, UTC).isoformat(timespec="microseconds")
