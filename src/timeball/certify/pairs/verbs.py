"""Every verb of the store that changes anything, as two programs may call it on the scene."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from timeball.certify.pairs.scene import (
    KIND,
    NOON,
    Scene,
    batch_of,
    decided,
    spec_of,
    standing_at,
    uuid_of,
)
from timeball.client.specs import agenda_of, schedule_spec
from timeball.core.dependencies import Edge
from timeball.core.limits import Scope
from timeball.core.misfire import backfill
from timeball.core.notes import Note
from timeball.core.rate import Rate
from timeball.core.records import OverlapRuns, Schedule
from timeball.core.standing import standing
from timeball.core.states import Ending
from timeball.core.uniqueness import OnClash, Unique
from timeball.core.upkeep import Keep
from timeball.store.base import schedule_job
from timeball.store.limiting import Ask

Call = Callable[[Any, Scene], Any]
"""Calls a verb of a store and returns what of its answer is the same in every run."""

ROUNDS: Final = frozenset(
    {
        "promote",
        "lapse",
        "admit",
        "fire_due",
        "fire",
        "link",
        "note",
        "cancel_many",
        "reopen",
        "add_edges",
    }
)
"""Verbs that pass over what somebody else is at: what they say of it is sent again, in rounds."""

ALWAYS: Final = ("link", "lapse")
"""Of these workers' rounds others leave something to, whoever calls them."""

LOOSE: Final = frozenset(
    (submit, gone)
    for submit in ("submit: a child", "submit: a batch")
    for gone in ("delete", "trim")
)
"""Pairs that come to what no serial order does: the parent of a job is deleted after its submission
has seen it and before that has committed. It is neither refused nor is the job there in time to
keep its parent: all is as if the parent had been deleted first, but that the job is there."""

_FEWER: Final = 9
"""As many as run in the queue."""

_LATER: Final = NOON + timedelta(hours=1)

_KEEP: Final = Keep(succeeded_s=1.0, others_s=1.0)


def verb_of(name: str) -> str:
    """Return which verb a way to call one is of."""
    return name.partition(":")[0]


def _submit(store: Any, name: str, **fields: Any) -> list[str]:
    return [str(each.uuid) for each in store.submit([spec_of(name, **fields)])]


def _settle(ending: Ending, name: str = "runs", **fields: Any) -> Call:
    return lambda store, scene: store.settle(scene.worker, [scene.said(name, ending, **fields)])


def _claim(store: Any, worker: int, limit: int, request: str) -> list[Any]:
    asked = {"limit": limit, "request": uuid_of(request), "floors": {}, "permits": {"mail": 1}}
    return [[str(each.uuid), each.turn, each.attempts] for each in store.claim(worker, **asked)]


def _expire(store: Any, scene: Scene) -> Any:
    return store.expire(scene.dying, beat=None, begun=None)


def _declare(store: Any, name: str) -> None:
    spec = schedule_spec(name, KIND, cron="30 * * * *", tz="UTC")
    store.declare(spec, standing(agenda_of(spec), NOON + timedelta(minutes=3)))


def _resume(store: Any, scene: Scene) -> Any:
    schedule = scene.schedules["paused"]
    return store.resume(schedule, standing_at(schedule, scene.now))


def _fire(*, replaces: bool) -> Call:
    """Return what fires the schedules that replace their runs, or the others: one transaction."""

    def call(store: Any, scene: Scene) -> Any:
        firings = [each for each in scene.firings if _replaces(each.schedule) == replaces]
        return [made if made is None else len(made) for made in store.fire(firings)]

    return call


def _replaces(schedule: Schedule) -> bool:
    return schedule.spec.overlap_runs == OverlapRuns.REPLACE


def _run_now(store: Any, scene: Scene) -> None:
    schedule = scene.schedules["due"]
    store.run_now(schedule, schedule_job(schedule.spec, uuid_of("extra"), "{}"))


def _backfill(store: Any, scene: Scene) -> Any:
    schedule = scene.schedules["due"]
    at = [NOON - timedelta(minutes=57)]
    made = store.backfill(schedule, backfill(schedule, agenda_of(schedule.spec), at))
    return made if made is None else [each is None for each in made]


def _spawn(store: Any, scene: Scene) -> Any:
    said = scene.said("spawns", Ending.AWAITED)
    return store.spawn(scene.worker, said._replace(spawned=(spec_of("spawned"),)))


def _note(store: Any, scene: Scene) -> int:
    turn = scene.turns["runs"]
    line = Note(turn.job_id, turn.turn, (1.0, 2.0, "half"), ())
    return len(store.note([line]))


def _permits(store: Any, _scene: Scene) -> Any:
    return [each.permits for each in store.permits([Ask(["queue:mail"], 1)], []).granted]


def _reopen(store: Any, scene: Scene) -> Any:
    turn = scene.turns["of the old batch"]
    return store.reopen([(turn.job_id, turn.turn)])


def _fire_due(store: Any, _scene: Scene) -> None:
    decide = decided(store)
    store.fire_due(10, lambda now, due: decide(now, [each for each in due if not _replaces(each)]))


