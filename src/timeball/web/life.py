"""The life of a job as a stepped line, the same as a list, and where its time went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from itertools import pairwise
from math import log10
from typing import Final, NamedTuple

from markupsafe import Markup

from timeball.core.callbacks import CALL
from timeball.core.cron import Zone
from timeball.core.records import Job
from timeball.core.states import TERMINAL, Ending, State
from timeball.store.postgres.panorama import Happened, TurnRecord
from timeball.web.wording import clock, duration

_W, _LEFT, _RIGHT, _TOP, _ROW = 1120.0, 84.0, 24.0, 10.0, 34.0
_LABEL_ROOM: Final = 62.0
_POINTS_MAX: Final = 60


class Stage(StrEnum):
    """Where a job is in its life: the rows of the drawing, from top to bottom."""

    HELD = "held"  # scheduled, or waiting for parents
    PENDING = "pending"
    GRANTED = "granted"  # a worker has it, and it has not begun: no slot or no permit yet
    RUNNING = "running"
    ENDED = "ended"


class Moment(NamedTuple):
    """One step of a life."""

    at: datetime
    stage: Stage
    what: str
    note: str
    tone: str
    """A state, whose colour it has."""


class Spent(NamedTuple):
    """What a job's time went into, in seconds."""

    held: float
    pending: float
    granted: float
    running: float


def moments(job: Job, turns: Sequence[TurnRecord], happened: Sequence[Happened]) -> list[Moment]:
    """Return the steps of a job's life, in order; of a long one the latest."""
    held = not any(turn.direct for turn in turns)
    found = [
        Moment(
            job.created_at,
            Stage.HELD if held else Stage.PENDING,
            "submitted",
            f"to queue {job.queue}, priority {job.priority}",
            "scheduled" if held else "pending",
        )
    ]
    for turn in turns:
        found += _of_turn(turn, first_free=held or turn.turn > 1)
    found += [_rare(each, found) for each in happened if each.what != "stale_settlement"]
    found.sort(key=lambda moment: moment.at)
    return found if len(found) <= _POINTS_MAX else [found[0], *found[1 - _POINTS_MAX :]]


def spent(job: Job, turns: Sequence[TurnRecord], now: datetime) -> Spent:
    """Return where the time of a job went until now; no part is negative, whatever the clocks."""
    parts = dict.fromkeys(Stage, 0.0)
    steps = [*moments(job, turns, ()), None]
    for here, following in pairwise(steps):
        assert here is not None
        until = now if following is None else following.at
        parts[here.stage] += max(0.0, (until - here.at).total_seconds())
    return Spent(*(parts[stage] for stage in Stage if stage is not Stage.ENDED))


def drawn(
    steps: Sequence[Moment], *, open_until: datetime | None, zone: Zone | None = None
) -> Markup:
    """Return the life as a stepped line. Time is compressed, so that the short steps are seen.

    Args:
        steps: As `moments` gives them.
        open_until: Now, for a job that has not ended.
        zone: By whose clocks its beginning is told; None: in UTC.
    """
    at = _places([step.at for step in steps] + ([open_until] if open_until else []))
    height = _TOP + len(Stage) * _ROW + 24
    parts = [_rows()]
    path = f"M{at[0]:.1f},{_y(steps[0].stage):.1f}"
    path += "".join(
        f"H{x:.1f}V{_y(step.stage):.1f}" for x, step in zip(at[1:], steps[1:], strict=False)
    )
    parts.append(Markup('<path class="lifeline" d="{}"/>').format(path))
    if open_until:
        y = _y(steps[-1].stage)
        parts.append(
            Markup('<path class="lifeline open" d="M{:.1f},{:.1f}H{:.1f}"/>').format(
                at[len(steps) - 1], y, at[-1]
            )
        )
    parts += _points(steps, at, zone)
    return Markup(
        '<svg class="wide life" viewBox="0 0 1120 {:.0f}" role="img" aria-label="{}">{}</svg>'
    ).format(
        height,
        f"Life of the job in {len(steps)} steps; the list of events says the same",
        Markup("").join(parts),
    )


def verdict(job: Job, turns: Sequence[TurnRecord]) -> tuple[str, str]:
    """Return in words how it stands with a job, and whose doing that is."""
    lost = sum(turn.ending is Ending.LOST for turn in turns)
    again = sum(turn.ending is Ending.RETRIED for turn in turns)
    before = [f"{again} attempt(s) failed and were repeated"] if again else []
    before += [f"{lost} attempt(s) were cut off because a worker died"] if lost else []
    past = f"Before that {' and '.join(before)}." if before else ""
    match job.state:
        case State.SUCCEEDED:
            return "Succeeded.", past or "At the first attempt."
        case State.FAILED if job.reason in {"lost", "quarantined"}:
            return "Failed: its worker died.", "The job may have killed it; see its attempts."
        case State.FAILED:
            why = f"The job itself raised {job.error_type}." if job.error_type else ""
            return f"Failed: {job.reason or 'an error'}.", f"{why} {past}".strip()
        case State.CANCELLED | State.SKIPPED:
            return f"{job.state.capitalize()}.", f"Reason: {job.reason or 'an operator'}. {past}"
        case State.RUNNING:
            return "Running.", past
        case _:
            return f"{job.state.capitalize()}.", f"{_why_not(job)} {past}".strip()


