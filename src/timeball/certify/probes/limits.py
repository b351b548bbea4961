"""Limits: slots are rows, permits are granted under a lock, and a page is no more than a page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from timeball.certify.probes.probe import Probe
from timeball.certify.sessions import Blocked, Refused
from timeball.certify.stage import Stage
from timeball.certify.verbs import jobs_json, submit, worker_of
from timeball.core.limits import Scope
from timeball.core.rate import Rate
from timeball.core.states import State
from timeball.core.upkeep import Keep
from timeball.store.limiting import Ask
from timeball.store.postgres.encoding import encode

_KEY: Final = "customer"
_NOON: Final = datetime(2026, 3, 1, 12, tzinfo=UTC)
_MANY: Final = 40
_PAGE: Final = 7


def _admitted_at_once(stage: Stage) -> Any:
    """Have two sessions admit jobs of one key, of which one may be under way."""
    worker_of(stage.store)
    stage.store.ensure_lanes([("default", submit(stage.store)[0].priority)])
    stage.session().verb("submit", jobs=jobs_json(2, key=_KEY))
    one, two = stage.session().begin(), stage.session()
    first = one.verb("admit_keys", keys=[_KEY], limit=10)[0][0]
    step = two.verb_steps("admit_keys", keys=[_KEY], limit=10)
    one.commit()
    answer = two.outcome()
    second = answer.sqlstate if isinstance(answer, Refused) else answer[0][0]
    return {"first": first, "waits": isinstance(step, Blocked), "second": second}


def _asked_at_once(stage: Stage) -> Any:
    """Have two sessions ask for the permits of one limit."""
    stage.store.limit_starts(Scope.KIND, "a", Rate(2, per_s=3_600))
    stage.store.permits([Ask(["kind:a"], 0)], [])  # so that there is a row to be locked
    ask = encode([Ask(["kind:a"], 2)._asdict()])
    one, two = stage.session().begin(), stage.session()
    first = one.verb("permits", asks=ask, spent="[]")[0][0]
    two.verb_steps("permits", asks=ask, spent="[]")
    one.commit()
    answer = two.outcome()
    assert isinstance(answer, list)
    parts = [told["granted"][0] for told in (first, answer[0][0])]
    return [sum(part["permits"] for part in each) for each in parts]


def _not_used_yet(stage: Stage) -> Any:
    """Ask again when a permit that nobody has heard of may just have been used."""
    stage.travel(_NOON)
    stage.store.limit_starts(Scope.KIND, "a", Rate(2))
    granted = []
    for seconds in (10.0, 11.5, 12.5):
        stage.travel(_NOON + timedelta(seconds=seconds))
        (told,) = stage.store.permits([Ask(["kind:a"], 2)], []).granted
        granted.append(told.permits)
    return granted


def _a_page(stage: Stage) -> Any:
    """Promote a few of many jobs that are due."""
    submit(stage.store, _MANY, delay_s=0.001)
    stage.until(lambda: stage.ask("due")[0][0] == _MANY, "all are due")
    moved = stage.store.promote(_PAGE).moved
    return {"moved": moved, "pending": stage.store.counts().get(State.PENDING, 0)}


def _last_page(stage: Stage) -> Any:
    """Look at forty jobs for old ones, a page at a time."""
    submit(stage.store, _MANY)
    after: tuple[int, ...] = ()
    for _ in range(2 * _MANY // _PAGE + 3):
        trimmed = stage.store.trim(Keep(0.0, 0.0), after=after, limit=_PAGE)
        if trimmed.after is None:
            return "done"
        after = trimmed.after
    return "begins again and again"


ADMITTED_AT_ONCE: Final = Probe(
    name="of two who admit at once one finds the slot",
    run=_admitted_at_once,
    expected={"first": 1, "waits": True, "second": 0},
)
ASKED_AT_ONCE: Final = Probe(
    name="of two who ask at once one has the permits", run=_asked_at_once, expected=[2, 0]
)
NOT_USED_YET: Final = Probe(
    name="a permit that may yet be used is not given out again",
    run=_not_used_yet,
    expected=[2, 0, 2],
)
A_PAGE: Final = Probe(
    name="no more than a page is moved",
    run=_a_page,
    expected={"moved": _PAGE, "pending": _PAGE},
)
LAST_PAGE: Final = Probe(name="a sweep comes to an end", run=_last_page, expected="done")