CALLS: Final[Mapping[str, Call]] = {
    "submit": lambda store, _: _submit(store, "new"),
    "submit: in line": lambda store, _: _submit(store, "new in line", key="l"),
    "submit: a child": lambda store, _: _submit(
        store, "new child", after=(Edge(uuid_of("runs")), Edge(uuid_of("failed")))
    ),
    "add_edges": lambda store, _: store.add_edges(
        uuid_of("is a child"), [Edge(uuid_of("is a member"))]
    ),
    "submit: unique": lambda store, _: _submit(store, "new unique", unique=Unique(key="u")),
    "submit: unique too": lambda store, _: _submit(
        store, "other unique", unique=Unique(key="u", on_clash=OnClash.REJECT)
    ),
    "submit: a batch": lambda store, _: [
        str(each.uuid) for each in store.submit([batch_of("new batch", "is pending", "succeeded")])
    ],
    "cancel": lambda store, _: store.cancel(uuid_of("is pending")),
    "cancel: running": lambda store, _: store.cancel(uuid_of("runs")),
    "cancel: scheduled": lambda store, _: store.cancel(uuid_of("is scheduled")),
    "cancel: waiting": lambda store, _: store.cancel(uuid_of("is a child")),
    "cancel: has a key": lambda store, _: store.cancel(uuid_of("has a key")),
    "cancel: called": lambda store, _: store.cancel(uuid_of("is called")),
    "call_back": lambda store, _: store.call_back(uuid_of("is called"), '"yes"'),
    "call_back: otherwise": lambda store, _: store.call_back(uuid_of("is called"), '"no"'),
    "call_back: late": lambda store, _: store.call_back(uuid_of("is called late"), '"yes"'),
    "register": lambda store, _: bool(
        store.register("new", kinds=[KIND], queues=["default"], lease_s=30.0)
    ),
    "claim": lambda store, scene: _claim(store, scene.idle, 2, "one"),
    "claim: all": lambda store, scene: _claim(store, scene.worker, 100, "other"),
    "settle": _settle(Ending.SUCCEEDED),
    "settle: failed": _settle(Ending.FAILED, "is a parent", reason="permanent"),
    "settle: parent": _settle(Ending.SUCCEEDED, "is a parent"),
    "settle: member": _settle(Ending.SUCCEEDED, "is a member"),
    "settle: key": _settle(Ending.SUCCEEDED, "has the key"),
    "settle: retried": _settle(Ending.RETRIED, "runs", delay_s=0.0),
    "settle: released": _settle(Ending.RELEASED, "runs too"),
    "spawn": _spawn,
    "promote": lambda store, _: store.promote(100).moved,
    "lapse": lambda store, _: store.lapse(100),
    "link": lambda store, _: store.link(100),
    "beat": lambda store, scene: len(store.beat([scene.worker, scene.dying])),
    "expire": _expire,
    "retire": lambda store, scene: store.retire(scene.idle),
    "note": _note,
    "permits": _permits,
    "revive": lambda store, _: store.revive([uuid_of("failed"), uuid_of("failed too")]),
    "delete": lambda store, _: store.delete([uuid_of("failed"), uuid_of("succeeded")]),
    "trim": lambda store, _: store.trim(_KEEP).deleted,
    "move": lambda store, _: store.move(uuid_of("is pending"), queue="mail", priority=None),
    "move: held": lambda store, _: store.move(uuid_of("is scheduled"), queue=None, priority=7),
    "snooze": lambda store, _: store.snooze(uuid_of("is pending"), _LATER),
    "snooze: held": lambda store, _: store.snooze(uuid_of("is scheduled"), _LATER),
    "snooze: has a key": lambda store, _: store.snooze(uuid_of("has a key"), _LATER),
    "pause_queue": lambda store, _: store.pause_queue("default", "somebody"),
    "resume_queue": lambda store, _: store.resume_queue("default"),
    "bound_queue": lambda store, _: store.bound_queue("default", 8),
    "limit": lambda store, _: store.limit(Scope.QUEUE, "default", _FEWER),
    "limit: key": lambda store, _: store.limit(Scope.KEY, "l", 2),
    "limit: no more": lambda store, _: store.limit(Scope.QUEUE, "default", None),
    "limit_starts": lambda store, _: store.limit_starts(Scope.QUEUE, "mail", Rate(5)),
    "limit_starts: no more": lambda store, _: store.limit_starts(Scope.QUEUE, "mail", None),
    "add_members": lambda store, _: [
        str(each.uuid) for each in store.add_members(uuid_of("batch"), [spec_of("new member")])
    ],
    "close_batch": lambda store, _: store.close_batch(uuid_of("batch")),
    "cancel_many": lambda store, _: sorted(
        map(str, store.cancel_many([uuid_of("in the batch"), uuid_of("is pending")]))
    ),
    "reopen": _reopen,
    "declare": lambda store, _: _declare(store, "due"),
    "declare: new": lambda store, _: _declare(store, "new"),
    "withdraw": lambda store, _: store.withdraw("file", keep=[]),
    "remove": lambda store, _: store.remove("in line"),
    "pause": lambda store, _: store.pause("due"),
    "resume": _resume,
    "suspend": lambda store, scene: store.suspend(scene.schedules["due"], "of a test"),
    "fire": _fire(replaces=False),
    "fire: replaces": _fire(replaces=True),
    "fire_due": _fire_due,
    "admit": lambda store, _: store.admit(100),
    "run_now": _run_now,
    "backfill": _backfill,
}
"""Ways to call each verb, by the verb's name and what is particular about them."""
