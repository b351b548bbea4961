"""What a dashboard shows and no program needs: turns of a job, workers, what happened lately.

Every answer is bounded, however many jobs there are: of those that have ended, the newest
`NEWEST_MAX` are looked at.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from timeball.core.batches import BatchLine
from timeball.core.limits import Scope
from timeball.core.permits import Law, Proof, Start, proofs
from timeball.core.records import Schedule
from timeball.core.states import Ending, State
from timeball.store.postgres.batches import batch_line
from timeball.store.postgres.connections import Connections
from timeball.store.postgres.readers import list_of, schedule_of
from timeball.store.postgres.sealing import opened_text, opened_value

NEWEST_MAX: Final = 10_000
LOOKED_MAX: Final = 5_000
"""Of jobs that do not fit a list looks at so many, and says so."""

FAILURES_MAX: Final = 1_000
TURNS_MAX: Final = 200
WORKERS_MAX: Final = 1_000
PROVEN_MAX: Final = 5_000
"""Turns of which it is worked out, while somebody waits for a page, whether a rate was kept."""

LEFT_MAX: Final = 1_000
"""Where counting what is left of the last batch ends."""

_TURNS_MAX: Final = 1_000
"""Turns of a worker in a lane that are looked at to count what it runs."""

_PROVEN_S: Final = 3_600
_GONE_MAX: Final = 20
_KINDS_MAX: Final = 8


class TurnRecord(NamedTuple):
    """One turn of a job, from when it lined up to how it ended; None: that has not happened."""

    turn: int
    lined_at: datetime | None
    granted_at: datetime | None
    worker: int | None
    began_at: datetime | None
    ran_s: float | None
    ended_at: datetime | None
    ending: Ending | None
    reason: str | None
    error_type: str | None
    error: str | None
    result: Any
    direct: bool
    """Whether it lined up in the submit itself: there was nothing to wait for."""


class Happened(NamedTuple):
    """Something rare that happened to a job: what, in which turn, by which worker."""

    at: datetime
    what: str
    turn: int | None
    worker: int | None


class WorkerRecord(NamedTuple):
    """One worker, alive or gone."""

    id: int
    name: str
    kinds: list[str]
    queues: list[str]
    lease_s: float
    started_at: datetime
    beat_at: datetime
    silent_s: float
    """How long ago its last beat was."""

    ended_at: datetime | None
    end_reason: str | None
    running: int
    """Turns that it was granted and that have not ended."""


class Failures(NamedTuple):
    """How often a kind has failed by one thing."""

    kind: str
    cause: str
    jobs: int
    last_at: datetime


class Starts(NamedTuple):
    """How many attempts began in each of the last seconds, oldest first."""

    per_second: list[int]
    known: int
    """Of so many of the last seconds all that began is known."""


class Proven(NamedTuple):
    """How what began lately under one limit stands against its rate."""

    since: datetime
    """Of turns that were granted after then, and have ended."""

    proofs: list[Proof]
    """One; of a pattern one for each key, the fullest window first. None: nothing began."""


class Panorama:
    """What happened lately, and who is there."""

    def __init__(self, connections: Connections) -> None:
        self._run = connections.run

    def held(self) -> Counter[State]:
        """Return how many jobs are held back in each state, up to `NEWEST_MAX` in all."""
        rows = self._run("held_states", most=NEWEST_MAX)
        return Counter({State(state): count for state, count in rows})

    def endings(self) -> dict[State, Counter[int]]:
        """Return of the newest jobs how many ended in each state, by minutes ago."""
        found: dict[State, Counter[int]] = {}
        for state, minutes, count in self._run("recent_endings", most=NEWEST_MAX):
            found.setdefault(State(state), Counter())[max(0, minutes)] += count
        return found

    def horizon(self, state: State | None, before_id: int | None, most: int | None) -> int | None:
        """Return how far back a list of jobs in a state looks; None: to its end.

        Args:
            state: Of the list.
            before_id: The last id of the page before.
            most: At so many jobs it looks; None: `LOOKED_MAX`.
        """
        most = LOOKED_MAX if most is None else most
        found = self._run("horizon", list=list_of(state), before_id=before_id, most=most)
        return found[0][0]  # type: ignore[no-any-return]  # of a row of one number

    def failures(self) -> list[Failures]:
        """Return of the newest failures which kinds they are of, and by what."""
        rows = self._run("recent_failures", most=FAILURES_MAX, kinds=_KINDS_MAX)
        return [Failures(kind, cause, n, at.astimezone(UTC)) for kind, cause, n, at in rows]

    def starts(self, seconds: int = 60) -> Starts:
        """Return how many attempts of the newest jobs began in each of the last seconds."""
        per_second, known = [0] * seconds, seconds
        for ago, count in self._run("recent_starts", most=NEWEST_MAX, seconds=seconds):
            if ago is None:
                known = max(0, min(seconds, count))
            elif 0 <= ago < seconds:
                per_second[seconds - 1 - ago] = count
        return Starts(per_second, known)

    def proven(self, scope: Scope, name: str) -> Proven | None:
        """Return what the record says of a rate, of the last hour and `PROVEN_MAX` turns at most.

        Args:
            scope: What the limit is about.
            name: Of the limit.

        Returns:
            What began against what might; None where there is no such limit on starts.
        """
        asked = {"scope": scope.value, "name": name, "seconds": _PROVEN_S}
        rows = self._run("recent_permitted", most=PROVEN_MAX, **asked)
        if not rows:
            return None
        since, *law = rows[0][:5]
        rate = Law(*law).rate
        starts = (Start(of, rate, at_us) for *_, of, at_us in rows if of is not None)
        found = sorted(proofs(starts), key=lambda proof: (-len(proof.early), -proof.most))
        return Proven(since.astimezone(UTC), found)

    def schedules_ahead(self, most: int) -> list[Schedule]:
        """Return so many of the schedules that fire next, and of those that are in error."""
        return [schedule_of(row) for row in self._run("schedules_ahead", most=most)]

    def last_batch(self) -> BatchLine | None:
        """Return the newest batch; its jobs are counted up to `LEFT_MAX`."""
        rows = self._run("batches", limit=1, before_id=None, most=LEFT_MAX)
        return batch_line(*rows[0]) if rows else None

    def workers(self, *, counted: bool = True) -> list[WorkerRecord]:
        """Return the workers that live, and after them the latest that do not.

        Args:
            counted: Whether what each of them runs is; otherwise it is 0.
        """
        turns = _TURNS_MAX if counted else 0
        rows = self._run("workers", most=WORKERS_MAX, gone=_GONE_MAX, turns=turns)
        return [WorkerRecord(*map(_utc, row)) for row in rows]

    def turns(self, job_id: int) -> list[TurnRecord]:
        """Return the newest turns of a job, in order."""
        return [_turn_of(row) for row in self._run("job_turns", job=job_id, limit=TURNS_MAX)]

    def happened(self, job_id: int) -> list[Happened]:
        """Return the newest rare events of a job, oldest first."""
        rows = self._run("job_events", job=job_id, limit=TURNS_MAX)
        return [Happened(*map(_utc, row)) for row in reversed(rows)]


def _turn_of(row: tuple[Any, ...]) -> TurnRecord:
    turn, lined, granted, worker, began, ran_s, ended, event, *rest = map(_utc, row)
    reason, error_type, error, result, direct = rest
    ending = None if event is None else Ending(event)
    told = (reason, error_type, opened_text(error, "error"), opened_value(result, "result"), direct)
    return TurnRecord(turn, lined, granted, worker, began, ran_s, ended, ending, *told)


def _utc(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value