def _why_not(job: Job) -> str:
    reasons = {
        "paused": "Its queue is paused: resume it, and it starts.",
        "key": "Another job of its key is under way.",
        "rate": "It waits for a permit: the rate limit is the bottleneck.",
        "no_worker": "No worker that lives knows its kind.",
        CALL: "It waits for a call to its address, until it expires.",
    }
    if job.reason in reasons:
        return reasons[job.reason]
    waits = {
        State.SCHEDULED: "It is not due yet.",
        State.WAITING: "It waits for jobs that it comes after.",
        State.PENDING: "It starts when a worker of its queue has a free slot.",
    }
    return waits.get(job.state, "")


def _of_turn(turn: TurnRecord, *, first_free: bool) -> Iterator[Moment]:
    n = f"turn {turn.turn}"
    if turn.lined_at is not None and first_free:
        yield Moment(turn.lined_at, Stage.PENDING, "pending", f"{n} lined up", "pending")
    if turn.granted_at is not None:
        note = f"{n} granted to worker {turn.worker}"
        yield Moment(turn.granted_at, Stage.GRANTED, "granted", note, "waiting")
    if turn.began_at is not None:
        yield Moment(turn.began_at, Stage.RUNNING, "running", f"{n} began", "running")
    if turn.ended_at is not None:
        yield _end(turn)


def _end(turn: TurnRecord) -> Moment:
    assert turn.ending is not None
    assert turn.ended_at is not None
    words = [turn.error_type, turn.reason and f"({turn.reason})"]
    words += [f"after {duration(turn.ran_s)}"] if turn.ran_s else []
    note = " ".join(word for word in words if word) or f"turn {turn.turn} is over"
    final = turn.ending in {state.value for state in TERMINAL} or turn.ending is Ending.EXPIRED
    tones = {Ending.RETRIED: "failed", Ending.LOST: "failed", Ending.EXPIRED: "skipped"}
    tone = tones.get(turn.ending, turn.ending.value if final else "scheduled")
    stage = Stage.ENDED if final else Stage.HELD
    return Moment(turn.ended_at, stage, turn.ending, note, tone)


def _rare(each: Happened, steps: Sequence[Moment]) -> Moment:
    """Return a rare event, in the stage in which it met the job."""
    before = [step for step in steps if step.at <= each.at] or steps[:1]
    stage = max(before, key=lambda step: step.at).stage
    tone = "cancelled" if each.what == "cancel_requested" else "pending"
    return Moment(each.at, stage, each.what.replace("_", " "), "by an operator", tone)


def _places(instants: Sequence[datetime]) -> list[float]:
    """Return where each instant is drawn: steps as wide as the logarithm of their lengths."""
    lengths = [max(0.0, (later - earlier).total_seconds()) for earlier, later in pairwise(instants)]
    weights = [0.35 + log10(1 + 1000 * length) for length in lengths]
    room = (_W - _LEFT - _RIGHT) / (sum(weights) or 1)
    found = [_LEFT]
    for weight in weights:
        found.append(found[-1] + weight * room)
    return found


def _y(stage: Stage) -> float:
    return _TOP + list(Stage).index(stage) * _ROW + _ROW / 2


def _rows() -> Markup:
    return Markup("").join(
        Markup(
            '<text class="lane" x="{0:.1f}" y="{1:.1f}" text-anchor="end">{2}</text>'
            '<line class="rule" x1="{3:.1f}" x2="{4:.1f}" y1="{5:.1f}" y2="{5:.1f}"/>'
        ).format(_LEFT - 14, _y(stage) + 4, stage, _LEFT, _W - _RIGHT, _y(stage))
        for stage in Stage
    )


def _points(steps: Sequence[Moment], at: Sequence[float], zone: Zone | None) -> Iterator[Markup]:
    labelled = float("-inf")
    for i, (step, x) in enumerate(zip(steps, at, strict=False)):
        apart = (step.at - steps[0].at).total_seconds()
        text = f"+{duration(apart)}" if i else clock(step.at, zone)[:-4]
        yield Markup(
            '<circle class="ev t-{}" data-n="{}" cx="{:.1f}" cy="{:.1f}" r="5.5">'
            "<title>{} {}: {}</title></circle>"
        ).format(step.tone, i, x, _y(step.stage), text, step.what, step.note)
        if x - labelled >= _LABEL_ROOM:
            labelled = x
            y = _TOP + len(Stage) * _ROW + 16
            yield Markup(
                '<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="middle">{}</text>'
            ).format(x, y, text)
